"""Text files cut into records: one a line, and a line break inside quotes does not end one."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from streamjoin.errors import InputError, RunError

CHUNK_BYTES = 16 << 20
RECORD_BYTES_MAX = 256 << 20


def records_of(path: str, *, quoted: bool) -> Iterator[tuple[int, pa.Array]]:
    """(number of the first record, records) chunk by chunk; blank lines are skipped, a CSV header too.

    Args:
        quoted: double quotes protect line breaks, and the first record is a header.
    Raises:
        RunError: the file cannot be read, or a record is larger than 256 MiB.
    """
    number = 0
    header = quoted
    rest = b""
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                data = rest + chunk
                ends = _ends(data, quoted)
                if not ends.size:
                    rest = data
                    if len(rest) > RECORD_BYTES_MAX:
                        raise RunError(f"{path}: a record is larger than 256 MiB")
                    continue
                rest = data[int(ends[-1]) + 1 :]
                records = _records(data, ends)
                if header:
                    records, header = records.slice(1), False
                number, first = number + len(records), number
                yield first, records
    except OSError as cause:
        raise RunError(f"{path} cannot be read: {cause}") from None
    if rest and not header:
        yield number, _records(rest, np.array([len(rest)]))


def _ends(data: bytes, quoted: bool) -> np.ndarray:
    view = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(view == ord("\n"))
    if quoted and b'"' in data:
        # A break ends a record where an even number of quotes came before it.
        quotes = np.cumsum(view == ord('"'), dtype=np.int64)
        breaks = breaks[quotes[breaks] % 2 == 0]
    return breaks


def _records(data: bytes, ends: np.ndarray) -> pa.Array:
    # Each record keeps its line break, so that offsets alone describe them and nothing is copied.
    stops = np.minimum(ends + 1, len(data))
    offsets = np.concatenate(([0], stops)).astype(np.int32)
    records = pa.Array.from_buffers(pa.binary(), ends.size, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    view = np.frombuffer(data, np.uint8)
    starts = offsets[:-1].astype(np.int64)
    bare = ends - ((ends > starts) & (view[np.maximum(ends - 1, 0)] == ord("\r")))
    filled = bare > starts
    return records if filled.all() else records.filter(pa.array(filled))


def read_header(path: str | Path) -> list[str]:
    """The column names in a CSV file's first record.

    Raises:
        RunError: the file is empty or cannot be read.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file), None)
    except (OSError, UnicodeDecodeError, csv.Error) as cause:
        raise RunError(f"{path} cannot be read: {cause}") from None
    if not names:
        raise RunError(f"{path} is empty; a CSV file begins with a line of column names")
    return names


def infer_schema(path: Path, format: str) -> pa.Schema:
    """The columns of a CSV or JSON lines file, from its first megabyte.

    Raises:
        InputError: it is empty, or its beginning is not of that format.
    """
    with open(path, "rb") as file:
        head = file.read(1 << 20)
    head = head[: head.rfind(b"\n") + 1] or head
    if not head.strip():
        raise InputError(f"{path} is empty, so its columns are unknown; give a schema")
    try:
        if format == "csv":
            return pyarrow.csv.read_csv(io.BytesIO(head)).schema
        return pyarrow.json.read_json(io.BytesIO(head)).schema
    except pa.ArrowInvalid as cause:
        raise InputError(f"{path} does not begin as {format}: {cause}; give a schema") from None
