"""Time passes for every query of a job, also in a batch that only brings rows of other queries' streams."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.engine.loop import Brought, Loop
from streamjoin.engine.slot import SlotStep
from streamjoin.flow.punctuation import HEARTBEAT, Punctuation
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Bundle
from streamjoin.plan.window import R
from streamjoin.query import plan_query
from streamjoin.spark import source, tasks
from streamjoin.spark.offsetlog import router_of
from streamjoin.spec.job import Job

from .alone import run_alone, task
from .test_bundles import COLUMNS, Found, bound, loop_of, rows_in

SECOND, HOUR = 1_000_000, 3_600_000_000
BEGUN_US = 1_700_000_000 * SECOND
IDLE_S, DELAY_US = 10, 5
LEFT = "SELECT ONLINE a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k WITHIN 20 MICROSECONDS"
OTHER = "SELECT ONLINE a.id AS a, c.id AS c FROM a, c WHERE a.k = c.k WITHIN 20 MICROSECONDS"
THREE = (
    "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k "
    "WITHIN 20 MICROSECONDS"
)

Times = Mapping[str, Sequence[int]]
"""By stream, the event times of its rows in a batch; ids and keys are these."""
Steps = Sequence[tuple[int, bool, Times]]
"""Of each batch when it begins, in us, whether it is the first of a run, and what it brings."""

BUSY: Steps = [
    (0, True, {"a": [100, 130, 170], "b": [100, 120], "c": [100]}),
    *((number * SECOND, False, {"c": [170 + number]}) for number in range(1, 14)),
]
"""After the first batch only c goes on."""
STOPPED: Steps = [
    (0, True, {"a": [100, 200], "b": [100, 200], "c": [100]}),
    (HOUR, True, {"c": [300]}),
    (HOUR + SECOND, False, {"a": [210, 300]}),
    (HOUR + 2 * SECOND, False, {"a": [310]}),
    (HOUR + 3 * SECOND, False, {"b": [210, 300]}),
]
"""The first batch of a run brings rows of c alone, and the backlog of b comes last."""
BEGINNING: Steps = [
    (BEGUN_US, True, {"c": [300]}),
    (BEGUN_US + SECOND, False, {"a": [210, 300]}),
    (BEGUN_US + 2 * SECOND, False, {"a": [310]}),
    (BEGUN_US + 3 * SECOND, False, {"b": [210, 300]}),
]
"""The same of the first run: nothing has been heard of b so far."""


def rows_of(times: Sequence[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"ts": ts, "id": ts, "k": ts, "x": 0} for ts in times], schema=COLUMNS)


def planned(query: str) -> Any:
    idle_us = {"b": IDLE_S * SECOND}
    return plan_query(query, {name: StreamSchema(name, COLUMNS, "ts", "us", DELAY_US, idle_us.get(name))
                              for name in "abc"})  # fmt: skip


def by_batch(loop: Loop, steps: Steps, *, beats: bool = False, twice: bool = False) -> list[Found]:
    """What the first query gives; with `beats` every batch without rows is a heartbeat, as in a job of its own."""
    found = []
    for clock_us, begins, times in steps:
        pieces = [[rows_of(times[name])] if name in times else [] for name in loop.plan.names]
        beat = Punctuation(R, HEARTBEAT, HEARTBEAT, 0, None, clock_us)
        passing = (beat,) if beats and not any(pieces) else ()
        brought = Brought(pieces, clock_us, begins=begins, passing=passing)
        if twice:
            loop.slots = 3
            list(loop.batch(brought))
            loop.slots = 2
        given = Found()
        for query, part in loop.batch(brought):
            if query == 0:
                given.update(zip(*(column.to_pylist() for column in part.columns), strict=True))
        found.append(given)
        loop.commit(brought)
    return found


@pytest.mark.parametrize("operator", ["biclique by hash", "splitjoin"])
@pytest.mark.parametrize("steps", [BUSY, STOPPED, BEGINNING], ids=["busy", "stopped", "beginning"])
@pytest.mark.parametrize("twice", [False, True])
def test_a_query_gives_what_it_gives_alone_while_others_streams_go_on(
    operator: str, steps: Steps, twice: bool, tmp_path: Path
) -> None:
    """Rows that wait for a silent stream leave once it is idle; a stop and the time before a start are no silence."""
    bundle = Bundle(((("left",), planned(LEFT)), (("other",), planned(OTHER))))
    together = by_batch(loop_of(bundle, operator, tmp_path / "together"), steps, twice=twice)
    alone = by_batch(loop_of(planned(LEFT), operator, tmp_path / "alone"), steps, beats=True)
    assert together == alone
    assert any(alone[1:])
    if steps is BUSY:
        assert alone[IDLE_S + 2] == {(130, None): 1}
    else:
        assert all(b is not None for found in alone for _, b in found)


def test_stages_of_one_query_pass_the_time_of_its_later_streams(tmp_path: Path) -> None:
    """A partition of `a` that has dried up holds `a` back no longer, although only `c` goes on, at the next stage."""
    streams = {name: StreamSchema(name, COLUMNS, "ts", "us", DELAY_US) for name in "abc"}
    loop = loop_of(plan_query(THREE, streams), "biclique by hash", tmp_path)
    pieces = [[rows_of([100]), rows_of([200])], [rows_of([100])], [rows_of([100])]]
    nothing: list[Any] = [[], [], [rows_of([170])]]
    for clock_us, mine in ((0, pieces), (61 * SECOND, nothing)):
        routers = [[f"t/{number}" for number in range(len(rows))] for rows in mine]
        brought = Brought(mine, BEGUN_US + clock_us, routers, begins=not clock_us)
        list(loop.batch(brought))
        loop.commit(brought)
    assert {report.marks_us[0] for report in loop.reports[: len(loop.operators[0].units)]} == {200 - DELAY_US}


# Through a join file, with the real source, tasks, sinks and checkpoint.


def file_of(folder: Path, stopped: bool = False, idle_s: int = IDLE_S) -> Path:
    """A job of both queries over files."""
    for name in "abc":
        (folder / name).mkdir(exist_ok=True)
    text = "streams:\n" + "".join(
        f"  {name}: {{source: parquet, path: {name}, time: ts, time_unit: us, delay: {DELAY_US}us, "
        f"schema: {{ts: int64, id: int64, k: int64, x: int64}}{f', idle: {idle_s}s' if name == 'b' else ''}}}\n"
        for name in "abc"
    )
    ends = ", stopped: true" if stopped else ""
    text += f"queries:\n  left: {{query: {json.dumps(LEFT)}, results: {{parquet: left}}}}\n"
    text += f"  other: {{query: {json.dumps(OTHER)}, results: {{parquet: other}}{ends}}}\n"
    path = folder / "job.yaml"
    path.write_text(f"{text}run: {{checkpoint: checkpoint, slots: 2}}\n")
    return path


def bring(folder: Path, batch: int, times: Times) -> None:
    """Put a file of each stream into place that has rows."""
    for name in "abc":
        if name in times:
            hidden = folder / f"{name}-{batch}"
            pq.write_table(pa.Table.from_batches([rows_of(times[name])]), hidden)
            hidden.rename(folder / name / f"{batch:03d}.parquet")


def run_files(
    folder: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch, stopped: Sequence[int] = ()
) -> tuple[list[Found], list[int]]:
    """What the first query gives, and the clock of its units, batch by batch.

    Args:
        stopped: the batches before which the other query ends.
    """
    found: dict[int, Found] = {}
    clocks: list[int] = []
    now = [0]
    monkeypatch.setattr(source, "_clocks", lambda: (now[0], now[0]))
    real = tasks.slot_report

    def told(job: Job, stage: int, step: SlotStep, *figures: Any) -> Any:
        if stage == step.slot == 0:
            clocks.append(step.now_us)
        return real(job, stage, step, *figures)

    monkeypatch.setattr(tasks, "slot_report", told)
    begins = [number for number, step in enumerate(steps) if step[1]]
    for first, end in zip(begins, [*begins[1:], len(steps)], strict=True):

        def before(batch: int, end: int = end) -> bool:
            found[batch] = rows_in(folder / "left")
            if batch == end:
                return False
            now[0] = BEGUN_US + steps[batch][0] % BEGUN_US
            bring(folder, batch, steps[batch][2])
            return True

        run_alone(bound(file_of(folder, stopped=first in stopped)), before)
    return [found[batch + 1] - found[batch] for batch in range(len(steps))], clocks


@pytest.mark.parametrize("steps", [BUSY, STOPPED, BEGINNING], ids=["busy", "stopped", "beginning"])
def test_tasks_pass_the_time_to_all_stages(steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, clocks = run_files(tmp_path, steps, monkeypatch)
    assert given == by_batch(loop_of(planned(LEFT), "biclique by hash", tmp_path / "alone"), steps, beats=True)
    assert clocks == [BEGUN_US + step[0] % BEGUN_US for step in steps]


def test_time_passes_with_a_stream_that_no_query_reads_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [(clock_us, number < 2, times) for number, (clock_us, _, times) in enumerate(BUSY)]
    given, clocks = run_files(tmp_path, steps, monkeypatch, stopped=[1])
    assert given == by_batch(loop_of(planned(LEFT), "biclique by hash", tmp_path / "alone"), steps, beats=True)
    assert clocks == [BEGUN_US + step[0] for step in steps] and any(given[1:])


def test_a_batch_of_topics_begins_when_spark_says(tmp_path: Path) -> None:
    """Only partitions of `c` have moved, and not a row of them was seen; files may tell of a later time."""
    bundle = Bundle(((("left",), planned(LEFT)), (("other",), planned(OTHER))))
    job = Job(bundle, loop_of(bundle, "biclique by hash", tmp_path).operators, 2, tmp_path, topics={2: "c"})
    log = job.offsets / "offsets"
    log.mkdir(parents=True)
    for batch, own_us, offset in ((0, 4_000, 7), (1, 10_500, 7), (2, 10_500, 8)):
        sources = [{"clock_us": own_us, "streams": {}}, {"c": {"0": offset}}]
        lines = ["v1", json.dumps({"batchTimestampMs": 5 * (batch + 1)}), *map(json.dumps, sources)]
        (log / str(batch)).write_text("\n".join(lines))
    for batch, clock_us in enumerate((5_000, 10_500, 15_000)):
        with task(batch, 0):
            steps = [tasks._step(job, stage.number) for stage in bundle.stages]
        assert [step.now_us for step in steps] == [clock_us] * 2
    assert [one.router for one in steps[1].punctuations] == [router_of("c", 0)] and not steps[0].punctuations
