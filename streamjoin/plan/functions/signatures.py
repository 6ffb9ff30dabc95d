"""What functions of the query language take and give: types of arguments to the type of the result.

Each raises InputError with what the function takes, where it does not take them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.plan.schema import type_name
from streamjoin.plan.types import (
    BOOL,
    DURATION,
    DURATION_NS,
    FLOAT64,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    common_type,
    comparison_type,
    is_instant,
    is_number,
    is_text,
    product_type,
    sum_type,
)


def _takes(count: int | tuple[int, int], what: str, kinds: Sequence[pa.DataType], test: Callable[[Any], bool]) -> None:
    low, high = (count, count) if isinstance(count, int) else count
    if not low <= len(kinds) <= high:
        many = str(low) if low == high else f"{low} to {high}"
        raise InputError(f"takes {many} argument{'s' if high != 1 else ''}, not {len(kinds)}")
    for kind in kinds:
        if not (test(kind) or pa.types.is_null(kind)):
            raise InputError(f"takes {what}, not {type_name(kind)}")


def compare(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(2, "two values", kinds, lambda kind: True)
    if comparison_type(*kinds) is None:
        raise InputError(f"cannot compare {type_name(kinds[0])} with {type_name(kinds[1])}")
    return BOOL


def logic(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes((1, 2), "booleans", kinds, pa.types.is_boolean)
    return BOOL


def arithmetic(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and is_number(kinds[0]) and is_number(kinds[1]):
        return sum_type(*kinds)
    _takes(2, "two numbers", kinds, is_number)
    return INT64


def multiply(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and is_number(kinds[0]) and is_number(kinds[1]):
        return product_type(*kinds)
    return arithmetic(kinds)


def add(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and any(pa.types.is_duration(kind) for kind in kinds):
        if any(is_instant(kind) for kind in kinds):
            return TIMESTAMP_NS if _is_fine(kinds) else TIMESTAMP
        if all(pa.types.is_duration(kind) for kind in kinds):
            return DURATION_NS if _is_fine(kinds) else DURATION
    return arithmetic(kinds)


def subtract(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 2 and is_instant(kinds[0]):
        if is_instant(kinds[1]):
            return DURATION_NS if _is_fine(kinds) else DURATION
        if pa.types.is_duration(kinds[1]):
            return TIMESTAMP_NS if _is_fine(kinds) else TIMESTAMP
    if len(kinds) == 2 and all(pa.types.is_duration(kind) for kind in kinds):
        return DURATION_NS if _is_fine(kinds) else DURATION
    return arithmetic(kinds)


def _is_fine(kinds: Sequence[pa.DataType]) -> bool:
    return any(kind in (TIMESTAMP_NS, DURATION_NS) for kind in kinds)


def divide(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(2, "two numbers", kinds, is_number)
    return FLOAT64


def modulo(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(2, "two integers", kinds, pa.types.is_integer)
    return INT64


def same_number(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if len(kinds) == 1 and pa.types.is_duration(kinds[0]):
        return kinds[0]
    _takes(1, "a number", kinds, is_number)
    return INT64 if pa.types.is_integer(kinds[0]) else FLOAT64 if pa.types.is_floating(kinds[0]) else kinds[0]


def to_integer(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(1, "a number", kinds, is_number)
    return INT64


def to_float(count: int) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    def sign(kinds: Sequence[pa.DataType]) -> pa.DataType:
        _takes(count, "numbers", kinds, is_number)
        return FLOAT64

    return sign


def text(count: int | tuple[int, int], result: pa.DataType) -> Callable[[Sequence[pa.DataType]], pa.DataType]:
    def sign(kinds: Sequence[pa.DataType]) -> pa.DataType:
        _takes(count, "strings", kinds, is_text)
        return result

    return sign


def substring(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes((2, 3), "a string and one or two integers", kinds, lambda kind: is_text(kind) or pa.types.is_integer(kind))
    if not is_text(kinds[0]) or any(is_text(kind) for kind in kinds[1:]):
        raise InputError("takes a string and one or two integers")
    return STRING


def common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if not kinds:
        raise InputError("takes at least one argument")
    common = kinds[0]
    for kind in kinds[1:]:
        merged = common_type(common, kind)
        if merged is None:
            raise InputError(f"cannot mix {type_name(common)} and {type_name(kind)}")
        common = merged
    return common


def case(kinds: Sequence[pa.DataType]) -> pa.DataType:
    return common(kinds[1:])


def if_else(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(3, "values", kinds, lambda kind: True)
    _takes(1, "a condition first", kinds[:1], pa.types.is_boolean)
    return common(kinds[1:])


def any_value(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(1, "one value", kinds, lambda kind: True)
    return BOOL


def round(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes((1, 2), "numbers", kinds, is_number)
    if len(kinds) == 1:
        return INT64
    _takes(1, "an integer of digits", kinds[1:], pa.types.is_integer)
    # Of decimals the digits decide, see `rounding.rounded_type`.
    return same_number(kinds[:1])


def each(result: pa.DataType, what: str, *tests: Callable[[Any], bool]) -> Callable[[Any], pa.DataType]:
    def sign(kinds: Sequence[pa.DataType]) -> pa.DataType:
        _takes(len(tests), what, kinds, lambda kind: True)
        for kind, test in zip(kinds, tests, strict=True):
            _takes(1, what, [kind], test)
        return result

    return sign


def truncate(kinds: Sequence[pa.DataType]) -> pa.DataType:
    each(TIMESTAMP, "a unit and a timestamp or date", is_text, is_instant)(kinds)
    return kinds[1] if pa.types.is_timestamp(kinds[1]) else TIMESTAMP


def epoch(kinds: Sequence[pa.DataType]) -> pa.DataType:
    what = "a timestamp, date or difference of such"
    _takes(1, what, kinds, lambda kind: is_instant(kind) or pa.types.is_duration(kind))
    return FLOAT64


def instant(kinds: Sequence[pa.DataType]) -> pa.DataType:
    _takes(1, "a timestamp or date", kinds, is_instant)
    return INT64
