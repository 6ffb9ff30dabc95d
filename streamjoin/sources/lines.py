"""Text files cut into records: one a line, and a line break inside quotes does not end one."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.errors import RunError
from streamjoin.intake.dialect import Dialect
from streamjoin.intake.records.cells import Bytes, Longs
from streamjoin.kernel import kernel
from streamjoin.sources.texts import HEAD_BYTES, head_of, opened

CHUNK_BYTES = 16 << 20
RECORD_BYTES_MAX = 64 << 20

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
        ends = ends_of(data, dialect, is_last)
        if is_last:
            if len(data) > (int(ends[-1]) + 1 if ends.size else 0):
                ends = np.append(ends, len(data))  # no line break at the end of the file
            rest = b""
        elif not ends.size and len(data) > RECORD_BYTES_MAX:
            ends = ends_of(data, dialect, True)[:1]  # a quote that stays open for so long protects nothing
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


def ends_of(data: bytes, dialect: Dialect | None, is_last: bool) -> np.ndarray:
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
    head, _ = head_of(path, HEAD_BYTES)
    return header_in(path, first_record(head, dialect), dialect)


def header_in(path: str | Path, record: bytes, dialect: Dialect) -> list[str]:
    """The column names in a record.

    Args:
        path: where it is, for messages.
    Raises:
        RunError: they are no text.
    """
    try:
        quoting: dict[str, Any] = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
        reader = csv.reader([record.decode()], delimiter=dialect.delimiter, strict=True, **quoting)
        return next(reader, [])
    except UnicodeDecodeError:
        raise RunError(
            f"{path} cannot be read: its line of column names is not UTF-8; write the file anew as UTF-8 in its place, "
            "as iconv -f LATIN1 -t UTF-8 does, and start again"
        ) from None
    except csv.Error as cause:
        raise RunError(f"{path} cannot be read: its line of column names: {cause}") from None


_DELIMITERS = {";": ("semicolon", ";"), "\t": ("tab", r"\t"), "|": ("vertical bar", "|"), ",": ("comma", ",")}
"""Those that files have, with their names, and as they are written in quotes."""


def other_delimiter(names: Sequence[str], dialect: Dialect, *, is_first: bool = True) -> str | None:
    """What to do where a file's line of column names was taken for one name and has another delimiter in it.

    Args:
        is_first: no file was read before, as `dialect` says or not.
    """
    if len(names) != 1 or not dialect.header or dialect.names is not None:
        return None
    (name,) = names
    found = max((one for one in _DELIMITERS if one != dialect.delimiter), key=name.count)
    if not (count := name.count(found)):
        return None
    called, written = _DELIMITERS[found]
    said = f"its first line is one column with {count} {called}{'s' * (count > 1)} in it; "
    if not is_first:
        return said + "write it with the delimiter of the files before"
    way_out = f'set csv: {{delimiter: "{written}"}}, else give the name of the one column in csv: {{names: [...]}}'
    return f"{said}where these are between columns {way_out}"


def first_record(head: bytes, dialect: Dialect) -> bytes:
    """The first record in a text's beginning, without its line break."""
    if not head:
        return b""
    ends = ends_of(head, dialect, True)
    records = _records(head, ends if ends.size else np.array([len(head)]))
    first: bytes = records[0].as_py() if len(records) else b""
    return first.rstrip(b"\r\n")
