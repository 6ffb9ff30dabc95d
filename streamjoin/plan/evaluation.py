"""Vectorised evaluation of expressions over columns.

Semantics follow SQL's three-valued logic: NULL in, NULL out, except for AND, OR, IS and COALESCE. What has no value
is NULL and so never matches: a division by zero, or an integer result outside int64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import RunError
from streamjoin.plan.decimals import widened
from streamjoin.plan.expression import Call, Column, Expression, Literal
from streamjoin.plan.functions.table import FUNCTIONS
from streamjoin.plan.values import Columns, Value

_READS_NULL = {"and", "or", "is_null", "same", "coalesce", "nullif", "case", "if", "cast"}
"""Functions that give something else than NULL for one."""


def evaluate(
    expression: Expression,
    columns: Columns,
    rows: int,
    predicates: Mapping[str, Callable[..., Any]] | None = None,
) -> pa.Array:
    """The values of an expression.

    Args:
        columns: arrays of `rows` values for every column the expression reads, also as they are carried.
        predicates: registered vectorised predicates by name.
    Returns:
        An array of `rows` values of the expression's type.
    Raises:
        RunError: a registered predicate failed, or gave something else than one boolean a row.
    Cost: one vectorised pass a node.
    """
    value = _evaluate(expression, columns, rows, predicates or {})
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value


def evaluate_carried(expression: Expression, columns: Columns, rows: int) -> pa.Array:
    """As `evaluate`, but a column alone is given as it is carried: for keys, which need no more."""
    if isinstance(expression, Column):
        return columns[expression.stream, expression.name]
    return evaluate(expression, columns, rows)


def filter_mask(
    expression: Expression,
    columns: Columns,
    rows: int,
    predicates: Mapping[str, Callable[..., Any]] | None = None,
) -> np.ndarray:
    """Which rows satisfy a predicate, bool of shape (rows,): NULL does not."""
    mask = evaluate(expression, columns, rows, predicates)
    return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), dtype=bool)


def _evaluate(
    expression: Expression, columns: Columns, rows: int, predicates: Mapping[str, Callable[..., Any]]
) -> Value:
    match expression:
        case Column(stream, name, _):
            return widened(columns[(stream, name)])
        case Literal(value, kind):
            return pa.scalar(value, kind)
        case Call(function, args, kind):
            values = [_evaluate(arg, columns, rows, predicates) for arg in args]
            # Arrow has no kernels for NULL without a type; everything else gives NULL where an argument is one.
            if function not in _READS_NULL and any(pa.types.is_null(value.type) for value in values):
                return pa.scalar(None, kind)
            if function in FUNCTIONS:
                return FUNCTIONS[function].compute(values, kind)
            return _registered(function, predicates, values, rows)


def _registered(name: str, predicates: Mapping[str, Callable[..., Any]], values: list[Value], rows: int) -> pa.Array:
    arrays = [pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value for value in values]
    try:
        answer = predicates[name](*[array.to_numpy(zero_copy_only=False) for array in arrays])
    except Exception as cause:
        raise RunError(f"predicate {name} failed on a block of {rows} rows: {type(cause).__name__}: {cause}") from cause
    mask = np.asarray(answer)
    if mask.shape != (rows,) or mask.dtype != np.bool_:
        raise RunError(
            f"predicate {name} must give one boolean a row: for {rows} rows it gave {mask.dtype} of shape {mask.shape}"
        )
    return pa.array(mask)
