"""Answers as JSON, NDJSON, CSV, Arrow, Parquet or a table, batch by batch: no format holds a whole answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from streamjoin.results.jsonlines import iso_times, json_lines

TABLE_WIDTH_MAX = 40
_TABLE_SAMPLE = 1000


def write_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """Aligned columns; widths come from the first rows, and longer values are cut."""
    names = [_shown(name) for name in schema.names]
    widths = [len(name) for name in names]
    numeric = [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in schema.types]
    begun = False
    for batch in batches:
        rows = [[_shown(value) for value in column] for column in _texts(batch)]
        if not begun:
            for place, column in enumerate(rows):
                longest = max((len(text) for text in column[:_TABLE_SAMPLE]), default=0)
                widths[place] = min(max(widths[place], longest), TABLE_WIDTH_MAX)
            out.write(_line(names, widths, numeric))
            begun = True
        for values in zip(*rows, strict=True):
            out.write(_line(values, widths, numeric))
    if not begun:
        out.write(_line(names, widths, numeric))


def _texts(batch: pa.RecordBatch) -> list[list[Any]]:
    return [_printable(column).to_pylist() for column in batch.columns]


def _printable(column: pa.Array) -> pa.Array:
    return iso_times(column) if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type) else column


def _shown(value: Any) -> str:
    text = "" if value is None else value.hex() if isinstance(value, bytes) else str(value)
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return text if len(text) <= TABLE_WIDTH_MAX else text[: TABLE_WIDTH_MAX - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _line(values: Iterable[str], widths: list[int], numeric: list[bool]) -> bytes:
    cells = (
        text.rjust(width) if right else text.ljust(width)
        for text, width, right in zip(values, widths, numeric, strict=True)
    )
    return ("  ".join(cells).rstrip() + "\n").encode()


def write_ndjson(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """A JSON object a line."""
    for batch in batches:
        for line in json_lines(pa.Table.from_batches([batch])):
            out.write(line.encode() + b"\n")


def write_json(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """One JSON array."""
    between = b"[\n"
    for batch in batches:
        for line in json_lines(pa.Table.from_batches([batch])):
            out.write(between + line.encode())
            between = b",\n"
    out.write(b"[]\n" if between == b"[\n" else b"\n]\n")


def write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """CSV with a header line; times as ISO 8601 in UTC, bytes as hexadecimal digits."""
    names = ('"' + name.replace('"', '""') + '"' for name in schema.names)
    out.write((",".join(names) + "\n").encode())
    options = pyarrow.csv.WriteOptions(include_header=False)
    for batch in batches:
        columns = [_plain(column) for column in batch.columns]
        pyarrow.csv.write_csv(pa.RecordBatch.from_arrays(columns, names=schema.names), out, options)


def _plain(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        return pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string())
    if pa.types.is_duration(column.type):
        return column.cast(pa.int64())
    return _printable(column)


def write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """An Arrow IPC stream."""
    with pa.ipc.new_stream(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """A Parquet file."""
    with pq.ParquetWriter(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


FORMATS: dict[str, Callable[[pa.Schema, Iterable[pa.RecordBatch], BinaryIO], None]] = {
    "table": write_table,
    "json": write_json,
    "ndjson": write_ndjson,
    "csv": write_csv,
    "arrow": write_arrow,
    "parquet": write_parquet,
}
