"""ROUND(x, n): to n digits after the point, or before it where n is negative; halves go away from zero."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.plan.decimals import shortened

_HALF = "half_towards_infinity"
_FLOAT_DIGITS = 308
"""10 to the power of this is a float64, of one more is none."""
_INT_DIGITS = 18


def rounded_type(kind: pa.DataType, digits: int) -> pa.DataType:
    """The type of a decimal of type `kind` that is rounded: it has `digits` digits after the point, if not fewer."""
    if digits >= kind.scale:
        return kind
    make, most = (pa.decimal256, 76) if pa.types.is_decimal256(kind) else (pa.decimal128, 38)
    # Rounding up may need one more digit before the point; what is cut off makes room for it, if there is any.
    return make(kind.precision if kind.scale else min(kind.precision + 1, most), max(digits, 0))


def round_to(values: Any, digits: int) -> Any:
    """Numbers rounded: integers as int64, floats as float64, decimals as decimals wide enough.

    What leaves int64 is NULL.
    """
    if pa.types.is_integer(values.type):
        return _integers(values.cast(pa.int64()), digits)
    if pa.types.is_floating(values.type):
        return _floats(values.cast(pa.float64()), digits)
    return _decimals(values, digits)


def _integers(values: Any, digits: int) -> Any:
    if digits >= 0:
        return values
    if digits < -_INT_DIGITS:
        # Half of 10**19 is an int64, but 10**19 is none; from 10**20 on there is only 0.
        half = 10**-digits // 2 if digits == -_INT_DIGITS - 1 else None
        near = None if half is None else pc.and_(pc.less(values, half), pc.greater(values, -half))
        zero = pc.if_else(pc.is_valid(values), 0, pa.scalar(None, pa.int64()))
        return zero if near is None else pc.if_else(near, zero, pa.scalar(None, pa.int64()))
    unit = 10**-digits
    whole = pc.divide(values, unit)
    rest = pc.subtract(values, pc.multiply(whole, unit))
    up = pc.if_else(pc.greater_equal(rest, unit // 2), 1, pc.if_else(pc.less_equal(rest, -(unit // 2)), -1, 0))
    units = pc.add(whole, up)
    most = (2**63 - 1) // unit
    inside = pc.and_(pc.less_equal(units, most), pc.greater_equal(units, -most))
    return pc.multiply(pc.if_else(inside, units, pa.scalar(None, pa.int64())), unit)


def half_away(values: Any) -> Any:
    """Floats without digits after the point; halves away from zero. (Arrow takes -0.49999999999999994 for one.)"""
    whole = pc.trunc(values)
    rest = pc.subtract(values, whole)  # exactly
    return pc.add(whole, pc.if_else(pc.greater_equal(rest, 0.5), 1.0, pc.if_else(pc.less_equal(rest, -0.5), -1.0, 0.0)))


def _floats(values: Any, digits: int) -> Any:
    if digits > _FLOAT_DIGITS:
        return values
    if digits < -_FLOAT_DIGITS:
        return pc.if_else(pc.is_finite(values), 0.0, values)
    if digits < 0:
        unit = 10.0**-digits
        return pc.multiply(half_away(pc.divide(values, unit)), unit)
    factor = 10.0**digits
    rounded = pc.divide(half_away(pc.multiply(values, factor)), factor)
    # What is so large that the product is infinite has no digits after the point.
    return pc.if_else(pc.is_finite(rounded), rounded, values)


def _decimals(values: Any, digits: int) -> Any:
    kind = values.type
    if digits >= kind.scale:
        return values
    if digits < kind.scale - kind.precision:
        return pc.if_else(pc.is_valid(values), pa.scalar(Decimal(0), kind), pa.scalar(None, kind))
    if digits >= 0:
        return shortened(values, digits)
    # What is after the point decides no half before it.
    whole = shortened(values, 0, "towards_zero")
    return pc.round(whole.cast(pa.decimal256(76, 0)), digits, round_mode=_HALF)
