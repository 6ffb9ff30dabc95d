"""The job's own decisions under loads that change: at 64 units, and the paper's figure 12."""

from __future__ import annotations

from itertools import pairwise

import pytest

from simulate.biclique.elastic import Elastic, Step
from streamjoin.operators.biclique.adaptive import AdaptiveBiclique
from streamjoin.operators.biclique.router import Routing
from streamjoin.operators.biclique.scaling import Limits

pytestmark = pytest.mark.slow

CAPACITY = 1_000_000
TUPLE_BYTES = 1_000


def rate(units: int, share: float, window: int = 5) -> int:
    """Tuples a step with which so many units of a side store so much of their capacity."""
    return round(units * share * CAPACITY / TUPLE_BYTES / window)


def run(operator: AdaptiveBiclique, rates: list[int], window: int = 5) -> list[Step]:
    return list(Elastic(operator, window, TUPLE_BYTES).run(rates))


def changed(steps: list[Step]) -> list[int]:
    """The steps in which units came or began to drain."""
    return [number for number, step in enumerate(steps) if any(not one.left for one in step.decisions)]


def test_64_units_follow_a_load_that_doubles_and_halves_within_three_rounds() -> None:
    window, limits = 3, Limits(CAPACITY, 4, 128, low=0.35)
    operator = AdaptiveBiclique(32, 32, Routing.CONTRAND, 4, 4, limits=limits)
    usual, double = rate(32, 0.55, window), rate(32, 1.1, window)
    steps = run(operator, [usual] * 6 + [double] * 12 + [usual] * 14, window)
    up, *rest = changed(steps)
    high = next(number for number, step in enumerate(steps) if max(step.load) > 0.8)
    # A step's load is seen by the round of the next one: three rounds in a row saw more.
    assert up == high + 3
    down = rest[0]
    low = next(number for number, step in enumerate(steps) if number > up and max(step.load) < 0.35)
    assert down == low + 3
    for step in steps[up + 1 : low]:
        assert min(step.load) > 0.35 and max(step.load) < 0.8
    # New units have their share a window later; until then those before let go of theirs.
    assert max(step.fullest for step in steps[up + 1 + window : low]) < 0.8
    most, least = steps[up + 1].storing, steps[-1].storing
    assert min(most) >= 54 and max(most) <= 64 and min(least) >= 28 and max(least) <= 36
    # Those that drain are gone a window later, with a step to see that they are empty and one to leave.
    assert steps[down + 1].draining > (20, 20) and steps[down + window + 3].draining == (0, 0)


def test_figure_12() -> None:
    # A window of 5 minutes, 4 units of each stream, asked once a minute; C is 1.5 GB there.
    operator = AdaptiveBiclique(4, 4, limits=Limits(CAPACITY, 1, 16))
    begin, high, burst, low = (rate(4, share) for share in (0.6, 0.85, 3.3, 0.42))
    # A burst and a pause after it: above the upper threshold, and below the lower one, but not for three minutes.
    rates = [begin] * 8 + [high] * 14 + [burst, 0, 0, 0] + [high] * 10 + [low] * 14
    steps = run(operator, rates)
    units = [sum(step.storing) for step in steps]
    assert [(before, after) for before, after in pairwise(units) if before != after] == [(8, 12), (12, 6)]
    swing = range(22, 31)
    assert not set(changed(steps)) & set(swing), "a short swing was followed"
    loads = [step.load[0] for step in steps[swing.start : swing.stop]]
    assert max(loads) > 0.8 and min(loads) < 0.3
