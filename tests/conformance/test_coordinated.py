"""Coordinated tuple routing against the nested loop of the ring's tests; whatever is not about routes is in those."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from streamjoin.operators import registry
from streamjoin.operators.coordinated import Coordinated
from streamjoin.operators.coordinated import step as steps
from streamjoin.operators.coordinated.routes import Routes
from streamjoin.operators.coordinated.table import HostState, RoutingTable
from streamjoin.query import plan_query
from streamjoin.state.store import StateStore

from .loops import joined, loop_of
from .test_ring import (
    CHAIN,
    NINE,
    STREAMS,
    any_join,
    check_dying_task,
    check_nine,
    check_refused,
    cut,
    nested_loop,
    record_batch,
    rows_of,
    text_of,
)
from .test_ring import Run as RingRun


class Run(RingRun):
    """A job of CTR, batch by batch."""

    operator = "coordinated"

    def table(self) -> RoutingTable:
        """As the next batch has it."""
        store = StateStore(self.folder, 0, sync=False)
        first = self.loop.operators[0].in_batch(lambda node: store.load(node, self.loop.version))
        assert isinstance(first, Coordinated) and first.table is not None
        return first.table


def check_random(seed: int, folder: Path) -> int:
    """One random query over random rows, any segments and copies, with batches repeated by other slots."""
    chosen = random.Random(seed)
    count, conditions, reaches, streams = any_join(seed, chosen)
    wanted = nested_loop(streams, conditions, reaches)
    nodes = chosen.randrange(1, 5)
    knobs: dict[str, Any] = {
        "nodes": nodes,
        "segment": f"{chosen.choice([3, 10, 25, 60, 500])}us",
        "copies": chosen.randrange(1, nodes + 1),
    }
    run = Run(text_of(count, conditions, reaches), folder, chosen.randrange(1, 4), **knobs)
    for pieces in cut(streams):
        run.maybe_twice(pieces, chosen)
    assert run.found == wanted, (seed, text_of(count, conditions, reaches), knobs)
    return sum(wanted.values())


@pytest.mark.parametrize("first", [0, 4])
def test_random_queries_of_two_to_five_streams_are_joined_exactly(first: int, tmp_path: Path) -> None:
    assert sum(check_random(seed, tmp_path / str(seed)) for seed in range(first, first + 4)) > 20


@pytest.mark.soak
def test_many_random_queries_are_joined_exactly(tmp_path: Path) -> None:
    assert sum(check_random(seed, tmp_path / str(seed)) for seed in range(100, 500)) > 2_000


def test_nine_streams_take_eight_hops(tmp_path: Path) -> None:
    run = Run(NINE, tmp_path, nodes=3)
    assert len(run.loop.operators) == 8
    check_nine(run)


def test_one_slow_stream_and_unequal_reaches(tmp_path: Path) -> None:
    streams = [rows_of(place, 30, keys=2) for place in range(3)]
    run = Run(text_of(3, CHAIN, (10, 25, 5)), tmp_path, segment="7us")
    for pieces in cut(streams[:2]):
        run.batch([*pieces, []])
    for pieces in cut(streams[2:]):
        run.batch([[], [], *pieces])
    wanted = nested_loop(streams, CHAIN, (10, 25, 5))
    assert run.found == wanted and len(wanted) > 20


def test_the_table_says_where_every_copy_is(tmp_path: Path) -> None:
    streams = [rows_of(place, 200, keys=40) for place in range(3)]
    run = Run(text_of(3, CHAIN, (60, 40, 50)), tmp_path, nodes=5, copies=2, segment="30us")
    store = StateStore(tmp_path, 0, sync=False)
    seen: set[tuple[int, int]] = set()
    for pieces in cut(streams, 20):
        run.batch(pieces)
        table = run.table()
        seen |= set(table.hosts)
        ids: dict[tuple[int, int], list[Any]] = {}
        for node in range(5):
            for key, infos in HostState.of(store.load(node, run.loop.version)).settled().items():
                read = [store.open_segment(node, info).column("id").to_pylist() for info in infos]
                ids.setdefault(key, []).append(sorted(itertools.chain.from_iterable(read)))
        assert ids.keys() == table.hosts.keys()
        for key, copies in ids.items():
            assert len(copies) == len(table.hosts[key]) == 2 and copies[0] == copies[1], key
        assert sum(table.load) == 2 * sum(len(copies[0]) for copies in ids.values())
    live = {number for _, number in run.table().hosts}
    assert len(seen) > 60 and min(live) > 10  # dead segments have left the table


def test_late_rows_are_counted_once_however_many_hosts_have_them(tmp_path: Path) -> None:
    streams = [rows_of(place, 40, keys=2) for place in range(3)]
    late = [{"ts": 3 + number, "id": 1_000 + number, "k": 1, "x": 1} for number in range(2)]
    run = Run(text_of(3, CHAIN, (10, 10, 10)), tmp_path, copies=3)
    run.run(streams)
    run.batch([[record_batch(late)], [], []])
    first = run.loop.reports[:3]
    assert [sum(report.late[stream] for report in first) for stream in range(3)] == [2, 0, 0]
    assert sum(report.received["store"] + report.received["both"] for report in first) == 3 * 2


def test_what_a_hop_carries_is_counted(tmp_path: Path) -> None:
    streams = [rows_of(place, 40, keys=2) for place in range(3)]
    run = Run(text_of(3, CHAIN, (20, 20, 20)), tmp_path, nodes=4, copies=2)
    carried = Counter[str]()
    for pieces in cut(streams):
        run.batch(pieces)
        for report in run.loop.reports[4:]:
            carried += Counter(report.forwarded)
            assert report.forwarded["tuples"] == report.received["probe"]
    assert carried["tuples"] > 50 and carried["bytes"] > 8 * carried["tuples"] and carried["blocks"] > 3
    assert sum(run.found.values()) > 20


ORDERS = ((1, 2), (2, 0), (1, 0))


def table_of(nodes: int, copies: int, segments: int, load: Sequence[int] = ()) -> RoutingTable:
    """Segments of three streams, on hosts that follow each other."""
    hosts = {
        (stream, number): tuple(sorted((number + place) % nodes for place in range(copies)))
        for stream in range(3)
        for number in range(segments)
    }
    return RoutingTable(hosts, tuple(load) or (10,) * nodes)


def test_with_more_copies_fewer_hosts_take_part() -> None:
    sizes = [len(Routes(table_of(6, copies, 6), copies, ORDERS).hosts_of_hop(0, 0)) for copies in (1, 2, 3, 6)]
    assert sizes == [6, 3, 2, 1]


def test_new_segments_go_to_hosts_of_their_first_hop_and_then_to_the_least_load() -> None:
    routes = Routes(table_of(6, 1, 1, [9, 5, 1, 3, 2, 4]), 2, ORDERS)
    # The first hop of all of them is on node 0; then there is the least load, in turn.
    assert [routes.hosts_of(0, segment) for segment in (1, 2, 3, 4)] == [(0, 4), (0, 3), (0, 2), (0, 4)]
    assert routes.hosts_of(0, 0) == (0,)
    many = Routes(table_of(6, 1, 6, [9, 5, 1, 3, 2, 4]), 2, ORDERS)
    assert [many.hosts_of(2, segment) for segment in (6, 7, 8)] == [(2, 4), (3, 5), (1, 0)]


def test_each_segment_is_answered_for_by_one_host_of_the_hop() -> None:
    routes = Routes(table_of(5, 2, 7), 2, ORDERS)
    for origin, hop, met in ((0, 0, 1), (1, 1, 0), (2, 0, 1), (2, 1, 0)):
        for segment in range(12):
            answering = [host for host in range(5) if routes.answers(host, origin, hop, segment)]
            # What comes new is met by the streams after it alone.
            assert len(answering) == (1 if segment < 7 or met < origin else 0)
            assert all(host in routes.hosts_of(met, segment) for host in answering)
            assert set(answering) <= set(routes.hosts_of_hop(origin, hop))


def test_groups_are_those_of_a_tree(tmp_path: Path) -> None:
    text = (
        "SELECT ONLINE a.k AS k, COUNT(*) AS n, SUM(b.x) AS x FROM a, b, c WHERE a.k = b.k AND b.k = c.k "
        "WITHIN 20 MICROSECONDS GROUP BY a.k, TUMBLE(50 MICROSECONDS)"
    )
    streams = [rows_of(place, 60) for place in range(3)]
    tree = plan_query(text, STREAMS)
    found = [
        joined(loop_of(registry.planned(name, {}, tree, 2), name, tmp_path / name), list(map(record_batch, streams)))
        for name in ("coordinated", "matrix")
    ]
    assert found[0] == found[1] and len(found[0]) > 10


@pytest.mark.parametrize("after", [1, 2])
def test_a_task_that_dies_between_hops_changes_nothing(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_dying_task(Run, steps.LaterHop, after, tmp_path, monkeypatch)


_ANSWERS = Routes.answers
_HOSTS_OF_HOP = Routes.hosts_of_hop
_OF = RoutingTable.of


def _all_copies(self: Routes, host: int, origin: int, number: int, segment: int) -> bool:
    return True


def _without_one(self: Routes, origin: int, number: int) -> tuple[int, ...]:
    hosts = _HOSTS_OF_HOP(self, origin, number)
    return hosts[:-1] if len(hosts) > 1 else hosts


def _without_new(self: Routes, host: int, origin: int, number: int, segment: int) -> bool:
    known = (self.orders[origin][number], segment) in self.table.hosts
    return known and _ANSWERS(self, host, origin, number, segment)


def _behind(states: Any) -> RoutingTable:
    """Without the newest segment of each stream."""
    table = _OF(states)
    newest = {stream: max(n for s, n in table.hosts if s == stream) for stream, _ in table.hosts}
    return RoutingTable({key: on for key, on in table.hosts.items() if key[1] != newest[key[0]]}, table.load)


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "every copy answers": lambda patch: patch.setattr(Routes, "answers", _all_copies),
    "a hop skips a host": lambda patch: patch.setattr(Routes, "hosts_of_hop", _without_one),
    "new segments are not covered": lambda patch: patch.setattr(Routes, "answers", _without_new),
    "the table is behind its segments": lambda patch: patch.setattr(RoutingTable, "of", _behind),
}


@pytest.mark.parametrize("broken", [None, *BROKEN])
def test_broken_routes_are_caught(broken: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken is not None:
        BROKEN[broken](monkeypatch)
    streams = [rows_of(place, 60) for place in range(3)]
    wanted = nested_loop(streams, CHAIN, (30, 40, 20))
    run = Run(text_of(3, CHAIN, (30, 40, 20)), tmp_path, nodes=4, copies=2, segment="25us")
    assert (run.run(streams, 6) == wanted) == (broken is None)


@pytest.mark.parametrize(
    ("text", "knobs", "message"),
    [
        ("FROM a, b WHERE a.k = b.k", {}, "keeps segments of a window, and this query has none; add WITHIN"),
        ("FROM a, b WHERE a.k = b.k WITHIN 10 ROWS", {}, "segments of coordinated tuple routing are spans of time"),
        ("FROM a LEFT JOIN b ON a.k = b.k WITHIN 1 SECONDS", {}, "has no LEFT JOIN; choose biclique, matrix"),
        ("FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts", {}, "gives each row one partner at most"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"copies": 4, "nodes": 3}, "4 is not a number of copies from 1 to 3"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"copies": 0}, "copies"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"segment": "0s"}, "covers some event time; write a span"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"master": "a"}, "coordinated has no such knob; its knobs are nodes, copies"),
    ],
)
def test_what_it_cannot_do_is_said_with_a_way_out(text: str, knobs: dict[str, Any], message: str) -> None:
    check_refused("coordinated", text, knobs, message)


def test_default_settings() -> None:
    tree = plan_query(text_of(3, CHAIN, (30, 10, 20)), STREAMS)
    for slots, copies in ((3, 2), (1, 1)):
        plan = registry.planned("coordinated", {}, tree, slots)
        first, second = registry.build_all("coordinated", {}, plan, slots)
        nodes = f"{slots} node{'s'[: slots > 1]}"
        assert str(first) == f"coordinated on {nodes}, segments of 15 us, each row stored on {copies}"
        assert first.capabilities.looks and len(second.units) == slots
