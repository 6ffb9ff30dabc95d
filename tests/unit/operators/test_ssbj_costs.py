"""SSBJ's formulas, by figures that were worked out by hand, and by trying all there is to try."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from streamjoin.errors import InputError
from streamjoin.operators.costs.keys import Keys, zipf_keys
from streamjoin.operators.costs.ssbj import Bytes, Join, StepTimes, memory_bytes, rate_per_s, step_s

pytestmark = pytest.mark.slow

PAPER = Bytes(tuple=20, row=120, pointer=4)
"""Table 2."""
TIMES = StepTimes(seek=8e6, read=300, look_up=100, output=50, take=30, append=70, remove=40, switch=90)


def join(rows: float = 1e8, *, skew: float = 1, sizes: Bytes = PAPER, times: StepTimes = TIMES) -> Join:
    return Join(sizes, times, rows, zipf_keys(int(rows), skew, rows))


def test_memory_by_hand() -> None:
    assert memory_bytes(PAPER, 1e8, 1e5, 0, 4500) == pytest.approx(1.2e8)
    assert memory_bytes(PAPER, 1e8, 1e5, 1000, 0) == 1.2e7 + 120_000
    twice = replace(PAPER, fudge=2.0)
    assert memory_bytes(twice, 1e8, 1e5, 1000, 10) == 1.2e7 + 240_000 + 10 * 1000 * 44


def test_a_step_by_hand() -> None:
    fixed = 8e6 + 1000 * (300 + 100 + 90)
    assert step_s(TIMES, 1000, 10, 20) == pytest.approx(1e-9 * (fixed + 10 * 180 + 20 * 190))
    assert step_s(TIMES, 1000, 10, 20, matches=3, moved=0) == pytest.approx(
        1e-9 * (fixed - 90_000 + 10 * 280 + 20 * 290)
    )
    assert rate_per_s(10, 20, 0.5) == 60


def test_zipf_keys_are_all_values_and_all_rows() -> None:
    for domain, skew, rows in ((10, 1.0, 10.0), (5_000, 0.5, 20_000.0), (10**8, 1.0, 1e8), (10**6, 0.0, 1e6)):
        keys = zipf_keys(domain, skew, rows)
        assert keys.values.sum() == pytest.approx(domain)
        assert (keys.values * keys.shares).sum() == pytest.approx(1)
        assert (keys.values * keys.rows).sum() == pytest.approx(rows, rel=1e-4)
        assert keys.matches == pytest.approx(rows / domain, rel=1e-4)
    exact = 1 / np.arange(1, 200_001)
    classes = zipf_keys(200_000, 1, 200_000)
    top = classes.shares.max()
    assert top == pytest.approx(1 / exact.sum(), rel=1e-4)


@pytest.mark.parametrize(
    ("rows", "entry", "ratios"),
    [
        (1e8, 0, (3.93, 4.39, 5.22, 6.13)),
        (1e8, 24, (2.55, 2.87, 3.43, 4.07)),
        (1e6, 0, (2.98, 3.32, 3.95, 4.64)),
        (1e6, 24, (1.94, 2.17, 2.60, 3.08)),
    ],
)
def test_how_many_tuples_a_round_of_ssbj_takes_for_one_of_meshjoin(
    rows: float, entry: float, ratios: tuple[float, ...]
) -> None:
    """With 1, 2, 5 and 10 % of the relation as memory, a tenth of it for the buffer."""
    found = []
    for percent in (1, 2, 5, 10):
        memory = percent / 100 * rows * 120
        tried = join(rows, sizes=replace(PAPER, entry=entry))
        both = [tried.given_memory(memory, memory / 1200, caches=caches).round_tuples for caches in (True, False)]
        found.append(both[0] / both[1])
    assert found == pytest.approx(ratios, abs=0.006)


def test_little_skew_gains_only_what_values_without_rows_do() -> None:
    rows, memory = 1e8, 1.2e9
    free = join(rows, skew=0.5)
    counted = join(rows, skew=0.5, sizes=replace(PAPER, entry=24))
    gains = [
        one.given_memory(memory, memory / 1200, caches=True).round_tuples
        / one.given_memory(memory, memory / 1200, caches=False).round_tuples
        for one in (free, counted)
    ]
    assert gains == pytest.approx([1.63, 1.06], abs=0.01)


def test_the_chosen_values_take_least_memory_of_all_subsets() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        shares = random.dirichlet(np.ones(9))
        keys = Keys(np.ones(9), shares, random.integers(0, 5, 9).astype(float))
        tried = Join(Bytes(20, 120, 4, entry=24, fudge=1.3), TIMES, 50, keys)
        round_tuples = 400.0
        chosen = tried.balance(round_tuples, 10, caches=True).memory_bytes
        least = math.inf
        for subset in itertools.product((False, True), repeat=9):
            which = np.array(subset)
            cached = which.sum() * 24 + (keys.rows[which] * 120 * 1.3).sum()
            waits = round_tuples * shares[~which].sum() * (4 + 1.3 * 20)
            least = min(least, 10 * 120 + cached + waits)
        assert chosen == pytest.approx(least)


@pytest.mark.parametrize(("tuples", "rows", "cached"), [(3, 4, False), (3, 2, True), (3, 3, False), (6, 0, True)])
def test_the_inequality_is_strict(tuples: int, rows: int, cached: bool) -> None:
    """Figure 3, where a tuple and a row are of one size."""
    keys = Keys(np.ones(2), np.array([tuples / 10, 1 - tuples / 10]), np.array([rows, 100.0]))
    assert Join(Bytes(8, 8), TIMES, 10, keys).cached(10).tolist() == [cached, False]


def test_a_memory_is_filled_and_bounds_the_gain_by_what_is_cached() -> None:
    for entry, skew in itertools.product((0, 24), (0, 0.5, 1)):
        tried = join(1e6, skew=skew, sizes=replace(PAPER, entry=entry))
        mesh = tried.given_memory(6e6, 5e3, caches=False)
        found = tried.given_memory(6e6, 5e3, caches=True)
        assert mesh.memory_bytes == pytest.approx(6e6)
        assert found.memory_bytes == pytest.approx(6e6, rel=1e-3)
        assert found.rate_per_s / mesh.rate_per_s + 1e-9 >= 1
        # The same b and M: what waits can at most be as much as with MESHJOIN.
        assert found.round_tuples / mesh.round_tuples <= 1 / (1 - found.cached_share) + 1e-9


def test_a_rate_takes_the_memory_with_which_it_is_the_highest() -> None:
    for caches in (True, False):
        tried = join(1e6, sizes=replace(PAPER, entry=24))
        fastest = tried.given_memory(6e6, 5e3, caches=caches)
        back = tried.given_rate(fastest.rate_per_s, 5e3, caches=caches)
        assert back.memory_bytes == pytest.approx(fastest.memory_bytes, rel=1e-3)
        assert tried.given_rate(fastest.rate_per_s, caches=caches).memory_bytes < back.memory_bytes


def test_the_best_buffer_of_meshjoin_is_the_one_that_trying_finds() -> None:
    tried = join(1e7)
    memory = 1.2e7
    rates = {
        rows: tried.given_memory(memory, float(rows), caches=False).rate_per_s for rows in range(3_000, 95_000, 200)
    }
    best = tried.given_memory(memory, caches=False)
    assert best.rate_per_s >= max(rates.values())
    assert abs(best.buffer_rows - max(rates, key=lambda rows: rates[rows])) <= 200
    ordered = list(rates.values())
    falls = [later < earlier for earlier, later in itertools.pairwise(ordered)]
    assert falls == sorted(falls) and True in falls and False in falls  # rises, then falls: figure 6(b)
    assert join(1e7, times=replace(TIMES, read=0, look_up=0)).best_buffer_rows(memory) == memory / 240
    assert join(1e7, times=replace(TIMES, seek=0)).best_buffer_rows(memory) == 1


def test_both_have_a_best_buffer_of_their_own() -> None:
    tried = join(1e6, sizes=replace(PAPER, entry=24))
    best = tried.given_memory(4e6, caches=True)
    for rows in (1_000.0, 5_000.0, 20_000.0):
        assert best.rate_per_s >= tried.given_memory(4e6, rows, caches=True).rate_per_s
    assert best.rate_per_s > tried.given_memory(4e6, caches=False).rate_per_s


def test_all_in_memory_is_a_hash_join_and_reads_nothing() -> None:
    tried = join(1e3, sizes=replace(PAPER, entry=24))
    whole = 1e3 * 120 + 1e3 * 24
    found = tried.given_memory(whole * 1.01, 10.0, caches=True)
    assert (found.cached_share, found.misses, found.buffer_rows) == (1.0, 0.0, 0.0)
    assert found.rate_per_s == pytest.approx(1e9 / (30 + 100 + 50), rel=1e-3)
    assert tried.given_memory(whole * 0.5, 10.0, caches=True).misses > 0
    assert tried.given_rate(5e6, caches=True).memory_bytes <= whole * 1.0001


def test_too_little_memory_and_too_high_a_rate_are_refused_with_what_would_do() -> None:
    tried = join(1e6)
    least = tried.least_memory_bytes()
    assert least == pytest.approx(2 * math.sqrt(1e6 * 120 * 24))
    assert least <= min(tried.least_memory_bytes(float(rows)) for rows in range(100, 2_000))
    with pytest.raises(InputError, match=f"give at least {math.ceil(least):,} bytes"):
        tried.given_memory(least - 1, caches=True)
    assert tried.given_memory(least, caches=False).misses == pytest.approx(1, rel=0.3)
    with pytest.raises(InputError, match=r"no memory lets 6,000,000 tuples/s through; at most 5,"):
        tried.given_rate(6e6, caches=False)
