"""Sums, products and what else is computed of numbers and times; what leaves int64 is NULL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.plan.decimals import shortened
from streamjoin.plan.functions import casts, rounding
from streamjoin.plan.types import FLOAT64, INT64, is_number
from streamjoin.plan.values import Value


def exact(checked: Callable[..., Any], wrapping: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    """An operation on two numbers; of integers, NULL where the result is outside int64.

    Args:
        checked: Arrow's kernel that raises there.
        wrapping: the one that does not.
    """

    def compute(values: list[Any], kind: pa.DataType) -> Value:
        left, right = values
        if not pa.types.is_integer(kind):
            result = wrapping(left, right)
            return casts.as_type(result, kind)
        try:
            return checked(left, right)
        except pa.ArrowInvalid:
            return _exact_or_null(wrapping, left, right)

    return compute


def _exact_or_null(wrapping: Callable[..., Any], left: Value, right: Value) -> Value:
    # Rare: some row left int64. Which one shows where the float64 result is far from the wrapped one.
    result = wrapping(left, right)
    about = wrapping(left.cast(FLOAT64, safe=False), right.cast(FLOAT64, safe=False))
    off = pc.greater(pc.abs(pc.subtract(about, result.cast(FLOAT64, safe=False))), 2.0**62)
    return pc.if_else(off, pa.scalar(None, INT64), result)


def divide(values: list[Any], _: pa.DataType) -> Value:
    left, right = values
    return pc.divide(left, pc.if_else(pc.equal(right, 0.0), pa.scalar(None, FLOAT64), right))


def modulo(values: list[Any], _: pa.DataType) -> Value:
    left = values[0].cast(INT64)
    right = values[1].cast(INT64)
    # -1 would overflow on the smallest integer, and every remainder by it is 0 anyway.
    divisor = pc.if_else(pc.equal(right, 0), pa.scalar(None, INT64), pc.if_else(pc.equal(right, -1), 1, right))
    return pc.subtract(left, pc.multiply(pc.divide(left, divisor), divisor))


def add(values: list[Any], kind: pa.DataType) -> Value:
    if is_number(kind):
        return exact(pc.add_checked, pc.add)(values, kind)
    return _time_arithmetic(pc.add_checked, pc.add, values, kind)


def subtract(values: list[Any], kind: pa.DataType) -> Value:
    if is_number(kind):
        return exact(pc.subtract_checked, pc.subtract)(values, kind)
    return _time_arithmetic(pc.subtract_checked, pc.subtract, values, kind)


def _time_arithmetic(
    checked: Callable[..., Any], wrapping: Callable[..., Any], values: list[Any], kind: pa.DataType
) -> Value:
    # As whole numbers of one unit, so that what leaves int64 is NULL here too.
    numbers = [casts.cast([value], _in_unit(value.type, kind.unit)).cast(INT64) for value in values]
    return exact(checked, wrapping)(numbers, INT64).cast(kind)


def _in_unit(kind: pa.DataType, unit: str) -> pa.DataType:
    return pa.duration(unit) if pa.types.is_duration(kind) else pa.timestamp(unit, tz="UTC")


def absolute(values: list[Any], kind: pa.DataType) -> Value:
    (value,) = values
    if pa.types.is_integer(value.type) or pa.types.is_duration(kind):
        value = value.cast(INT64)
        value = pc.abs(pc.if_else(pc.equal(value, -(2**63)), pa.scalar(None, INT64), value))
        return value.cast(kind)
    return casts.as_type(pc.abs(value), kind)


def negate(values: list[Any], kind: pa.DataType) -> Value:
    (value,) = values
    return pc.negate(value) if pa.types.is_decimal(kind) else subtract([pa.scalar(0, kind), value], kind)


def to_whole(round_mode: str) -> Callable[[list[Any], pa.DataType], Value]:
    def run(values: list[Any], kind: pa.DataType) -> Value:
        (value,) = values
        if pa.types.is_decimal(value.type):
            value = shortened(value, 0, round_mode)
        elif pa.types.is_floating(value.type):
            is_half = round_mode == "half_towards_infinity"
            value = rounding.half_away(value) if is_half else pc.round(value, round_mode=round_mode)
        return casts.as_type(value, kind)  # an integer is whole already

    return run


def of_floats(compute: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    def run(values: list[Any], kind: pa.DataType) -> Value:
        result = compute(*[casts.as_type(value, FLOAT64) for value in values])
        return pc.if_else(pc.is_nan(result), pa.scalar(None, FLOAT64), result) if compute is pc.sqrt else result

    return run


to_nearest = to_whole("half_towards_infinity")
