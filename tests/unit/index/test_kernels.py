"""The compiled loops against NumPy and plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin.index.kernels import hash_bytes, is_sorted, lower_bound, mix, probe_segment, radix_order

EMPTY = np.zeros(0, np.int64)
INT64 = st.integers(-(2**63), 2**63 - 1)
numbers = st.lists(st.one_of(INT64, st.integers(-3, 3)), max_size=60).map(lambda values: np.array(values, np.int64))


@given(numbers)
@settings(max_examples=200, deadline=None)
def test_radix_order_sorts_like_numpy_and_keeps_ties_in_order(values: np.ndarray) -> None:
    order = radix_order(values, np.arange(values.size))
    assert order.tolist() == np.argsort(values, kind="stable").tolist()


def test_radix_order_sorts_by_a_second_key_first() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 5, 1000), rng.integers(-(2**62), 2**62, 1000)
    order = radix_order(first, radix_order(second, np.arange(1000)))
    assert order.tolist() == np.lexsort((second, first)).tolist()


@given(numbers)
@settings(max_examples=100, deadline=None)
def test_is_sorted_sees_every_fall(values: np.ndarray) -> None:
    assert is_sorted(values) == bool(np.all(values[:-1] <= values[1:]))


@given(numbers.map(np.sort), INT64, st.integers(0, 60))
@settings(max_examples=200, deadline=None)
def test_lower_bound_is_searchsorted_from_where_it_starts(values: np.ndarray, value: int, start: int) -> None:
    start = min(start, values.size)
    expected = start + np.searchsorted(values[start:], value)
    found, looked = lower_bound(values, start, values.size, np.int64(value))
    assert found == expected
    away = found - start
    assert (looked == 0) == (start == values.size) and looked <= 2 * (away + 1).bit_length() + 1


class Watched(np.ndarray):
    """An array that counts how often one of its values is looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        Watched.looks += 1
        return super().__getitem__(place)


@given(numbers.map(np.sort), INT64, st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_what_a_search_looks_at_is_counted_one_by_one(values: np.ndarray, value: int, start: int) -> None:
    Watched.looks = 0
    _, looked = lower_bound.py_func(values.view(Watched), min(start, values.size), values.size, value)
    assert looked == Watched.looks


@pytest.mark.parametrize(
    ("has_cells", "has_keys", "least", "most"),
    [(False, False, 0, 0), (True, False, 1_000, 4_000), (False, True, 1_000, 3_000)],
)
def test_an_index_is_searched_for_each_probe_and_a_scan_searches_nothing(
    has_cells: bool, has_keys: bool, least: int, most: int
) -> None:
    """A thousand probes in order, of a thousand stored rows, each with a key of its own."""
    own, room = np.arange(1_000), np.empty(2_000_000, np.int64)
    found, compared, searched = probe_segment(
        own if has_cells else EMPTY, own if has_keys else EMPTY, EMPTY, np.array([0, 0, 1_000]), own,
        own if has_cells else EMPTY, own if has_keys else EMPTY, own if has_keys else EMPTY, EMPTY,
        EMPTY, np.zeros(6, np.int64), room, room.copy(),
    )  # fmt: skip
    assert found == compared == (1_000 if has_cells or has_keys else 1_000_000)
    assert least <= searched <= most


def test_mix_is_one_to_one_and_spreads_neighbours() -> None:
    mixed = mix(np.arange(100_000))
    assert np.unique(mixed).size == 100_000
    counts = np.bincount(mixed.view(np.uint64) % np.uint64(16), minlength=16)
    assert counts.min() > 5_900
    assert counts.max() < 6_600


def test_hash_bytes_tells_strings_apart_by_content_and_border() -> None:
    words = [b"", b"a", b"ab", b"b", b"aa", b"\x00", b"\x00\x00"] + [str(i).encode() for i in range(5000)]
    data = np.frombuffer(b"".join(words), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(word) for word in words])))
    hashes = hash_bytes(offsets, data)
    assert np.unique(hashes).size == len(words)
    assert hash_bytes(offsets[:4], data).tolist() == hashes[:3].tolist()


def plain_probe(
    stored: list[tuple[int, int, int]], probes: list[tuple[int, int, int, int]], window: tuple[int, int] | None
) -> set[tuple[int, int]]:
    """(probe, stored) by a nested loop; stored are (cell, key, coordinate), probes (cell, low, high, coordinate)."""
    return {
        (i, j)
        for i, (cell, low, high, at) in enumerate(probes)
        for j, (other, key, place) in enumerate(stored)
        if cell == other and low <= key <= high and (window is None or window[0] <= place - at <= window[1])
    }


small = st.integers(0, 6)


@pytest.mark.slow
@given(
    st.lists(st.tuples(small, small, small), min_size=1, max_size=40),
    st.lists(st.tuples(small, small, st.integers(0, 4), small), max_size=30),
    st.one_of(st.none(), st.tuples(st.integers(-5, 2), st.integers(-2, 5))),
    st.booleans(),
    st.booleans(),
    st.integers(1, 9),
)
@settings(max_examples=400, deadline=None)
def test_probe_segment_finds_what_a_nested_loop_finds_whatever_room_it_has(
    stored: list[tuple[int, int, int]],
    probes: list[tuple[int, int, int, int]],
    window: tuple[int, int] | None,
    has_cells: bool,
    has_keys: bool,
    room: int,
) -> None:
    stored = sorted((cell if has_cells else 0, key if has_keys else 0, at) for cell, key, at in stored)
    probes = sorted(
        (cell if has_cells else 0, low if has_keys else 0, low + span if has_keys else 0, at)
        for cell, low, span, at in probes
    )
    cells, keys, places = (np.array(column, np.int64) for column in zip(*stored, strict=True))
    columns = [np.array(column, np.int64) for column in zip(*probes, strict=True)] if probes else [EMPTY] * 4
    cursor = np.zeros(6, np.int64)
    found: list[tuple[int, int]] = []
    while cursor[0] < len(probes):
        out = np.empty(room, np.int64), np.empty(room, np.int64)
        count, compared, _ = probe_segment(
            cells if has_cells else EMPTY,
            keys if has_keys else EMPTY,
            places if window else EMPTY,
            np.array([places.min(), places.max(), len(stored)]),
            np.arange(len(probes)),
            columns[0] if has_cells else EMPTY,
            columns[1] if has_keys else EMPTY,
            columns[2] if has_keys else EMPTY,
            columns[3] if window else EMPTY,
            np.array(window, np.int64) if window else EMPTY,
            cursor,
            *out,
        )
        assert count <= compared
        found += zip(out[0][:count].tolist(), out[1][:count].tolist(), strict=True)
    assert len(found) == len(set(found))
    assert set(found) == plain_probe(stored, probes, window)


def test_a_segment_wholly_inside_the_window_is_not_checked_row_by_row() -> None:
    # The coordinates given for the check are wrong on purpose: inside the span nobody may look at them.
    wrong = np.full(3, 10**9)
    out = np.empty(9, np.int64), np.empty(9, np.int64)
    count, _, _ = probe_segment(
        EMPTY, EMPTY, wrong, np.array([10, 12, 3]), np.arange(1), EMPTY, EMPTY, EMPTY, np.array([11]),
        np.array([-1, 1]), np.zeros(6, np.int64), *out,
    )  # fmt: skip
    assert count == 3


@pytest.mark.parametrize(("at", "compared"), [(11, 3), (8, 0), (15, 0), (9, 3), (13, 3)])
def test_rows_of_a_segment_outside_the_window_are_not_compared(at: int, compared: int) -> None:
    places = np.array([10, 11, 12])
    out = np.empty(9, np.int64), np.empty(9, np.int64)
    _, looked, _ = probe_segment(
        EMPTY, EMPTY, places, np.array([10, 12, 3]), np.arange(1), EMPTY, EMPTY, EMPTY, np.array([at]),
        np.array([-1, 1]), np.zeros(6, np.int64), *out,
    )  # fmt: skip
    assert looked == compared
