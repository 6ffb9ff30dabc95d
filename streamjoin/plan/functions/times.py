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
_DAY_S = 86_400
_ERA_DAYS, _ERA_YEARS = 146_097, 400
"""After which the calendar repeats, weekdays too."""
_NEAR_DAYS = 10_000_000
"""So far from 1970 Arrow counts years rightly; it keeps them in 16 bits."""


def _near(times: Any) -> tuple[Any, Any]:
    """(dates or times moved by whole eras to where Arrow counts their years, how many eras), or None for none."""
    kind = times.type
    of_days = pa.types.is_date(kind)
    if not of_days and kind.unit == "ns":  # these end in 2262
        return times, None
    a_day = 1 if of_days else int(_DAY_S * _PER_SECOND[kind.unit])
    ticks = times.cast(pa.int32()).cast(pa.int64()) if of_days else times.cast(pa.int64())
    far = pc.or_(pc.greater(ticks, _NEAR_DAYS * a_day), pc.less(ticks, -_NEAR_DAYS * a_day))
    if not (far if isinstance(far, pa.Scalar) else pc.any(far)).as_py():
        return times, None
    eras = pc.divide(ticks, _ERA_DAYS * a_day)
    near = pc.subtract(ticks, pc.multiply(eras, _ERA_DAYS * a_day))
    return (near.cast(pa.int32()).cast(kind) if of_days else near.cast(kind)), eras


def _anywhere(part: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A part that repeats with the calendar, of any time."""
    return lambda times: part(_near(times)[0])


def _year(times: Any) -> Any:
    near, eras = _near(times)
    return pc.year(near) if eras is None else pc.add(pc.year(near), pc.multiply(eras, _ERA_YEARS))


def to_text(times: Any) -> Any:
    """Dates or timestamps as text, the year with as many digits as it needs, four at least, and `-` before year 0."""
    near, eras = _near(times)
    text = near.cast(pa.string())
    if eras is None:
        return text
    year = _year(times)
    digits = pc.utf8_lpad(pc.abs(year).cast(pa.string()), 4, "0")
    sign = pc.if_else(pc.less(year, 0), "-", "")
    rest = pc.replace_substring_regex(text, "^-?[0-9]+", "")
    return pc.binary_join_element_wise(sign, digits, rest, "")


def _since_minute(per_second: int, *smaller: tuple[Callable[[Any], Any], int]) -> Callable[[Any], Any]:
    def compute(times: Any) -> Any:
        total = pc.multiply(pc.second(times), per_second)
        for part, factor in smaller:
            total = pc.add(total, pc.multiply(part(times), factor))
        return total

    return compute


FIELDS: dict[str, Callable[[Any], Any]] = {
    "year": _year,
    "quarter": _anywhere(pc.quarter),
    "month": _anywhere(pc.month),
    "week": _anywhere(pc.iso_week),
    "day": _anywhere(pc.day),
    "dow": _anywhere(lambda times: pc.day_of_week(times, count_from_zero=True, week_start=7)),
    "doy": _anywhere(pc.day_of_year),
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
    near, eras = _near(times)
    local = near.cast(pa.timestamp(times.type.unit))
    if unit.lower() == "week":  # Arrow's own weeks are wrong in the last days of nanoseconds
        days = pc.day_of_week(local, count_from_zero=True, week_start=1).cast(pa.int64())
        since_monday = pc.multiply(days, int(_DAY_S * _PER_SECOND[times.type.unit]))
        begins = pc.subtract(pc.floor_temporal(local, unit="day").cast(pa.int64()), since_monday).cast(times.type)
    else:
        begins = pc.floor_temporal(local, unit=unit.lower()).cast(times.type)
    if eras is not None:
        era = _ERA_DAYS * int(_DAY_S * _PER_SECOND[times.type.unit])
        begins = pc.add(begins.cast(pa.int64()), pc.multiply(eras, era)).cast(times.type)
    # At both ends of int64 sums leave it, and Arrow gives moments of other ages.
    off = pc.subtract(begins.cast(pa.int64()), times.cast(pa.int64()))
    longest = int(_LONGEST_S * _PER_SECOND[times.type.unit])
    right = pc.and_(pc.less_equal(begins, times), pc.and_(pc.less_equal(off, 0), pc.greater_equal(off, -longest)))
    return pc.if_else(right, begins, pa.scalar(None, times.type))


def cut_fractions(texts: Any, digits: int = 6) -> Any:
    """Texts of times, as an array or chunks, without digits beyond microseconds, or so many; else left as it is."""
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return texts
    return pc.replace_substring_regex(texts, rf"(\.\d{{{digits}}})\d+", r"\1")


def from_text(texts: Any, kind: pa.DataType) -> Any:
    """Texts as timestamps of a type; without an offset they are UTC, and digits beyond its unit are cut off.

    Raises:
        ArrowInvalid: a text is none. Arrow takes texts with an offset or texts without one, not both.
    """
    try:
        return texts.cast(pa.timestamp(kind.unit)).cast(kind)
    except pa.ArrowInvalid:
        texts = cut_fractions(texts, 9 if kind.unit == "ns" else 6)
    try:
        return texts.cast(pa.timestamp(kind.unit)).cast(kind)
    except pa.ArrowInvalid:
        return texts.cast(kind)


def to_microseconds(times: Any) -> Any:
    """Timestamps in nanoseconds as microseconds, int64; what is finer is cut off, before 1970 too."""
    ticks = times.cast(pa.int64())
    us = pc.divide(ticks, 1_000)
    return pc.subtract(us, pc.less(ticks, pc.multiply(us, 1_000)).cast(pa.int64()))


def check_unit(unit: str | None) -> None:
    """Refuse a unit that DATE_TRUNC does not know.

    Raises:
        QueryError: without a place.
    """
    if unit is not None and unit.lower() not in UNITS:
        raise QueryError(f"DATE_TRUNC knows no unit '{unit[:40]}'; units are {', '.join(UNITS)}")
