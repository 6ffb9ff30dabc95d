"""ESJ's formulas with the numbers of its text."""

from __future__ import annotations

import math

import pytest

from simulate.handshake.messages import StreamTuple
from simulate.handshake.tasks import Task
from simulate.stream import Stream
from streamjoin.operators.costs import handshake as costs
from tests.unit.simulate.handshake_runs import play

pytestmark = pytest.mark.slow


def test_efficiencies_of_the_text() -> None:
    assert costs.efficiency_naive(500, 400, 100) == 0.0005
    assert costs.efficiency_bst(500, 400, 100) == pytest.approx(0.0125, abs=0.0001)
    assert costs.efficiency_hash(500, 400, 100) == 0.1


def test_bounds_hold_where_their_condition_does() -> None:
    for r, s, k in [(500, 400, 100), (1_000, 10, 10), (64, 64, 64)]:
        bst, hashed, naive = (
            costs.efficiency_bst(r, s, k),
            costs.efficiency_hash(r, s, k),
            costs.efficiency_naive(r, s, k),
        )
        low, low_hash = costs.bound_bst(r, s, k, eta=1), costs.bound_hash(r, s, k, eta=1)
        gain, gain_hash = costs.gain_bst(r, s, eta=1), costs.gain_hash(r, s, eta=1)
        assert low is not None and low_hash is not None and gain is not None and gain_hash is not None
        assert bst >= low and hashed >= low_hash
        assert bst / naive >= gain and hashed / naive >= gain_hash


def test_there_is_no_bound_without_its_condition() -> None:
    assert costs.bound_bst(64, 64, 64 * 64, eta=64) is None and costs.gain_bst(64, 64, eta=64) is None
    assert costs.bound_hash(64, 64, 64 * 64, eta=64) is None and costs.gain_hash(64, 64, eta=64) is None
    assert costs.efficiency_naive(64, 64, 64 * 64) == 1 > costs.efficiency_hash(64, 64, 64 * 64)


def test_measured_efficiency_is_above_the_bounds_on_distinct_keys() -> None:
    rows = [StreamTuple(stream, number, key=number) for number in range(64) for stream in Stream]
    tasks = [Task("scan"), Task("bst", index="bst"), Task("hash", index="hash")]
    results = play(rows, tasks=tasks, workers=1, checked=False).results
    scan, bst, hashed = (results.processing_efficiency(task.name) for task in tasks)
    assert scan == costs.efficiency_naive(64, 64, 64)
    gain, gain_hash = costs.gain_bst(64, 64, eta=1), costs.gain_hash(64, 64, eta=1)
    assert gain is not None and gain_hash is not None
    assert bst / scan >= gain and hashed / scan >= gain_hash


def test_cost_of_a_block() -> None:
    assert costs.serialization_ratio(10, 2.0) == 0.2
    assert costs.transmission_cost(100, 10, 1.0, 2.0) == pytest.approx(120)
    assert costs.imbalance([6, 2, 2, 2]) == 1.0 and costs.imbalance([0, 0]) == 0.0
    assert costs.imbalance_predicted(50, 200, 10, 4) == 0.1


def test_best_block_of_the_text_and_its_cap() -> None:
    assert costs.best_block(200, 10, 4, 0.5, 1.0) == 1000
    assert costs.best_block(200, 10, 4, 0.5, 1.0) / costs.fair_share(200, 10, 4) == 2
    assert costs.block_size(200, 10, 4, 0.5, 1.0) == 250
    assert costs.block_size(0.1, 1, 4, 0.5, 1.0) == 1
    assert costs.block_size(200, 10, 4, 0.01, 1.0) == round(2000 * math.sqrt(1 / 99 / 4))


@pytest.mark.parametrize(("rate", "workers", "weight", "serialization"), [(200, 4, 0.5, 1), (50, 7, 0.2, 3)])
def test_best_block_is_where_the_target_is_least(rate: int, workers: int, weight: float, serialization: float) -> None:
    best = costs.best_block(rate, 10, workers, weight, serialization)
    for cost_transmission in (0.0, 5.0):
        least = min(
            range(1, 3_000), key=lambda b: costs.target(b, rate, 10, workers, weight, cost_transmission, serialization)
        )
        assert abs(least - best) <= 1


@pytest.mark.parametrize("weight", [0.0, 1.0, -1.0])
def test_a_weight_that_leaves_one_out_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        costs.target(1, 1, 1, 1, weight, 1, 1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        costs.best_block(1, 1, 1, weight, 1)
