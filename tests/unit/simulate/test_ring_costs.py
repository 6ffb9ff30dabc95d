"""What PSP's formulas say, against the ring message by message: traffic, cycles and the best number of nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import pytest

from benchmarks.psp.costs import step_times
from simulate.ring.chance import Chance
from simulate.ring.response import Response, respond
from simulate.timed import UnitCosts
from streamjoin.operators.costs.psp import (
    Met,
    StepTimes,
    best_length,
    cycle_s,
    partials,
    ring_s,
    sent_tuples,
)

pytestmark = pytest.mark.slow

HOP_NS = 1_000_000
CLOSE = 0.05
Formula = Callable[[list[Met], list[int]], float]


@dataclass(frozen=True)
class Setting:
    """A ring, and what its steps take.

    Args:
        stored: lambda W.
        matches: p.
        work: L_C, in hops.
        send: T_s, in hops.
    """

    streams: int
    stored: int
    matches: float
    work: float
    send: float = 0.0

    @property
    def met(self) -> list[Met]:
        return [Met(self.stored, self.matches / self.stored)] * (self.streams - 1)

    @property
    def costs(self) -> UnitCosts:
        pairs = sum(one.stored * sent for one, sent in zip(self.met, partials(self.met), strict=True))
        return UnitCosts(comparison=self.work * HOP_NS / pairs, message=self.send * HOP_NS, hop=HOP_NS)

    @property
    def times(self) -> StepTimes:
        return StepTimes(join=self.costs.comparison / 1e9, send=self.costs.message / 1e9, hop=HOP_NS / 1e9)

    def run(self, nodes: int, inputs: int, costs: UnitCosts | None = None, gap_ns: int = 1_000, **how: Any) -> Response:
        """Rows that come to full windows."""
        load = Chance(self.streams, self.stored, self.matches, gap_ns)
        before = self.streams * self.stored
        rows = list(islice(load.rows(), before + inputs))
        return respond(
            costs or self.costs, 0, rows[before:], load.query, [nodes] * self.streams, stored=rows[:before], **how
        )


def best_cycle(setting: Setting) -> int:
    return min(range(1, 41), key=lambda nodes: cycle_s(setting.met, nodes, setting.times))


@cache
def fastest(setting: Setting, **how: Any) -> int:
    """The number of nodes with the shortest cycle in the simulation."""
    around, inputs = best_cycle(setting), 150 if setting.matches <= 1 else 40
    return min(range(max(1, around - 3), around + 4), key=lambda nodes: setting.run(nodes, inputs, **how).cycle)


TRAFFIC = [
    (Setting(2, 30, 1.0, 1.0), 5, 300),
    (Setting(3, 40, 0.5, 1.0), 3, 1_500),
    (Setting(3, 40, 1.0, 1.0), 8, 1_500),
    (Setting(3, 40, 5.0, 1.0), 8, 500),
    (Setting(4, 40, 1.0, 1.0), 6, 1_500),
    (Setting(5, 40, 0.5, 1.0), 4, 1_500),
    (Setting(4, 40, 3.0, 1.0), 4, 500),
]


def traffic() -> list[tuple[Setting, int, float]]:
    """By setting and nodes, rows and partial results that nodes are sent for a row."""
    found = []
    for setting, nodes, inputs in TRAFFIC:
        sent = setting.run(nodes, inputs, UnitCosts()).sent
        found.append((setting, nodes, (sent["rows"] + sent["partials"]) / inputs))
        # What the formula leaves out: rows that grow old, each at every border, and an END for each round at most.
        assert sent["builds"] / inputs == pytest.approx(nodes - 1, rel=CLOSE)
        assert nodes <= sent["ends"] / inputs <= nodes * (setting.streams - 1)
    return found


WRONG: dict[str, Formula] = {
    "a round too many": lambda met, lengths: sent_tuples([*met, met[-1]], [*lengths, lengths[-1]]),
    "a round is missing": lambda met, lengths: sent_tuples(met[:-1], lengths[:-1]),
    "a hop is missing": lambda met, lengths: sent_tuples(met, [one - 1 for one in lengths]),
    "a hop too many": lambda met, lengths: sent_tuples(met, [one + 1 for one in lengths]),
    "a selectivity is missing": lambda met, lengths: sent_tuples([Met(one.stored, 1.0) for one in met], lengths),
    "rounds are not multiplied": lambda met, lengths: sum(
        length * (one.stored * one.selectivity if number else 1.0)
        for number, (one, length) in enumerate(zip(met, lengths, strict=True))
    ),
}


def test_traffic_is_what_the_formula_says_within_a_twentieth_and_wrong_formulas_are_not() -> None:
    counted = traffic()
    for setting, nodes, sent in counted:
        assert sent == pytest.approx(sent_tuples(setting.met, [nodes] * len(setting.met)), rel=CLOSE), setting
    for name, formula in WRONG.items():
        off = [abs(sent / formula(setting.met, [nodes] * len(setting.met)) - 1) for setting, nodes, sent in counted
               if setting.streams > 2]  # fmt: skip
        assert max(off) > 2 * CLOSE, name


def test_the_work_of_all_nodes_is_what_the_formula_says() -> None:
    for setting in (Setting(3, 40, 1.0, 20.0), Setting(4, 40, 1.0, 20.0), Setting(3, 40, 5.0, 50.0)):
        compared = UnitCosts(comparison=setting.costs.comparison)
        inputs, nodes = 2_000, 4
        run = setting.run(nodes, inputs, compared)
        # Without hops and messages nodes work all the time, but not at the same time.
        worked_s = sum(run.busy.values()) / inputs / 1e9
        times = StepTimes(join=compared.comparison / 1e9, send=0.0, hop=0.0)
        assert worked_s == pytest.approx(ring_s(setting.met, [nodes] * len(setting.met), times, nodes), rel=CLOSE)


@pytest.mark.parametrize("nodes", [1, 2, 6])
def test_each_node_takes_every_tuple_in_and_lets_it_go(nodes: int) -> None:
    """Equation 1 has both once; a tuple of a ring enters as many slices as there are."""
    setting, inputs = Setting(3, 60, 0.5, 1.0), 3_000
    costs = UnitCosts(insert=1_000, purge=4_000)
    worked_s = sum(setting.run(nodes, inputs, costs).busy.values()) / inputs / 1e9
    of_all = ring_s(setting.met, [nodes] * 2, step_times(costs, 0), nodes)
    assert worked_s == pytest.approx(of_all, rel=CLOSE) and of_all == nodes * 5e-6


@pytest.mark.parametrize("streams", [2, 3, 5, 9])
@pytest.mark.parametrize("nodes", [1, 4, 11])
def test_without_work_a_cycle_is_m_minus_1_rounds_of_hops(streams: int, nodes: int) -> None:
    """The last END is back then; equation 5 counts a round more."""
    run = Setting(streams, 10, 0.5, 0.0).run(nodes, 20, UnitCosts(hop=HOP_NS))
    assert run.cycle == (0 if nodes == 1 else (streams - 1) * nodes * HOP_NS)


def test_one_node_sends_itself_nothing_over_the_network() -> None:
    setting = Setting(3, 40, 1.0, 20.0, send=0.5)
    run, lone = setting.run(1, 1_500), UnitCosts(comparison=setting.costs.comparison)
    assert run.cycle == setting.run(1, 1_500, lone).cycle
    assert run.cycle == pytest.approx(1e9 * cycle_s(setting.met, 1, setting.times), rel=CLOSE)


SHORT = [
    Setting(3, 100, 1.0, 20.0),
    Setting(3, 100, 1.0, 48.0),
    Setting(4, 60, 1.0, 64.0),
    Setting(5, 60, 0.5, 80.0),
    Setting(5, 60, 1.0, 180.0),
    Setting(7, 60, 0.5, 175.0),
    Setting(9, 60, 1.0, 324.0),
]
"""Few nodes for the streams, N* < 2 M - 1.5, and next to no T_s: there a round less moves N* by a node at most."""


@pytest.mark.parametrize("setting", SHORT, ids=str)
def test_the_best_number_of_nodes_of_equation_5_is_the_ring_s_within_one_node(setting: Setting) -> None:
    best = best_length(setting.met, setting.times, 40)
    assert 2 <= best < 2 * setting.streams - 1.5
    assert abs(fastest(setting) - best) <= 1


LONG = [
    Setting(2, 100, 1.0, 80.0),
    Setting(3, 100, 1.0, 150.0),
    Setting(3, 100, 5.0, 150.0),
    Setting(3, 200, 20.0, 200.0),
    Setting(3, 100, 20.0, 50.0, send=0.5),
    Setting(5, 60, 1.0, 200.0, send=1.0),
]
"""Long rings, and rings in which sending takes as long as a hop."""


@pytest.mark.parametrize("setting", [*SHORT, *LONG], ids=str)
def test_the_best_number_of_nodes_of_a_cycle_is_the_ring_s_within_one_node(setting: Setting) -> None:
    best = best_cycle(setting)
    assert abs(fastest(setting) - best) <= 1


def test_of_long_rings_equation_5_wants_other_numbers_of_nodes() -> None:
    """Why `cycle_s` is there: M rounds instead of M - 1, and T_s that is no part of a hop."""
    differ = [abs(best_length(one.met, one.times, 40) - best_cycle(one)) for one in LONG]
    assert min(differ) >= 2


def test_it_is_the_same_where_rows_overlap_in_a_ring_that_is_little_busy() -> None:
    setting = Setting(5, 60, 1.0, 80.0)
    best = best_length(setting.met, setting.times, 40)
    rare: dict[str, Any] = {"gap_ns": 100 * HOP_NS, "in_flight": 8, "paced": True}
    assert setting.run(best, 150, **rare).busiest < 0.3
    assert abs(fastest(setting, **rare) - best) <= 1
