"""ATR and CTR, message by message, against a nested loop; and what each of their rules is for."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from simulate.network import Earliest, Shuffled
from simulate.replicated import aligned, coordinated
from simulate.replicated.stored import Watched
from simulate.replicated.traffic import traffic
from simulate.ring.messages import Found, Query, Row, nested_loop
from simulate.timed import Timed, UnitCosts
from streamjoin.operators.coordinated.cover import cover
from tests.unit.simulate.test_ring_protocol import case

pytestmark = pytest.mark.slow

SEEDS = 25


def run_aligned(seed: int, streams: int | None = None, **others: Any) -> tuple[bool, aligned.Played]:
    """Whether a run is right, and the run."""
    rows, query, _ = case(seed, streams)
    chosen = random.Random(seed)
    nodes, length, master = chosen.randrange(1, 6), chosen.randrange(2, 20), chosen.randrange(len(query.windows))
    played = aligned.play(rows, query, nodes, length, master, Shuffled(seed), **others)
    return Counter(played.results) == Counter(nested_loop(rows, query)), played


def run_coordinated(
    seed: int, streams: int | None = None, copies: int | None = None, **others: Any
) -> tuple[bool, coordinated.Played]:
    """The same of CTR."""
    rows, query, _ = case(seed, streams)
    chosen = random.Random(seed)
    nodes = chosen.randrange(2, 7)
    length, own = chosen.randrange(1, 9), chosen.randrange(1, nodes + 1)
    # Hosts are faster than the operator that spreads rows, so a table that is ahead of these shows.
    hosts = [f"host {number}" for number in range(nodes)]
    speeds = {(host, receiver): 20.0 for host in hosts for receiver in (*hosts, coordinated.DIFFUSION)}
    played = coordinated.play(rows, query, nodes, length, copies or own, Shuffled(seed, speeds), **others)
    return Counter(played.results) == Counter(nested_loop(rows, query)), played


@pytest.mark.parametrize("seed", [129, 413])
def test_a_segment_is_done_once_it_came_every_way_to_the_last_hop(seed: int) -> None:
    """Where hops have several hosts each, one of the last hop hears of a segment once for each way there."""
    is_right, played = run_coordinated(seed)
    assert is_right and max(played.diffusion.covers) > 1


@pytest.mark.parametrize("run", [run_aligned, run_coordinated], ids=["aligned", "coordinated"])
def test_random_runs_join_exactly_whatever_comes_first(run: Any) -> None:
    results = 0
    for seed in range(SEEDS):
        is_right, played = run(seed)
        assert is_right, seed
        results += len(played.results)
    assert results > 300


@pytest.mark.parametrize("name", aligned.Broken.__slots__)
def test_aligned_without_one_of_its_rules_is_caught(name: str) -> None:
    wrong = sum(not run_aligned(seed, broken=aligned.Broken(**{name: True}))[0] for seed in range(SEEDS))
    assert wrong > SEEDS // 10


@pytest.mark.parametrize("name", coordinated.Broken.__slots__)
def test_coordinated_without_one_of_its_rules_is_caught(name: str) -> None:
    broken = coordinated.Broken(**{name: True})
    wrong = sum(not run_coordinated(seed, streams=3, copies=1 + seed % 2, broken=broken)[0] for seed in range(SEEDS))
    assert wrong > SEEDS // 10


def test_the_cover_takes_the_least_load_for_each_segment_that_is_not_covered_yet() -> None:
    items = {"a": (0, 1), "b": (1,), "c": (1, 2), "d": (2, 3)}
    assert cover(items, (5, 9, 2, 50)) == {"c": 2, "d": 2, "a": 1, "b": 1}
    assert cover(items, (0, 0, 0, 0)) == {"a": 1, "b": 1, "c": 1, "d": 2}  # one host has three of them
    assert cover(items, (1, 9, 9, 1)) == {"a": 0, "d": 3, "b": 1, "c": 1}
    assert cover({}, (1, 2)) == {}


def test_all_is_over_and_dead_segments_are_gone() -> None:
    for seed in range(SEEDS):
        _, played = run_coordinated(seed)
        table, last = played.diffusion.hosts, max(number for _, number in played.diffusion.hosts)
        assert played.diffusion.waiting == 0
        for host in played.nodes:
            assert set(host.state) == {key for key, hosts in table.items() if host.number in hosts}
        length, windows = played.diffusion.length, played.nodes[0].query.windows
        assert all((number + 1) * length - 1 + windows[stream] > last * length for stream, number in table)


def steady(streams: int, seconds: int, gap: int = 1, values: int = 40) -> tuple[list[Row], Query]:
    """Streams in turn, of which a share of 1/values pairs matches, with windows of 100."""
    chosen = random.Random(streams)
    rows = [Row(order % streams, order * gap, order, chosen.randrange(values)) for order in range(seconds)]
    conditions = tuple(((one, one + 1), lambda r, s: r.value == s.value) for one in range(streams - 1))
    orders = tuple(
        tuple(sorted((other for other in range(streams) if other != one), key=lambda other: (abs(other - one), other)))
        for one in range(streams)
    )
    return rows, Query((100,) * streams, conditions, orders)


@cache
def aligned_most(nodes: int, length: int, count: int = 1_500) -> tuple[int, int]:
    """The most tuples of ATR on all nodes at one moment, and on one node."""
    rows, query = steady(3, count)
    network = Watched(Earliest())
    aligned.play(rows, query, nodes, length, 0, network)
    return network.most, network.fullest


def test_memory_of_aligned_is_what_can_still_be_joined_whatever_the_nodes_and_the_length_of_the_run() -> None:
    # Three streams bring a row each in turn. At the time 398 the segment of 300 to 399 has the last 100 rows of all
    # streams; the one before has no row of the master any more that is young enough, and the one after none yet, but
    # both have the last 100 rows of the other two streams.
    assert aligned_most(8, 100)[0] == pytest.approx(100 + 2 * 2 / 3 * 100, abs=1)
    # Where segments are long, two of them meet at each border.
    assert aligned_most(8, 500) == (pytest.approx(100 + 2 / 3 * 100, abs=1), 100)
    mosts = {aligned_most(nodes, 100, count)[0] for nodes, count in ((2, 1_500), (5, 900), (8, 3_000))}
    assert mosts == {aligned_most(8, 100)[0]}


def test_no_segment_of_aligned_ends_before_the_first_row_of_its_master() -> None:
    rows, query = steady(3, 300)
    later = [row for row in rows if row.stream or row.ts >= 120]
    for each, first in ((rows, 0), (later, 1)):
        log = aligned.play(each, query, 4, 100, 0, Earliest()).network.log
        tuples = [one.message for one in log if isinstance(one.message, aligned.Tuple)]
        # Before the master's first row the segment of now may still get one.
        assert min(min(one.segments) for one in tuples) == 0
        assert min(min(one.segments) for one in tuples if one.row.ts >= 100) == first


def coordinated_most(nodes: int, copies: int) -> int:
    rows, query = steady(3, 1_500)
    network = Watched(Earliest())
    coordinated.play(rows, query, nodes, 25, copies, network)
    return network.most


def test_memory_of_coordinated_is_flat_in_nodes_and_grows_with_copies() -> None:
    # Of a window of 100 there are five segments of 25 rows of all streams, the oldest and the newest in part.
    assert coordinated_most(4, 2) == coordinated_most(8, 2) == 2 * 5 * 25
    assert coordinated_most(8, 4) == 4 * 5 * 25


def test_with_one_copy_all_state_gathers_on_few_hosts() -> None:
    """What the paper calls convergence: the cover sends later segments to the hosts of earlier ones."""
    rows, query = steady(3, 1_500)
    shares = {
        copies: coordinated.play(rows, query, 8, 25, copies, Shuffled(1)).fullest_share for copies in (1, 2, 4, 8)
    }
    assert shares[1] > 0.9 and shares[8] == pytest.approx(1 / 8)
    assert shares[1] > shares[2] > shares[8]


def test_traffic_is_counted() -> None:
    rows, query = steady(3, 600)
    one = traffic(aligned.play(rows, query, 4, 200, 0, Shuffled(1)).network.log)
    # A master's row once, another one to 1 + 2 x 100 / 200 segments but for the border, of which some share a node.
    # Of three segments, two are dropped.
    assert one.messages == one.tuples + 2 and 1.3 < one.tuples / len(rows) < 5 / 3
    other = coordinated.play(rows, query, 4, 25, 2, Shuffled(1))
    sent = traffic(other.network.log)
    assert sent.tuples > 2 * len(rows) and sent.entries > 0
    stored = sum(
        len(message.message.rows) for message in other.network.log if isinstance(message.message, coordinated.Store)
    )
    assert stored == 2 * len(rows)
    assert sent.bytes(1_000) == sent.messages * 16 + sent.tuples * 1_000 + sent.entries * 8


def test_what_coordinated_does_takes_the_time_of_its_steps() -> None:
    """By hand: windows of 100,000 ns, segments of half of that; one host gets all there is."""
    rows = [Row(0, 10_000, 0, 1), Row(0, 20_000, 1, 2), Row(1, 60_000, 2, 1), Row(0, 260_000, 3, 1)]
    query = Query((100_000, 100_000), (((0, 1), lambda r, s: r.value == s.value),), ((1,), (0,)))
    costs = UnitCosts(probe=1, comparison=10, insert=100, purge=1_000, message=2_000, hop=10_000)
    network = Timed(costs, lambda message: 0)
    played = coordinated.play(rows, query, 2, 50_000, 1, network, paced=True)
    # A segment is routed when it is complete and the one before is stored.
    assert played.diffusion.routed == {(0, 0): 50_000, (1, 1): 100_000, (0, 5): 300_000}
    # Half a message at each end, the way, a probe and two comparisons.
    (result,) = played.nodes[0].found
    assert result == ((1, 1), Found(2, 100_000 + 1_000 + 10_000 + 1_000 + 1 + 2 * 10, 1))
    # Three segments of four rows are stored, and that is told; one is joined, and that is told; two are dropped.
    stored, joined, dropped = 3 * 2_000 + 4 * 100, 2_000 + 1 + 2 * 10, 2 * 1_000 + 3 * 1_000
    assert network.busy_ns["host 0"] == stored + joined + dropped
    assert not network.busy_ns["host 1"]


def test_no_result_of_coordinated_is_there_before_its_last_segment_is_complete() -> None:
    rows, query = steady(3, 900, gap=1_000)
    query = replace(query, windows=(100_000,) * 3)
    network = Timed(UnitCosts(comparison=1, hop=500), lambda message: 0)
    played = coordinated.play(rows, query, 4, 25_000, 2, network, paced=True)
    every = [(key, one) for host in played.nodes for key, one in host.found]
    assert len(every) > 100 and all(one.at > (key[1] + 1) * 25_000 for key, one in every)
