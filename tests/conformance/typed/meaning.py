"""Oracle 1: what a condition means, over Python's integers, fractions and floats, in a nested loop.

Python's integers and fractions are exact, `float(fraction)` is correctly rounded, and its floats are IEEE's doubles.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .terms import CASTS, NULL_SAFE, Column, Interval, Node, Number, Term, Text, Type

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
"""A row of each stream."""

COLUMN_DIGITS_MAX = 38
"""An item of more digits leaves as float64."""
DAY_NS = 86_400_000_000_000
UNIT_NS = {"date": DAY_NS, "timestamp": 1_000, "timestamp_ns": 1, "duration": 1_000, "duration_ns": 1}
INT64 = range(-(2**63), 2**63)


def holds(conjuncts: Sequence[Term], rows: Rows) -> bool:
    """Whether all conditions are true; one that is unknown is not."""
    return all(value_of(part, rows) is True for part in conjuncts)


def value_of(term: Term, rows: Rows) -> Any:
    """The value of a term; None is NULL, or unknown."""
    match term:
        case Column(stream, name):
            value = rows[stream][name]
            return Fraction(value) if term.type.family == "decimal" and value is not None else value
        case Number(text):
            return {"int": int, "decimal": Fraction, "float": float}[term.type.family](text)
        case Text(text):
            return text
        case Interval():
            return term.us
        case Node(name, operands):
            if name in _LOGIC:
                return _LOGIC[name]([value_of(operand, rows) for operand in operands])
            if name == "BETWEEN":
                value, low, high = operands
                return _and([value_of(Node(">=", (value, low)), rows), value_of(Node("<=", (value, high)), rows)])
            if name == "IN":
                return _or([value_of(Node("=", (operands[0], option)), rows) for option in operands[1:]])
            values = [value_of(operand, rows) for operand in operands]
            if name in NULL_SAFE:
                return _same(values, [operand.type for operand in operands]) is (name == "IS NOT DISTINCT FROM")
            if any(value is None for value in values):
                return None
            return _computed(term, values, [operand.type for operand in operands])


def item_of(term: Term, rows: Rows) -> Any:
    """The value of an item of a SELECT list, as `kinds.plain` gives it."""
    value = value_of(term, rows)
    if term.type.family == "decimal" and term.type.precision > COLUMN_DIGITS_MAX and value is not None:
        value = float(value)
    if term.type.family == "duration_ns" and value is not None:
        value = int(Fraction(value, 1_000))  # spans leave in microseconds, cut off
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _and(values: Sequence[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _or(values: Sequence[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


_LOGIC: dict[str, Callable[[list[Any]], bool | None]] = {
    "AND": _and,
    "OR": _or,
    "NOT": lambda values: None if values[0] is None else not values[0],
    "IS NULL": lambda values: values[0] is None,
    "IS NOT NULL": lambda values: values[0] is not None,
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _same(values: list[Any], types: list[Type]) -> bool:
    """Whether two values are equal, or both NULL; what has no counterpart in the type they are compared in is NULL."""
    left, right = (
        None if value is None else _comparable([value, value], [own, other])[0]
        for value, own, other in zip(values, types, types[::-1], strict=True)
    )
    return bool(left == right)


def _computed(term: Node, values: list[Any], types: list[Type]) -> Any:
    if term.operator in _COMPARE:
        sides = _comparable(values, types)
        return None if None in sides else _COMPARE[term.operator](*sides)
    if term.operator in CASTS:
        return _cast(term.operator, values[0])
    if types[0].family in UNIT_NS:
        return _time(term, values, types)
    if term.operator in ("FLOOR", "CEIL", "ROUND"):
        return _whole(term.operator, values[0])
    if term.operator == "/":
        left, right = (_double(value) for value in values)
        return None if right == 0 else left / right
    if term.operator == "%":
        left, right = values
        return None if right == 0 else int(math.copysign(1, left)) * (abs(left) % abs(right))
    if term.type.family == "float":
        values = [_double(value) for value in values]
    result = _ARITHMETIC[term.operator](*values)
    return None if term.type.family == "int" and result not in INT64 else result


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "ABS": abs,
    "NEGATE": operator.neg,
}


def _double(value: Any) -> float:
    return float(value)


def _comparable(values: list[Any], types: list[Type]) -> list[Any]:
    families = {kind.family for kind in types}
    if "float" in families:
        # NaN is above every other number, and equal to itself.
        doubles = [_double(value) for value in values]
        return [(math.isnan(value), 0.0 if math.isnan(value) else value) for value in doubles]
    if families <= UNIT_NS.keys():
        if len(families) > 1:
            values = [_midnight(value, kind) for value, kind in zip(values, types, strict=True)]
        return [value and value * UNIT_NS[kind.family] for value, kind in zip(values, types, strict=True)]
    return [value.encode() if isinstance(value, str) else value for value in values]


def _midnight(value: int, kind: Type) -> int | None:
    """The value itself; NULL for a day outside the years that a timestamp holds, which has no midnight."""
    return None if kind.family == "date" and value * DAY_NS // UNIT_NS["timestamp"] not in INT64 else value


def _time(term: Node, values: list[Any], types: list[Type]) -> int | None:
    # Each side is a whole number of the result's unit, unless that is outside int64.
    unit = UNIT_NS[term.type.family]
    numbers = [value * UNIT_NS[kind.family] // unit for value, kind in zip(values, types, strict=True)]
    result = _ARITHMETIC[term.operator](*numbers)
    return result if all(number in INT64 for number in (*numbers, result)) else None


def _cast(name: str, value: Any) -> Any:
    if name in ("DOUBLE", "REAL"):
        if name == "DOUBLE" or not isinstance(value, int):
            value = _double(value)
        with np.errstate(over="ignore"):
            return value if name == "DOUBLE" else float(np.array([value]).astype(np.float32)[0])
    if isinstance(value, float) and not math.isfinite(value):
        return None
    kind = CASTS[name]
    if kind.family == "int":
        bits = 63 if name == "BIGINT" else 31
        return whole if -(2**bits) <= (whole := math.trunc(value)) < 2**bits else None
    unscaled = Fraction(value) * 10**kind.scale
    rounded = math.floor(abs(unscaled) + Fraction(1, 2))
    return Fraction(rounded if unscaled >= 0 else -rounded, 10**kind.scale) if rounded < 10**kind.precision else None


def _whole(function: str, value: Any) -> int | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = Fraction(value)
    if function == "ROUND":
        # Half away from zero.
        result = int(math.copysign(1, value)) * math.floor(abs(value) + Fraction(1, 2))
    else:
        result = math.floor(value) if function == "FLOOR" else math.ceil(value)
    return result if result in INT64 else None


def pairs(
    conjuncts: Sequence[Term], r: Sequence[Row], s: Sequence[Row], near: Callable[[int, int], bool]
) -> Counter[tuple[int, int]]:
    """The (r, s) row numbers that join.

    Args:
        near: whether two rows are inside the window.
    """
    return Counter(
        (i, j)
        for i, left in enumerate(r)
        for j, right in enumerate(s)
        if near(i, j) and holds(conjuncts, {"r": left, "s": right})
    )
