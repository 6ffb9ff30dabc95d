"""The aggregate functions: what each takes, what it gives, and what it is computed from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from streamjoin.errors import QueryError
from streamjoin.plan.aggregate import Kind, Part
from streamjoin.plan.coercion import cast
from streamjoin.plan.expression import Expression, Literal
from streamjoin.plan.schema import type_name
from streamjoin.plan.types import BOOL, COLUMN_DIGITS_MAX, FLOAT64, INT64, is_number

COUNT, COUNT_DISTINCT = "count", "count_distinct"


@dataclass(frozen=True, slots=True)
class Made:
    """A call of an aggregate function.

    Args:
        function: how its value is computed; see `operators/aggregate/values.py`.
        parts: what it is computed from.
        type: of its value.
        quantile: which one is asked for; None where none is.
    """

    function: str
    parts: tuple[Part, ...]
    type: pa.DataType
    quantile: float | None = None


Make = Callable[[str, Sequence[Expression]], Made]


def made(name: str, args: Sequence[Expression], *, distinct: bool = False) -> Made:
    """A call of the function `name`, one of `AGGREGATES`; without arguments it is COUNT(*).

    Raises:
        QueryError: without a place; it does not take these arguments.
    """
    if distinct and name != COUNT:
        raise QueryError(f"{name.upper()} takes no DISTINCT; only COUNT does")
    if distinct:
        (value,) = args
        return Made(COUNT_DISTINCT, (Part(Kind.DISTINCT, (value,)),), INT64)
    many, make = AGGREGATES[name]
    if name == COUNT and not args:
        return Made(COUNT, (Part(Kind.ROWS),), INT64)
    if len(args) != many:
        raise QueryError(
            f"{name.upper()} takes {many} argument{'' if many == 1 else 's'}, not {len(args) or 'nothing'}"
        )
    return make(name, args)


def _count(name: str, args: Sequence[Expression]) -> Made:
    return Made(COUNT, (Part(Kind.VALUES, tuple(args)),), INT64)


def _number(name: str, value: Expression) -> pa.DataType:
    if not is_number(value.type):
        raise QueryError(
            f"{name.upper()} takes numbers, and this is {type_name(value.type)}; if its values are numbers, write "
            f"{name.upper()}(CAST({value} AS DOUBLE))"
        )
    return value.type


def _sum(name: str, args: Sequence[Expression]) -> Made:
    (value,), kind = args, _number(name, args[0])
    counted = Part(Kind.VALUES, (value,))
    if pa.types.is_integer(kind):
        return Made(name, (Part(Kind.INTEGERS, (cast(value, INT64),)), counted), INT64)
    if pa.types.is_decimal(kind):
        return Made(name, (Part(Kind.DECIMALS, (value,)), counted), pa.decimal128(COLUMN_DIGITS_MAX, kind.scale))
    return Made(name, (Part(Kind.FLOATS, (cast(value, FLOAT64),)), counted), FLOAT64)


def _average(name: str, args: Sequence[Expression]) -> Made:
    (value,), kind = args, _number(name, args[0])
    summed, of = (Kind.INTEGERS, INT64) if pa.types.is_integer(kind) else (Kind.FLOATS, FLOAT64)
    return Made("avg", (Part(summed, (cast(value, of),)), Part(Kind.VALUES, (value,))), FLOAT64)


def _variance(function: str) -> Make:
    def make(name: str, args: Sequence[Expression]) -> Made:
        _number(name, args[0])
        value = (cast(args[0], FLOAT64),)
        parts = Part(Kind.FLOATS, value), Part(Kind.SQUARES, value), Part(Kind.VALUES, tuple(args))
        return Made(function, parts, FLOAT64)

    return make


def _chosen(kind: Kind) -> Make:
    return lambda name, args: Made(name, (Part(kind, tuple(args)),), args[0].type)


def _boolean(kind: Kind) -> Make:
    def make(name: str, args: Sequence[Expression]) -> Made:
        if args[0].type != BOOL:
            raise QueryError(f"{name.upper()} takes conditions, and this is {type_name(args[0].type)}")
        return Made(name, (Part(kind, tuple(args)),), BOOL)

    return make


def _approximate_count(name: str, args: Sequence[Expression]) -> Made:
    return Made(name, (Part(Kind.REGISTERS, tuple(args)),), INT64)


def _quantile(name: str, args: Sequence[Expression]) -> Made:
    value, wanted = args
    kind = _number(name, value)
    quantile = float(wanted.value) if isinstance(wanted, Literal) and is_number(wanted.type) else None
    if quantile is None or not 0 <= quantile <= 1:
        raise QueryError(f"{name.upper()} takes a number from 0 to 1 behind what it is of, such as 0.95")
    part = Part(Kind.BUCKETS, (cast(value, FLOAT64),))
    return Made(name, (part,), INT64 if pa.types.is_integer(kind) else FLOAT64, quantile)


AGGREGATES: dict[str, tuple[int, Make]] = {
    COUNT: (1, _count),
    "sum": (1, _sum),
    "avg": (1, _average),
    "mean": (1, _average),
    "min": (1, _chosen(Kind.LEAST)),
    "max": (1, _chosen(Kind.GREATEST)),
    "variance": (1, _variance("var_samp")),
    "var_samp": (1, _variance("var_samp")),
    "var_pop": (1, _variance("var_pop")),
    "stddev": (1, _variance("stddev_samp")),
    "stddev_samp": (1, _variance("stddev_samp")),
    "stddev_pop": (1, _variance("stddev_pop")),
    "bool_and": (1, _boolean(Kind.LEAST)),
    "bool_or": (1, _boolean(Kind.GREATEST)),
    "arg_min": (2, _chosen(Kind.AT_LEAST)),
    "arg_max": (2, _chosen(Kind.AT_GREATEST)),
    "approx_count_distinct": (1, _approximate_count),
    "approx_quantile": (2, _quantile),
}
"""Name -> (how many arguments, what makes a call of it)."""
