"""SSBJ and MESHJOIN on a virtual clock: each pair once, never above the memory, and as the cost model says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulate.ssbj.beside import Case
from simulate.ssbj.data import OTHER_WEATHER, TPC_H, WEATHER, Data
from simulate.ssbj.disk import Disk
from simulate.ssbj.unit import Memory, Unit
from streamjoin.operators.costs.ssbj import StepTimes
from streamjoin.operators.ssbj.moving import Rule

pytestmark = pytest.mark.slow

AGREES = 0.15
RULES = [None, Rule()]
CASE = Case(rows=10_000, skew=1.0, memory=0.1, parts=40, rule=Rule())


def check(case: Case) -> None:
    """One setting, with and without a cache."""
    found, said = case.simulated(), case.predicted()
    assert found.rate_per_s == pytest.approx(said.rate_per_s, rel=AGREES)
    assert found.rows_read_per_tuple == pytest.approx(case.rows / said.round_tuples, rel=AGREES)
    # The model has as many tuples of a value as there are on average; by chance some have more, and are cached.
    assert found.cached_share == pytest.approx(said.cached_share, rel=AGREES, abs=0.09)
    mesh = case.without_cache()
    plain, plain_said = mesh.simulated(), mesh.predicted()
    assert plain.rate_per_s == pytest.approx(plain_said.rate_per_s, rel=AGREES)
    gain = found.rate_per_s / plain.rate_per_s
    assert gain == pytest.approx(said.rate_per_s / plain_said.rate_per_s, rel=AGREES)
    assert gain <= 1 / (1 - found.cached_share)  # a higher one would mean that the baseline is held back
    for counts in (found, plain):
        assert counts.memory_bytes_max <= case.memory_bytes


def test_rate_traffic_and_gain_are_as_the_model_says() -> None:
    check(CASE)


@pytest.mark.parametrize(("data", "skew", "cached"), [
    (TPC_H, 0.0, 0.0), (TPC_H, 1.0, 0.4), (WEATHER, 0.0, 0.0), (OTHER_WEATHER, 0.0, 0.05),
])  # fmt: skip
def test_other_data_are_as_the_model_says(data: Data, skew: float, cached: float) -> None:
    case = replace(CASE, skew=skew, data=data, rows=20_000 if data is OTHER_WEATHER else CASE.rows)
    check(case)
    assert cached <= case.predicted().cached_share <= (0.9 if cached else 0.0)
    keys = data.keys(case.rows, skew)
    assert (keys.values * keys.rows).sum() == pytest.approx(case.rows) and keys.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("skew", [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("memory", [0.05, 0.1, 0.2])
def test_other_settings_are_as_the_model_says(skew: float, memory: float) -> None:
    check(Case(20_000, skew, memory, round(10 / memory), Rule()))


def test_a_rate_takes_the_memory_that_the_model_says() -> None:
    for rule in RULES:
        case = Case(10_000, 1.0, 0.0, 40, rule, rate_per_s=15_000)
        found, said = case.simulated(rounds=3), case.predicted()
        assert found.rate_per_s == pytest.approx(15_000, rel=AGREES)
        assert found.memory_bytes_mean == pytest.approx(said.memory_bytes, rel=AGREES)


@pytest.mark.parametrize("rule", RULES)
def test_each_pair_is_there_once_and_memory_is_kept_to(rule: Rule | None) -> None:
    case = Case(2_000, 1.0, 0.2, 9, rule)
    unit = case.unit()
    counts = unit.run(32)
    unit.drain()
    assert counts.results == counts.due > 0
    assert counts.memory_bytes_max <= case.memory_bytes
    assert (counts.hits > 0) == (rule is not None)


def test_without_the_phase_out_values_lose_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Unit._begin_round

    def early(self: Unit, rule: Rule) -> None:
        begin(self, rule)
        if self.round % 3 == 2:  # before any row is collected
            self.moving.move(self.cache, self.round)

    monkeypatch.setattr(Unit, "_begin_round", early)
    with pytest.raises(AssertionError):
        test_each_pair_is_there_once_and_memory_is_kept_to(Rule())


def test_a_step_takes_the_time_of_all_that_is_done_in_it() -> None:
    """By hand: every kind of work has a power of ten of its own, and the seek is the least of them."""
    times = StepTimes(seek=1, read=10, look_up=100, output=1_000, take=10_000, append=100_000, remove=1_000_000)
    disk = Disk(np.arange(4), 120, times)
    # Two parts of two rows, and room for three tuples a step beside the part that is read. All tuples have value 0.
    unit = Unit(disk, np.array([1.0, 0.0, 0.0, 0.0]), Memory(2 * 120 + 2 * 3 * 24, 24, 2), None, 3)
    read, entered, left = 1 + 2 * 110, 3 * 110_000, 3 * 1_000_000
    # Three tuples meet their row in the first part; the second part has none for six, and three of these are done.
    first = (read + entered + 3 * 1_000) + (read + entered + left)
    # Three that waited and three new ones meet it again.
    second = (read + entered + 6 * 1_000 + left) + (read + entered + left)
    assert [unit.run(1).seconds * 1e9 for _ in range(2)] == pytest.approx([first, second], rel=1e-12)


def test_tuples_that_the_cache_joins_take_their_time_too() -> None:
    unit = CASE.unit()
    unit.disk = replace(unit.disk, times=StepTimes(1, 10, 100, 1_000, 10_000, 100_000, 1_000_000))
    unit.run(12)
    waited = int(unit.waiting.sum())
    done = unit.run(3)
    misses = done.tuples - done.hits
    removed = misses + waited - int(unit.waiting.sum())
    assert done.hits > 0 and removed > 0
    assert done.seconds * 1e9 == pytest.approx(
        done.steps * 1 + done.rows_read * 110 + done.hits * 10_100 + misses * 110_000 + removed * 1_000_000
        + done.results * 1_000, rel=1e-9
    )  # fmt: skip
