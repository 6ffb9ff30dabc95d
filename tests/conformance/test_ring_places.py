"""Where a ring keeps tuples: each in one node, by age, and moved as names of files (PSP, definition 1, section 4.2)."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.ring.planning import AGGRESSIVE, PASSIVE
from streamjoin.operators.ring.state import NodeState
from streamjoin.state.store import StateStore

from .ring_nodes import Script, random_script
from .test_ring import CHAIN, DELAY_US, NAMES, Condition, Rows, Run, any_join, cut, rows_of, text_of
from .test_ring_adaptive import Adaptive

Place = tuple[int, SegmentInfo]
"""A node, and a segment that its manifest names."""
REACHES = (40, 15, 60)


def nodes_of(run: Run) -> dict[int, NodeState]:
    """What each node's manifest of the newest version says."""
    return run.states() if isinstance(run, Adaptive) else dict(enumerate(run.nodes()))


def named(run: Run, stream: int) -> Iterator[Place]:
    """Every segment of a stream in some manifest or outbox, as often as it is there."""
    for number, node in nodes_of(run).items():
        for info in node.answered(stream, with_new=True):
            yield number, info


def where(run: Run, streams: int) -> dict[tuple[int, int], list[int]]:
    """(stream, id) of every tuple of the newest version, and the nodes whose manifest or outbox has it."""
    store = StateStore(run.folder, 0, sync=False)
    found: dict[tuple[int, int], list[int]] = {}
    for stream in range(streams):
        for node, info in named(run, stream):
            for row in store.open_segment(node, info).column("id").to_pylist():
                found.setdefault((stream, row), []).append(node)
    return found


def alive(brought: Sequence[Rows], reaches_us: Sequence[int], conditions: Sequence[Condition]) -> set[tuple[int, int]]:
    """What rows of other streams that are yet to come may meet: those of a stream are at most `DELAY_US` late.

    Rows that fail a condition of their own, or have no key, need not be stored.
    """
    marks = [max((row["ts"] for row in rows), default=0) - DELAY_US for rows in brought]
    found = set()
    for stream, rows in enumerate(brought):
        others = min(mark for place, mark in enumerate(marks) if place != stream)
        own = [holds for _, reads, holds in conditions if reads == NAMES[stream]]
        may = [row for row in rows if row["k"] is not None and all(holds(row) for holds in own)]
        found |= {(stream, row["id"]) for row in may if row["ts"] + reaches_us[stream] >= others}
    return found


def check(run: Run, brought: Sequence[Rows], reaches_us: Sequence[int], conditions: Sequence[Condition]) -> None:
    found = where(run, len(brought))
    twice = {row: nodes for row, nodes in found.items() if len(nodes) > 1}
    assert not twice, f"in several nodes at version {run.loop.version}: {twice}"
    lost = alive(brought, reaches_us, conditions) - set(found)
    assert not lost, f"in no node at version {run.loop.version}: {lost}"


def check_random(seed: int, folder: Path, *, adaptive: bool) -> Counter[int]:
    """A random join whose batches are repeated, with nodes that come and go; how many tuples were in which node."""
    chosen = random.Random(seed)
    count, conditions, reaches, streams = any_join(seed, chosen)
    text, batches, nodes = text_of(count, conditions, reaches), 10, chosen.randrange(1, 4)
    script: Script = random_script(chosen, batches)
    if adaptive:
        run: Run = Adaptive(text, folder, script, 2, nodes=nodes, levels=chosen.random() < 0.5)
    else:
        run = Run(text, folder, 2, nodes=nodes, lengths={"a": chosen.randrange(1, nodes + 1)})
    brought: list[Rows] = [[] for _ in streams]
    used: Counter[int] = Counter()
    for number, pieces in enumerate(cut(streams, batches)):
        run.maybe_twice(pieces, chosen)
        for rows, of_stream in zip(brought, pieces, strict=True):
            rows += [row for piece in of_stream for row in piece.to_pylist()]
        check(run, brought, reaches, conditions)
        used += Counter(node for nodes_there in where(run, count).values() for node in nodes_there)
        if not adaptive and number % 3 == 2:
            run.resize(chosen.randrange(nodes, 5))
            check(run, brought, reaches, conditions)
    return used


@pytest.mark.parametrize("adaptive", [False, True], ids=["started anew with other nodes", "nodes come and go"])
def test_every_living_tuple_is_in_exactly_one_manifest_or_outbox(adaptive: bool, tmp_path: Path) -> None:
    used = [check_random(seed, tmp_path / str(seed), adaptive=adaptive) for seed in range(6)]
    assert sum(len(one) > 2 for one in used) > 2, "rings of more nodes were used"


def test_a_kill_at_every_change_leaves_each_tuple_in_one_node(tmp_path: Path) -> None:
    streams = [rows_of(place, 70) for place in range(3)]
    script: Script = {3: (2, AGGRESSIVE), 8: (-2, AGGRESSIVE), 11: (1, PASSIVE)}
    run = Adaptive(text_of(3, CHAIN, REACHES), tmp_path, script, nodes=2)
    brought: list[Rows] = [[], [], []]
    for number, pieces in enumerate(cut(streams, 16)):
        run.batch(pieces, commit=False)
        run.begins_anew(1 + number % 3)
        run.batch(pieces)
        for rows, of_stream in zip(brought, pieces, strict=True):
            rows += [row for piece in of_stream for row in piece.to_pylist()]
        check(run, brought, REACHES, CHAIN)
    assert run.found.total() > 0 and len(run.plan().decisions) >= 3


def path_of(store: StateStore, node: int, info: SegmentInfo) -> str:
    return os.path.normpath(store.directory(node) / info.file)


def written(path: str) -> tuple[int, int, int]:
    """What would differ had the file been written again."""
    told = os.stat(path)
    return told.st_ino, told.st_mtime_ns, told.st_size


def test_a_shift_writes_no_file_of_rows(tmp_path: Path) -> None:
    """Rows move on by the names of their files, which stay as they were written."""
    run = Run(text_of(3, CHAIN, (60, 60, 60)), tmp_path, nodes=3)
    store, before, shifted = StateStore(tmp_path, 0, sync=False), {}, 0
    for batch in range(30):
        rows = [{"ts": 10 * batch + at, "id": 10 * batch + at, "k": batch, "x": 0} for at in range(10)]
        run.batch(next(cut([rows] * 3, 1)))
        places = {path_of(store, *place) for of in range(3) for place in named(run, of)}
        now = {path: written(path) for path in places}
        stays = before.keys() & now.keys()
        assert {path: now[path] for path in stays} == {path: before[path] for path in stays}
        sent = [
            (node, info) for node, state in nodes_of(run).items() for infos in state.sent.values() for info in infos
        ]
        shifted += len(sent)
        assert {path_of(store, *place) for place in sent} <= before.keys(), "a shift made a file"
        before = now
    assert shifted > 30


def test_segments_are_listed_by_age_and_one_that_straddles_the_end_of_its_slice_stays(tmp_path: Path) -> None:
    """A segment is sent on when all of it is past the end, and not before."""
    reach_us, nodes, straddle = 90, 3, 0
    run = Run(text_of(3, CHAIN, (reach_us,) * 3), tmp_path, nodes=nodes)
    for batch in range(40):
        rows = [{"ts": 10 * batch + at, "id": 10 * batch + at, "k": batch, "x": 0} for at in range(10)]
        run.batch(next(cut([rows] * 3, 1)))
        mark_us = 10 * batch - 1 - DELAY_US  # before the batch
        for number, node in nodes_of(run).items():
            end_us = mark_us - (number + 1) * reach_us // nodes
            for stream in range(3):
                infos = node.at_rest.get(stream, ())
                newest = [info.ts_max_us for info in infos]
                assert newest == sorted(newest), f"node {number}: oldest first"
                assert all(one > end_us for one in newest), f"node {number}: all of it is past the end, and stays"
                straddle += sum(info.ts_min_us <= end_us < info.ts_max_us for info in infos)
            sent = [info for infos in node.sent.values() for info in infos]
            assert all(info.ts_max_us <= end_us for info in sent), f"node {number}: some of it is not past the end"
    assert straddle > 30
