"""Answers as bytes, a piece at a time: what has been written leaves before the rest is read.

How an answer ended (cursor, whether it was cut off, how much was read) stands where its format has room: JSON after the
rows, Arrow in the metadata of a last, empty batch, Parquet in the file's metadata. CSV and NDJSON have none: they end
with a line about it only where the answer was cut off.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from backend.cells import rows_of, to_json
from backend.problems import Problem
from streamjoin.plan.schema import type_name
from streamjoin.results.formats import write_csv

META = b"streamjoin"
"""Under which Arrow's and Parquet's metadata have the end of an answer, as JSON."""
ROW_GROUP = 65_536
ROW_GROUP_BYTES = 16 << 20


class Writer(Protocol):
    """One answer in one format. `not_finite` counts the numbers that JSON has no word for."""

    media_type: str
    not_finite: int

    def begin(self, schema: pa.Schema, about: Mapping[str, Any]) -> bytes:
        """What comes before the rows."""

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Some rows; what of them is ready to leave."""

    def end(self, end: Mapping[str, Any]) -> bytes:
        """What comes after the rows."""

    def fail(self, problem: Problem, end: Mapping[str, Any]) -> bytes | None:
        """The same, for an answer that failed in the middle; None where only a broken connection can tell."""


class FrameWriter:
    """Lines of rows, for a websocket: each piece of lines becomes one `next`."""

    media_type = "application/json"

    def __init__(self) -> None:
        self.not_finite = 0
        self.problem: Problem | None = None

    def begin(self, schema: pa.Schema, about: Mapping[str, Any]) -> bytes:
        """Its frame is made of what the answer knows."""
        return b""

    def write(self, batch: pa.RecordBatch) -> bytes:
        """See `Writer`."""
        rows, bad = rows_of(batch)
        self.not_finite += bad
        return (to_json(rows)[1:-1] + "\n").encode() if rows else b""

    def end(self, end: Mapping[str, Any]) -> bytes:
        """Comes with `complete`."""
        return b""

    def fail(self, problem: Problem, end: Mapping[str, Any]) -> bytes | None:
        """Comes with `error`."""
        self.problem = problem
        return b""


class JsonWriter:
    """One object; its `rows` are arrays in the order of `schema`."""

    media_type = "application/json"

    def __init__(self) -> None:
        self.not_finite = 0
        self._between = ""

    def begin(self, schema: pa.Schema, about: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        return (
            to_json({**about, "schema": [{"name": field.name, "type": type_name(field.type)} for field in schema]})[:-1]
            + ',"rows":['
        ).encode()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """See `Writer`."""
        rows, bad = rows_of(batch)
        self.not_finite += bad
        if not rows:
            return b""
        text, self._between = self._between + to_json(rows)[1:-1], ","
        return text.encode()

    def end(self, end: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        return b"]," + to_json(end)[1:].encode()

    def fail(self, problem: Problem, end: Mapping[str, Any]) -> bytes | None:
        """See `Writer`."""
        return self.end({**end, "error": problem.document()})


class NdjsonWriter:
    """One object a line. An answer that was cut off ends with a line whose one key is `$end`."""

    media_type = "application/x-ndjson"

    def __init__(self) -> None:
        self.not_finite = 0
        self._names: list[str] = []

    def begin(self, schema: pa.Schema, about: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        self._names = schema.names
        return b""

    def write(self, batch: pa.RecordBatch) -> bytes:
        """See `Writer`."""
        rows, bad = rows_of(batch)
        self.not_finite += bad
        return "".join(f"{to_json(dict(zip(self._names, row, strict=True)))}\n" for row in rows).encode()

    def end(self, end: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        return (to_json({"$end": end}) + "\n").encode() if end["truncated"] else b""

    def fail(self, problem: Problem, end: Mapping[str, Any]) -> bytes | None:
        """See `Writer`."""
        return (to_json({"$end": {**end, "error": problem.document()}}) + "\n").encode()


class CsvWriter:
    """A header line, then the rows. An answer that was cut off ends with a line that begins with `#`."""

    media_type = "text/csv; charset=utf-8"

    def __init__(self) -> None:
        self.not_finite = 0
        self._header = b""

    def begin(self, schema: pa.Schema, about: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        out = io.BytesIO()
        write_csv(schema, [], out)
        self._header = out.getvalue()
        return self._header

    def write(self, batch: pa.RecordBatch) -> bytes:
        """See `Writer`."""
        out = io.BytesIO()
        write_csv(batch.schema, [batch], out)
        return out.getvalue()[len(self._header) :]

    def end(self, end: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        return f"# cut off: {json.dumps(end)}\n".encode() if end["truncated"] else b""

    def fail(self, problem: Problem, end: Mapping[str, Any]) -> bytes | None:
        """See `Writer`."""
        return None


class _Drain(io.RawIOBase):
    """Takes what a library writes, and gives it away piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._taken = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._pieces.append(bytes(content))
        self._taken += len(self._pieces[-1])
        return len(self._pieces[-1])

    def tell(self) -> int:
        return self._taken

    def give(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


class ArrowWriter:
    """An Arrow IPC stream. Its last batch is empty and carries the end of the answer."""

    media_type = "application/vnd.apache.arrow.stream"

    def __init__(self) -> None:
        self.not_finite = 0
        self._drain = _Drain()
        self._writer: Any = None
        self._schema = pa.schema([])

    def begin(self, schema: pa.Schema, about: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        self._schema = schema
        self._writer = pa.ipc.new_stream(self._drain, schema)
        return self._drain.give()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """See `Writer`."""
        self._writer.write_batch(batch)
        return self._drain.give()

    def end(self, end: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        empty = pa.RecordBatch.from_pylist([], schema=self._schema)
        self._writer.write_batch(empty, custom_metadata={META: json.dumps(end)})
        self._writer.close()
        return self._drain.give()

    def fail(self, problem: Problem, end: Mapping[str, Any]) -> bytes | None:
        """See `Writer`."""
        return None


class ParquetWriter:
    """A Parquet file; rows are collected into groups. Its metadata carries the end of the answer."""

    media_type = "application/vnd.apache.parquet"

    def __init__(self) -> None:
        self.not_finite = 0
        self._drain = _Drain()
        self._writer: Any = None
        self._held: list[pa.RecordBatch] = []
        self._rows = self._size = 0

    def begin(self, schema: pa.Schema, about: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        self._writer = pq.ParquetWriter(self._drain, schema)
        return self._drain.give()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """See `Writer`."""
        self._held.append(batch)
        self._rows += batch.num_rows
        self._size += batch.nbytes
        if self._rows >= ROW_GROUP or self._size >= ROW_GROUP_BYTES:
            self._flush()
        return self._drain.give()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held))
        self._held, self._rows, self._size = [], 0, 0

    def end(self, end: Mapping[str, Any]) -> bytes:
        """See `Writer`."""
        self._flush()
        self._writer.add_key_value_metadata({META.decode(): json.dumps(end)})
        self._writer.close()
        return self._drain.give()

    def fail(self, problem: Problem, end: Mapping[str, Any]) -> bytes | None:
        """See `Writer`."""
        return None


WRITERS: dict[str, type[Writer]] = {
    "json": JsonWriter, "ndjson": NdjsonWriter, "csv": CsvWriter, "arrow": ArrowWriter, "parquet": ParquetWriter,
}  # fmt: skip
"""Format -> what writes it."""
