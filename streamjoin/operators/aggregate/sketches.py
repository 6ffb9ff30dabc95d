"""Approximate counts and quantiles: sketches as lists of small whole numbers, for many groups at once.

A *register* list is HyperLogLog. A hashed value names one of 4,096 registers and a rank, the place of the first bit
that is set; of each register the highest rank counts. Registers that nothing has named are not kept.
Source: Flajolet et al., HyperLogLog (AofA 2007), section 2; the estimate is that of Ertl, New cardinality estimation
algorithms for HyperLogLog sketches (arXiv 1702.01284), section 4, which needs no correction at either end.

A *bucket* list is a histogram of floats, cut where the first six bits of their fractions change: 64 buckets for each
power of two. Source: Masson et al., DDSketch (VLDB 2019), section 2, with buckets that are linear inside a power of
two, so that a float's own bits name its bucket and no logarithm can round otherwise on another machine.

The highest of ranks and the sum of counts depend on no order, so the sketch of the same values is the same bytes.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.index.kernels import radix_order

REGISTER_BITS = 12
_REGISTERS = 1 << REGISTER_BITS
_RANK_BITS = 6
_RANK_MAX = 64 - REGISTER_BITS + 1
_CODE_BITS = REGISTER_BITS + _RANK_BITS
_BUCKET_SHIFT = 46
"""A float has 52 bits of fraction, of which six are told apart."""
_BUCKET_OFFSET = 1 << (63 - _BUCKET_SHIFT)
REGISTERS = pa.list_(pa.int32())
BUCKETS, COUNTS = pa.list_(pa.int32()), pa.list_(pa.int64())


def register_codes(hashes: np.ndarray) -> np.ndarray:
    """What each value says: its register and, in the lowest six bits, its rank; int64 of shape (n,).

    Args:
        hashes: int64 of shape (n,), equal for equal values.
    """
    bits = hashes.view(np.uint64)
    registers = (bits >> np.uint64(64 - REGISTER_BITS)).astype(np.int64)
    # A float holds 52 bits exactly, and its exponent tells the highest one that is set.
    rest = bits & np.uint64((1 << (64 - REGISTER_BITS)) - 1)
    highest = np.frexp(rest.astype(np.float64))[1].astype(np.int64)
    return registers << _RANK_BITS | (_RANK_MAX - highest)


def register_lists(codes: np.ndarray, groups: np.ndarray, count: int) -> pa.Array:
    """The registers of each group, in their order, each with its highest rank.

    Args:
        codes: int64 of shape (n,), as `register_codes` or another list has them.
        groups: the group of each, int64 of shape (n,), from 0 to `count`.
    Cost: a sort of n numbers.
    """
    keys = np.sort(groups << _CODE_BITS | codes)
    is_last = np.ones(keys.size, bool)
    is_last[:-1] = np.diff(keys >> _RANK_BITS) != 0
    kept = keys[is_last]
    return _lists(kept >> _CODE_BITS, count, (kept & ((1 << _CODE_BITS) - 1)).astype(np.int32))


def distinct_counts(lists: pa.Array) -> np.ndarray:
    """How many different values each group has about, float64 of shape (g,)."""
    parents, codes = parents_of(lists), lists.flatten().to_numpy()
    ranks = codes & ((1 << _RANK_BITS) - 1)
    full = ranks == _RANK_MAX
    count = len(lists)
    empty = _REGISTERS - np.bincount(parents, minlength=count)
    halves = np.bincount(parents, weights=np.where(full, 0.0, np.ldexp(1.0, -ranks)), minlength=count)
    whole = _REGISTERS - np.bincount(parents[full], minlength=count)
    top = _REGISTERS * np.ldexp(_tau(whole / _REGISTERS), 1 - _RANK_MAX)
    with np.errstate(divide="ignore"):
        return _REGISTERS**2 / (2 * math.log(2)) / (halves + top + _REGISTERS * _sigma(empty / _REGISTERS))


def _sigma(x: np.ndarray) -> np.ndarray:
    """x plus the sum of x**(2**k) * 2**(k - 1) for k from 1 on; Ertl, algorithm 6, without its last step's rounding."""
    power, factor, total = x.copy(), 1.0, x.copy()
    for _ in range(64):
        power = power * power
        total = total + power * factor
        factor += factor
    return np.where(x == 1, np.inf, total)


def _tau(x: np.ndarray) -> np.ndarray:
    """1 - x less the sum of (1 - x**(2**-k))**2 * 2**-k for k from 1 on, by 3; Ertl, algorithm 6."""
    root, factor, total = x.copy(), 1.0, 1 - x
    for _ in range(64):
        root, factor = np.sqrt(root), factor / 2
        total = total - (1 - root) ** 2 * factor
    return np.where((x == 0) | (x == 1), 0.0, total / 3)


def bucket_codes(keys: np.ndarray) -> np.ndarray:
    """The bucket of each float, int64 of shape (n,), from 0 on and in the order of the floats.

    Args:
        keys: the floats as `index.keys.float_key` has them, int64 of shape (n,).
    """
    return (keys >> _BUCKET_SHIFT) + _BUCKET_OFFSET


def bucket_lists(buckets: np.ndarray, counts: np.ndarray, groups: np.ndarray, count: int) -> list[pa.Array]:
    """The buckets of each group, in their order, and how many values each has.

    Args:
        buckets, counts, groups: int64 of shape (n,).
    Cost: a sort of n numbers.
    """
    keys = groups << _CODE_BITS | buckets
    order = radix_order(keys, np.arange(keys.size, dtype=np.int64))
    ordered = keys[order]
    is_new = np.ones(ordered.size, bool)
    is_new[1:] = np.diff(ordered) != 0
    firsts = np.nonzero(is_new)[0]
    added = np.add.reduceat(counts[order], firsts) if firsts.size else np.zeros(0, np.int64)
    kept = ordered[firsts]
    groups = kept >> _CODE_BITS
    return [_lists(groups, count, (kept & ((1 << _CODE_BITS) - 1)).astype(np.int32)), _lists(groups, count, added)]


def quantiles(buckets: pa.Array, counts: pa.Array, quantile: float) -> pa.Array:
    """About the value of rank 1 + floor(quantile * (n - 1)) of each group's n values; NULL of none.

    It is the middle of the bucket that has the value, so it is off by at most 1/128 of it; below 2.3e-308 it is 0.
    """
    parents, sizes = parents_of(counts), counts.flatten().to_numpy()
    below = np.concatenate(([0], np.cumsum(sizes)))
    ends = np.cumsum(np.bincount(parents, minlength=len(counts)))
    starts = np.concatenate(([0], ends[:-1])).astype(np.int64)
    firsts, totals = below[starts], below[ends] - below[starts]
    ranks = np.minimum(np.floor(quantile * (totals - 1)).astype(np.int64), totals - 1)
    places = np.searchsorted(below, firsts + np.maximum(ranks, 0), side="right") - 1
    none = totals == 0
    middles = _middles(buckets.flatten().to_numpy().astype(np.int64))
    if not middles.size:
        return pa.nulls(len(counts), pa.float64())
    return pa.array(middles[np.where(none, 0, places)], mask=none)


def _middles(buckets: np.ndarray) -> np.ndarray:
    keys = buckets - _BUCKET_OFFSET
    negative = keys < 0
    # Negative floats have their bits turned over, so that they are in order.
    own = np.where(negative, ~keys & (_BUCKET_OFFSET - 1), keys)
    bits = own << _BUCKET_SHIFT
    special = own >= 0x7FF << (52 - _BUCKET_SHIFT)  # infinite, or not a number: its own start
    middles = np.where(special, bits, bits | 1 << (_BUCKET_SHIFT - 1)).view(np.float64)
    middles = np.where(middles < np.finfo(np.float64).tiny, 0.0, middles)
    return np.where(negative & (middles != 0), -middles, middles)


def parents_of(lists: pa.Array) -> np.ndarray:
    """Which list each item is of, int64."""
    return np.asarray(pc.list_parent_indices(lists).to_numpy())


def _lists(groups: np.ndarray, count: int, items: np.ndarray) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(np.bincount(groups, minlength=count)))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(items))
