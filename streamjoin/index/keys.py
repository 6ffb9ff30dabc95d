"""Column values as int64 keys that keep their order, and ranges of values as ranges of such keys.

A kernel compares int64 only. For each type one *key space* says how its values become keys and how a range around a
value becomes a range in the very same space:

    type                                key                                         one to one   a bound with a shift
    integers, bool, date, timestamps    the integer                                 yes          exact
    decimals of up to 18 digits         the unscaled integer                        yes          exact
    wider decimals                      the leading 54 bits and their place         no           exact, then rounded out
    floats                              their bits in order; NaN above all          yes          rounded out
    text, bytes                         the first eight bytes                       no           none

Where the map is not one to one it never falls: what is found with it must be checked again, and nothing is missed.
Excluded bounds are left out where keys are one to one and the shift is exact. A range without any key, such as all
below the lowest integer, is `EMPTY_RANGE`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.index.kernels import hash_bytes, limb_keys, mix
from streamjoin.plan.decimals import limbs, unscaled, widened
from streamjoin.plan.predicate import Range

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EMPTY_RANGE = INT64_MAX, INT64_MIN
"""(low, high) of a range that holds no key."""
ROUNDING = 8 * float(np.finfo(np.float64).eps)
_LARGEST = float(np.finfo(np.float64).max)
_WHOLE_DIGITS = 18  # digits that always fit into int64
_DAY_US = 86_400_000_000

Bounds = tuple[np.ndarray, np.ndarray]


class KeySpace(ABC):
    """How the values of one type become keys. Values are arrays of n; NULLs get the key of some one value."""

    one_to_one: bool

    @abstractmethod
    def keys(self, values: pa.Array) -> np.ndarray:
        """int64 of shape (n,): a <= b where the values are; a < b too where the space is one to one."""

    @abstractmethod
    def ranges(self, values: pa.Array, bounds: Range) -> Bounds:
        """(lows, highs), int64 of shape (n,), both included: the keys of all x with low <= x - value <= high.

        Where keys are not one to one, or sums of floats round, some that are near a bound are in it as well.
        """


@dataclass(frozen=True, slots=True)
class WholeSpace(KeySpace):
    """Integers, and what is one inside.

    Args:
        units: key steps in one unit of a bound: numbers are given as they are, times in us.
    """

    units: Fraction
    one_to_one = True

    def keys(self, values: pa.Array) -> np.ndarray:
        """See `KeySpace`."""
        kind = values.type
        values = _filled(values)
        if pa.types.is_decimal(kind):
            return unscaled(values)
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            return np.asarray(values.view(pa.int64()).to_numpy())
        if pa.types.is_date32(kind):
            values = values.cast(pa.int32())
        return np.asarray((values if pa.types.is_int64(kind) else values.cast(pa.int64())).to_numpy())

    def ranges(self, values: pa.Array, bounds: Range) -> Bounds:
        """See `KeySpace`; exact, excluded bounds included."""
        keys = self.keys(values)
        lows = np.full(keys.size, INT64_MIN, np.int64)
        highs = np.full(keys.size, INT64_MAX, np.int64)
        empty = np.zeros(keys.size, np.bool_)
        # x >= key + shift and x > key + shift, for whole x; likewise from above.
        if bounds.low is not None:
            shift = bounds.low * self.units
            lows, _, above = _sum(keys, math.floor(shift) + 1 if bounds.strict_low else math.ceil(shift))
            empty |= above
        if bounds.high is not None:
            shift = bounds.high * self.units
            highs, below, _ = _sum(keys, math.ceil(shift) - 1 if bounds.strict_high else math.floor(shift))
            empty |= below
        if empty.any():
            lows, highs = np.where(empty, EMPTY_RANGE[0], lows), np.where(empty, EMPTY_RANGE[1], highs)
        return lows, highs


def _sum(keys: np.ndarray, shift: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(keys + shift, kept inside int64; where it would be below; where it would be above)."""
    below = above = np.zeros(keys.size, np.bool_)
    step = min(max(shift, INT64_MIN), INT64_MAX)
    with np.errstate(over="ignore"):
        total = keys + np.int64(step)
    if step > 0:
        above = total < keys
        total = np.where(above, INT64_MAX, total)
    elif step < 0:
        below = total > keys
        total = np.where(below, INT64_MIN, total)
    if shift == step:
        return total, below, above
    # No two keys are further apart than twice int64's ends.
    rest, further_below, further_above = _sum(total, min(max(shift - step, -(2**64)), 2**64))
    return rest, below | further_below, above | further_above


@dataclass(frozen=True, slots=True)
class WideSpace(KeySpace):
    """Decimals of more than 18 digits. Keys keep 54 bits: integers below 2**53 are told apart, larger ones nearly.

    Args:
        units: key steps in 1.
    """

    units: int
    one_to_one = False

    def keys(self, values: pa.Array) -> np.ndarray:
        """See `KeySpace`."""
        return limb_keys(limbs(_filled(values)), _limbs_of(0))

    def ranges(self, values: pa.Array, bounds: Range) -> Bounds:
        """See `KeySpace`; sums are exact, and their keys as near as keys are."""
        words = limbs(_filled(values))
        lows = np.full(len(values), INT64_MIN, np.int64)
        highs = np.full(len(values), INT64_MAX, np.int64)
        if bounds.low is not None:
            lows = limb_keys(words, _limbs_of(math.ceil(bounds.low * self.units)))
        if bounds.high is not None:
            highs = limb_keys(words, _limbs_of(math.floor(bounds.high * self.units)))
        return lows, highs


_LIMB = 2**64
_FURTHEST = 2**254
"""No two decimals of 76 digits are further apart, and sums with it fit into 256 bits."""


def _limbs_of(number: int) -> np.ndarray:
    number = min(max(number, -_FURTHEST), _FURTHEST)
    return np.array([(number >> (64 * place)) % _LIMB for place in range(4)], np.uint64)


class FloatSpace(KeySpace):
    """Floats. NaN is canonical and above all numbers; -0.0 is 0.0."""

    one_to_one = True

    def keys(self, values: pa.Array) -> np.ndarray:
        """See `KeySpace`."""
        return float_key(_filled(values).cast(pa.float64()).to_numpy())

    def ranges(self, values: pa.Array, bounds: Range) -> Bounds:
        """See `KeySpace`."""
        lows, highs = float_ranges(values, bounds)
        low_keys = np.full(len(values), INT64_MIN, np.int64) if lows is None else float_key(lows)
        high_keys = np.full(len(values), INT64_MAX, np.int64) if highs is None else float_key(highs)
        if not bounds.slack:  # no sum, so nothing rounds; keys never reach int64's ends
            low_keys = low_keys + bounds.strict_low
            high_keys = high_keys - bounds.strict_high
        return low_keys, high_keys


def float_ranges(values: pa.Array, bounds: Range) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(lowest, highest) float64 inside the range of each value, rounded outwards; None for an unbounded side."""
    numbers = _filled(values).cast(pa.float64()).to_numpy()
    return _float_bound(numbers, bounds.low, bounds.slack, -1), _float_bound(numbers, bounds.high, bounds.slack, 1)


def _float_bound(numbers: np.ndarray, shift: Fraction | None, slack: Fraction, outwards: int) -> np.ndarray | None:
    if shift is None:
        return None
    if not slack:
        return numbers
    # Both the addition here and the query's sums round; a few units in the last place cover it. What is infinite or
    # NaN stays so, whatever is added; but constants so large that a sum of numbers overflows reach infinity, too.
    with np.errstate(over="ignore", invalid="ignore"):
        bound = np.nextafter(
            numbers + _nearest(shift) + outwards * (ROUNDING * np.abs(numbers) + rounding_of(slack)), outwards * np.inf
        )
        overflows = np.isinf(np.minimum(np.abs(numbers), _LARGEST) + _nearest(slack))
    bound = np.where(np.isfinite(numbers), bound, numbers)
    return np.where(overflows, outwards * np.inf, bound)


def rounding_of(slack: Fraction) -> float:
    """How far, at most, sums with constants of this size in all are from what they were without rounding."""
    return ROUNDING * _nearest(slack)


def _nearest(number: Fraction) -> float:
    """As float64; beyond its largest, the largest."""
    return float(min(max(number, -Fraction(_LARGEST)), Fraction(_LARGEST)))


class PrefixSpace(KeySpace):
    """Text and bytes, byte by byte: the first eight, big-endian, as a signed number."""

    one_to_one = False

    def keys(self, values: pa.Array) -> np.ndarray:
        """See `KeySpace`."""
        offsets, data = _buffers(_filled(values))
        out = np.zeros(len(values), np.uint64)
        lengths = np.diff(offsets)
        for place in range(8):  # eight passes over columns, not a pass over rows
            present = lengths > place
            byte = np.zeros(len(values), np.uint64)
            byte[present] = data[offsets[:-1][present] + place]
            out = (out << np.uint64(8)) | byte
        return (out ^ np.uint64(1 << 63)).view(np.int64)

    def ranges(self, values: pa.Array, bounds: Range) -> Bounds:
        """See `KeySpace`; nothing can be added to a text."""
        keys = self.keys(values)
        lows = np.full(keys.size, INT64_MIN, np.int64) if bounds.low is None else keys
        highs = np.full(keys.size, INT64_MAX, np.int64) if bounds.high is None else keys
        return lows, highs


@lru_cache(1024)
def key_space(kind: pa.DataType) -> KeySpace:
    """The key space of a type."""
    if pa.types.is_floating(kind):
        return FloatSpace()
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return PrefixSpace()
    if pa.types.is_decimal(kind):
        return WholeSpace(Fraction(10**kind.scale)) if kind.precision <= _WHOLE_DIGITS else WideSpace(10**kind.scale)
    if pa.types.is_date32(kind):
        return WholeSpace(Fraction(1, _DAY_US))
    of_time = pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
    return WholeSpace(Fraction(1_000 if of_time and kind.unit == "ns" else 1))


def is_exact(kind: pa.DataType) -> bool:
    """Whether keys of this type are one to one."""
    return key_space(kind).one_to_one


def order_key(values: pa.Array) -> np.ndarray:
    """int64 keys in the order of `values`; see `KeySpace.keys`."""
    return key_space(values.type).keys(values)


def is_whole(kind: pa.DataType) -> bool:
    """Whether values of this type are integers inside, which `value_of` makes of keys again."""
    return isinstance(key_space(kind), WholeSpace)


def value_of(keys: np.ndarray, kind: pa.DataType) -> pa.Array:
    """The inverse of `order_key` for a type that `is_whole`: the values that have these keys."""
    if pa.types.is_decimal(kind):
        narrow = pa.decimal64(kind.precision, kind.scale)
        return widened(pa.Array.from_buffers(narrow, keys.size, [None, pa.py_buffer(keys)])).cast(kind)
    values = pa.array(keys)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return values.view(kind)
    return values.cast(pa.int32()).view(kind) if pa.types.is_date32(kind) else values.cast(kind)


def key_ranges(values: pa.Array, bounds: Range) -> Bounds:
    """Ranges of keys around `values`; see `KeySpace.ranges`."""
    return key_space(values.type).ranges(values, bounds)


def _filled(values: pa.Array) -> pa.Array:
    if not values.null_count:
        return values
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.fill_null(values, "" if pa.types.is_string(kind) else b"")
    if pa.types.is_boolean(kind):
        return pc.fill_null(values, False)
    if pa.types.is_decimal(kind):
        return pc.fill_null(values, pa.scalar(Decimal(0), kind))
    return pc.fill_null(values, pa.scalar(0, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind))


def float_key(values: np.ndarray) -> np.ndarray:
    """float64 -> int64 in the same order: negative numbers have their magnitude bits turned over."""
    canonical = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = canonical.view(np.int64)
    return bits ^ ((bits >> 63) & INT64_MAX)


def _buffers(values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    values = values.cast(pa.large_binary())
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    data = values.buffers()[2]
    return offsets, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)


def hash_key(columns: Sequence[pa.Array]) -> np.ndarray:
    """One int64 for each row of `columns`, equal for equal rows. Source of the mixing: see `kernels.mix`."""
    combined: np.ndarray | None = None
    for values in columns:
        space = key_space(values.type)
        if isinstance(space, PrefixSpace):
            part = hash_bytes(*_buffers(_filled(values)))
        elif isinstance(space, WideSpace):
            part = hash_limbs(_filled(values))
        else:
            part = mix(space.keys(values))
        combined = part if combined is None else mix(combined * np.int64(31) + part)
    assert combined is not None
    return combined


def hash_limbs(values: pa.Array) -> np.ndarray:
    """One int64 for each decimal, over all its bits."""
    words = limbs(values).view(np.int64)
    part = mix(np.ascontiguousarray(words[:, -1]))
    for place in range(words.shape[1] - 2, -1, -1):
        part = mix(part * np.int64(31) + words[:, place])
    return part
