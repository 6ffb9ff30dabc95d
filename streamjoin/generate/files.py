"""A generated stream as numbered files: 00000.parquet, 00001.parquet, ... which are read back in name order."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from streamjoin.errors import InputError
from streamjoin.generate import generator
from streamjoin.generate.stream import NO_OPTIONS

Format = Literal["parquet", "csv", "jsonl", "arrow"]

ROWS_PER_BATCH = 65_536
"""Rows in memory at a time, and in one row group of a Parquet file."""

_FILES_MAX = 100_000


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class _JsonLines:
    """One JSON object a line; times as ISO 8601 text in UTC with microseconds, dates as ISO 8601 text."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed by close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        readable = pa.RecordBatch.from_arrays([_as_json(column) for column in batch.columns], batch.schema.names)
        self._file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in readable.to_pylist())

    def close(self) -> None:
        self._file.close()


def _as_json(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1)
    return column.cast(pa.string()) if pa.types.is_date(column.type) else column


_WRITERS: dict[str, Callable[[str, pa.Schema], _Writer]] = {
    "parquet": pq.ParquetWriter,
    "csv": pa_csv.CSVWriter,
    "jsonl": _JsonLines,
    "arrow": pa.ipc.new_file,
}


def write_files(
    kind: str,
    out: Path,
    *,
    rows: int,
    seed: int,
    rate: float,
    rows_per_file: int,
    format: Format = "parquet",
    options: Mapping[str, float] = NO_OPTIONS,
) -> list[Path]:
    """Write rows 0..`rows - 1` of a stream to `out`, `rows_per_file` to a file; the last file may be shorter.

    A file gets its name when it is complete, so a job that reads the folder never sees half of one. Files of the
    same name are replaced, others stay. Memory does not grow with `rows` or `rows_per_file`.

    Args:
        kind, seed, rate, options: as for `Generator.rows`.
        out: a folder; it is made if it is not there.
        format: parquet; csv with a header line; jsonl, one object a line; arrow, the IPC file format.
    Returns:
        The files in order; none where `rows` is 0.
    Raises:
        InputError: the kind, an option or the format is unknown, the stream has fewer rows, the names run out, or
            `out` is a file.
    """
    source = generator(kind)
    if format not in _WRITERS:
        raise InputError(f'"{format}" is not a file format; formats are {", ".join(_WRITERS)}')
    if rows < 0 or rows_per_file < 1:
        raise InputError(f"{rows} rows, {rows_per_file} to a file: need 0 rows or more, and at least 1 to a file")
    if rows > rows_per_file * _FILES_MAX:
        raise InputError(
            f"{rows} rows, {rows_per_file} to a file, are more than {_FILES_MAX} files; raise rows_per_file"
        )
    end = source.length(options)
    if end is not None and rows > end:
        raise InputError(f"{kind} has {end} rows with these options, not {rows}; ask for fewer or change the options")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{out} is a file, or lies below one; files are written to a folder") from None
    paths = []
    for start in range(0, rows, rows_per_file):
        stop = min(start + rows_per_file, rows)
        batches = (
            source.rows(first, min(first + ROWS_PER_BATCH, stop), seed=seed, rate=rate, options=options)
            for first in range(start, stop, ROWS_PER_BATCH)
        )
        path = out / f"{start // rows_per_file:05d}.{format}"
        _write_file(path, _WRITERS[format], source.schema, batches)
        paths.append(path)
    return paths


def _write_file(
    path: Path, writer: Callable[[str, pa.Schema], _Writer], schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> None:
    # The leading dot hides the unfinished file from readers of the folder, the process id from other writers.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with closing(writer(str(unfinished), schema)) as file:
            for batch in batches:
                file.write_batch(batch)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
