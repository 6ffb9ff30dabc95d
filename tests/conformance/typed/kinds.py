"""Column types: how values are kept in Python, which ones lie at the edges, and which are next to each other.

A value is what Python has for it, or None for NULL. Dates are days, timestamps microseconds or nanoseconds since 1970,
all as int, because Python's own calendar ends too early.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

DAY_US = 86_400_000_000
NS = 1_000
INT_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
ARROW = {
    "bool": pa.bool_(),
    **{name: getattr(pa, name)() for name in INT_BITS},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns", tz="UTC"),
}
"""The names of a join file, but for decimals."""
STORED_AS = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ns": pa.int64()}
"""Types that are made from integers."""

NUMBERS = (
    *INT_BITS,
    "float32",
    "float64",
    *(f"decimal({digits})" for digits in ("9,2", "18,2", "19,4", "20,0", "38,0", "38,2", "38,18", "38,20", "38,38")),
)
INSTANTS = ("date", "timestamp", "timestamp_ns")
OTHERS = ("bool", "string", "binary")
KINDS = (*NUMBERS, *INSTANTS, *OTHERS)
"""Every column type; a uint64 column of a file is decimal(20,0)."""

TEXTS = (
    "", "a", "A", "ab", "b", "ä", "a\u0308", "abcdefgh", "abcdefghi", "abcdefghj", "abcdefgh\0", "abcdefg", "\uffff",
    "\U0001f600", "a long prefix that all share, then 1", "a long prefix that all share, then 2",
    "a long prefix that all share, then 10", "0.5", "NULL",
)  # fmt: skip
_FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 0.57, 2.01, 0.1, 0.3, 1.5, 100.25, math.nan, math.inf, -math.inf, 5e-324, -5e-324,
    2.2250738585072014e-308, 1e308, -1e308, 1.7976931348623157e308, 2.0**53 - 1, 2.0**53, 2.0**53 + 2, -(2.0**53),
    2.0**63, -(2.0**63), 2.0**64, 1e19, 1e30, 1e38, 9.99e37, 1e-38,
)  # fmt: skip
_FLOATS_32 = (1.401298464324817e-45, 3.4028234663852886e38, -3.4028234663852886e38, 2.0**24, 2.0**24 - 1)
_LARGE = (2**53 - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 10**18)
_DAYS = (0, -1, 1, 19_000, -719_162, 2_932_896, 106_751, 106_752, -106_752, 2**31 - 1, -(2**31))
_INSTANTS = (0, -1, 1, 999, 1_000, 1_001, 19_000 * DAY_US, 19_000 * DAY_US + 1, -DAY_US, 2**53 + 1)
_LIMITS = (2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 2**62, -(2**62))


@dataclass(frozen=True, slots=True)
class Decimals:
    """A decimal type."""

    precision: int
    scale: int

    @property
    def limit(self) -> int:
        """The largest unscaled value."""
        return int(10**self.precision - 1)

    def value(self, unscaled: int) -> Decimal:
        """Exactly, whatever the context's precision."""
        digits = tuple(int(digit) for digit in str(abs(unscaled)))
        return Decimal((unscaled < 0, digits, -self.scale))


@cache
def decimals(kind: str) -> Decimals | None:
    """The digits of a decimal type; None for another."""
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
    return Decimals(int(found[1]), int(found[2])) if found else None


def arrow_type(kind: str) -> pa.DataType:
    """What Arrow calls it."""
    found = decimals(kind)
    return pa.decimal128(found.precision, found.scale) if found else ARROW[kind]


def to_arrow(kind: str, values: Sequence[Any]) -> pa.Array:
    """A column of these values."""
    if kind in STORED_AS:
        return pa.array(values, STORED_AS[kind]).view(ARROW[kind])
    return pa.array(values, arrow_type(kind))


def plain(values: pa.Array) -> list[Any]:
    """Values of a result, to be compared: times as integers, decimals as fractions, and NaN as text equal to itself."""
    kind = values.type
    if pa.types.is_temporal(kind):
        return values.view(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()
    found = values.to_pylist()
    if pa.types.is_decimal(kind):
        return [None if value is None else Fraction(value) for value in found]
    return ["NaN" if isinstance(value, float) and math.isnan(value) else value for value in found]


@cache
def edges(kind: str) -> tuple[Any, ...]:
    """Values at the edges of a type, and a few plain ones."""
    if kind == "bool":
        return (True, False)
    if kind == "string":
        return TEXTS
    if kind == "binary":
        return (*(text.encode() for text in TEXTS), b"\xff", b"\x00", b"\x80")
    if kind in INT_BITS:
        top = 2 ** (INT_BITS[kind] - 1)
        signed = [sign * value for value in (*_LARGE, 1, 2, 3, 57, 100, 20) for sign in (1, -1)]
        inside = {value for value in signed if -top <= value < top}
        return tuple(sorted({*inside, 0, top - 1, top - 2, -top, -top + 1}))
    if kind == "float64":
        return _FLOATS
    if kind == "float32":
        return tuple(sorted({to_float32(value) for value in (*_FLOATS, *_FLOATS_32)}, key=str))
    if found := decimals(kind):
        one = 10**found.scale
        signed = [sign * value * one for value in (*_LARGE, 0, 1, 2, 20, 100) for sign in (1, -1)]
        signed += [sign * one * value // 100 for value in (57, 201, 50, 1057) for sign in (1, -1)]
        signed += [1, -1, found.limit, -found.limit, found.limit - 1, 1 - found.limit]
        return tuple(found.value(value) for value in sorted(set(signed)) if abs(value) <= found.limit)
    if kind == "date":
        return _DAYS
    factor = NS if kind == "timestamp_ns" else 1
    inside = [value * factor for value in _INSTANTS] + [1, 999]
    return tuple(sorted({*inside, *_LIMITS, 106_751 * DAY_US * factor, -719_162 * DAY_US if factor == 1 else 0}))


def to_float32(value: float) -> float:
    """The nearest float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def number(kind: str, value: Any) -> Fraction | float | None:
    """A value as a number: a fraction, or an infinity or NaN; None where it is no number. Instants are nanoseconds."""
    if value is None or kind in OTHERS:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return value
    factor = {"date": DAY_US * NS, "timestamp": NS}.get(kind, 1)
    return Fraction(value) * factor


def nearest(kind: str, wanted: Fraction | float, steps: int = 0) -> Any:
    """The value of a numeric or temporal type nearest to a number, or `steps` values beside it."""
    if kind in ("float32", "float64"):
        return _nearest_float(kind, wanted, steps)
    if isinstance(wanted, float):
        wanted = Fraction(0) if math.isnan(wanted) else Fraction(10**80 if wanted > 0 else -(10**80))
    if found := decimals(kind):
        unscaled = math.floor(wanted * 10**found.scale) + steps
        return found.value(max(min(unscaled, found.limit), -found.limit))
    bits = INT_BITS.get(kind, 32 if kind == "date" else 64)
    factor = {"date": DAY_US * NS, "timestamp": NS}.get(kind, 1)
    return max(min(math.floor(wanted / factor) + steps, 2 ** (bits - 1) - 1), -(2 ** (bits - 1)))


def _nearest_float(kind: str, wanted: Fraction | float, steps: int) -> float:
    try:
        value = float(wanted)
    except OverflowError:
        value = math.inf if wanted > 0 else -math.inf
    if kind == "float32":
        value = to_float32(value)
        if steps and math.isfinite(value):
            with np.errstate(over="ignore", under="ignore"):
                return float(np.nextafter(np.float32(value), np.float32(math.copysign(math.inf, steps))))
        return value
    return math.nextafter(value, math.copysign(math.inf, steps)) if steps else value
