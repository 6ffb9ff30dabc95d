"""The columns of files whose schema nobody gave, by a look at a few of them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa

from streamjoin.errors import InputError, RunError
from streamjoin.intake.dialect import PLAIN, Dialect
from streamjoin.sources.columns import stream_schema, widened
from streamjoin.sources.filelog import list_files, root_of
from streamjoin.sources.lines import other_delimiter
from streamjoin.sources.mapped import mapped, parquet_footer
from streamjoin.sources.partitions import partition_columns
from streamjoin.sources.text_guess import infer_schema
from streamjoin.sources.texts import head_of

_ARROW_FILE = b"ARROW1"
"""How an Arrow file begins, and a stream does not."""
_LOOKED_AT_BYTES = 4096
"""Of a text file, to see whether there is anything in it."""
GUESSED_FROM = 5
"""A guess looks at so many files: the first, the last, and some between them."""


def first_schema(format: str, path: Path, csv: Dialect | None = None) -> pa.Schema:
    """The columns of a source's files and those that the names of their folders are, by a look at a few files.

    Columns come in the order of the first file that has them. Numbers are as wide as all the files need, such as
    float64 where some have integers and some floats; other types are those of the first file that has a value.

    Raises:
        InputError: there is no file yet, one of those looked at cannot be read, or the first has another delimiter.
    """
    files = list_files(path)
    if not files:
        raise InputError(f"{path} has no files yet, so its columns are unknown; give a schema{_hint(path)}")
    last = len(files) - 1
    chosen = sorted({last * place // (GUESSED_FROM - 1) for place in range(GUESSED_FROM)})
    # An empty text file has no columns, and does no harm where another has.
    first = next((number for number, file in enumerate(files) if not _is_empty(format, file)), 0)
    carried = _carried(format, files[first], csv or PLAIN)
    if format == "csv" and (way_out := other_delimiter(carried.names, csv or PLAIN)):
        raise InputError(f"{files[first]}: {way_out}", field="csv.delimiter")
    for number in chosen:
        if number > first and not _is_empty(format, files[number]):
            other = _carried(format, files[number], csv or PLAIN)
            # A file of something else has no part in the guess, and stops the job by its name when it is read.
            if set(other.names) & set(carried.names):
                carried = widened(carried, other)
    carried = stream_schema(carried)
    for column in partition_columns(files, root_of(path)):
        at = carried.get_field_index(column.name)
        carried = carried.append(column) if at < 0 else carried.set(at, column)
    return carried


def holds_rows(path: Path, csv: Dialect) -> bool:
    """Whether a look at CSV files finds anything but headers, from which no column has a type."""
    files = list_files(path)
    looked = {len(files) * place // GUESSED_FROM for place in range(GUESSED_FROM)}
    return not csv.header or any(b"\n" in _head(files[number]).strip() for number in looked if number < len(files))


def _is_empty(format: str, file: Path) -> bool:
    return format not in ("parquet", "arrow") and not _head(file).strip()


def _head(file: Path) -> bytes:
    try:
        return head_of(file, _LOOKED_AT_BYTES)[0]
    except RunError as cause:
        raise InputError(str(cause)) from None


def _carried(format: str, file: Path, csv: Dialect) -> pa.Schema:
    try:
        match format:
            case "parquet":
                return parquet_footer(file).schema.to_arrow_schema()
            case "arrow":
                with mapped(file) as content:
                    if not bytes(content.read(len(_ARROW_FILE))) == _ARROW_FILE and _is_arrow_stream(file):
                        raise InputError(
                            f"{file} is an Arrow stream; write it as an Arrow file, also called Feather V2"
                        )
                    return pa.ipc.open_file(content).schema
            case _:
                if format == "jsonl" and _head(file).lstrip().startswith(b"["):
                    raise InputError(f"{file} is one JSON array; write its objects one a line, without the brackets")
                return infer_schema(file, format, csv)
    except RunError as cause:
        raise InputError(str(cause)) from None
    except (pa.ArrowInvalid, OSError) as cause:
        raise InputError(f"{file} cannot be read as {format}: {cause}") from None


def _is_arrow_stream(file: Path) -> bool:
    with contextlib.suppress(pa.ArrowInvalid, OSError), mapped(file) as content:
        pa.ipc.open_stream(content)
        return True
    return False


def _hint(path: Path) -> str:
    if not path.is_dir():
        return ""
    found = next((inside for inside in path.iterdir() if inside.is_dir() and inside.name[0] not in "._"), None)
    return f"; for files in its folders, such as {found.name}, write path: {path}/**/*" if found else ""
