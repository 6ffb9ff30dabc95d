"""A ring that is cut anew while it runs: still exact, even again after a change, with more nodes where they help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from statistics import fmean

import pytest

from simulate.ring.adapt import MOVES_MAX, AdaptiveNode, Monitor, Rule, respond_adapting
from simulate.ring.chance import Chance
from simulate.ring.messages import Row, nested_loop
from simulate.ring.response import Response, respond
from simulate.timed import UnitCosts
from streamjoin.operators.costs.psp import StepTimes

pytestmark = pytest.mark.slow

LOAD = Chance(3, 40, 1.0, 1_000_000)
COSTS = UnitCosts(comparison=1_000, hop=1_000)
TIMES = StepTimes(join=1e-6, send=0.0, hop=1e-6)


def rows_of(load: Chance, windows: float, speed: Callable[[float], float]) -> tuple[list[Row], list[Row]]:
    """Rows of a window, and those of the next ones."""
    ends = (1 + windows) * load.window
    every = list(takewhile(lambda row: row.ts < ends, load.rows(poisson=True, speed=speed)))
    return [row for row in every if row.ts < load.window], [row for row in every if row.ts >= load.window]


def run(
    load: Chance, windows: float, speed: Callable[[float], float], nodes: int, available: int, costs: UnitCosts = COSTS
) -> tuple[Response, Sequence[Row], Monitor]:
    stored, rows = rows_of(load, windows, speed)
    rule = Rule(load.window // 10, available, load.matches / load.stored, TIMES)
    found = respond_adapting(costs, 0, rows, load.query, nodes, rule, stored=stored)
    assert isinstance(found.played.source, Monitor)
    return found, [*stored, *rows], found.played.source


def doubled(load: Chance, at: float) -> Callable[[float], float]:
    return lambda ts: 2.0 if ts >= at * load.window else 1.0


def sizes(found: Response) -> list[int]:
    return [sum(map(len, node.state)) for node in found.played.nodes]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("factor", [0.1, 2.0, 5.0])
def test_results_are_exact_while_slices_and_nodes_change(seed: int, factor: float) -> None:
    load = Chance(2 + seed % 3, 10, 1.5, 1_000_000, seed)
    speed = lambda ts: factor if 2 * load.window <= ts < 2.6 * load.window else 1.0  # noqa: E731
    found, rows, monitor = run(load, 2.5, speed, 1 + seed % 3, 6)
    newest = [parts for parts in nested_loop(rows, load.query)
              if max(row.ts for row in parts if row is not None) >= load.window]  # fmt: skip
    assert Counter(found.played.results) == Counter(newest) and len(newest) > 10
    assert factor < 1 or monitor.changes


def test_slices_are_even_again_soon_after_rates_change_and_without_adaptation_they_are_not() -> None:
    speed = doubled(LOAD, 2.0)
    found, _, _ = run(LOAD, 1.3, speed, 4, 4)
    stored, rows = rows_of(LOAD, 1.3, speed)
    still = respond(COSTS, 0, rows, LOAD.query, [4] * 3, stored=stored, paced=True)
    even, uneven = (max(sizes(one)) / fmean(sizes(one)) for one in (found, still))
    assert even < 1.25 < 1.5 < uneven


def test_a_bound_lets_few_rows_go_at_a_time_and_rows_that_are_too_old_are_dropped_anywhere() -> None:
    query = Chance(2, 10, 1.0, 10).query  # a window of 200
    node = AdaptiveNode(0, 3, query, (100, 100), (False, False), interleaved=False)
    node.state[1] = [Row(1, ts, ts, 0) for ts in (5, 40, 100, 110, 120, 130, 140)]
    assert [(row.ts, on) for row, on in node._leaving(1, 210)] == [(5, True), (40, True), (100, True), (110, True)]
    node.bounds = (4, 1)
    assert MOVES_MAX == 2
    assert [(row.ts, on) for row, on in node._leaving(1, 210)] == [(5, False), (40, True), (100, True)]
    node.bounds = (1, 5)
    assert [(row.ts, on) for row, on in node._leaving(1, 210)] == [(5, False), (40, True)]
    node.is_tail = (True, True)
    assert [(row.ts, on) for row, on in node._leaving(1, 210)] == [(5, False)]


def test_where_rows_become_rare_state_shrinks_to_what_is_in_the_window() -> None:
    found, rows, _ = run(LOAD, 2.0, lambda ts: 0.1 if ts >= 1.5 * LOAD.window else 1.0, 4, 4)
    last = rows[-1].ts
    assert sum(sizes(found)) == sum(last - row.ts < LOAD.window for row in rows) < 40


def test_nodes_are_added_once_more_work_makes_them_worth_it_and_they_fill() -> None:
    found, rows, monitor = run(LOAD, 4.0, doubled(LOAD, 2.0), 5, 19)
    changed, nodes = monitor.changes[0][0], monitor.changes[-1][1]
    assert 2.0 < changed / LOAD.window < 2.6 and 10 <= nodes <= 13
    live = sum(rows[-1].ts - row.ts < LOAD.window for row in rows)
    filled = sizes(found)
    assert max(filled[:nodes]) < 1.25 * live / nodes and not any(filled[nodes:])
    # With as many rows as before nothing changes.
    assert not run(LOAD, 3.0, lambda ts: 1.0, 5, 19)[2].changes


def test_nodes_are_not_added_twice_within_a_window() -> None:
    """Though the rate doubles once more just after the first change, and three periods would be enough."""
    light = Chance(3, 20, 0.5, 1_000_000)
    _, _, monitor = run(
        light, 3.5, lambda ts: (1.0, 2.0, 6.0)[(ts >= 2.0 * light.window) + (ts >= 2.5 * light.window)], 2, 19
    )
    assert len(monitor.changes) >= 2
    assert all(later[0] - earlier[0] >= light.window for earlier, later in pairwise(monitor.changes))


def test_an_overload_passes_with_adaptation_and_lasts_without() -> None:
    costs = UnitCosts(comparison=4_000, hop=4_000)
    load = Chance(3, 40, 1.0, 400_000)
    speed = doubled(load, 2.0)
    stored, rows = rows_of(load, 5.0, speed)
    off = respond(costs, 0, rows, load.query, [5] * 3, stored=stored, paced=True)
    on, _, _ = run(load, 5.0, speed, 5, 19, costs)
    assert on.results == off.results

    def late(found: Response) -> float:
        came = {row.order: row.ts for row in rows if row.ts > 4.5 * load.window}
        return fmean(found.played.source.done[order] - ts for order, ts in came.items())

    assert late(on) < late(off) / 2


def test_rows_of_one_stream_alone_leave_the_others_bounds_at_nothing() -> None:
    load = Chance(2, 10, 1.0, 1_000)
    rows = [Row(0, number * 1_000, number, 0) for number in range(50)]
    rule = Rule(load.window // 10, 3, 0.1, TIMES)
    found = respond_adapting(COSTS, 0, rows, load.query, 3, rule, stored=[])
    assert found.results == 0 and sum(sizes(found)) == 20  # W, of 1,000 each
