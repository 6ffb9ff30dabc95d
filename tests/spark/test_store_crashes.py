"""Results in a store while the driver is killed: each row once, in snapshots that readers never see torn."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace
from itertools import accumulate, cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import InputError
from streamjoin.plan.join import RESULT_TIME
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spec.joinfile import load
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from tests.conformance.check import expected, plan
from tests.conformance.histories import cut as split_rows
from tests.conformance.histories import history

from .command import KILLS_S_MAX
from .jobs import check_same, crash, run_text, run_to_the_end, write_history
from .test_crashes import CASES, SLOTS, committed, run_and_kill, write_join_file

pytestmark = pytest.mark.spark

BATCHES = 14
CASE = CASES["biclique by hash"]
POLICIES = {
    "by threshold": "{batches: 3, threshold_rows: 40}",
    "delayed": "{batches: 1, threshold_rows: 100, immediate: false, delayed: 0.5, delays: 2}",
}
PLACES = {
    "by threshold": ("store.after_blocks:3", "ledger.before_records:3", "ledger.before_head:3"),
    "delayed": ("ledger.after_head:3", "ledger.before_head:4"),
}


def store_results(policy: str) -> str:
    return f"{{store: sqlite, path: results.db, snapshot: {POLICIES[policy]}}}"


def reader_of(file: Path) -> Reader:
    join = load(file)
    return Reader(store_spec(join).open(), store_job(join))


def rows_of(reader: Reader, question: Question) -> Counter[Any]:
    return Counter(tuple(row.values()) for batch in ask(reader, question) for row in batch.to_pylist())


@pytest.mark.timeout(KILLS_S_MAX)
@pytest.mark.parametrize(
    "policy", [pytest.param("by threshold", marks=[pytest.mark.kills, pytest.mark.soak]), "delayed"]
)
def test_killed_jobs_leave_every_row_once_in_the_store(policy: str, session: SparkSession, tmp_path: Path) -> None:
    given = history(31, r=10 * BATCHES, s=9 * BATCHES, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, BATCHES)
    file = write_join_file(tmp_path, CASE, results=store_results(policy))
    slots = cycle(SLOTS)
    before: list[dict[str, Any]] = []
    for place in PLACES[policy]:
        if place.startswith("store."):  # in a task
            status = run_and_kill(file, place, next(slots), np.random.default_rng())
            assert status == -signal.SIGKILL, (tmp_path / "join.log").read_text()[-2000:]
        else:
            crash(session, file, place, next(slots))
        assert committed(tmp_path) < BATCHES, f"{place} came after the last batch"
        reader = reader_of(file)
        reader.refresh()
        now = [found.summary() for found in reader.snapshots()]
        assert now[: len(before)] == before, "a committed snapshot changed"
        assert sum(rows_of(reader, Question()).values()) == sum(found["rows"] for found in now)
        before = now
    run_to_the_end(session, file, next(slots))
    reader = reader_of(file)
    check_same(
        rows_of(reader, Question()),
        Counter(expected(given, CASE.condition, plan(given, CASE.condition, CASE.window), BATCHES)),
    )
    ids = [found.id for found in reader.snapshots()]
    assert ids == sorted(set(ids)) and len(ids) > 3
    kept = {ref.key for found in reader.snapshots() for ref in found.blocks}
    run_to_the_end(session, file, 2)  # nothing new, but what dead drivers left is swept
    assert set(reader.store.list_blocks(reader.job)) == kept


@pytest.mark.parametrize(
    "operator",
    [
        pytest.param(CASE.operator, id="biclique"),
        pytest.param("name: handshake, workers: 3", id="handshake", marks=pytest.mark.soak),
    ],
)
def test_a_pair_of_punctuations_shows_its_results_and_none_that_may_miss_some(
    operator: str, session: SparkSession, tmp_path: Path
) -> None:
    every_us = 25
    case = replace(CASE, operator=operator)
    given = history(32, r=200, s=200, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, 8)
    file = write_join_file(tmp_path, case, results="{store: sqlite, path: results.db, snapshot: {punctuation: true}}")
    text = file.read_text().replace("delay: 15us", f"delay: 15us, punctuate: {{every: {every_us}us}}")
    file.write_text(text)
    run_text(session, text, tmp_path)
    reader = reader_of(file)
    head = reader.refresh()
    assert head.state.epoch is not None
    closed_us = head.state.epoch * every_us
    want = Counter(expected(given, case.condition, plan(given, case.condition, case.window), 8))
    times = [{row["id"]: row["ts"] for row in rows} for rows in (given.r, given.s)]
    complete = Counter({pair: many for pair, many in want.items() if _latest(times, pair) < closed_us})
    got = rows_of(reader, Question())
    # No tuple is late here, so what is closed is complete, and nothing else is shown.
    check_same(got, complete)
    assert 0 < got.total() < want.total()
    everything = bind(load(file)).plan
    assert RESULT_TIME in everything.emitted.names
    for found in reader.snapshots():
        assert found.time_max_us is None or found.time_max_us < closed_us
    assert head.rows == got.total()


@pytest.mark.soak
def test_rows_and_files_end_periods_whatever_crashes(session: SparkSession, tmp_path: Path) -> None:
    given = history(34, r=200, s=200, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, BATCHES)
    file = write_join_file(tmp_path, CASE, results="{store: sqlite, path: results.db, snapshot: {punctuation: true}}")
    text = file.read_text().replace("files_per_batch: 1", "files_per_batch: 3")
    for stream, rule in (("r", "column: n, value: a"), ("s", "per: file")):
        place = f"path: {stream}, time: ts, delay: 15us"
        assert place in text
        text = text.replace(place, f"{place}, punctuate: {{{rule}}}")
    file.write_text(text)
    shown: list[int] = []
    for place in ("ledger.before_head:2", "ledger.after_head:2"):
        crash(session, file, place, 2)
        reader = reader_of(file)
        reader.refresh()
        shown.append(len(reader.snapshots()))
    run_to_the_end(session, file, 1)
    marked = sorted(int(row["ts"]) + 1 for row in given.r if row["n"] == "a")
    files = accumulate((max(int(row["ts"]) for row in rows) + 1 for rows in split_rows(given.s, BATCHES)), max)
    # What is later than the mark of the results, which no row may come below, is still open.
    mark_us = min(max(int(row["ts"]) for row in rows) for rows in (given.r, given.s)) - 15
    ends = [end for end in accumulate(map(max, zip(marked, files, strict=False)), max) if end <= mark_us]
    reader = reader_of(file)
    head = reader.refresh()
    assert head.state.ended_us == ends[-1] and len(ends) > 5
    want = Counter(expected(given, CASE.condition, plan(given, CASE.condition, CASE.window), BATCHES))
    times = [{row["id"]: row["ts"] for row in rows} for rows in (given.r, given.s)]
    check_same(
        rows_of(reader, Question()),
        Counter({pair: many for pair, many in want.items() if _latest(times, pair) < ends[-1]}),
    )
    before: int | None = None
    for found in reader.snapshots():
        if found.rows:
            assert before is None or (found.time_min_us or 0) >= before, "a block lay across the end of a period"
            before = next(end for end in ends if end > (found.time_max_us or 0))
    assert shown[0] < len(reader.snapshots()) <= len(ends)


def _latest(times: list[dict[Any, Any]], pair: tuple[Any, Any]) -> int:
    return max(int(side[id]) for side, id in zip(times, pair, strict=True))


def test_the_results_of_another_checkpoint_or_query_are_not_mixed(session: SparkSession, tmp_path: Path) -> None:
    given = history(33, r=40, s=40)
    write_history(given, tmp_path, 2)
    file = write_join_file(tmp_path, CASE, results=store_results("by threshold"))
    text = file.read_text()
    run_text(session, text, tmp_path)
    again = text.replace("checkpoint: checkpoint", "checkpoint: another")
    with pytest.raises(InputError, match="results of another checkpoint under the name join"):
        run_text(session, again, tmp_path)
    renamed = text.replace("checkpoint: checkpoint", "checkpoint: third").replace("r.id AS r_id", "r.id AS renamed")
    with pytest.raises(InputError, match="results of another query under the name join"):
        run_text(session, renamed, tmp_path)
