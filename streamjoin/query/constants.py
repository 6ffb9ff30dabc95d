"""Constants of a query: text to typed values. Every error here is without a place; the caller adds it."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite

import pyarrow as pa

from streamjoin.errors import QueryError
from streamjoin.plan.expression import Literal, decimal_literal
from streamjoin.plan.types import DIGITS_MAX, DURATION, FLOAT64, INT64, TIMESTAMP
from streamjoin.query.durations import parse_span_us
from streamjoin.query.limits import INTERVAL_CHARACTERS_MAX

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?")
_FIXED = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_QUANTITY = re.compile(r"([+-]?[\d.]+)\s*([A-Za-z]+)?")


def number(text: str) -> Literal:
    """An integer is int64, and a decimal beyond; a number with a point is a decimal, one with an exponent float64."""
    if text.lstrip("-").isdecimal() and len(text) <= 20 and -(2**63) <= int(text) < 2**63:
        return Literal(int(text), INT64)
    if _FIXED.fullmatch(text):
        # Before anything reads it: turning a huge text into a number is slow.
        if len(text) > DIGITS_MAX + 2:
            raise QueryError(f"{text[:30]}... has more than {DIGITS_MAX} digits; write it as a float, such as 1e20")
        return decimal_literal(Decimal(text))
    try:
        value = float(text)
    except ValueError:
        raise QueryError(f'"{text[:30]}" is not a number') from None
    if not isfinite(value):
        raise QueryError(f"{text[:30]} is outside float64")
    return Literal(value, FLOAT64)


def instant(text: str, kind: pa.DataType) -> Literal:
    """A timestamp or date; without an offset it is UTC. A date may have a time only where `kind` is a timestamp."""
    try:
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text)
            if pa.types.is_date(kind):
                return Literal(day, pa.date32())
            return Literal(datetime(day.year, day.month, day.day, tzinfo=UTC), TIMESTAMP)
        if _TIMESTAMP.fullmatch(text) and not pa.types.is_date(kind):
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
            return Literal(moment, TIMESTAMP)
    except (ValueError, OverflowError) as bad:
        raise QueryError(f"'{text[:40]}' is not a valid date or time: {bad}") from None
    form = "2024-05-01" if pa.types.is_date(kind) else "2024-05-01 13:30:00.5"
    what = "date" if pa.types.is_date(kind) else "timestamp"
    raise QueryError(f"'{text[:40]}' is no {what}; write it as '{form}'")


def interval(text: str, unit: str | None) -> Literal:
    """INTERVAL '5' SECOND, INTERVAL 5 SECONDS or INTERVAL '5 seconds'; one number and one unit."""
    # The length first: the pattern tries each number of blanks.
    found = _QUANTITY.fullmatch(text.strip()) if len(text) <= INTERVAL_CHARACTERS_MAX else None
    if not found or (found[2] is None) == (unit is None):
        raise QueryError("an interval is one number and one unit, such as INTERVAL '5' SECOND")
    return Literal(parse_span_us(found[1], found[2] or str(unit)), DURATION)
