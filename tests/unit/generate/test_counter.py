"""The hash behind every random number."""

from __future__ import annotations

import numpy as np
import pytest

from streamjoin.generate import counter
from streamjoin.generate.counter import bits, integers, uniforms
from streamjoin.generate.text import letters, strings

NUMBERS = np.arange(100_000, dtype=np.int64)


def test_bits_are_the_published_outputs_of_splitmix64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter, "_start", lambda seed, column: 1234567)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert bits(0, "any", np.array([1, 2, 3, 4])).tolist() == published


def test_draws_stay_what_they_were_in_earlier_releases() -> None:
    assert integers(1, "band.r.x", NUMBERS[:5], 10_000).tolist() == [143, 993, 9836, 2875, 8269]


@pytest.mark.parametrize("seed", [0, -1, 2**70])
def test_any_integer_is_a_seed(seed: int) -> None:
    assert abs(uniforms(seed, "u", NUMBERS).mean() - 0.5) < 0.005


def test_uniforms_fill_a_hundred_bins_evenly() -> None:
    values = uniforms(3, "u", NUMBERS)
    assert values.min() >= 0
    assert values.max() < 1
    counts = np.bincount((values * 100).astype(int), minlength=100)
    chi_square = ((counts - 1000) ** 2 / 1000).sum()
    # 99 degrees of freedom: beyond 160 in one of 10,000 tries. Below 50 it would be too even for chance.
    assert 50 < chi_square < 160


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (uniforms(4, "u", NUMBERS), "another seed"),
        (uniforms(3, "v", NUMBERS), "another column"),
        (uniforms(3, "u", NUMBERS + 1), "the next row"),
    ],
)
def test_draws_do_not_follow_those_of(other: counter.Floats, why: str) -> None:
    assert abs(np.corrcoef(uniforms(3, "u", NUMBERS), other)[0, 1]) < 0.015, why


def test_integers_reach_every_value_below_the_count_and_no_other() -> None:
    assert np.unique(integers(1, "i", NUMBERS, 7)).tolist() == [0, 1, 2, 3, 4, 5, 6]
    each = integers(1, "i", NUMBERS, NUMBERS % 5 + 1)
    assert (each <= NUMBERS % 5).all()
    assert (each >= 0).all()


def test_the_largest_uniform_does_not_round_up_to_the_count() -> None:
    largest = 1 - 2.0**-53
    assert all(int(largest * count) == count - 1 for count in (1, 10_000, 2**52 + 1, 2**53 - 1, 2**53))


def test_words_have_their_length_and_no_two_are_alike() -> None:
    words = strings(letters(1, "w", NUMBERS, 20)).to_pylist()
    assert {len(word) for word in words} == {20}
    assert len(set(words)) == len(words)
    # Every place of a word uses all 32 characters.
    assert all(len({word[place] for word in words}) == 32 for place in range(20))


def test_places_of_a_word_do_not_follow_each_other() -> None:
    words = letters(1, "w", NUMBERS, 20)
    for first in range(20):
        for second in range(first):
            assert abs((words[:, first] == words[:, second]).mean() - 1 / 32) < 0.004
