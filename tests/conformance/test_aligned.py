"""Aligned tuple routing against the nested loop of the ring's tests; whatever is not about segments is in those."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.operators import registry
from streamjoin.operators.aligned import Aligned
from streamjoin.operators.aligned.segments import Segments
from streamjoin.operators.aligned.step import AlignedStep
from streamjoin.operators.rounds import keeping
from streamjoin.query import plan_query
from streamjoin.state.store import StateStore

from .loops import joined, loop_of
from .test_ring import (
    CHAIN,
    MIXED,
    NAMES,
    NINE,
    STREAMS,
    any_join,
    band,
    check_nine,
    check_refused,
    cut,
    equal,
    fastest,
    nested_loop,
    record_batch,
    rows_of,
    text_of,
)
from .test_ring import Run as RingRun


class Run(RingRun):
    """A job of ATR, batch by batch."""

    operator = "aligned"


def check_random(seed: int, folder: Path) -> int:
    """One random query over random rows, any segments, any master, with batches repeated."""
    chosen = random.Random(seed)
    count, conditions, reaches, streams = any_join(seed, chosen)
    wanted = nested_loop(streams, conditions, reaches)
    knobs: dict[str, Any] = {"nodes": chosen.randrange(1, 5), "segment": f"{chosen.choice([3, 10, 25, 60, 500])}us"}
    knobs |= {"master": chosen.choice(NAMES[:count])} if chosen.random() < 0.7 else {}
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


def test_nine_streams_are_one_stage(tmp_path: Path) -> None:
    run = Run(NINE, tmp_path, nodes=2, segment="4us")
    assert len(run.loop.operators) == 1
    check_nine(run)


def test_ten_segments_of_one_node_give_each_result_once(tmp_path: Path) -> None:
    streams = [rows_of(place, 40, keys=2) for place in range(3)]
    wanted = nested_loop(streams, CHAIN, (20, 5, 30))
    run = Run(text_of(3, CHAIN, (20, 5, 30)), tmp_path, nodes=1, segment="20us")
    assert run.run(streams) == wanted and len(wanted) > 20
    assert sum(report.received["both"] for report in run.loop.reports) > 0


def test_slaves_of_a_segment_come_long_before_it(tmp_path: Path) -> None:
    """The node of a segment has to be known before any row of the master is there."""
    streams = [rows_of(place, 30, keys=2) for place in range(3)]
    run = Run(text_of(3, CHAIN, (10, 10, 10)), tmp_path, master="c", segment="15us")
    for pieces in cut(streams[:2]):
        run.batch([*pieces, []])
    for pieces in cut(streams[2:]):
        run.batch([[], [], *pieces])
    wanted = nested_loop(streams, CHAIN, (10, 10, 10))
    assert run.found == wanted and len(wanted) > 20


def test_late_rows_are_counted_once_however_many_nodes_have_them(tmp_path: Path) -> None:
    streams = [rows_of(place, 40, keys=2) for place in range(3)]
    late = [{"ts": 3, "id": 1_000 + number, "k": 1, "x": 1} for number in range(2)]
    run = Run(text_of(3, CHAIN, (10, 10, 10)), tmp_path, segment="2us", master="b")
    run.run(streams)
    run.batch([[record_batch(late)], [], []])
    assert [sum(report.late[stream] for report in run.loop.reports) for stream in range(3)] == [2, 0, 0]
    assert sum(report.received["both"] for report in run.loop.reports) == 2 * 3


def test_rows_are_where_the_segments_say(tmp_path: Path) -> None:
    cut_by = Segments(10, 4, 0, (3, 5, 0))
    ts_us = np.array([-1, 0, 4, 9, 10, 12, 35, 39])
    at: dict[int, dict[int, tuple[int, ...]]] = {stream: {} for stream in range(3)}
    for stream in range(3):
        for rows, nodes in cut_by.groups(stream, ts_us):
            at[stream] |= {int(ts_us[row]): nodes for row in rows}
    assert at[0] == {-1: (3,), 0: (0,), 4: (0,), 9: (0,), 10: (1,), 12: (1,), 35: (3,), 39: (3,)}
    # A row of b meets those of a from 3 before it, which have a reach of 3, to 5 after it.
    assert at[1] == {-1: (0, 3), 0: (0, 3), 4: (0,), 9: (0, 1), 10: (0, 1), 12: (0, 1), 35: (0, 3), 39: (0, 3)}
    assert at[2][0] == (0, 3) and at[2][12] == (0, 1) and at[2][4] == (0,)


def test_with_short_segments_a_row_reaches_one_node_more_than_its_reaches_fill() -> None:
    cut_by = Segments(4, 100, 0, (7, 5))
    counts = [len(nodes) for rows, nodes in cut_by.groups(1, np.arange(400)) for _ in rows]
    assert max(counts) == -(-(5 + 7) // 4) + 1
    assert sum(counts) / len(counts) == pytest.approx(cut_by.copies[1])


def test_state_stays_as_small_as_the_window_and_each_row_is_at_a_node_once(tmp_path: Path) -> None:
    streams = [rows_of(place, 400, keys=40) for place in range(3)]
    run = Run(text_of(3, CHAIN, (100, 60, 80)), tmp_path, segment="200us")
    store = StateStore(tmp_path, 0, sync=False)
    stored = []
    for pieces in cut(streams, 20):
        run.batch(pieces)
        stored.append(sum(sum(report.stored_rows) for report in run.loop.reports))
        for unit in run.loop.operators[0].units:
            state = store.load(unit.number, run.loop.version)
            for stream in range(3):
                ids = [
                    one
                    for info in state.tuples(stream)
                    for one in store.open_segment(unit.number, info).column("id").to_pylist()
                ]
                assert len(ids) == len(set(ids))
    assert max(stored[10:]) < 2 * max(stored[3:10])


@pytest.mark.parametrize(
    ("select", "by"),
    [
        ("ONLINE a.k AS k, COUNT(*) AS n, SUM(b.x) AS x", "GROUP BY a.k, TUMBLE(50 MICROSECONDS)"),
        ("DISTINCT ONLINE a.x AS x, b.x AS y, c.x AS z", ""),
    ],
    ids=["windows", "distinct"],
)
def test_groups_are_those_of_a_tree(select: str, by: str, tmp_path: Path) -> None:
    text = f"SELECT {select} FROM a, b, c WHERE a.k = b.k AND b.k = c.k WITHIN 20 MICROSECONDS {by}"
    streams = [rows_of(place, 60) for place in range(3)]
    tree = plan_query(text, STREAMS)
    found = [
        joined(loop_of(registry.planned(name, {}, tree, 2), name, tmp_path / name), list(map(record_batch, streams)))
        for name in ("aligned", "matrix")
    ]
    assert found[0] == found[1] and len(found[0]) > 10


def test_a_task_that_dies_amid_its_results_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [rows_of(place, 30) for place in range(3)]
    wanted = nested_loop(streams, MIXED, (20, 20, 20))
    run = Run(text_of(3, MIXED, (20, 20, 20)), tmp_path, segment="15us")
    results = AlignedStep.results
    for pieces in cut(streams):
        left = [1]

        def dying(self: AlignedStep, left: list[int] = left) -> Iterator[pa.RecordBatch]:
            yield from results(self)
            if self._work.unit.number == 1 and left:
                left.pop()
                raise KeyboardInterrupt

        monkeypatch.setattr(AlignedStep, "results", dying)
        with pytest.raises(KeyboardInterrupt):
            run.batch(pieces)
        run.batch(pieces)
    assert run.found == wanted and len(wanted) > 10


_SPREAD = Segments.spread


def _no_copies(self: Segments, stream: int, ts_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return ts_us // self.length_us, np.ones(ts_us.shape, np.int64)


def _no_older(self: Segments, stream: int, ts_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As if a slave never were newer than the master's row."""
    first, count = _SPREAD(self, stream, ts_us)
    own = ts_us // self.length_us
    return own, first + count - own


def _all_spread(self: Segments, stream: int, ts_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = (ts_us - self.reaches_us[self.master]) // self.length_us
    return first, (ts_us + self.reaches_us[stream]) // self.length_us - first + 1


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "no copies at a border": lambda patch: patch.setattr(Segments, "spread", _no_copies),
    "no slaves that are newer": lambda patch: patch.setattr(Segments, "spread", _no_older),
    "the master is copied, too": lambda patch: patch.setattr(Segments, "spread", _all_spread),
    "the fastest stream says what is dead": lambda patch: patch.setattr(keeping, "others_mark_us", fastest),
}


@pytest.mark.parametrize("broken", [None, *BROKEN])
def test_a_broken_routing_is_caught(broken: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken is not None:
        BROKEN[broken](monkeypatch)
    streams = [rows_of(place, 60) for place in range(3)]
    wanted = nested_loop(streams, CHAIN, (30, 40, 20))
    run = Run(text_of(3, CHAIN, (30, 40, 20)), tmp_path, segment="50us")
    batches = [*cut(streams, 10)]
    for number in range(12):  # c comes two batches after the others
        fast = batches[number][:2] if number < 10 else [[], []]
        run.batch([*fast, batches[number - 2][2] if number >= 2 else []])
    assert (run.found == wanted) == (broken is None)


@pytest.mark.parametrize(
    ("text", "knobs", "message"),
    [
        ("FROM a, b WHERE a.k = b.k", {}, "keeps segments of a window, and this query has none; add WITHIN"),
        ("FROM a, b WHERE a.k = b.k WITHIN 10 ROWS", {}, "segments of aligned tuple routing are spans of time"),
        ("FROM a LEFT JOIN b ON a.k = b.k WITHIN 1 SECONDS", {}, "has no LEFT JOIN; choose biclique, matrix"),
        ("FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.ts", {}, "gives each row one partner at most"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"orders": {"a": ["b"]}}, r"such as \[b, c\]; this is \[b\]"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"master": "z"}, "no stream z; it reads a, b, c"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"segment": "soon"}, "soon"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"segment": "0s"}, "covers some event time; write a span"),
        ("FROM a, b, c WITHIN 1 SECONDS", {"lengths": {"a": 1}}, "aligned has no such knob; its knobs are nodes"),
        ("FROM a, b WHERE a.k = b.k AND a.x < b.x WITHIN 1 SECONDS", {"main": "a.x < b.x"}, "leave operator.main out"),
    ],
)
def test_what_it_cannot_do_is_said_with_a_way_out(text: str, knobs: dict[str, Any], message: str) -> None:
    check_refused("aligned", text, knobs, message)


def test_default_settings() -> None:
    plan = registry.planned("aligned", {}, plan_query(text_of(3, CHAIN, (30, 10, 20)), STREAMS), 3)
    (operator,) = registry.build_all("aligned", {}, plan, 3)
    assert isinstance(operator, Aligned) and operator.nodes == 3
    assert str(operator) == (
        "aligned on 3 nodes, segments of 150 us; master b, each row to one node, and a to 1.27, c to 1.2 on average"
    )
    assert operator.segments.length_us == 150 and [len(stage.conditions) for stage in plan.stages] == [2]


def test_a_checkpoint_is_of_its_nodes_segments_and_master() -> None:
    tree = plan_query(text_of(3, [equal("a", "b"), band("b", "c", 2)], (30, 10, 20)), STREAMS)
    lasting = set()
    knobs: list[dict[str, Any]] = [
        {}, {"segment": "150us"}, {"segment": "9us"}, {"master": "a"}, {"master": "B"}, {"nodes": 4},
        {"orders": {"c": ["a", "b"]}},
    ]  # fmt: skip
    for one in knobs:
        plan = registry.planned("aligned", one, tree, 2)
        lasting.add(registry.build_all("aligned", one, plan, 2)[0].lasting)
    assert len(lasting) == 5
