"""Event times as int64 microseconds UTC, and which rows have none."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.plan.schema import ARRIVAL, EVENT_TIME_LIMIT_US, StreamSchema

MISSING = "event time is NULL"
OUT_OF_RANGE = "event time lies outside +-2^62 microseconds"


def event_times(
    rows: pa.RecordBatch, stream: StreamSchema, arrived_us: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The event times of n rows.

    Args:
        arrived_us: when the rows arrived, as logged; the event time of all where the stream's time is `arrival`.
    Returns:
        (ts_us, missing, out_of_range): int64 and two bool arrays of shape (n,). `ts_us` is arbitrary where either
        holds; such rows cannot be joined.
    """
    n = rows.num_rows
    nothing = np.zeros(n, bool)
    if stream.time == ARRIVAL:
        return np.full(n, arrived_us, np.int64), nothing, nothing
    values = rows.column(stream.time)
    missing = np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False), bool) if values.null_count else nothing
    kind = values.type
    if pa.types.is_timestamp(kind):
        raw, unit = _int64(values), {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[kind.unit]
        if kind.unit == "ns":
            raw = raw // 1_000
    elif pa.types.is_date32(kind):
        raw, unit = _int64(values.cast(pa.int32())), 86_400_000_000
    else:
        raw, unit = _int64(values), stream.time_unit_us
    limit = EVENT_TIME_LIMIT_US // unit
    out_of_range = (raw <= -limit) | (raw >= limit)
    if out_of_range.any():
        raw = np.where(out_of_range, 0, raw)
    return raw * np.int64(unit) if unit != 1 else raw, missing, out_of_range & ~missing


def _int64(values: pa.Array) -> np.ndarray:
    values = values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values.cast(pa.int64())
    return np.asarray((values.fill_null(0) if values.null_count else values).to_numpy())


def usable(rows: pa.RecordBatch, stream: StreamSchema) -> tuple[pa.RecordBatch, Counter[str]]:
    """The rows with an event time, and why the others have none that intake can use."""
    _, missing, out_of_range = event_times(rows, stream, 0)
    bad = missing | out_of_range
    why = Counter({MISSING: int(missing.sum()), OUT_OF_RANGE: int(out_of_range.sum())})
    return (rows.filter(pa.array(~bad)) if bad.any() else rows), +why
