"""Spans of time as a query writes them: a number and a unit of fixed length."""

from __future__ import annotations

import re
from decimal import Decimal

from streamjoin.errors import QueryError

UNITS_US = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}
SPAN_US_MAX = 36_525 * UNITS_US["DAY"]
"""100 years, leap days included."""

_NOT_FIXED = {"MONTH": "30 DAYS", "QUARTER": "91 DAYS", "YEAR": "365 DAYS"}
_NUMBER = re.compile(r"[+-]?(\d[\d_]{0,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?")


def singular(unit: str) -> str:
    """A unit in upper case without its plural s."""
    upper = unit.upper()
    return upper[:-1] if upper.endswith("S") else upper


def parse_span_us(number: str, unit: str, *, hint: str = "") -> int:
    """Whole microseconds in `number` units, such as ("1.5", "seconds").

    Args:
        hint: the end of the sentence that says that it is too long.
    Raises:
        QueryError: without a place; the unit has no fixed length, or the number is too large, not finite, or does
            not come to whole microseconds.
    """
    name = singular(unit)
    if name in _NOT_FIXED:
        raise QueryError(f"a {name} has no fixed length; write days, such as {_NOT_FIXED[name]}")
    if name not in UNITS_US:
        raise QueryError(f'"{unit}" is not a unit of time; use {", ".join(word + "S" for word in UNITS_US)}')
    if not _NUMBER.fullmatch(number):
        raise QueryError(f'"{number}" is not a number')
    # float first: an exact number with a three-digit exponent is long, and far outside anyway.
    if abs(float(number)) * UNITS_US[name] > 2 * SPAN_US_MAX:
        raise QueryError(f"{number} {unit} is longer than 100 years{hint}")
    span_us = Decimal(number) * UNITS_US[name]
    if abs(span_us) > SPAN_US_MAX:
        raise QueryError(f"{number} {unit} is longer than 100 years{hint}")
    if span_us != span_us.to_integral_value():
        raise QueryError(f"{number} {unit} is not a whole number of microseconds")
    return int(span_us)
