"""Streams of files: Parquet, Arrow, JSON lines and CSV, read in the order of the log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.errors import InputError, RunError
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import BLOCK_ROWS
from streamjoin.intake.records import decoder
from streamjoin.sources.columns import conform, stream_schema
from streamjoin.sources.filelog import FileLog, list_files
from streamjoin.sources.lines import infer_schema, read_header, records_of
from streamjoin.sources.source import Read

FORMATS = ("parquet", "arrow", "jsonl", "csv")


class FileSource:
    """A folder of files, or one file.

    Args:
        stream: the stream's name, for messages.
        format: one of FORMATS.
        path: the folder or file.
        log: where the file log is kept.
        files_per_batch: at most so many files a batch.
        schema: given columns; None to take what the first file carries.
    """

    def __init__(
        self, stream: str, format: str, path: Path, log: Path, files_per_batch: int, schema: pa.Schema | None = None
    ) -> None:
        self.stream = stream
        self.format = format
        self.path = path.absolute()
        self.files_per_batch = files_per_batch
        self.log = FileLog(self.path, log)
        self.schema = schema if schema is not None else first_schema(format, self.path)
        self._end: int | None = None

    def initial(self) -> dict[str, Any]:
        """No file."""
        return {"files": 0}

    def freeze(self, now_us: int) -> None:
        """Offer only the files there are now."""
        self.log.refresh()
        self._end = len(self.log.files)

    def latest(self, start: dict[str, Any], now_us: int) -> dict[str, Any]:
        """The next files."""
        if self._end is None:
            self.log.refresh()
        known = len(self.log.files) if self._end is None else self._end
        return {"files": max(min(start["files"] + self.files_per_batch, known), start["files"])}

    def sample(self, rows: int) -> Read | None:
        """The first file."""
        files = list_files(self.path)
        return FileRead(self.stream, self.format, str(files[0]), 0, self.schema) if files else None

    def backlog(self, start: dict[str, Any]) -> int | None:
        """Files not yet read."""
        return len(self.log.files) - int(start["files"])

    def reads(self, start: dict[str, Any], end: dict[str, Any], tasks: int) -> list[Read]:
        """A read a file, or several of a large Parquet file."""
        files = self.log.between(start["files"], end["files"])
        parts = -(-tasks // max(len(files), 1))
        reads: list[Read] = []
        for file in files:
            whole = FileRead(self.stream, self.format, file.path, file.number, self.schema)
            reads += _row_groups(whole, parts) if self.format == "parquet" and parts > 1 else [whole]
        return reads


def first_schema(format: str, path: Path) -> pa.Schema:
    """The columns of a source's first file.

    Raises:
        InputError: there is no file yet, or it cannot be read.
    """
    files = list_files(path)
    if not files:
        raise InputError(f"{path} has no files yet, so its columns are unknown; give a schema{_hint(path)}")
    first = files[0]
    try:
        match format:
            case "parquet":
                return stream_schema(pq.read_schema(first))
            case "arrow":
                with pa.memory_map(str(first), "r") as file:
                    return stream_schema(pa.ipc.open_file(file).schema)
            case _:
                return stream_schema(infer_schema(first, format))
    except RunError as cause:
        raise InputError(str(cause)) from None
    except (pa.ArrowInvalid, OSError) as cause:
        raise InputError(f"{first} cannot be read as {format}: {cause}") from None


def _hint(folder: Path) -> str:
    found = next((path for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._"), None)
    return f" (files in its folders, such as {found.name}, are not read)" if found else ""


def _row_groups(whole: FileRead, parts: int) -> list[Read]:
    metadata = _opened(whole.path, lambda: pq.read_metadata(whole.path))
    groups = list(range(metadata.num_row_groups))
    size = -(-len(groups) // parts)
    reads: list[Read] = []
    position = 0
    for first in range(0, len(groups), max(size, 1)):
        chosen = tuple(groups[first : first + size])
        reads.append(FileRead(whole.stream, whole.format, whole.path, whole.number, whole.schema, chosen, position))
        position += sum(metadata.row_group(group).num_rows for group in chosen)
    return reads or [whole]


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file, or some row groups of a Parquet file."""

    stream: str
    format: str
    path: str
    number: int
    schema: pa.Schema
    groups: tuple[int, ...] | None = None
    position: int = 0

    @property
    def name(self) -> str:
        """File number and first row."""
        return f"{self.number:09d}:{self.position:012d}"

    @property
    def router(self) -> str:
        """All files of a stream: they follow each other."""
        return "files"

    @property
    def identity(self) -> str:
        """The file's place in the log and its name."""
        return f"{self.number}:{os.path.basename(self.path)}"

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
        """The file's rows. Broken records of text files come as dead letters; a broken binary file is an error.

        Raises:
            RunError: the file cannot be read. It is not skipped, because its good rows would be lost.
        """
        match self.format:
            case "parquet":
                yield from ((rows, ()) for rows in self._parquet(columns))
            case "arrow":
                yield from ((rows, ()) for rows in self._arrow(columns))
            case _:
                yield from self._text(columns)

    def _parquet(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _opened(self.path, lambda: pq.ParquetFile(self.path, memory_map=True)) as file:
            carried = [name for name in columns if name in file.schema_arrow.names]
            batches = file.iter_batches(BLOCK_ROWS, row_groups=self.groups, columns=carried, use_threads=False)
            for rows in _guarded(self.path, batches):
                yield conform(rows, self.schema, columns, self.path)

    def _arrow(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with _opened(self.path, lambda: pa.memory_map(self.path, "r")) as mapped:
            file = _opened(self.path, lambda: pa.ipc.open_file(mapped))
            for batch in _guarded(self.path, (file.get_batch(i) for i in range(file.num_record_batches))):
                rows = conform(batch, self.schema, columns, self.path)
                for first in range(0, rows.num_rows, BLOCK_ROWS):
                    yield rows.slice(first, BLOCK_ROWS)

    def _text(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
        # A decoder needs a column, also where the query needs nothing but that there is a row.
        wanted = pa.schema([self.schema.field(name) for name in columns or self.schema.names[:1]])
        if self.format == "csv":
            header = read_header(self.path)
            if missing := [name for name in columns if name not in header]:
                raise RunError(f'{self.path} has no column "{missing[0]}"; it has {", ".join(header)}')
            if twice := [name for name in columns if header.count(name) > 1]:
                raise RunError(f'{self.path} has the column "{twice[0]}" twice')
            # Columns nobody asked for are read as text, which every value is.
            schema = pa.schema(
                [self.schema.field(name) if name in columns else pa.field(name, pa.string()) for name in header]
            )
        else:
            schema = wanted
        decode = decoder("csv" if self.format == "csv" else "json", schema).decode
        for first, records in records_of(self.path, quoted=self.format == "csv"):
            decoded = decode(records)
            letters = [
                DeadLetter(
                    self.stream, os.path.basename(self.path), first + bad.position, bad.reason,
                    records[bad.position].as_py(),
                )
                for bad in decoded.bad
            ]  # fmt: skip
            rows = decoded.rows.select(list(columns))
            yield rows.slice(0, BLOCK_ROWS), letters
            for start in range(BLOCK_ROWS, rows.num_rows, BLOCK_ROWS):
                yield rows.slice(start, BLOCK_ROWS), ()


def _opened(path: str, open_it: Any) -> Any:
    try:
        return open_it()
    except (pa.ArrowInvalid, OSError) as cause:
        raise RunError(f"{path} cannot be read: {cause}") from None


def _guarded(path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except (pa.ArrowInvalid, OSError) as cause:
        raise RunError(f"{path} is damaged: {cause}") from None
