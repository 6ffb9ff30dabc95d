"""Parts of timestamps and dates, in UTC, and timestamps cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import QueryError

UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
"""What DATE_TRUNC cuts off to; weeks begin on Monday."""

_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_LONGEST_S = 366 * 86_400
"""A year: no unit is longer, so nothing longer is cut off."""


def _since_minute(per_second: int, *smaller: tuple[Callable[[Any], Any], int]) -> Callable[[Any], Any]:
    def compute(times: Any) -> Any:
        total = pc.multiply(pc.second(times), per_second)
        for part, factor in smaller:
            total = pc.add(total, pc.multiply(part(times), factor))
        return total

    return compute


FIELDS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dow": lambda times: pc.day_of_week(times, count_from_zero=True, week_start=7),
    "doy": pc.day_of_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": _since_minute(1_000, (pc.millisecond, 1)),
    "microsecond": _since_minute(1_000_000, (pc.millisecond, 1_000), (pc.microsecond, 1)),
}
"""What EXTRACT takes of a timestamp as an integer, and how; milli- and microseconds count from the full minute."""


def epoch(values: Any) -> Any:
    """Seconds since 1970 of a timestamp, or seconds of a duration, float64."""
    per_second = _PER_SECOND[values.type.unit]
    return pc.divide(values.cast(pa.int64()).cast(pa.float64(), safe=False), per_second)


def truncate(times: Any, unit: str) -> Any:
    """The last moment that a unit begins at or before each timestamp; NULL where int64 has none.

    Args:
        unit: one of `UNITS`, in any case.
    """
    local = times.cast(pa.timestamp(times.type.unit))
    if unit.lower() == "week":  # Arrow's own weeks are wrong in the last days of nanoseconds
        days = pc.day_of_week(local, count_from_zero=True, week_start=1).cast(pa.int64())
        since_monday = pc.multiply(days, int(86_400 * _PER_SECOND[times.type.unit]))
        begins = pc.subtract(pc.floor_temporal(local, unit="day").cast(pa.int64()), since_monday).cast(times.type)
    else:
        begins = pc.floor_temporal(local, unit=unit.lower()).cast(times.type)
    # At both ends of int64 Arrow gives moments of other ages.
    off = pc.subtract(begins.cast(pa.int64()), times.cast(pa.int64()))
    longest = int(_LONGEST_S * _PER_SECOND[times.type.unit])
    right = pc.and_(pc.less_equal(begins, times), pc.and_(pc.less_equal(off, 0), pc.greater_equal(off, -longest)))
    return pc.if_else(right, begins, pa.scalar(None, times.type))


def check_unit(unit: str | None) -> None:
    """Refuse a unit that DATE_TRUNC does not know.

    Raises:
        QueryError: without a place.
    """
    if unit is not None and unit.lower() not in UNITS:
        raise QueryError(f"DATE_TRUNC knows no unit '{unit[:40]}'; units are {', '.join(UNITS)}")
