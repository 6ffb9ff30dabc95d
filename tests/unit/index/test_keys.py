"""int64 keys keep order and equality of every type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin.index.keys import (
    EMPTY_RANGE,
    INT64_MAX,
    INT64_MIN,
    float_key,
    hash_key,
    is_exact,
    key_ranges,
    order_key,
)
from streamjoin.plan.expression import Column
from streamjoin.plan.predicate import Range

floats = st.floats(allow_nan=False, allow_infinity=True, width=64)


def ranges(
    values: pa.Array,
    low: Fraction | int | None,
    high: Fraction | int | None,
    *,
    strict: bool = False,
    slack: Fraction | int = 0,
) -> list[tuple[int, int]]:
    """The key ranges of `values`, one by one."""
    keys = (Column("r", "x", values.type), Column("s", "x", values.type))
    low, high = (None if bound is None else Fraction(bound) for bound in (low, high))
    lows, highs = key_ranges(values, Range(keys, low, high, strict, strict, True, (), Fraction(slack)))
    return list(zip(lows.tolist(), highs.tolist(), strict=True))


@given(st.lists(floats, min_size=2, max_size=30))
@settings(max_examples=200, deadline=None)
def test_float_keys_are_in_the_order_of_the_numbers(values: list[float]) -> None:
    keys = float_key(np.array(values))
    for a, key_a in zip(values, keys, strict=True):
        for b, key_b in zip(values, keys, strict=True):
            assert (a < b) == (key_a < key_b)
            assert (a == b) == (key_a == key_b)


def test_all_nans_have_one_key_above_infinity_and_the_zeros_share_one() -> None:
    odd_nan = np.array([0x7FF8000000000001, -1], np.int64).view(np.float64)
    keys = float_key(np.array([np.nan, -np.nan, np.inf, 0.0, -0.0]))
    assert keys[0] == keys[1] == float_key(odd_nan)[0] == float_key(odd_nan)[1]
    assert keys[0] > keys[2]
    assert keys[3] == keys[4]


SAMPLES = {
    "int8": pa.array([-128, 0, 127], pa.int8()),
    "int64": pa.array([-(2**63), -1, 0, 2**63 - 1]),
    "bool": pa.array([False, True]),
    "date": pa.array([datetime.date(1969, 1, 1), datetime.date(1970, 1, 1), datetime.date(2026, 1, 1)]),
    "timestamp": pa.array([-1, 0, 10**15], pa.timestamp("us", "UTC")),
    "decimal": pa.array([Decimal("-12.34"), Decimal("0.00"), Decimal("12.34")], pa.decimal128(18, 2)),
    "wide decimal": pa.array([Decimal("-1e30"), Decimal("1"), Decimal("1e30")], pa.decimal128(38, 2)),
    "very wide decimal": pa.array(
        [Decimal("-1e60"), Decimal(0), Decimal("1e-9"), Decimal("1e60")], pa.decimal256(76, 9)
    ),
    "timestamp in ns": pa.array([-1, 0, 1, 999], pa.timestamp("ns", "UTC")),
    "string": pa.array(["", "a", "aa", "b", "ä", "日本"]),
    "binary": pa.array([b"", b"\x00", b"\x7f", b"\xff"]),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_keys_of_every_type_never_fall_when_values_rise(name: str) -> None:
    values = SAMPLES[name]
    keys = order_key(values)
    assert np.all(keys[:-1] <= keys[1:])
    if is_exact(values.type):
        assert np.all(keys[:-1] < keys[1:])


@pytest.mark.parametrize("name", SAMPLES)
def test_keys_of_a_slice_are_the_slice_of_the_keys(name: str) -> None:
    values = SAMPLES[name]
    assert order_key(values.slice(1)).tolist() == order_key(values).tolist()[1:]
    assert hash_key([values.slice(1)]).tolist() == hash_key([values]).tolist()[1:]


@pytest.mark.parametrize("name", SAMPLES)
def test_nulls_do_not_disturb_their_neighbours(name: str) -> None:
    values = SAMPLES[name]
    holed = pa.concat_arrays([values, pa.nulls(1, values.type), values])
    whole = pa.concat_arrays([values, values])
    for keys in (order_key, lambda column: hash_key([column])):
        assert np.delete(keys(holed), len(values)).tolist() == keys(whole).tolist()


def test_composite_hashes_depend_on_the_order_of_the_columns() -> None:
    a, b = pa.array([1, 2]), pa.array([2, 1])
    one, other = hash_key([a, b]), hash_key([b, a])
    assert one[0] == other[1]
    assert one[0] != other[0]


int64s = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(int64s, min_size=1, max_size=20), st.integers(-(2**66), 2**66), st.booleans())
@settings(max_examples=200, deadline=None)
def test_integer_ranges_hold_exactly_what_the_condition_accepts(values: list[int], shift: int, strict: bool) -> None:
    step = 1 if strict else 0
    for value, (low, high) in zip(values, ranges(pa.array(values), shift, None, strict=strict), strict=True):
        first = value + shift + step
        assert (low, high) == (EMPTY_RANGE if first > INT64_MAX else (max(first, INT64_MIN), INT64_MAX))
    for value, (low, high) in zip(values, ranges(pa.array(values), None, shift, strict=strict), strict=True):
        last = value + shift - step
        assert (low, high) == (EMPTY_RANGE if last < INT64_MIN else (INT64_MIN, min(last, INT64_MAX)))


def test_a_strict_bound_leaves_out_the_bound_itself_also_at_the_ends() -> None:
    assert ranges(pa.array([10]), None, 0, strict=True) == [(INT64_MIN, 9)]
    assert ranges(pa.array([10]), 3, None, strict=True) == [(14, INT64_MAX)]
    assert ranges(pa.array([INT64_MIN]), None, 0, strict=True) == [EMPTY_RANGE]
    assert ranges(pa.array([INT64_MAX]), 0, None, strict=True) == [EMPTY_RANGE]


def test_a_fraction_bounds_whole_numbers_by_the_last_one_inside() -> None:
    half = Fraction(1, 2)
    assert ranges(pa.array([10]), -half, half) == [(10, 10)]
    assert ranges(pa.array([10]), -half, half, strict=True) == [(10, 10)]
    assert ranges(pa.array([10]), half, 3 * half) == [(11, 11)]
    prices = pa.array([Decimal("10.50")], pa.decimal128(9, 2))
    assert ranges(prices, -1, 1) == [(950, 1150)]
    assert ranges(prices, -1, 1, strict=True) == [(951, 1149)]
    assert ranges(prices, Fraction("-0.005"), Fraction("0.019"), strict=True) == [(1050, 1051)]
    days = pa.array([datetime.date(1970, 1, 11)])
    assert ranges(days, -86_400_000_000, 86_399_999_999) == [(9, 10)]
    assert ranges(pa.array([5_000], pa.timestamp("ns", "UTC")), -1, 1) == [(4_000, 6_000)]


wide = st.integers(-(10**38) + 1, 10**38 - 1)


@given(st.lists(wide, min_size=2, max_size=20), st.integers(-(10**40), 10**40))
@settings(max_examples=200, deadline=None)
def test_ranges_of_wide_decimals_exclude_nothing_that_the_condition_accepts(values: list[int], shift: int) -> None:
    column = pa.array([Decimal(f"{value}e-2") for value in values], pa.decimal256(41, 2)).cast(pa.decimal128(38, 2))
    keys = order_key(column).tolist()
    low = Fraction(shift, 100)
    for near, (first, last) in zip(values, ranges(column, low, low + 1), strict=True):
        for value, key in zip(values, keys, strict=True):
            if near + shift <= value <= near + shift + 100:
                assert first <= key <= last
    for (a, key_a), (b, key_b) in product(zip(values, keys, strict=True), repeat=2):
        assert (key_a <= key_b) or a > b
        if max(abs(a), abs(b)) < 2**53:
            assert (key_a == key_b) == (a == b)


@given(floats, floats, st.floats(0, 1e12))
@settings(max_examples=300, deadline=None)
def test_float_ranges_never_exclude_what_the_query_accepts(a: float, b: float, width: float) -> None:
    # The query subtracts and rounds; the index adds and rounds. What the first accepts, the second must contain.
    if not (abs(a - b) <= width):
        return
    size = Fraction(width)
    ((low, high),) = ranges(pa.array([b]), -size, size, slack=size)
    assert low <= float_key(np.array([a]))[0] <= high


def test_infinity_and_nan_stay_what_they_are_whatever_is_added() -> None:
    for odd in (np.inf, -np.inf, np.nan):
        (key,) = float_key(np.array([odd]))
        assert ranges(pa.array([odd]), -1, 1, slack=1) == [(key, key)]
