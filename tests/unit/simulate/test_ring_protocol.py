"""The ring of sliced joins, message by message, against a nested loop; and what each of its rules is for."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from simulate.network import Faults, Shuffled
from simulate.ring.messages import Build, Inter, Query, Row, nested_loop
from simulate.ring.node import Broken
from simulate.ring.system import Played, play

pytestmark = pytest.mark.slow

SEEDS = 25


def case(seed: int, streams: int | None = None) -> tuple[list[Row], Query, list[int]]:
    """Rows with ties, windows and orders at random, and how many nodes keep each stream."""
    chosen = random.Random(seed)
    count = streams or chosen.randrange(2, 5)
    ts = 0
    rows = []
    for order in range(26 if count < 4 else 20):
        ts += chosen.choice([0, 0, 1, 2])
        rows.append(Row(chosen.randrange(count), ts, order, chosen.randrange(6)))
    windows = tuple(chosen.randrange(3, 14) for _ in range(count))
    conditions: list[Any] = [((one, one + 1), near(chosen.randrange(1, 4))) for one in range(count - 1)]
    if count > 2:
        conditions.append(((0, 1, 2), lambda r, s, t: r.value + s.value >= t.value))
    others = [[one for one in range(count) if one != origin] for origin in range(count)]
    orders = tuple(tuple(chosen.sample(each, len(each))) for each in others)
    return rows, Query(windows, tuple(conditions), orders), [chosen.randrange(1, 6) for _ in range(count)]


def near(most: int) -> Callable[[Row, Row], bool]:
    return lambda r, s: abs(r.value - s.value) <= most


def run(seed: int, streams: int | None = None, *, in_flight: int = 1, **others: Any) -> tuple[bool, Played]:
    """Whether a run is right, and the run."""
    rows, query, lengths = case(seed, streams)
    played = play(rows, query, lengths, Shuffled(seed), in_flight=in_flight, **others)
    return Counter(played.results) == Counter(nested_loop(rows, query)), played


@pytest.mark.parametrize("in_flight", [1, 2, 6])
def test_random_rings_join_exactly_whatever_comes_first(in_flight: int) -> None:
    results = 0
    for seed in range(SEEDS):
        is_right, played = run(seed, in_flight=in_flight)
        assert is_right, seed
        assert len(played.source.done) == 26 - 6 * (len(played.nodes[0].state) == 4)
        results += len(played.results)
        # Nothing is kept for inputs that are over.
        assert not any(node.seen or node.sent_on for node in played.nodes)
    assert results > 300


def test_a_cycle_ends_with_the_last_of_m_minus_1_ends_and_one_is_on_its_way_at_a_time() -> None:
    for seed in range(SEEDS):
        _, played = run(seed)
        head = played.nodes[0]
        messages = [one.message for one in played.network.log if isinstance(one.message, Inter)]
        ends = [(one.origin.order, one.round) for one in messages if one.end]
        in_turn = [end for end, _ in itertools.groupby(ends)]
        orders = range(len(played.source.done))
        assert in_turn == [(order, number + 1) for order in orders for number in range(head.query.rounds)]
        assert set(head.ended.values()) == {head.query.rounds}


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_row_crosses_each_link_once(in_flight: int) -> None:
    crossed = 0
    for seed in range(SEEDS):
        _, played = run(seed, in_flight=in_flight)
        builds = Counter(
            (one.receiver, one.message.row) for one in played.network.log if isinstance(one.message, Build)
        )
        assert set(builds.values()) <= {1}
        crossed += len(builds)
    assert crossed > 100


def test_interleaving_keeps_rows_twice_and_the_basic_ring_does_not() -> None:
    twice = [max(node.kept_twice_max for node in run(seed, in_flight=4)[1].nodes) for seed in range(SEEDS)]
    assert max(twice) > 1
    assert all(node.kept_twice_max == 0 for seed in range(SEEDS) for node in run(seed)[1].nodes)


@pytest.mark.parametrize(
    ("broken", "in_flight"),
    [
        (Broken(probe_first=True), 1),
        (Broken(skips_birth=True), 1),
        (Broken(no_null_end=True), 1),
        (Broken(purges_at_once=True), 4),
        (Broken(no_start=True), 4),
        (Broken(ends_early=True), 4),
    ],
    ids=lambda value: next((name for name in Broken.__slots__ if getattr(value, name, False)), str(value)),
)
def test_a_ring_without_one_of_its_rules_is_caught(broken: Broken, in_flight: int) -> None:
    wrong = sum(not run(seed, in_flight=in_flight, broken=broken)[0] for seed in range(SEEDS))
    assert wrong > SEEDS // 10


def test_channels_must_be_first_in_first_out() -> None:
    overtaking = {(f"node {one}", f"node {one + 1}", number) for one in range(4) for number in range(0, 200, 3)}
    wrong = sum(not run(seed, faults=Faults(overtake=overtaking))[0] for seed in range(SEEDS))
    assert wrong > SEEDS // 10
