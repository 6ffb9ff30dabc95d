"""Text files cut into records: one a line, and a line break inside quotes does not end one."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from streamjoin.errors import InputError, RunError
from streamjoin.intake.dialect import PLAIN, Dialect
from streamjoin.intake.records.cells import Bytes, Longs
from streamjoin.kernel import kernel
from streamjoin.plan.functions.times import cut_fractions
from streamjoin.plan.types import TIMESTAMP, TIMESTAMP_NS
from streamjoin.sources.agreeing import agreeing
from streamjoin.sources.columns import widened
from streamjoin.sources.nesting import DEPTH_MAX, depth_of
from streamjoin.sources.texts import head_of, is_plain, opened

CHUNK_BYTES = 16 << 20
RECORD_BYTES_MAX = 64 << 20
_HEAD_BYTES = 1 << 20
_PIECE_BYTES = 1 << 18
WIDE_INTEGER = pa.decimal128(38, 0)
"""What integers beyond int64 are guessed to be; as floats two of them may be equal that are not."""

_LF = ord("\n")
_CR = ord("\r")


def records_of(
    path: str, dialect: Dialect | None = None, bytes_max: int | None = None
) -> Iterator[tuple[int, pa.Array]]:
    """(number of the first record, records) chunk by chunk; blank lines are skipped, a CSV header too.

    Where the quotes of a CSV record are wrong, or the closing one never comes, the record ends with its line: it
    costs itself and no other. How a file is encoded and packed: see `texts`.

    Args:
        dialect: quotes protect line breaks, and the first record may be a header; None where a record is a line.
        bytes_max: only the records that are whole in so many bytes of text; None for all.
    Raises:
        RunError: the file cannot be read, or a record is larger than 64 MiB.
    """
    number = 0
    header = dialect is not None and dialect.header
    for data, ends in _cut(path, dialect, bytes_max):
        records = _records(data, ends)
        if header and len(records):
            records, header = records.slice(1), False
        if len(records):
            yield number, records
        number += len(records)


def lines_of(path: str, dialect: Dialect | None, records: Sequence[int]) -> dict[int, int]:
    """The lines, counted from 1, on which records begin.

    Args:
        records: numbers that `records_of` gave, ascending.
    Raises:
        RunError: the file cannot be read.
    Cost: reads the file up to the last of them.
    """
    wanted = np.asarray(records, np.int64)
    found: dict[int, int] = {}
    number = -1 if dialect is not None and dialect.header else 0
    line = 1
    for data, ends in _cut(path, dialect):
        breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == _LF)
        starts = np.concatenate(([0], ends[:-1] + 1))[_filled(data, ends)]
        here = wanted[(wanted >= number) & (wanted < number + starts.size)]
        lines = line + np.searchsorted(breaks, starts[here - number])
        found |= dict(zip(here.tolist(), lines.tolist(), strict=True))
        # What is cut off at the end of these bytes comes again, with its line breaks.
        line += int(np.count_nonzero(breaks <= ends[-1]))
        number += starts.size
        if number > wanted[-1]:
            break
    return found


def _cut(path: str, dialect: Dialect | None, bytes_max: int | None = None) -> Iterator[tuple[bytes, np.ndarray]]:
    """Pieces of the file that begin and end with whole records, and where the records in them end."""
    rest = b""
    for data, is_last in _chunks(path, bytes_max):
        data = rest + data
        ends = _ends(data, dialect, is_last)
        if is_last:
            if len(data) > (int(ends[-1]) + 1 if ends.size else 0):
                ends = np.append(ends, len(data))  # no line break at the end of the file
            rest = b""
        elif not ends.size and len(data) > RECORD_BYTES_MAX:
            ends = _ends(data, dialect, True)[:1]  # a quote that stays open for so long protects nothing
            if not ends.size:
                raise RunError(f"{path}: a record is larger than {RECORD_BYTES_MAX >> 20} MiB")
        if ends.size and not is_last:
            rest = data[int(ends[-1]) + 1 :]
        elif not is_last:
            rest = data
        if ends.size:
            yield data, ends


def _chunks(path: str, bytes_max: int | None) -> Iterator[tuple[bytes, bool]]:
    """The text's bytes, and which are the last."""
    if bytes_max is not None:
        head, is_cut = head_of(path, bytes_max)
        yield head, not is_cut
        return
    with opened(path) as file:
        chunk = file.read(CHUNK_BYTES)
        while chunk:
            following = file.read(CHUNK_BYTES)
            yield chunk, not following
            chunk = following


def _ends(data: bytes, dialect: Dialect | None, is_last: bool) -> np.ndarray:
    """Where records end: at a line break, the last also at the end of `data` if there is nothing after it."""
    view = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(view == _LF)
    if dialect is not None and dialect.quote and dialect.quote.encode() in data:
        breaks = breaks[: _csv_ends(view, breaks, is_last, dialect.delimiter_byte, dialect.quote_byte)]
    return breaks


@kernel
def _csv_ends(data: Bytes, breaks: Longs, is_last: bool, delimiter: int, quote: int) -> int:
    """Move those of `breaks` that end a CSV record to the front, and count them."""
    count = 0
    begin = 0  # of the record
    next_break = 0  # the first of `breaks` inside it
    while next_break < len(breaks):
        end = _csv_end(data, begin, delimiter, quote)
        if end == len(data) or (end > len(data) and not is_last):
            break
        if end < 0 or end > len(data):
            end = breaks[next_break]
        while next_break < len(breaks) and breaks[next_break] <= end:
            next_break += 1
        breaks[count] = end
        count += 1
        begin = end + 1
    return count


@kernel
def _csv_end(data: Bytes, at: int, delimiter: int, quote: int) -> int:
    """The line break that ends the record at `at`.

    -1 where its quotes are wrong; len(data) where `data` ends before it does; one more where a quote is open by then.
    """
    size = len(data)
    while at < size:
        if data[at] == quote:
            at += 1
            while True:
                while at < size and data[at] != quote:
                    at += 1
                if at >= size:
                    return size + 1
                at += 1
                if at >= size:
                    return size
                if data[at] != quote:
                    break
                at += 1
            if data[at] != delimiter and data[at] != _CR and data[at] != _LF:
                return -1
        while at < size and data[at] != delimiter and data[at] != _LF:
            at += 1
        if at < size and data[at] == _LF:
            return at
        at += 1
    return size


def _records(data: bytes, ends: np.ndarray) -> pa.Array:
    # Each record keeps its line break, so that offsets alone describe them and nothing is copied.
    stops = np.minimum(ends + 1, len(data))
    offsets = np.concatenate(([0], stops)).astype(np.int32)
    records = pa.Array.from_buffers(pa.binary(), ends.size, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    filled = _filled(data, ends)
    return records if filled.all() else records.filter(pa.array(filled))


def _filled(data: bytes, ends: np.ndarray) -> np.ndarray:
    """Which of the records that end at `ends` have more than a line break."""
    view = np.frombuffer(data, np.uint8)
    starts = np.concatenate(([0], ends[:-1] + 1))
    bare = ends - ((ends > starts) & (view[np.maximum(ends - 1, 0)] == _CR))
    return np.asarray(bare > starts)


def read_header(path: str | Path, dialect: Dialect) -> list[str]:
    """The column names in a CSV file's first record, or those that stand for them; none where it has no record.

    Raises:
        RunError: the file cannot be read, or its names are no text.
    """
    if dialect.names is not None:
        return list(dialect.names)
    head, _ = head_of(path, _HEAD_BYTES)
    try:
        record = _first_record(head, dialect)
        quoting: dict[str, Any] = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
        reader = csv.reader([record.decode()], delimiter=dialect.delimiter, strict=True, **quoting)
        return next(reader, [])
    except (UnicodeDecodeError, csv.Error) as cause:
        raise RunError(f"{path} cannot be read: its line of column names: {cause}") from None


def _first_record(head: bytes, dialect: Dialect) -> bytes:
    if not head:
        return b""
    ends = _ends(head, dialect, True)
    records = _records(head, ends if ends.size else np.array([len(head)]))
    first: bytes = records[0].as_py() if len(records) else b""
    return first.rstrip(b"\r\n")


def infer_schema(path: Path, format: str, dialect: Dialect | None = None) -> pa.Schema:
    """The columns of a CSV or JSON lines file: from its first megabyte, and numbers from its middle and end, too.

    Raises:
        InputError: it is empty, or its beginning is not of that format.
    """
    dialect = dialect or PLAIN
    head, is_cut = head_of(path, _HEAD_BYTES)
    if is_cut and (ends := _ends(head, dialect if format == "csv" else None, False)).size:
        head = head[: int(ends[-1]) + 1]
    if not head.strip():
        raise InputError(f"{path} is empty, so its columns are unknown; give a schema")
    try:
        if format == "csv":
            found = _csv_columns(head, dialect)
            later = replace(dialect, names=tuple(found.names), header=False)
            columns: Callable[[bytes], pa.Schema] = functools.partial(_csv_columns, dialect=later)
            # Where quotes protect line breaks nobody can tell where in the file a record begins.
            pieces = [] if _protects(head, dialect) else list(_pieces(path))
        else:
            columns, pieces = _json_columns, list(_pieces(path))
            found = columns(head)
    except UnicodeDecodeError as cause:
        raise InputError(f"{path} is not UTF-8 text from byte {cause.start + 1} on; save it as UTF-8") from None
    except pa.ArrowInvalid as cause:
        raise InputError(f"{path} does not begin as {format}: {cause}; give a schema") from None
    for piece in pieces:
        with contextlib.suppress(pa.ArrowInvalid, UnicodeDecodeError):  # a bad record costs itself only
            found = widened(found, columns(piece))
    # A time of day is no type of a stream's column; its text is.
    return pa.schema([field.with_type(pa.string()) if pa.types.is_time(field.type) else field for field in found])


def _pieces(path: Path) -> Iterator[bytes]:
    """Whole lines from the middle and the end of a long text; none of what has to be read from its beginning."""
    size = path.stat().st_size
    if size <= 2 * _HEAD_BYTES or not is_plain(path):
        return
    with open(path, "rb") as file:
        for at in (size // 2, size - _PIECE_BYTES):
            file.seek(at)
            lines = file.read(_PIECE_BYTES).split(b"\n")[1:-1]
            if lines:
                yield b"\n".join(lines) + b"\n"


def _protects(head: bytes, dialect: Dialect) -> bool:
    return _ends(head, dialect, True).size != head.count(b"\n")


def _json_columns(head: bytes) -> pa.Schema:
    table = _read_json(head)
    found = [field.with_type(_with_times(table[field.name])) for field in table.schema]
    if any(pa.types.is_floating(field.type) or pa.types.is_struct(field.type) for field in found):
        rows = list(_objects(head))
        found = [field.with_type(_exact(field.type, [row.get(field.name) for row in rows])) for field in found]
    return pa.schema(found)


def _objects(lines: bytes) -> Iterator[dict[str, Any]]:
    """Each line that is an object; None in it stands for fractions, too, and integers have all their digits."""
    for line in lines.split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(row := json.loads(line, parse_float=_Fraction), dict):
                yield row


class _Fraction(str):
    """A number that is no integer."""


def _exact(kind: pa.DataType, values: list[Any]) -> pa.DataType:
    """A column's type, whose integers Arrow guesses to be floats where one is beyond int64."""
    if pa.types.is_struct(kind):
        rows = [value for value in values if isinstance(value, dict)]
        return pa.struct([field.with_type(_exact(field.type, [row.get(field.name) for row in rows])) for field in kind])
    numbers = [value for value in values if isinstance(value, int | _Fraction) and not isinstance(value, bool)]
    is_whole = bool(numbers) and all(isinstance(number, int) for number in numbers)
    return WIDE_INTEGER if pa.types.is_floating(kind) and is_whole else kind


def _read_json(head: bytes) -> pa.Table:
    try:
        if depth_of(head) > DEPTH_MAX:
            raise pa.ArrowInvalid(f"values are nested more than {DEPTH_MAX} deep")
        return pyarrow.json.read_json(io.BytesIO(head))
    except pa.ArrowInvalid:
        if not (lines := agreeing(head)):
            raise
        return pyarrow.json.read_json(io.BytesIO(lines))


def _csv_columns(head: bytes, dialect: Dialect) -> pa.Schema:
    # A record that is no UTF-8 is a bad one; it makes no column binary, and Arrow cannot even leave it out. Where there
    # are zeros as well it is no text at all.
    head = head.decode("utf-8", "strict" if b"\0" in head else "replace").encode()
    table = _read_csv(head, dialect)
    # Arrow takes times of day in text for nanoseconds or nothing, and no year after 2262 is one.
    found = pa.schema([field.with_type(_with_times(table.column(at))) for at, field in enumerate(table.schema)])
    floats = [field.name for field in found if pa.types.is_floating(field.type)]
    if floats:
        texts = _read_csv(head, dialect, dict.fromkeys(floats, pa.string()))
        for name in floats:
            if found.names.count(name) == 1 and _are_integers(texts[name]):
                found = found.set(found.get_field_index(name), pa.field(name, WIDE_INTEGER))
    return found


def _are_integers(texts: pa.ChunkedArray) -> bool:
    """Whether all numbers are integers: then one is beyond int64, or they would not have been guessed to be floats."""
    texts = pc.utf8_trim_whitespace(texts)
    return bool(pc.all(pc.match_substring_regex(texts, r"^[+-]?\d+$"), min_count=1).as_py())


def _read_csv(head: bytes, dialect: Dialect, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """As the decoder reads it, but that bad lines are left out and types that are not given are guessed."""
    return pyarrow.csv.read_csv(
        io.BytesIO(head),
        read_options=pyarrow.csv.ReadOptions(
            column_names=dialect.names, skip_rows=1 if dialect.header and dialect.names is not None else 0,
            autogenerate_column_names=False,
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=dialect.delimiter, quote_char=dialect.quote or False, newlines_in_values=True,
            invalid_row_handler=lambda row: "skip",
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            null_values=["", dialect.null], strings_can_be_null=True, quoted_strings_can_be_null=False,
            column_types=types,
        ),
    )  # fmt: skip


def _with_times(values: pa.ChunkedArray) -> pa.DataType:
    """A column's type, in which texts are times if all of them are; so are fields of structs."""
    kind = values.type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_times(pc.struct_field(values, [at]))) for at, field in enumerate(kind)])
    return _time_type(values) or kind


_MOMENT = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?"
_ZONES = {"UTC": r"(Z|[+-]\d\d(:?\d\d)?)$", None: "$"}
"""The zone that a type has -> how texts of it end."""


def _time_type(texts: pa.ChunkedArray) -> pa.DataType | None:
    """The type of texts that all are ISO 8601 date and time; None where one is something else.

    It has nanoseconds if a text has, unless one is of a year that nanoseconds do not reach.
    """
    if not pa.types.is_string(texts.type) or texts.null_count == len(texts):
        return None
    zones = [zone for zone, end in _ZONES.items() if pc.all(pc.match_substring_regex(texts, _MOMENT + end)).as_py()]
    if not zones:
        return None
    (zone,) = zones
    try:
        cut_fractions(texts).cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid:
        return None
    if pc.any(pc.match_substring_regex(texts, r"\.\d{6}\d*[1-9]")).as_py():
        with contextlib.suppress(pa.ArrowInvalid):
            cut_fractions(texts, 9).cast(pa.timestamp("ns", zone))
            return TIMESTAMP_NS
    return TIMESTAMP
