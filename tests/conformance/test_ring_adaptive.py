"""A ring whose nodes come and go while it runs, against the nested loop.

The changes are scripted here, but for those at the end: what happens in which batch is drawn at random, or written
down, and done by the code that decisions use.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.engine.loop import Loop
from streamjoin.engine.operator import Operator
from streamjoin.engine.slot import States
from streamjoin.engine.state import UnitState
from streamjoin.errors import StateError
from streamjoin.operators import registry
from streamjoin.operators.ring import step
from streamjoin.operators.ring.planning import AGGRESSIVE, PASSIVE, RingPlan
from streamjoin.operators.ring.slices import Slices
from streamjoin.operators.ring.state import NodeState
from streamjoin.query import plan_query
from streamjoin.spec.changes import keeps_state
from streamjoin.state.store import StateStore

from .ring_nodes import Script, Scripted, random_script
from .test_ring import (
    CHAIN,
    MIXED,
    NAMES,
    STREAMS,
    Rows,
    Run,
    any_join,
    cut,
    nested_loop,
    record_batch,
    rows_of,
    text_of,
)

GROWS_AND_SHRINKS: Script = {3: (2, AGGRESSIVE), 9: (-1, PASSIVE)}
"""Of 2 nodes at first: 4 from batch 4 on, 3 from batch 10 on."""


class Adaptive(Run):
    """A job of a ring that follows a script, batch by batch."""

    def __init__(
        self, text: str, folder: Path, script: Script, slots: int = 2, kind: type[Scripted] = Scripted, **knobs: Any
    ) -> None:
        self.script, self.kind, self.levels = script, kind, knobs.pop("levels", False)
        super().__init__(text, folder, slots, **knobs)

    def _loop(self, slots: int) -> Loop:
        at_first = self.kind(
            self.knobs["nodes"], orders=self.knobs.get("orders", {}), script=self.script, levels=self.levels
        )
        plan = at_first.planned(self.tree)
        stores: dict[int, States] = {}
        return Loop(
            plan, tuple(at_first.at(stage.plan) for stage in plan.stages),
            lambda stage: stores.setdefault(stage, StateStore(self.folder, stage, sync=False)), slots,
        )  # fmt: skip

    def begins_anew(self, slots: int) -> None:
        """Another process goes on, which knows what is on disk."""
        before = self.loop
        self.loop = self._loop(slots)
        self.loop.version, self.loop.positions = before.version, before.positions

    def plan(self) -> RingPlan:
        """The nodes of the next batch."""
        return RingPlan.from_json(StateStore(self.folder, 0, sync=False).load(0, self.loop.version).values["units"])

    def storing(self) -> int:
        return len(self.plan().storing)

    def states(self) -> dict[int, NodeState]:
        """What each node had when the last batch was over."""
        store = StateStore(self.folder, 0, sync=False)
        there = [report.unit for report in self.loop.reports if report.label.startswith("node ")]
        return {unit: NodeState.of(store.load(unit, self.loop.version)) for unit in set(there)}

    def rows(self) -> dict[int, int]:
        """How many of all streams."""
        return {
            number: sum(info.rows for stream in range(9) for info in node.answered(stream, with_new=True))
            for number, node in self.states().items()
        }


def dies_once(patch: pytest.MonkeyPatch) -> None:
    """One task of the next batch dies: the first round of some node that is not the first, after it has found rows."""
    results, left = step.FirstRound.results, [1]

    def dying(self: step.FirstRound) -> Iterator[pa.RecordBatch]:
        yield from results(self)
        if self._work.unit.number and left:
            left.pop()
            raise KeyboardInterrupt

    patch.setattr(step.FirstRound, "results", dying)


def test_three_streams_of_unequal_reach_on_2_then_4_then_3_nodes_killed_at_each_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reaches = (40, 15, 60)
    streams = [rows_of(place, 70) for place in range(3)]
    wanted = nested_loop(streams, MIXED, reaches)
    run = Adaptive(text_of(3, MIXED, reaches), tmp_path, GROWS_AND_SHRINKS, nodes=2)
    nodes: list[int] = []
    for number, pieces in enumerate(cut(streams, 16)):
        if number in (3, 4, 5, 9, 10, 11):
            with monkeypatch.context() as patch:
                dies_once(patch)
                with pytest.raises(KeyboardInterrupt):
                    run.batch(pieces)
            run.begins_anew(1 + number % 3)
        run.batch(pieces)
        nodes.append(run.storing())
    assert run.found == wanted and sum(wanted.values()) > 40
    assert nodes == [2] * 3 + [4] * 6 + [3] * 7
    (grew, shrank, left) = run.plan().decisions
    assert (grew.added, grew.way, shrank.drained, shrank.way) == ((2, 3), AGGRESSIVE, (3,), PASSIVE)
    assert left.left == (3,) and set(run.rows()) == {0, 1, 2}


def check_random(seed: int, folder: Path, kind: type[Scripted] = Scripted) -> Adaptive:
    """One random query over random rows, whose nodes come and go at random, with batches repeated."""
    chosen = random.Random(seed)
    count, conditions, reaches, streams = any_join(seed, chosen)
    wanted = nested_loop(streams, conditions, reaches)
    orders = {name: chosen.sample([one for one in NAMES[:count] if one != name], count - 1) for name in NAMES[:count]}
    batches, nodes = 12, chosen.randrange(1, 4)
    run = Adaptive(
        text_of(count, conditions, reaches), folder, random_script(chosen, batches), chosen.randrange(1, 4), kind,
        nodes=nodes, orders=orders, levels=chosen.random() < 0.5,
    )  # fmt: skip
    for pieces in cut(streams, batches):
        run.maybe_twice(pieces, chosen)
    assert run.found == wanted, seed
    return run


@pytest.mark.parametrize("first", [0, 4])
def test_random_queries_are_joined_exactly_while_nodes_come_and_go(first: int, tmp_path: Path) -> None:
    made = [check_random(seed, tmp_path / str(seed)) for seed in range(first, first + 4)]
    assert sum(run.found.total() for run in made) > 20
    every = [one for run in made for one in run.plan().decisions]
    assert all(any(getattr(one, what) for one in every) for what in ("added", "drained", "left"))


@pytest.mark.soak
def test_many_random_queries_are_joined_exactly_while_nodes_come_and_go(tmp_path: Path) -> None:
    assert sum(check_random(seed, tmp_path / str(seed)).found.total() for seed in range(100, 400)) > 1_000


def caught(folder: Path, **how: Any) -> bool:
    """Whether random queries notice a ring that does something otherwise."""
    wrong = type("Wrong", (Scripted,), how)
    for seed in range(8):
        try:
            check_random(seed, folder / str(seed), wrong)
        except (AssertionError, StateError):
            return True
    return False


def test_a_ring_that_does_not_ask_nodes_that_drain_is_caught(tmp_path: Path) -> None:
    assert caught(tmp_path, keeping=lambda self, stream: self.nodes_now.storing)


def test_a_batch_that_is_repeated_by_a_newer_plan_is_caught(tmp_path: Path) -> None:
    def newer(self: Scripted, look: Callable[[int], UnitState]) -> Operator:
        store, version = look.func.__self__, look.keywords["version"]  # type: ignore[attr-defined]
        there = version + 1 in store.versions(0)
        return Scripted.in_batch(self, partial(store.load, version=version + 1) if there else look)

    assert caught(tmp_path, in_batch=newer)


REACH, STEP, A_BATCH = 400, 10, 10
"""In us, of each stream; how much of it a batch brings, and how many rows of each stream."""


def even_rows(batches: int, rate: Callable[[int], int] = lambda batch: A_BATCH) -> Rows:
    """Rows of one stream, evenly spread over each batch's time; each has partners at its own time alone."""
    times = [batch * STEP + at * STEP // rate(batch) for batch in range(batches) for at in range(rate(batch))]
    return [{"ts": time, "id": number, "k": number, "x": 0} for number, time in enumerate(times)]


def steady(
    folder: Path, script: Script, batches: int, rate: Callable[[int], int] = lambda batch: A_BATCH, **knobs: Any
) -> tuple[list[int], list[dict[int, int]], Adaptive]:
    """By batch, how many rows were sent on and how many each node has, of three streams that are alike."""
    run = Adaptive(text_of(3, CHAIN, (REACH,) * 3), folder, script, **knobs)
    rows, begin = even_rows(batches, rate), 0
    moved, has = [], []
    for batch in range(batches):
        end = begin + rate(batch)
        run.batch([[record_batch(rows[begin:end])]] * 3)
        begin = end
        moved.append(sum(report.forwarded.get("tuples", 0) for report in run.loop.reports))
        has.append(run.rows())
    assert run.found.total() == len(rows)
    return moved, has, run


WINDOW = REACH // STEP
"""In batches."""


def is_level(has: dict[int, int], cut_for: int) -> bool:
    """Whether no node is further from the mean than a segment of each stream, and what a batch has brought.

    Args:
        cut_for: of so many nodes segments are half a slice.
    """
    share = sum(has.values()) / len(has)
    return all(abs(rows - share) <= 3 * A_BATCH * (WINDOW / (2 * cut_for) + 1) for rows in has.values())


def test_a_passive_change_moves_no_more_than_ages_do_and_is_level_a_window_later(tmp_path: Path) -> None:
    at, batches = 60, 60 + 2 * WINDOW
    without, _, _ = steady(tmp_path / "without", {}, batches, nodes=3)
    always, _, _ = steady(tmp_path / "always", {}, batches, nodes=4)
    moved, has, run = steady(tmp_path / "passive", {at: (1, PASSIVE)}, batches, nodes=3)
    # New rows cross two ends a little younger, by W/12 and W/6; segments are half a slice, and go as whole ones.
    earlier, segments = 3 * A_BATCH * WINDOW // 4, 3 * A_BATCH * WINDOW // 8
    for upto in range(at, at + WINDOW):
        # What the fourth node has been sent is all that there is beside the usual.
        usual = sum(without[at : upto + 1]) + has[upto].get(3, 0)
        assert sum(moved[at : upto + 1]) <= usual + earlier + 2 * segments
    assert max(moved[at:]) <= max(always)
    assert has[at + 5].get(3, 0) == 0  # it fills by age
    last = has[at + WINDOW + WINDOW // 4]
    assert set(last) == {0, 1, 2, 3} and max(last.values()) < 2 * min(last.values())
    assert run.plan().nodes[-1].number == 3  # the tail


def test_an_aggressive_change_is_level_at_once_and_new_nodes_stand_where_what_shifts_fills_them(
    tmp_path: Path,
) -> None:
    at = 60
    moved, has, run = steady(tmp_path, {at: (2, AGGRESSIVE)}, at + 6, nodes=3)
    assert run.plan().storing == (0, 1, 3, 2, 4)
    assert moved[at + 1] > 3 * max(moved[WINDOW:at])
    assert is_level(has[at + 3], 3) and len(has[at + 3]) == 5
    assert sum(has[at].values()) - sum(has[at + 3].values()) < 3 * A_BATCH * 3


def test_nodes_that_go_aggressively_hand_over_all_and_leave(tmp_path: Path) -> None:
    at = 60
    _, has, run = steady(tmp_path, {at: (-2, AGGRESSIVE)}, at + 6, nodes=5)
    assert run.plan().storing == (0, 1, 3)
    # In the first batch without a slice they send all on, in the next one they have nothing, then they leave.
    assert set(has[at + 1]) == set(has[at + 2]) == {0, 1, 2, 3, 4} and has[at + 2][2] == has[at + 2][4] == 0
    assert set(has[-1]) == {0, 1, 3} and is_level(has[-1], 3)


def test_a_node_that_goes_passively_keeps_what_it_has_until_that_is_dead(tmp_path: Path) -> None:
    at = 60
    moved, has, _ = steady(tmp_path, {at: (-1, PASSIVE)}, at + 30, nodes=4)
    drains = [one.get(3) for one in has[at:]]
    assert drains[0] and drains == sorted(drains, key=lambda rows: -1 if rows is None else rows, reverse=True)
    assert drains[-1] is None
    assert max(moved[at:]) <= max(moved[WINDOW:at])


def test_slices_follow_the_rates_and_rows_move_to_the_next_node_alone(tmp_path: Path) -> None:
    """Three times as many rows from batch 50 on."""

    def rate(batch: int) -> int:
        return A_BATCH if batch < 50 else 3 * A_BATCH

    def fullest(has: dict[int, int]) -> float:
        """In means of all."""
        return max(has.values()) * len(has) / sum(has.values())

    _, equal, _ = steady(tmp_path / "equal", {}, 70, rate, nodes=4)
    _, level, _ = steady(tmp_path / "level", {}, 70, rate, nodes=4, levels=True)
    assert max(map(fullest, level[WINDOW:])) < 1.9
    assert mean(map(fullest, level[55:])) < 1.6 and mean(map(fullest, equal[55:])) > 2.1
    store = StateStore(tmp_path / "level", 0, sync=False)
    for version in range(61, 71):
        for node in range(4):
            assert {to for _, to in NodeState.of(store.load(node, version)).sent} <= {node + 1}
    # Far fewer rows: what is older than its window is dropped, whichever node has it.
    _, few, _ = steady(
        tmp_path / "few", {}, 120, lambda batch: 3 * A_BATCH if batch < 50 else 2, nodes=4, levels=True
    )  # fmt: skip
    assert sum(few[-1].values()) <= 3 * 2 * (WINDOW + WINDOW // 4)


def slices(**how: Any) -> Slices:
    return Slices((0, 1, 2, 5), ((25, 50, 75),), **how)


def test_rows_that_were_there_stay_until_they_are_too_old_by_both_ends() -> None:
    plain, passive = slices(), slices(earlier_us=((34, 67),), changed_us=(1_000,))
    ages = range(0, 100, 5)
    for place, node in enumerate((0, 1, 2, 5)):
        by_age = [plain.goes_to(0, 1_000 - age, 1_000, node) for age in ages]
        assert by_age == [(0, 1, 2, 5)[max(age // 25, place)] for age in ages]
    # Before the change, and after it.
    assert [passive.goes_to(0, 1_000 - age, 1_000, 0) for age in (30, 34, 66, 67, 99)] == [0, 1, 1, 2, 2]
    assert [passive.goes_to(0, 1_001, 1_001 + age, 0) for age in (24, 30, 99)] == [0, 1, 5]
    # One that drains keeps what it has; a recut takes it from there, and moves rows back.
    assert plain.goes_to(0, 990, 1_000, 7) == 7 and slices(recuts=True).goes_to(0, 990, 1_000, 7) == 0
    assert plain.goes_to(0, 990, 1_000, 2) == 2 and slices(recuts=True).goes_to(0, 990, 1_000, 2) == 0


@pytest.mark.parametrize("broken", [None, "nothing that drains is handed over", "a recut forgets what is on its way"])
def test_a_broken_recut_is_caught(broken: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_to = Slices.goes_to
    if broken == "nothing that drains is handed over":
        monkeypatch.setattr(
            Slices, "goes_to",
            lambda self, stream, ts, mark, node: goes_to(self, stream, ts, mark, node) if node in self.nodes else node,
        )  # fmt: skip
    if broken == "a recut forgets what is on its way":
        monkeypatch.setattr(step.FirstRound, "_settled", _without_those_that_drain)
    batches = 40
    try:
        _, has, _ = steady(tmp_path, {30: (-2, AGGRESSIVE)}, batches, nodes=3)
    except (AssertionError, StateError):
        assert broken is not None
        return
    # No batch has let anything die yet.
    assert (has[-1] == {0: 3 * A_BATCH * batches}) == (broken is None)


def _without_those_that_drain(self: step.FirstRound, stream: int) -> Any:
    look = self._look
    self._look = lambda node: look(node) if node == self._node or node in self.slices.nodes else NodeState()  # type: ignore[assignment]
    try:
        return _SETTLED(self, stream)
    finally:
        self._look = look


_SETTLED = step.FirstRound._settled


def decided_by(folder: Path, **knobs: Any) -> Run:
    """Many pairs for a while, then few, a second for each batch."""
    run = Run(text_of(3, CHAIN, (30, 30, 30)), folder, **{"nodes": 2, "adaptive": True, "check_every": "1s", **knobs})
    number = 0
    for batch in range(40):
        key = 1 if batch < 12 else None
        rows = [{"ts": 10 * batch + at, "id": number + at, "k": number + at, "x": 0} for at in range(8)]
        number += 8
        run.batch([[record_batch([{**row, "k": key or row["k"]} for row in rows])]] * 3)
    return run


def test_a_ring_grows_when_it_is_too_busy_and_shrinks_when_fewer_nodes_are_better(tmp_path: Path) -> None:
    """What a pair costs is such that the first batches keep two nodes busy, in the second round for the most part."""
    run = decided_by(tmp_path / "adaptive", pair_us=200.0, hop_us=1e5, max_nodes=6, smoothing=1.0)
    plan = RingPlan.from_json(StateStore(tmp_path / "adaptive", 0, sync=False).load(0, 40).values["units"])
    grew, shrank, *left = plan.decisions
    assert (grew.way, grew.units, shrank.way) == (AGGRESSIVE, 2, PASSIVE)
    assert sorted(shrank.drained) == sorted(number for one in left for number in one.left)
    assert grew.load > 0.8 and len(plan.storing) == 1 and shrank.batch > 12
    (told,) = [report.adapting for report in run.loop.reports if report.adapting]
    assert told["units"] == {"ring": 1} and told["best"] == 1 and told["round"]["ring"]["load"] < 0.8
    plain = Run(text_of(3, CHAIN, (30, 30, 30)), tmp_path / "plain", nodes=2)
    assert decided_by(tmp_path / "same", min_nodes=2, max_nodes=2).found == run.found
    assert plain.loop.operators[0].capabilities.resizes and not run.loop.operators[0].capabilities.resizes


def test_what_later_rounds_compare_is_counted(tmp_path: Path) -> None:
    run = Run(text_of(3, CHAIN, (30, 30, 30)), tmp_path, nodes=2, adaptive=True, check_every="1s", smoothing=1.0)
    counts = []
    for batch in range(4):
        rows = [{"ts": 10 * batch + at, "id": 10 * batch + at, "k": 1, "x": 0} for at in range(5)]
        run.batch([[record_batch(rows)]] * 3)
        by_round = [sum(one.comparisons for one in run.loop.reports if len(one.late) == sides) for sides in (3, 1)]
        counts.append(by_round)
    plan = RingPlan.from_json(StateStore(tmp_path, 0, sync=False).load(0, 4).values["units"])
    # Batch 3 decided, a second after batch 2, on what batch 2 counted.
    assert plan.rates is not None and plan.rates.rows == (5.0,) * 3
    assert [sum(one[number] for one in plan.rates.compared) for number in range(2)] == counts[2]
    assert counts[2][1] > counts[2][0] > 0
    assert sum(one[1] for one in plan.rates.found) > 0


def test_limits_may_change_and_what_is_stored_by_may_not() -> None:
    def lasting(**knobs: object) -> str:
        given = {"adaptive": True, "nodes": 2, **knobs}
        plan = registry.planned("ring", given, plan_query(text_of(3, CHAIN, (30, 30, 30)), STREAMS), 2)
        return registry.build_all("ring", given, plan, 2)[0].lasting

    assert lasting() == lasting(max_nodes=4, check_every="1s", pair_us=3.5, smoothing=0.5)
    assert len({lasting(), lasting(adaptive=False), lasting(nodes=3), lasting(orders={"a": ["c", "b"]})}) == 4
    assert keeps_state("operator.pair_us") and not keeps_state("operator.adaptive")
