"""CSV records to cells: one record is one line, its fields in schema order (RFC 4180).

A field in quotes may hold delimiters, line breaks and doubled quotes. A quote inside an unquoted field is an ordinary
character. An unquoted field that is the dialect's mark of NULL, which is nothing unless it says otherwise, is NULL;
`""` is an empty text. One line break at the end of the record is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from streamjoin.intake.dialect import PLAIN, Dialect
from streamjoin.intake.records.cells import NULL, QUOTED, TEXT, Bytes, Cells, Longs
from streamjoin.intake.records.record_bytes import RecordBytes
from streamjoin.intake.records.utf8 import utf8_error
from streamjoin.kernel import lean_kernel

EMPTY: Final = 1
BAD_UTF8: Final = 2
OPENquote: Final = 3
AFTERquote: Final = 4
SECOND_LINE: Final = 5
TOO_FEW: Final = 6
TOO_MANY: Final = 7

_LF: Final = 0x0A
_CR: Final = 0x0D


class CsvScanner:
    """Splits CSV records into fields; their names are for messages only."""

    def __init__(self, names: Sequence[str], dialect: Dialect | None = None) -> None:
        dialect = dialect or PLAIN
        self._names = names
        self._marks = dialect.delimiter_byte, dialect.quote_byte, np.frombuffer(dialect.null.encode(), np.uint8)

    def scan(self, records: RecordBytes) -> tuple[Cells, dict[int, str]]:
        """The cells of every record, and why a record has none. Cost: two looks at every byte."""
        cells = Cells.absent(records.data, len(self._names), len(records))
        fault = np.zeros(len(records), np.uint8)
        detail = np.zeros(len(records), np.int64)
        _scan(
            records.data, records.starts, records.ends,
            cells.kind, cells.start, cells.length, fault, detail, *self._marks,
        )  # fmt: skip
        return cells, {int(row): self._reason(int(fault[row]), int(detail[row])) for row in np.flatnonzero(fault)}

    def _reason(self, fault: int, detail: int) -> str:
        if fault == EMPTY:
            return "empty record"
        if fault == BAD_UTF8:
            return f"not valid UTF-8 at byte {detail}"
        if fault == SECOND_LINE:
            return f"a CSV record is one line; another begins at byte {detail}"
        if fault == TOO_FEW:
            return f'{detail} of {len(self._names)} CSV fields; field "{self._names[detail]}" is missing'
        if fault == TOO_MANY:
            return f'more than {len(self._names)} CSV fields; "{self._names[-1]}" is the last'
        name = self._names[detail]
        if fault == OPENquote:
            return f'field "{name}": the closing quote is missing'
        return f'field "{name}": text after the closing quote'


@lean_kernel
def _quoted(data: Bytes, at: int, end: int, quote: int) -> tuple[int, int]:
    """The quoted field whose opening quote is at `at`: (its closing quote, TEXT or QUOTED); `end` when it has none."""
    kind = TEXT
    at += 1
    while at < end:
        if data[at] == quote:
            if at + 1 >= end or data[at + 1] != quote:
                return at, kind
            kind = QUOTED
            at += 1
        at += 1
    return end, kind


@lean_kernel
def _is(data: Bytes, begin: int, end: int, text: Bytes) -> bool:
    """Whether `data[begin:end]` is `text`."""
    same = end - begin == len(text)
    for place in range(len(text)):
        same = same and data[begin + place] == text[place]
    return same


@lean_kernel
def _scan_record(
    data: Bytes,
    begin: int,
    end: int,
    kind: Bytes,
    start: Longs,
    length: Longs,
    row: int,
    delimiter: int,
    quote: int,
    null: Bytes,
) -> tuple[int, int]:
    """Fill column `row` of the cells from `data[begin:end]`: (place or field of the fault, fault)."""
    wrong = utf8_error(data, begin, end)
    if wrong >= 0:
        return wrong - begin, BAD_UTF8
    if end > begin and data[end - 1] == _LF:
        end -= 1
    if end > begin and data[end - 1] == _CR:
        end -= 1
    if begin == end:
        return 0, EMPTY
    fields = kind.shape[0]
    field = 0
    at = begin
    while True:
        if field == fields:
            return 0, TOO_MANY
        if at < end and data[at] == quote:
            past, cell_kind = _quoted(data, at, end, quote)
            if past >= end:
                return field, OPENquote
            kind[field, row] = cell_kind
            start[field, row] = at + 1
            length[field, row] = past - at - 1
            at = past + 1
            if at < end and data[at] != delimiter and data[at] != _LF and data[at] != _CR:
                return field, AFTERquote
        else:
            kind[field, row] = TEXT
            start[field, row] = at
            while at < end and data[at] != delimiter and data[at] != _LF and data[at] != _CR:
                at += 1
            length[field, row] = at - start[field, row]
            if _is(data, start[field, row], at, null):
                kind[field, row] = NULL
        field += 1
        if at >= end:
            break
        if data[at] != delimiter:
            return at + 1 - begin, SECOND_LINE
        at += 1
    if field < fields:
        return field, TOO_FEW
    return 0, 0


@lean_kernel
def _scan(
    data: Bytes,
    starts: Longs,
    ends: Longs,
    kind: Bytes,
    start: Longs,
    length: Longs,
    fault: Bytes,
    detail: Longs,
    delimiter: int,
    quote: int,
    null: Bytes,
) -> None:
    for row in range(len(starts)):
        place, code = _scan_record(data, starts[row], ends[row], kind, start, length, row, delimiter, quote, null)
        if code:
            fault[row] = code
            detail[row] = place
