"""Streams that fall silent and return, of two, three and four of a plan, beside a plain model of their watermarks.

The model is what the documents say, over lists: it shares nothing with the engine.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.engine import clocks, entering
from streamjoin.engine.loop import Brought, Loop
from streamjoin.flow.punctuation import HEARTBEAT, Punctuation, lowest_mark_us
from streamjoin.operators import registry
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Plan
from streamjoin.plan.window import R
from streamjoin.query import plan_query

from .loops import AT_ONCE, OPERATORS, loop_of
from .test_three_streams import COLUMNS, equal, nested_loop

IDLE_US, DELAY_US, WITHIN_US = 5_000_000, 7, 20
SELECT = "SELECT ONLINE " + ", ".join(f"{name}.id AS {name}" for name in "ab")
CHAIN = "FROM a JOIN b ON a.k = b.k"
QUERIES = {
    2: f"{SELECT} {CHAIN}",
    3: f"{SELECT}, c.id AS c {CHAIN} JOIN c ON b.k = c.k",
    4: f"{SELECT}, c.id AS c, d.id AS d {CHAIN} JOIN c ON b.k = c.k JOIN d ON d.k = a.k",
}


def planned(streams: int, idle_us: Sequence[int | None]) -> Plan:
    names = "abcd"[:streams]
    schemas = {
        name: StreamSchema(name, COLUMNS, "ts", delay_us=DELAY_US, idle_us=limit)
        for name, limit in zip(names, idle_us, strict=True)
    }
    return plan_query(f"{QUERIES[streams]} WITHIN {WITHIN_US} MICROSECONDS", schemas)


def silent_last(plan: Plan, folder: Path, batches: int = 30) -> tuple[list[int], int]:
    """Results by batch, and rows kept in the end, where the last stream brings rows in the first batch only."""
    loop, found = loop_of(plan, "matrix" if registry.choose(plan) != "asof" else "asof", folder), []
    streams = len(plan.streams)
    for number in range(batches):
        rows: list[Any] = [[{"ts": 10 * number + at, "id": at, "k": at % 3, "x": 0} for at in range(10)]]
        step = Step(1_000_000 * number, rows * (streams - 1) + [None if number else rows[0][:1]], number == 0)
        found.append(sum(part.num_rows for _, part in loop.batch(brought(step))))
        loop.commit(brought(step))
    return found, sum(sum(report.stored_rows) for report in loop.reports)


@dataclass
class Model:
    """How far each stream counts as having come, by the words of the documents."""

    idle_us: Sequence[int | None]
    latest: dict[int, int] = field(default_factory=dict)
    marks: dict[int, int] = field(default_factory=dict)
    silent_us: dict[int, int] = field(default_factory=dict)
    clock_us: int | None = None

    def batch(self, clock_us: int, times: Sequence[Sequence[int] | None], *, begins: bool) -> None:
        """`times` are a stream's in the batch; None where it had nothing unread."""
        passed = 0 if begins or self.clock_us is None else clock_us - self.clock_us
        self.clock_us = clock_us
        for stream, brought in enumerate(times):
            self.silent_us[stream] = self.silent_us.get(stream, 0) + passed if brought is None else 0
            if brought:
                self.latest[stream] = max([*brought, self.latest.get(stream, brought[0])])
                self._raise(stream, self.latest[stream] - DELAY_US)
        idle = [
            stream for stream, limit in enumerate(self.idle_us) if limit is not None and self.silent_us[stream] > limit
        ]
        active = [stream for stream in range(len(times)) if stream not in idle]
        if active and all(stream in self.marks for stream in active):
            reached = min(self.marks[stream] for stream in active)
        elif not active and self.marks:
            reached = max(self.marks.values())
        else:
            return
        for stream in idle:
            self._raise(stream, reached)

    def _raise(self, stream: int, mark: int) -> None:
        self.marks[stream] = max(mark, self.marks.get(stream, mark))


@dataclass
class Step:
    """One batch: when, what each stream brings, and whether it begins a run."""

    clock_us: int
    rows: list[list[dict[str, int]] | None]
    begins: bool


def history(seed: int, streams: int, batches: int = 14) -> list[Step]:
    """Streams that fall silent for some batches, and bring what is new or what is old as they return."""
    chosen = random.Random(seed)
    clock_us, silent, ids = 0, [0] * streams, [0] * streams
    steps = []
    for number in range(batches):
        begins = number == 0 or chosen.random() < 0.1
        clock_us += 60_000_000 if begins and number else chosen.choice([1_000_000, 2_000_000, 6_000_000])
        rows: list[list[dict[str, int]] | None] = []
        for stream in range(streams):
            if silent[stream] == 0 and chosen.random() < 0.25:
                silent[stream] = chosen.randrange(1, 6)
            silent[stream] = max(silent[stream] - 1, 0)
            if silent[stream]:
                rows.append(None)
                continue
            back = chosen.choice([0, 0, 0, 30]) if number else 0
            mine = []
            for _ in range(chosen.randrange(1, 8)):
                time = 12 * number + chosen.randrange(12) - chosen.randrange(DELAY_US) - back
                mine.append({"ts": time, "id": ids[stream], "k": chosen.randrange(3), "x": 0})
                ids[stream] += 1
            rows.append(mine)
        steps.append(Step(clock_us, rows, begins))
    return steps


def brought(step: Step) -> Brought:
    pieces = [[] if mine is None else [pa.RecordBatch.from_pylist(mine, schema=COLUMNS)] for mine in step.rows]
    beat = Punctuation(R, HEARTBEAT, HEARTBEAT, 0, None, step.clock_us)
    return Brought(pieces, step.clock_us, begins=step.begins, passing=(beat,))


def late_of(loop: Loop) -> Counter[int]:
    """How many late tuples the last batch had, by stream."""
    found: Counter[int] = Counter()
    reports = iter(loop.reports)
    for stage, operator in zip(loop.plan.stages, loop.operators, strict=True):
        for report in [next(reports) for _ in operator.units]:
            found.update({read: report.late[side] for side, read in enumerate(stage.inputs) if isinstance(read, int)})
    return +found


def play(streams: int, operator: str, seed: int, folder: Path, *, repeated: bool = False) -> int:
    """Compare a history with the model, batch by batch; how many watermarks were taken over."""
    chosen = random.Random(seed)
    idle_us = [chosen.choice([IDLE_US, IDLE_US, None]) for _ in range(streams)]
    steps = history(seed, streams)
    loop, model, plain = loop_of(planned(streams, idle_us), operator, folder), Model(idle_us), Model([None] * streams)
    late_ids: list[set[int]] = [set() for _ in range(streams)]
    got: Counter[Any] = Counter()
    taken_over = 0
    drains = sum(one.drain_batches for one in loop.operators)
    for step in steps:
        wanted_late = {
            stream: {row["id"] for row in mine or () if stream in model.marks and row["ts"] < model.marks[stream]}
            for stream, mine in enumerate(step.rows)
        }
        for stream, ids in wanted_late.items():
            late_ids[stream] |= ids
        times = [None if mine is None else [row["ts"] for row in mine] for mine in step.rows]
        for one in (model, plain):
            one.batch(step.clock_us, times, begins=step.begins)
        taken_over += sum(model.marks[stream] > plain.marks.get(stream, -(2**62)) for stream in model.marks)
        if repeated:
            loop.slots = 3
            list(loop.batch(brought(step)))
            loop.slots = 2
        for _, part in loop.batch(brought(step)):
            got.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        assert late_of(loop) == Counter({stream: len(ids) for stream, ids in wanted_late.items() if ids})
        last = loop.reports[-len(loop.operators[-1].units) :]
        stated = lowest_mark_us(report.output_mark_us for report in last)
        wanted = min(model.marks.values()) if len(model.marks) == streams else None
        if operator == "handshake":  # pairs that have not met yet hold it back
            assert stated is None or (wanted is not None and stated <= wanted)
        else:
            assert stated == wanted
        loop.commit(brought(step))
    for number in range(drains):
        nothing = Brought([[] for _ in range(streams)], steps[-1].clock_us + number, drains=True)
        for _, part in loop.batch(nothing):
            got.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        loop.commit(nothing)
    every = [
        pa.RecordBatch.from_pylist([row for step in steps for row in step.rows[stream] or ()], COLUMNS)
        for stream in range(streams)
    ]
    pairs = nested_loop(every, lambda *parts: all(equal(parts[0]["k"], part["k"]) for part in parts), WITHIN_US)
    in_time = {row for row in pairs if not any(id in late_ids[at] for at, id in enumerate(row))}
    assert not got - pairs and all(count == 1 for count in got.values())
    assert in_time and in_time <= got.keys()
    return taken_over


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("streams", QUERIES)
def test_watermarks_late_rows_and_results_are_those_of_the_model(operator: str, streams: int, tmp_path: Path) -> None:
    assert sum(play(streams, operator, seed, tmp_path / str(seed)) for seed in range(2)) > 2


@pytest.mark.parametrize("operator", AT_ONCE)
def test_streams_that_are_joined_at_once_are_idle_as_those_of_a_tree(operator: str, tmp_path: Path) -> None:
    assert sum(play(3, operator, seed, tmp_path / str(seed), repeated=seed == 1) for seed in range(2)) > 0


@pytest.mark.parametrize("streams", QUERIES)
def test_a_batch_that_is_repeated_decides_the_same(streams: int, tmp_path: Path) -> None:
    assert sum(play(streams, "matrix", seed, tmp_path / str(seed), repeated=True) for seed in range(10, 13)) > 2


@pytest.mark.parametrize(
    ("module", "name", "broken"),
    [
        (clocks, "with_idle", lambda clocks, idle_us: tuple(clocks)),
        (entering, "hearing", lambda plan, stream: ()),
    ],
)
def test_streams_that_are_never_idle_and_stages_that_do_not_hear_of_each_other_are_caught(
    module: Any, name: str, broken: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, broken)
    with pytest.raises(AssertionError):
        play(3, "matrix", 1, tmp_path)


@pytest.mark.parametrize("operator", ["biclique by hash", "splitjoin", "handshake"])
@pytest.mark.parametrize("streams", [2, 3])
def test_state_behind_a_silent_stream_ends_with_it(operator: str, streams: int, tmp_path: Path) -> None:
    """The last stream brings one row, and never again."""
    kept = {}
    for name, idle_us in (("idle", IDLE_US), ("never", None)):
        loop = loop_of(planned(streams, [None] * (streams - 1) + [idle_us]), operator, tmp_path / name)
        for number in range(30):
            rows: list[Any] = [[{"ts": 10 * number + at, "id": at, "k": at % 3, "x": 0} for at in range(10)]]
            rows = rows * (streams - 1) + [None if number else rows[0][:1]]
            step = Step(1_000_000 * number, rows, number == 0)
            list(loop.batch(brought(step)))
            loop.commit(brought(step))
        kept[name] = sum(sum(report.stored_rows) for report in loop.reports)
    assert kept["never"] >= 300 and kept["idle"] < kept["never"] / 4
    assert streams > 2 or kept["idle"] < (90 if operator == "handshake" else 50)


@pytest.mark.parametrize("joined", ["a LEFT JOIN b ON a.k = b.k", "a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts"])
def test_rows_without_a_partner_leave_behind_a_silent_stream(joined: str, tmp_path: Path) -> None:
    left: dict[str, int] = {}
    for name, idle_us in (("idle", IDLE_US), ("never", None)):
        schemas = {
            stream: StreamSchema(stream, COLUMNS, "ts", delay_us=DELAY_US, idle_us=idle_us if stream == "b" else None)
            for stream in "ab"
        }
        plan = plan_query(f"SELECT ONLINE a.id FROM {joined} WITHIN {WITHIN_US} MICROSECONDS", schemas)
        found, kept = silent_last(plan, tmp_path / name)
        left[name] = sum(found[10:])
        assert (kept < 150) if idle_us else (kept > 250)
    assert left == {"idle": 200, "never": 0}
