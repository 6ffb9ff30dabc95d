"""Properties 1 and 2 of PSP hold at every step of a run, and interleaving keeps no more rows twice than it has to."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from simulate.network import Faults, Network
from simulate.ring.messages import Inter, Row
from simulate.ring.node import Broken, Node
from simulate.ring.response import respond
from simulate.ring.system import Played
from simulate.timed import UnitCosts
from tests.unit.simulate.test_ring_protocol import case, run

pytestmark = pytest.mark.slow

SEEDS = 12
_PURGE = Node._purge


def unlike_property_1(patch: pytest.MonkeyPatch, **how: Any) -> tuple[int, int]:
    """At how many probes a node has what it should once the probing row has purged it, and at how many it has not."""
    looks: Counter[bool] = Counter()
    for seed in range(SEEDS):
        rows, query, lengths = case(seed)
        ages = [
            [(-(-window * at // length), -(-window * (at + 1) // length)) for at in range(length)]
            for window, length in zip(query.windows, lengths, strict=True)
        ]

        def purge(node: Node, probing: Row, network: Network, rows: list[Row] = rows, ages: Any = ages) -> None:
            _PURGE(node, probing, network)
            for stream, kept in enumerate(node.state):
                young, old = ages[stream][node.number] if node.number < len(ages[stream]) else (0, 0)
                wanted = {
                    row.order
                    for row in rows[: probing.order + 1]
                    if row.stream == stream and young <= probing.ts - row.ts < old
                }
                looks[{row.order for row in kept} == wanted and len(kept) == len(wanted)] += 1

        patch.setattr(Node, "_purge", purge)
        run(seed, **how)
    return looks[True], looks[False]


def test_a_node_that_a_row_has_purged_has_the_rows_of_its_slice_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = unlike_property_1(monkeypatch)
    assert wrong == 0 and right > 600


def test_a_row_that_overtakes_what_it_purged_breaks_property_1(monkeypatch: pytest.MonkeyPatch) -> None:
    _, wrong = unlike_property_1(monkeypatch, broken=Broken(probe_first=True))
    assert wrong > 100


def ends_followed(played: Played) -> tuple[int, int]:
    """How many ENDs the head got, and how many of them partial results of their input and round followed there."""
    at_head = [one.message for one in played.network.log if one.receiver == "node 0" and isinstance(one.message, Inter)]
    in_turn: defaultdict[tuple[int, int], list[bool]] = defaultdict(list)
    for message in at_head:
        in_turn[message.origin.order, message.round].append(message.end)
    ends = sum(sum(of_one) for of_one in in_turn.values())
    return ends, sum(True in of_one[:-1] for of_one in in_turn.values())


@pytest.mark.parametrize("in_flight", [1, 4])
def test_an_end_is_the_last_of_its_round_at_the_head(in_flight: int) -> None:
    found = [ends_followed(run(seed, in_flight=in_flight)[1]) for seed in range(SEEDS)]
    assert sum(ends for ends, _ in found) > 300
    assert not any(followed for _, followed in found)


def test_messages_that_overtake_each_other_break_property_2() -> None:
    overtaking = {(f"node {one}", f"node {(one + 1) % 5}", number) for one in range(5) for number in range(0, 400, 3)}
    found = [ends_followed(run(seed, faults=Faults(overtake=overtaking))[1]) for seed in range(SEEDS)]
    assert any(followed for _, followed in found)


def held_for_nothing(patch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many rows were held twice in all, over all looks, and how many of them no input in flight was ahead of."""
    purged_by: dict[tuple[int, int, int], int] = {}
    held = needless = 0

    def purge(node: Node, probing: Row, network: Network) -> None:
        nonlocal held, needless
        before = set(node.sent_on)
        _PURGE(node, probing, network)
        for row in node.sent_on - before:
            purged_by[node.number, *row] = probing.order
        held += len(node.sent_on)
        needless += sum(purged_by[node.number, *row] <= min(node.seen) for row in node.sent_on)

    patch.setattr(Node, "_purge", purge)
    for seed in range(SEEDS):
        purged_by.clear()
        played = run(seed, in_flight=4)[1]
        assert played.held_twice_max == sum(node.kept_twice_max for node in played.nodes)
    return held, needless


def test_rows_are_held_twice_for_an_input_in_flight_that_came_before_they_were_purged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, needless = held_for_nothing(monkeypatch)
    assert held > 100 and needless == 0


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_response_tells_how_long_all_but_the_slowest_results_took_and_what_was_held_twice(in_flight: int) -> None:
    held = 0
    for seed in range(5):
        told = respond(UnitCosts(comparison=300, hop=1_000), 100, *case(seed), in_flight=in_flight)
        read, nodes = told.played.source.read, told.played.nodes
        took = [one.at - read[one.origin] for node in nodes for one in node.found for _ in range(one.count)]
        assert len(took) == told.results >= 5
        assert (
            sum(time < told.result_p95 for time in took)
            < 0.95 * len(took)
            <= sum(time <= told.result_p95 for time in took)
        )
        assert told.held_twice == sum(node.kept_twice_max for node in nodes)
        held += told.held_twice
    assert (held > 0) == (in_flight > 1)
