"""Rows as JSON that browsers read without loss.

Integers and decimals with more digits than a double holds are texts, NaN and infinities are null (and counted), times
are ISO 8601 in UTC, spans microseconds, bytes hexadecimal digits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.results.jsonlines import iso_times

EXACT_MAX = 2**53
"""Above this a double, which is all that JavaScript has, no longer holds every integer."""
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows_of(batch: pa.RecordBatch) -> tuple[list[tuple[Any, ...]], int]:
    """Each row as a tuple of JSON values, and how many numbers were NaN or infinite."""
    columns = []
    not_finite = 0
    for column in batch.columns:
        values, bad = _column(column)
        columns.append(values)
        not_finite += bad
    if not columns:
        return [()] * batch.num_rows, 0
    return list(zip(*columns, strict=True)), not_finite


def table_cells(table: pa.Table) -> list[list[Any]]:
    """The rows of a table as JSON values."""
    return [list(row) for batch in table.to_batches() for row in rows_of(batch)[0]]


def texts_of(column: pa.Array) -> list[str | None]:
    """Texts; what is no UTF-8 in one, as files may have it, is shown as `\\xff`."""
    try:
        found: list[str | None] = column.to_pylist()
        return found
    except UnicodeDecodeError:
        values = column.cast(pa.binary()).to_pylist()
        return [None if value is None else value.decode("utf-8", "backslashreplace") for value in values]


def to_json(value: Any) -> str:
    """As JSON, in as few letters as it takes; a NaN in it is a mistake of ours."""
    return _JSON.encode(value)


def time_text(us: int | None) -> str | None:
    """Microseconds since 1970 as ISO 8601; None for what no calendar has."""
    if us is None:
        return None
    try:
        found = _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return None
    return found.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _column(column: pa.Array) -> tuple[Sequence[Any], int]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _column(column.cast(kind.value_type))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return iso_times(column).to_pylist(), 0
    if pa.types.is_floating(kind):
        values = column.to_pylist()
        numbers = column.to_numpy(zero_copy_only=False)  # in which a null is a NaN
        bad = len(values) - column.null_count - int(np.isfinite(numbers).sum())
        if bad:
            values = [value if value is None or math.isfinite(value) else None for value in values]
        return values, bad
    if pa.types.is_int64(kind) or pa.types.is_uint64(kind):
        values = column.to_pylist()
        numbers = column.drop_null().to_numpy() if column.null_count else column.to_numpy()
        if numbers.size and (numbers.min() < -EXACT_MAX or numbers.max() > EXACT_MAX):
            values = [_integer(value) for value in values]
        return values, 0
    if pa.types.is_string(kind):
        return texts_of(column), 0
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column.to_pylist(), 0
    seen = [0]
    return [_plain(value, seen) for value in column.to_pylist()], seen[0]


def _integer(value: int | None) -> int | str | None:
    return value if value is None or -EXACT_MAX <= value <= EXACT_MAX else str(value)


def _decimal(value: Decimal) -> float | int | str:
    _, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0")
    if not isinstance(exponent, int) or unscaled > EXACT_MAX or exponent < -15:
        return str(value)
    return int(value) if exponent >= 0 else float(value)


def _plain(value: Any, not_finite: list[int]) -> Any:
    """Any value that Arrow gives."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return _integer(value)
        case float():
            if math.isfinite(value):
                return value
            not_finite[0] += 1
            return None
        case Decimal():
            return _decimal(value)
        case bytes():
            return value.hex()
        case datetime():
            shown = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
            return shown.isoformat(timespec="microseconds").replace("+00:00", "Z")
        case date() | clock_time():
            return value.isoformat()
        case timedelta():
            return _integer(value // timedelta(microseconds=1))
        case dict():
            return {str(name): _plain(part, not_finite) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part, not_finite) for part in value]
    return str(value)
