"""Comparisons, and what chooses between values by one: NaN equals NaN and is above every other number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.plan.decimals import shortened
from streamjoin.plan.functions import casts
from streamjoin.plan.types import BOOL, DIGITS_MAX, decimal, too_wide
from streamjoin.plan.values import Value

MIRRORED = {"eq": "eq", "ne": "ne", "same": "same", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""The comparison that means the same with its sides swapped."""


def compare(operator: str) -> Callable[[list[Any], pa.DataType], Value]:
    """Comparison of two values of types that can be compared; `operator` is eq, ne, lt, le, gt or ge."""
    plain = {
        "eq": pc.equal,
        "ne": pc.not_equal,
        "lt": pc.less,
        "le": pc.less_equal,
        "gt": pc.greater,
        "ge": pc.greater_equal,
    }

    def compute(values: list[Any], _: pa.DataType) -> Value:
        left, right = values
        if pa.types.is_decimal(left.type) and too_wide(left.type, right.type):
            return _compare_wide(operator, left, right)
        if not pa.types.is_floating(left.type) or not (_has_nan(left) or _has_nan(right)):
            return plain[operator](left, right)
        # NaN sorts above all numbers: compare (is NaN, number) pairs. NULL stays NULL.
        left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
        equal = pc.or_(pc.equal(left, right), pc.and_(left_nan, right_nan))
        less = pc.or_(pc.less(left, right), pc.and_(pc.invert(left_nan), right_nan))
        table = {
            "eq": lambda: equal,
            "ne": lambda: pc.invert(equal),
            "lt": lambda: less,
            "le": lambda: pc.or_(less, equal),
            "gt": lambda: pc.invert(pc.or_(less, equal)),
            "ge": lambda: pc.invert(less),
        }
        return table[operator]()

    return compute


def _compare_wide(operator: str, left: Value, right: Value) -> Value:
    # What has fewer digits after the point is compared with the nearest such numbers below and above the other.
    if left.type.scale > right.type.scale:
        return _compare_wide(MIRRORED[operator], right, left)
    scale = left.type.scale
    below, above = (shortened(right, scale, way).cast(decimal(DIGITS_MAX, scale)) for way in ("down", "up"))
    left = left.cast(decimal(DIGITS_MAX, scale))
    if operator in ("eq", "ne"):
        equal = pc.and_(pc.equal(left, below), pc.equal(left, above))
        return equal if operator == "eq" else pc.invert(equal)
    compute = {"lt": pc.less, "le": pc.less_equal, "gt": pc.greater, "ge": pc.greater_equal}[operator]
    return compute(left, below if operator in ("le", "gt") else above)


def _has_nan(value: Value) -> bool:
    nan = pc.is_nan(value)
    return bool(nan.as_py()) if isinstance(nan, pa.Scalar) else bool(pc.any(nan).as_py())


def same(values: list[Any], _: pa.DataType) -> Value:
    left_null, right_null = (pc.is_null(value) for value in values)
    both_null = pc.and_(left_null, right_null)
    # NULL without a type is compared with nothing.
    if any(pa.types.is_null(value.type) for value in values):
        return both_null
    return pc.or_(both_null, pc.fill_null(compare("eq")(values, BOOL), False))


def extreme(operator: str) -> Callable[[list[Any], pa.DataType], Value]:
    def compute(values: list[Any], kind: pa.DataType) -> Value:
        best, *others = casts.all_as_type(values, kind)
        for other in others:
            # NULL where either is; NaN has its place in the order.
            best = pc.if_else(compare(operator)([best, other], BOOL), best, other)
        return best

    return compute


def case(values: list[Any], kind: pa.DataType) -> Value:
    condition, then, otherwise = values
    return pc.if_else(
        pc.fill_null(casts.as_type(condition, BOOL), False), casts.as_type(then, kind), casts.as_type(otherwise, kind)
    )


def nullif(values: list[Any], kind: pa.DataType) -> Value:
    left, right = casts.all_as_type(values, kind)
    return pc.if_else(pc.fill_null(compare("eq")([left, right], BOOL), False), pa.scalar(None, kind), left)
