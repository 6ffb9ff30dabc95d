"""Calls and casts whose arguments have the types that their functions compute on.

Numbers are computed as int64, decimal or float64, as `types.py` says. NaN equals NaN, -0.0 equals 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from streamjoin.errors import InputError, QueryError
from streamjoin.plan.expression import Call, Expression, Literal, decimal_literal
from streamjoin.plan.functions import casts, comparisons
from streamjoin.plan.functions.table import ARITHMETIC, COMPARISONS, FUNCTIONS, PUBLIC_FUNCTIONS
from streamjoin.plan.types import (
    BOOL,
    DURATION,
    DURATION_NS,
    INT64,
    TIMESTAMP,
    TIMESTAMP_NS,
    as_decimal,
    comparison_type,
    is_number,
    number_type,
    too_wide,
)


def cast(expression: Expression, kind: pa.DataType) -> Expression:
    """`expression` as `kind`; itself where it has that type already, and a constant number as one of that type."""
    if expression.type == kind:
        return expression
    if isinstance(expression, Literal) and is_number(expression.type) and is_number(kind):
        return Literal(casts.cast([pa.scalar(expression.value, expression.type)], kind).as_py(), kind)
    return Call("cast", (expression,), kind)


def call(function: str, *args: Expression) -> Call:
    """A call with its arguments cast to what the function works on.

    Raises:
        QueryError: no such function, or arguments it does not take. The caller adds the place.
    """
    if function not in FUNCTIONS:
        raise QueryError(f"there is no function {function.upper()}; functions are {', '.join(PUBLIC_FUNCTIONS)}")
    kinds = [arg.type for arg in args]
    try:
        result = FUNCTIONS[function].signature(kinds)
    except InputError as wrong:
        raise QueryError(f"{function.upper()}: {wrong.message}") from None
    if function in COMPARISONS:
        return _comparison(function, *args)
    if function in ARITHMETIC and is_number(result):
        return Call(function, tuple(cast(arg, _term_type(function, kinds, result, arg.type)) for arg in args), result)
    return Call(function, args, result)


def _comparison(function: str, left: Expression, right: Expression) -> Call:
    """A comparison of two values in their common type; beside a column, a constant takes the column's form."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        mirrored = _comparison(comparisons.MIRRORED[function], right, left)
        return Call(comparisons.MIRRORED[mirrored.function], (mirrored.args[1], mirrored.args[0]), BOOL)
    if isinstance(right, Literal):
        right = _beside(function, left.type, right)
    if too_wide(left.type, right.type):
        return Call(function, (cast(left, as_decimal(left.type)), cast(right, as_decimal(right.type))), BOOL)
    common = comparison_type(left.type, right.type)
    return Call(function, (cast(left, common), cast(right, common)), BOOL)


def _beside(function: str, kind: pa.DataType, constant: Literal) -> Literal:
    """The constant as it is cheapest to compare values of `kind` with; the comparison means the same."""
    if constant.value is None:
        return constant
    if pa.types.is_decimal(kind) and pa.types.is_integer(constant.type):
        return decimal_literal(Decimal(constant.value))
    if pa.types.is_integer(kind) and pa.types.is_decimal(constant.type):
        # x < 2.5 is x < 3, and x <= 2.5 is x <= 2; x = 2.5 stays as it is.
        exact = Fraction(constant.value)
        whole = math.ceil(exact) if function in ("lt", "ge") else math.floor(exact)
        if (whole == exact or function in ("lt", "le", "gt", "ge")) and -(2**63) <= whole < 2**63:
            return Literal(whole, INT64)
    finer = {TIMESTAMP_NS: TIMESTAMP, DURATION_NS: DURATION}.get(kind)
    if finer is not None and constant.type == finer:
        nanoseconds = casts.cast([pa.scalar(constant.value, constant.type)], kind).cast(INT64).as_py()
        return constant if nanoseconds is None else Literal(nanoseconds, kind)
    return constant


def _term_type(function: str, kinds: Sequence[pa.DataType], result: pa.DataType, own: pa.DataType) -> pa.DataType:
    """What a term of a sum or product is cast to, so that Arrow's result is of the type `result`."""
    if not pa.types.is_decimal(result):
        return result
    kind = as_decimal(own) if function == "multiply" else number_type(*kinds)
    return pa.decimal256(kind.precision, kind.scale) if result.bit_width == 256 else kind
