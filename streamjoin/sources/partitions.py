"""Partitions: columns in the names of folders, as in `day=2024-01-01/country=DE/part-0.parquet` (Hive's way)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from streamjoin.errors import RunError
from streamjoin.intake.records import decoder
from streamjoin.plan.schema import type_name
from streamjoin.sources.filelog import PARTITION

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_LONE = re.compile("[\ud800-\udfff]")
"""Bytes of a file's name that are no UTF-8, as Python has them."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def partitions_of(path: str | Path, root: str | Path) -> dict[str, str | None]:
    """The columns that a file's folders below `root` name, with their values; %xx stands for a character.

    A name that is no UTF-8 names none.
    """
    parts = Path(path).parent.parts[len(Path(root).parts) :]
    named = (part.partition(PARTITION) for part in parts if PARTITION in part)
    named = (one for one in named if not _LONE.search(one[0]))
    return {unquote(name): None if value in (_NULL, "") else unquote(value) for name, _, value in named}


def partition_columns(files: Iterable[str | Path], root: str | Path) -> list[pa.Field]:
    """The columns that the folders of `files` name: int64 or a date where all values are, else text."""
    values: dict[str, set[str]] = {}
    # A folder may hold a million files.
    for folder in dict.fromkeys(Path(file).parent for file in files):
        for name, value in partitions_of(folder / "file", root).items():
            values.setdefault(name, set()).update(() if value is None else (value,))
    return [pa.field(name, _guess(texts)) for name, texts in values.items()]


def _guess(texts: set[str]) -> pa.DataType:
    if texts and all(map(_INTEGER.fullmatch, texts)):
        return pa.int64()
    if texts and all(map(_is_date, texts)):
        return pa.date32()
    return pa.string()


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def with_partitions(
    rows: pa.RecordBatch, values: Mapping[str, str | None], schema: pa.Schema, path: str
) -> pa.RecordBatch:
    """`rows` as `schema`, whose columns of that name have the values of the file's folders.

    Raises:
        RunError: a value is none of its column's type.
    """
    arrays = []
    for field in schema:
        if field.name not in values:
            arrays.append(rows.column(field.name))
            continue
        arrays.append(pa.repeat(_value(values[field.name], field, path), rows.num_rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _value(text: str | None, field: pa.Field, path: str) -> pa.Scalar:
    """As a quoted field of a CSV record is read."""
    if text is None:
        return pa.scalar(None, field.type)
    record = ('"' + text.replace('"', '""') + '"').encode("utf-8", "surrogateescape")
    decoded = decoder("csv", pa.schema([field])).decode(pa.array([record], pa.binary()))
    if decoded.bad:
        raise RunError(
            f"{path}: the folder says {field.name}={text}, which is no {type_name(field.type)}; give the column "
            "another type in the schema"
        )
    return decoded.rows.column(0)[0]
