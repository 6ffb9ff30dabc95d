"""Functions some of whose arguments must be constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import RunError
from streamjoin.plan.functions import arithmetic, casts, rounding, texts
from streamjoin.plan.types import BOOL, STRING
from streamjoin.plan.values import Value

PATTERN_ARGUMENTS = {
    "like": (1,),
    "ilike": (1,),
    "left": (1,),
    "right": (1,),
    "split_part": (1, 2),
    "round": (1,),
    "date_trunc": (0,),
    "starts_with": (1,),
    "ends_with": (1,),
    "contains": (1,),
    "regexp_like": (1,),
    "substring": (1, 2),
    "replace": (1, 2),
}
"""Arguments that must be constants, by position: they are compiled once, not once a row."""


def _constant(values: list[Any], function: str, place: int) -> Any:
    value = values[place]
    if not isinstance(value, pa.Scalar):
        raise RunError(f"{function}: argument {place + 1} must be a constant")
    return value.as_py()


def substring(values: list[Any], _: pa.DataType) -> Value:
    start = _constant(values, "SUBSTRING", 1)
    length = _constant(values, "SUBSTRING", 2) if len(values) == 3 else None
    if start is None or (len(values) == 3 and length is None):
        return pa.scalar(None, STRING)
    begin = texts.within(max(start - 1, 0))
    stop = None if length is None else texts.within(max(start - 1 + length, begin))
    return pc.utf8_slice_codeunits(values[0], begin, stop)


def pattern(compute: Callable[..., Any], name: str) -> Callable[[list[Any], pa.DataType], Value]:
    """A test of texts against one pattern."""

    def run(values: list[Any], _: pa.DataType) -> Value:
        pattern = _constant(values, name, 1)
        return pa.scalar(None, BOOL) if pattern is None else compute(values[0], pattern)

    return run


def with_constants(function: str, compute: Callable[..., Any]) -> Callable[[list[Any], pa.DataType], Value]:
    """`compute` of the arrays, then of the constants in Python; NULL where a constant is."""

    def run(values: list[Any], kind: pa.DataType) -> Value:
        places = PATTERN_ARGUMENTS[function]
        constants = [_constant(values, function.upper(), place) for place in places]
        if None in constants:
            return pa.scalar(None, kind)
        return compute(*[value for place, value in enumerate(values) if place not in places], *constants)

    return run


def replace(values: list[Any], _: pa.DataType) -> Value:
    old, new = _constant(values, "REPLACE", 1), _constant(values, "REPLACE", 2)
    if old is None or new is None:
        return pa.scalar(None, STRING)
    return values[0] if old == "" else pc.replace_substring(values[0], old, new)


def rounded(values: list[Any], kind: pa.DataType) -> Value:
    if len(values) == 1:
        return arithmetic.to_nearest(values, kind)
    digits = _constant(values, "ROUND", 1)
    return pa.scalar(None, kind) if digits is None else casts.as_type(rounding.round_to(values[0], digits), kind)
