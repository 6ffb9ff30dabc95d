"""What views know of tuples: how it is made of values, how two of them become one, and what is computed of it.

Each kind has columns of its own in a view. Whatever is added up is exact, and what is chosen among equals does not
depend on their order, so views of the same tuples are the same however these were cut, and in whatever order they came.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.index.kernels import radix_order
from streamjoin.index.keys import float_key, hash_key, is_exact, order_key
from streamjoin.kernel import kernel
from streamjoin.operators.aggregate.exact import sum_codes, sum_squares, sum_values
from streamjoin.operators.aggregate.grouping import Grouping, normal
from streamjoin.operators.aggregate.sketches import (
    BUCKETS,
    COUNTS,
    REGISTERS,
    bucket_codes,
    bucket_lists,
    parents_of,
    register_codes,
    register_lists,
)
from streamjoin.plan.aggregate import Kind, Part
from streamjoin.plan.decimals import limbs
from streamjoin.plan.types import INT64

CODES = pa.list_(INT64)
_DIGITS = {Kind.INTEGERS: 3, Kind.DECIMALS: 5}
"""Digits to the base 2**32 of a sum, the last one with a sign: those of a value, and one for carries."""


def column_types(part: Part) -> tuple[pa.DataType, ...]:
    """The types of a part's columns in a view."""
    match part.kind:
        case Kind.ROWS | Kind.VALUES:
            return (INT64,)
        case Kind.INTEGERS | Kind.DECIMALS:
            return (INT64,) * _DIGITS[part.kind]
        case Kind.FLOATS | Kind.SQUARES:
            return (CODES,)
        case Kind.DISTINCT:
            return (pa.list_(part.args[0].type),)
        case Kind.REGISTERS:
            return (REGISTERS,)
        case Kind.BUCKETS:
            return (BUCKETS, COUNTS)
        case _:
            return tuple(arg.type for arg in part.args)


def made(part: Part, values: Sequence[pa.Array], rows: Grouping) -> list[pa.Array]:
    """A part of views, from the values of tuples: one array of g values for each column.

    Args:
        values: of each argument, n values.
        rows: the groups of the n tuples.
    """
    match part.kind:
        case Kind.ROWS:
            return [pa.array(np.diff(rows.starts))]
        case Kind.VALUES:
            if not values[0].null_count:
                return [pa.array(np.diff(rows.starts))]
            return [pa.array(_added([_is_there(values[0])], rows)[0])]
        case Kind.INTEGERS:
            numbers = _filled(values[0]).cast(INT64).to_numpy()
            return _carried(list(_integer_digits(numbers, rows.order, rows.starts)))
        case Kind.DECIMALS:
            return _sums(_digits_of_decimals(values[0]), rows)
        case Kind.FLOATS | Kind.SQUARES:
            numbers = np.ascontiguousarray(_filled(values[0].cast(pa.float64())).to_numpy())
            summed = sum_squares if part.kind is Kind.SQUARES else sum_values
            return [_lists(*summed(numbers, rows.order, rows.starts))]
        case Kind.DISTINCT:
            value = normal(values[0])
            return [_distinct(value, np.arange(len(value), dtype=np.int64), rows)]
        case Kind.REGISTERS:
            value, groups = _present(normal(values[0]), rows)
            return [register_lists(register_codes(hash_key([value])), groups, len(rows))]
        case Kind.BUCKETS:
            value, groups = _present(values[0], rows)
            return bucket_lists(bucket_codes(float_key(value.to_numpy())), np.ones_like(groups), groups, len(rows))
        case _:
            return _chosen(part.kind, [normal(value) for value in values], rows)


def merged(part: Part, columns: Sequence[pa.Array], views: Grouping) -> list[pa.Array]:
    """The same from a part of other views."""
    match part.kind:
        case Kind.ROWS | Kind.VALUES:
            return [pa.array(_added([columns[0].to_numpy()], views)[0])]
        case Kind.INTEGERS | Kind.DECIMALS:
            return _sums([column.to_numpy() for column in columns], views)
        case Kind.FLOATS | Kind.SQUARES:
            codes, spans = codes_of(columns[0])
            return [_lists(*sum_codes(codes, spans, views.order, views.starts))]
        case Kind.DISTINCT:
            lists = columns[0]
            return [_distinct(lists.flatten(), parents_of(lists), views)]
        case Kind.REGISTERS:
            codes = columns[0].flatten().to_numpy().astype(np.int64)
            return [register_lists(codes, views.of_rows[parents_of(columns[0])], len(views))]
        case Kind.BUCKETS:
            buckets, counts = (column.flatten().to_numpy().astype(np.int64) for column in columns)
            return bucket_lists(buckets, counts, views.of_rows[parents_of(columns[0])], len(views))
        case _:
            return _chosen(part.kind, columns, views)


def codes_of(lists: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Exact sums as `exact` takes them."""
    spans = np.concatenate(([0], np.cumsum(pc.list_value_length(lists).to_numpy()))).astype(np.int64)
    return np.ascontiguousarray(lists.flatten().to_numpy()), spans


def _lists(codes: np.ndarray, offsets: np.ndarray) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(codes))


def _filled(values: pa.Array) -> pa.Array:
    return pc.fill_null(values, pa.scalar(0, values.type)) if values.null_count else values


def _is_there(values: pa.Array) -> np.ndarray:
    return values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)


def _added(columns: Sequence[np.ndarray], rows: Grouping) -> list[np.ndarray]:
    return [np.add.reduceat(column[rows.order], rows.starts[:-1]) for column in columns]


def _sums(digits: Sequence[np.ndarray], rows: Grouping) -> list[pa.Array]:
    """Sums of numbers by their digits."""
    return _carried(_added(digits, rows))


def _carried(added: list[np.ndarray]) -> list[pa.Array]:
    """Sums of digits, of which all but the last are brought into [0, 2**32) again."""
    for place in range(len(added) - 1):
        added[place + 1] = added[place + 1] + (added[place] >> 32)
        added[place] = added[place] & 0xFFFFFFFF
    return [pa.array(column) for column in added]


@kernel
def _integer_digits(values: np.ndarray, order: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums of the three digits of a group's int64 values, each int64 of shape (g,)."""
    groups = starts.size - 1
    low, high, sign = np.empty(groups, np.int64), np.empty(groups, np.int64), np.empty(groups, np.int64)
    for group in range(groups):
        first, second, third = np.int64(0), np.int64(0), np.int64(0)
        for i in range(starts[group], starts[group + 1]):
            value = values[order[i]]
            first += value & np.int64(0xFFFFFFFF)
            second += (value >> np.int64(32)) & np.int64(0xFFFFFFFF)
            third += value >> np.int64(63)
        low[group], high[group], sign[group] = first, second, third
    return low, high, sign


def _digits_of_decimals(values: pa.Array) -> list[np.ndarray]:
    words = limbs(values).view(np.int64)
    if values.null_count:
        words = np.where(values.is_null().to_numpy(zero_copy_only=False)[:, None], 0, words)
    low, high = np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])
    return [low & 0xFFFFFFFF, (low >> 32) & 0xFFFFFFFF, high & 0xFFFFFFFF, (high >> 32) & 0xFFFFFFFF, high >> 63]


def _chosen(kind: Kind, values: Sequence[pa.Array], rows: Grouping) -> list[pa.Array]:
    """The values of the row that is chosen in each group, NULL where none has them all."""
    there = np.logical_and.reduce([value.is_valid().to_numpy(zero_copy_only=False) for value in values])
    codes = [_ranks(value) for value in values]
    least = kind in (Kind.LEAST, Kind.AT_LEAST)
    # Among several, the one with the least first value, whichever came first.
    first, second = codes if len(codes) == 2 else (codes[0], codes[0])
    places = _chosen_rows(second, first, there, rows.order, rows.starts, least)
    taken = pa.array(places, mask=places < 0)
    return [value.take(taken) for value in values]


def _ranks(values: pa.Array) -> np.ndarray:
    """int64 of shape (n,) in the order of the values, equal for equal ones."""
    if is_exact(values.type):
        return order_key(values)
    return np.asarray(pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64))


@kernel
def _chosen_rows(
    codes: np.ndarray, others: np.ndarray, there: np.ndarray, order: np.ndarray, starts: np.ndarray, least: bool
) -> np.ndarray:
    groups = starts.size - 1
    out = np.full(groups, -1, np.int64)
    for group in range(groups):
        best = np.int64(-1)
        for i in range(starts[group], starts[group + 1]):
            row = order[i]
            if not there[row]:
                continue
            if best < 0:
                best = row
                continue
            if codes[row] == codes[best]:
                if others[row] < others[best]:
                    best = row
            elif (codes[row] < codes[best]) == least:
                best = row
        out[group] = best
    return out


def warm_up() -> None:
    """Load what most views call; see `streamjoin/warming.py`."""
    one, starts, order = np.zeros(1, np.int64), np.array([0, 1], np.int64), np.zeros(1, np.int64)
    _integer_digits(one, order, starts)
    _chosen_rows(one, one, np.ones(1, bool), order, starts, True)


def _present(values: pa.Array, rows: Grouping) -> tuple[pa.Array, np.ndarray]:
    """The values that are not NULL, and the group of each."""
    groups = rows.of_rows
    if not values.null_count:
        return values, groups
    there = values.is_valid()
    return values.filter(there), groups[there.to_numpy(zero_copy_only=False)]


def _distinct(values: pa.Array, parents: np.ndarray, rows: Grouping) -> pa.Array:
    """The distinct values of each group, but NULL.

    Args:
        parents: the row that each value is of, int64.
    """
    group_of = rows.of_rows
    there = values.is_valid().to_numpy(zero_copy_only=False)
    if not there.all():
        kept = np.nonzero(there)[0]
        values, parents = values.take(pa.array(kept)), parents[kept]
    codes = values.dictionary_encode().indices.to_numpy().astype(np.int64)
    groups = group_of[parents]
    order = radix_order(groups, radix_order(codes, np.arange(codes.size, dtype=np.int64)))
    is_new = np.ones(order.size, bool)
    is_new[1:] = (np.diff(groups[order]) != 0) | (np.diff(codes[order]) != 0)
    kept = order[is_new]
    sizes = np.bincount(groups[kept], minlength=len(rows)) if kept.size else np.zeros(len(rows), np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values.take(pa.array(kept)))
