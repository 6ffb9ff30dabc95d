"""The columns of files whose schema nobody gave, by a look at a few of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.errors import InputError, RunError
from streamjoin.intake.dialect import PLAIN, Dialect
from streamjoin.sources.columns import stream_schema, widened
from streamjoin.sources.filelog import list_files, root_of
from streamjoin.sources.lines import infer_schema
from streamjoin.sources.partitions import partition_columns

GUESSED_FROM = 5
"""A guess looks at so many files: the first, the last, and some between them."""


def first_schema(format: str, path: Path, csv: Dialect | None = None) -> pa.Schema:
    """The columns of a source's files and those that the names of their folders are, by a look at a few files.

    Columns come in the order of the first file that has them. Numbers are as wide as all the files need, such as
    float64 where some have integers and some floats; other types are those of the first file that has a value.

    Raises:
        InputError: there is no file yet, or one of those looked at cannot be read.
    """
    files = list_files(path)
    if not files:
        raise InputError(f"{path} has no files yet, so its columns are unknown; give a schema{_hint(path)}")
    last = len(files) - 1
    chosen = sorted({last * place // (GUESSED_FROM - 1) for place in range(GUESSED_FROM)})
    carried = _carried(format, files[0], csv or PLAIN)
    for number in chosen[1:]:
        # An empty text file has no columns, and does no harm where another has.
        if format in ("parquet", "arrow") or files[number].stat().st_size:
            other = _carried(format, files[number], csv or PLAIN)
            # A file of something else has no part in the guess, and stops the job by its name when it is read.
            if set(other.names) & set(carried.names):
                carried = widened(carried, other)
    carried = stream_schema(carried)
    for column in partition_columns(files, root_of(path)):
        at = carried.get_field_index(column.name)
        carried = carried.append(column) if at < 0 else carried.set(at, column)
    return carried


def _carried(format: str, file: Path, csv: Dialect) -> pa.Schema:
    try:
        match format:
            case "parquet":
                return pq.read_schema(file)
            case "arrow":
                with pa.memory_map(str(file), "r") as mapped:
                    return pa.ipc.open_file(mapped).schema
            case _:
                return infer_schema(file, format, csv)
    except RunError as cause:
        raise InputError(str(cause)) from None
    except (pa.ArrowInvalid, OSError) as cause:
        raise InputError(f"{file} cannot be read as {format}: {cause}") from None


def _hint(path: Path) -> str:
    if not path.is_dir():
        return ""
    found = next((inside for inside in path.iterdir() if inside.is_dir() and inside.name[0] not in "._"), None)
    return f"; for files in its folders, such as {found.name}, write path: {path}/**/*" if found else ""
