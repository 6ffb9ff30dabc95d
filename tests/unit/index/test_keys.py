"""int64 keys keep order and equality of every type."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin.index.keys import INT64_MAX, INT64_MIN, float_key, hash_key, is_exact, order_key, shift_key

floats = st.floats(allow_nan=False, allow_infinity=True, width=64)


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


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=100, deadline=None)
def test_integer_bounds_saturate_instead_of_wrapping(values: list[int], shift: int) -> None:
    keys = shift_key(pa.array(values, pa.int64()), shift, upward=True, strict=False)
    assert keys.tolist() == [max(min(value + shift, INT64_MAX), INT64_MIN) for value in values]


@given(floats, floats, st.floats(0, 1e12))
@settings(max_examples=300, deadline=None)
def test_float_bounds_never_exclude_what_the_query_accepts(a: float, b: float, width: float) -> None:
    # The query subtracts and rounds; the index adds and rounds. What the first accepts, the second must contain.
    if not (abs(a - b) <= width):
        return
    values = pa.array([b])
    low = shift_key(values, -width, upward=False, strict=False)[0]
    high = shift_key(values, width, upward=True, strict=False)[0]
    assert low <= float_key(np.array([a]))[0] <= high


def test_a_strict_bound_leaves_out_the_bound_itself() -> None:
    assert shift_key(pa.array([10]), 0, upward=True, strict=True).tolist() == [9]
    assert shift_key(pa.array([10]), 3, upward=False, strict=True).tolist() == [14]
    assert shift_key(pa.array([10]), None, upward=True, strict=True).tolist() == [INT64_MAX]
