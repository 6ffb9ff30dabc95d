"""Expressions over stream columns: trees of `Column`, `Literal` and `Call`, and their text.

What a call may be is one table, `functions/table.py`; `coercion.py` makes calls, `evaluation.py` computes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from streamjoin.errors import QueryError
from streamjoin.plan.schema import VERSION, type_name
from streamjoin.plan.types import BOOL, DIGITS_MAX, STRING, decimal


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream; evaluates to the array the caller holds under (stream, name)."""

    stream: str
    name: str
    type: pa.DataType

    def __str__(self) -> str:
        return f"VERSION({self.stream})" if self.name == VERSION else f"{self.stream}.{self.name}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `value` is what `pa.scalar(value, type)` takes."""

    value: Any
    type: pa.DataType

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if pa.types.is_string(self.type):
            return "'" + self.value.replace("'", "''") + "'"
        if pa.types.is_timestamp(self.type) and self.type.unit == "ns":
            return f"TIMESTAMP '{pa.scalar(self.value, self.type).cast(STRING).as_py()}'"
        if pa.types.is_timestamp(self.type) or pa.types.is_date(self.type):
            return f"{type_name(self.type).upper()} '{self.value}'"
        if pa.types.is_duration(self.type):
            return f"INTERVAL {self.value} {'NANO' if self.type.unit == 'ns' else 'MICRO'}SECONDS"
        if isinstance(self.value, Decimal):
            return f"{self.value:f}"
        return str(self.value).upper() if isinstance(self.value, bool) else str(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `FUNCTIONS`, or a registered predicate, applied to arguments of the right types."""

    function: str
    args: tuple[Expression, ...]
    type: pa.DataType

    def __str__(self) -> str:
        if self.function == "not" and isinstance(self.args[0], Call) and self.args[0].function == "same":
            return self.args[0]._same(False)
        if self.function == "same":
            return self._same(True)
        # Each argument once: where a part asks for its own parts twice, the time doubles with each level.
        words = [str(arg) for arg in self.args]
        if self.function in INFIX and len(words) == 2:
            return f"({words[0]} {INFIX[self.function]} {words[1]})"
        if self.function == "not":
            return f"(NOT {words[0]})"
        if self.function == "is_null":
            return f"({words[0]} IS NULL)"
        if self.function == "cast":
            return f"CAST({words[0]} AS {type_name(self.type)})"
        return f"{self.function.upper()}({', '.join(words)})"

    def _same(self, holds: bool) -> str:
        left, right = self.args
        if isinstance(right, Literal) and isinstance(right.value, bool):
            return f"({left} IS {'' if holds else 'NOT '}{right})"
        return f"({left} IS {'NOT ' if holds else ''}DISTINCT FROM {right})"


Expression: TypeAlias = "Column | Literal | Call"
TRUE = Literal(True, BOOL)

INFIX = {
    "and": "AND",
    "or": "OR",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "like": "LIKE",
    "ilike": "ILIKE",
}


def walk(expression: Expression) -> Iterator[Expression]:
    """Every node of the tree, parents first."""
    ahead = [expression]
    while ahead:
        node = ahead.pop()
        yield node
        if isinstance(node, Call):
            ahead.extend(reversed(node.args))


def renamed(expression: Expression, columns: Mapping[tuple[str, str], Column]) -> Expression:
    """An expression with other columns in place of those of these streams and names."""
    if isinstance(expression, Column):
        return columns.get((expression.stream, expression.name), expression)
    if isinstance(expression, Call):
        return replace(expression, args=tuple(renamed(arg, columns) for arg in expression.args))
    return expression


def columns_of(expression: Expression) -> frozenset[tuple[str, str]]:
    """The (stream, column) pairs an expression reads."""
    return frozenset((node.stream, node.name) for node in walk(expression) if isinstance(node, Column))


def streams_of(expression: Expression) -> frozenset[str]:
    """The streams an expression reads."""
    return frozenset(stream for stream, _ in columns_of(expression))


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts of a conjunction, left to right; an expression without AND is one part, TRUE is none."""
    if expression == TRUE:
        return ()
    if isinstance(expression, Call) and expression.function == "and":
        return conjuncts(expression.args[0]) + conjuncts(expression.args[1])
    return (expression,)


def conjunction(parts: Sequence[Expression]) -> Expression:
    """The AND of all parts, in their order; TRUE where there are none."""
    if len(parts) < 2:
        return parts[0] if parts else TRUE
    # Halves: a chain of 500 parts would be too deep to walk.
    middle = (len(parts) + 1) // 2
    return Call("and", (conjunction(parts[:middle]), conjunction(parts[middle:])), BOOL)


def decimal_literal(value: Decimal) -> Literal:
    """A constant of the smallest decimal type that holds it.

    Raises:
        QueryError: it has more than 76 digits.
    """
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > DIGITS_MAX:
        raise QueryError(f"a number has {DIGITS_MAX} digits at most; write it as a float, such as 1e20")
    return Literal(value, decimal(precision, scale))
