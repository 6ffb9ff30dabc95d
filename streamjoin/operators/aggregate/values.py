"""The values of aggregate functions, computed from the parts of views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.operators.aggregate.exact import rounded, variances
from streamjoin.operators.aggregate.means import integer_means, means
from streamjoin.operators.aggregate.parts import codes_of
from streamjoin.operators.aggregate.sketches import distinct_counts, quantiles
from streamjoin.plan.aggregate import Aggregate
from streamjoin.plan.types import INT64

Columns = Sequence[pa.Array]
"""The columns of all parts of an aggregate, one after the other."""
_LARGEST = 10**38 - 1
"""The largest decimal, without its scale."""


def value(aggregate: Aggregate, columns: Columns) -> pa.Array:
    """An aggregate's value for each of n groups, of the type of its result.

    Args:
        columns: those of its parts, in their order; n values each.
    """
    kind = aggregate.result.type
    if aggregate.quantile is not None:
        found = _quantile(columns, kind, aggregate.quantile)
    else:
        found = _COMPUTED[aggregate.function](columns, kind)
    return found if found.type == kind else found.cast(kind)


def _first(columns: Columns, kind: pa.DataType) -> pa.Array:
    return columns[0]


def _sum(columns: Columns, kind: pa.DataType) -> pa.Array:
    *parts, counts = columns
    if pa.types.is_floating(kind):
        found = pa.array(rounded(*codes_of(parts[0])))
    elif pa.types.is_decimal(kind):
        found = _decimal(parts, kind)
    else:
        low, middle, high = (part.to_numpy() for part in parts)
        # The upper digits say nothing new where the sum fits into an int64.
        fits = (middle >> 31 == 0) & (high == 0) | (middle >> 31 == 1) & (high == -1)
        found = pa.array(low | middle << 32, mask=~fits)
    return pc.if_else(pc.greater(counts, 0), found, pa.scalar(None, found.type))


def _decimal(parts: Columns, kind: pa.DataType) -> pa.Array:
    """Decimals of 38 digits from digits to the base 2**32; NULL where there are more."""
    d0, d1, d2, d3, d4 = (part.to_numpy() for part in parts)
    words = np.empty((d0.size, 2), np.int64)
    words[:, 0] = d0 | d1 << 32
    words[:, 1] = d2 | d3 << 32
    fits = (d3 >> 31 == 0) & (d4 == 0) | (d3 >> 31 == 1) & (d4 == -1)
    low, high = words[:, 0].view(np.uint64), words[:, 1]
    (least, floor), (most, ceiling) = ((bound >> 64, np.uint64(bound & (2**64 - 1))) for bound in (-_LARGEST, _LARGEST))
    fits &= (high > least) | ((high == least) & (low >= floor))
    fits &= (high < most) | ((high == most) & (low <= ceiling))
    validity = pa.array(fits).buffers()[1]
    return pa.Array.from_buffers(kind, d0.size, [validity, pa.py_buffer(words)])


def _average(columns: Columns, kind: pa.DataType) -> pa.Array:
    *parts, counts = columns
    count = np.ascontiguousarray(counts.to_numpy())
    if pa.types.is_list(parts[0].type):
        found = means(*codes_of(parts[0]), count)
    else:
        low, middle, high = (np.ascontiguousarray(part.to_numpy()) for part in parts)
        found = integer_means(low, middle, high, count)
    return pa.array(found, mask=count == 0)


def _variance(less: int, *, root: bool) -> Callable[[Columns, pa.DataType], pa.Array]:
    def compute(columns: Columns, kind: pa.DataType) -> pa.Array:
        sums, squares, counts = columns
        count = counts.to_numpy()
        found = variances(*codes_of(sums), *codes_of(squares), np.ascontiguousarray(count), less)
        return pa.array(np.sqrt(found) if root else found, mask=count <= less)

    return compute


def _distinct(columns: Columns, kind: pa.DataType) -> pa.Array:
    return pc.list_value_length(columns[0]).cast(INT64)


def _approximate_count(columns: Columns, kind: pa.DataType) -> pa.Array:
    return pa.array(np.rint(distinct_counts(columns[0])).astype(np.int64))


def _quantile(columns: Columns, kind: pa.DataType, quantile: float) -> pa.Array:
    found = quantiles(columns[0], columns[1], quantile)
    if not pa.types.is_integer(kind):
        return found
    # A whole number of the same bucket; those below 128 have one of their own.
    numbers = np.clip(np.trunc(found.fill_null(0.0).to_numpy()), -(2.0**63), 2.0**63 - 1024)
    return pa.array(numbers.astype(np.int64), mask=found.is_null().to_numpy(zero_copy_only=False))


_COMPUTED: dict[str, Callable[[Columns, pa.DataType], pa.Array]] = {
    "count": _first,
    "count_distinct": _distinct,
    "sum": _sum,
    "avg": _average,
    "min": _first,
    "max": _first,
    "bool_and": _first,
    "bool_or": _first,
    "arg_min": _first,
    "arg_max": _first,
    "approx_count_distinct": _approximate_count,
    "var_samp": _variance(1, root=False),
    "var_pop": _variance(0, root=False),
    "stddev_samp": _variance(1, root=True),
    "stddev_pop": _variance(0, root=True),
}
"""By function, as `query/aggregates.py` names them."""
