"""Queries that are started and stopped from one start of a job to the next, on Spark and into real places."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spark.run import report, run_job
from streamjoin.spec.job import recorded
from streamjoin.spec.joinfile import load
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from tests.conformance.check import expected, pairs_of, plan
from tests.conformance.histories import History, history

from .jobs import check_same, crash, query, result_rows, run_to_the_end, write_history

pytestmark = pytest.mark.spark

BATCHES = 8
HALF = 4
CASES = {"all": ("band", "full history"), "near": ("band", "20 us"), "equal": ("equality", "20 us")}
RESULTS = {"all": "{parquet: all}", "near": "{store: sqlite, path: results.db}", "equal": "{jsonl: equal.jsonl}"}
Pairs = Counter[tuple[int, int]]


STREAMS = """\
streams:
  r: {source: parquet, path: r, time: ts, delay: 15us}
  s: {source: parquet, path: s, time: ts, delay: 15us}
run: {checkpoint: checkpoint, files_per_batch: 1, slots: 2}
"""


def entry(name: str) -> str:
    """A query that keeps all columns that any of them reads, and its place."""
    select = query(*CASES[name]).replace(" FROM", ", r.x AS rx, s.x AS sx, r.k AS rk, s.k AS sk FROM")
    return f"query: {select!r}, results: {RESULTS[name]}"


def text(operator: str, *names: str, stopped: str = "") -> str:
    """A join file of some of the queries."""
    entries = [f"  {name}: {{{entry(name)}{', stopped: true' if name == stopped else ''}}}" for name in names]
    return "\n".join([f"{STREAMS}operator: {{{operator}}}\nqueries:", *entries]) + "\n"


def alone(operator: str, name: str) -> str:
    """A join file of one query that has no name."""
    asked, _, results = entry(name).partition(", results: ")
    return f"{STREAMS}operator: {{{operator}}}\n{asked}\nresults: {results}\n"


@pytest.fixture
def given(tmp_path: Path) -> History:
    return history(52, r=10 * BATCHES, s=9 * BATCHES, time_shape="disordered", delay_us=15)


def wanted(given: History, name: str, batches: range) -> Pairs:
    """Pairs whose later tuple came in one of these batches."""
    brought = {
        (stream, number): at
        for at, both in enumerate(given.cuts(BATCHES))
        for stream, (rows,) in zip("rs", both, strict=True)
        for number in rows.column("id").to_pylist()
    }
    found = expected(given, CASES[name][0], plan(given, *CASES[name]), BATCHES)
    return Counter((r, s) for r, s in found if max(brought["r", r], brought["s", s]) in batches)


def pairs_in(folder: Path, name: str) -> Pairs:
    match name:
        case "all":
            return Counter({row[:2]: count for row, count in result_rows(folder / "all").items()})
        case "equal":
            path = folder / "equal.jsonl"
            lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
            return Counter((line["r_id"], line["s_id"]) for line in lines)
    near = load(folder / "join.yaml").of("near")
    return Counter(pairs_of(list(ask(Reader(store_spec(near).open(), store_job(near)), Question()))))


@pytest.mark.soak
@pytest.mark.parametrize("operator", ["name: biclique, r_units: 2, s_units: 3", "name: handshake, workers: 3"])
def test_one_query_starts_and_another_stops(
    operator: str, session: SparkSession, tmp_path: Path, given: History
) -> None:
    file = tmp_path / "join.yaml"

    def run(content: str) -> dict[str, object]:
        file.write_text(content)
        bound = bind(load(file))
        job = bound.job(heartbeat=False)
        progress = run_job(session, bound, job, bound.sinks(), until_end=True)
        queries = report(bound, job, progress, 1.0, 0)["queries"]
        return {name: counts["results"] for name, counts in queries.items()}

    write_history(given, tmp_path, BATCHES, range(2))
    file.write_text(alone(operator, "all"))
    bound = bind(load(file))
    run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)
    write_history(given, tmp_path, BATCHES, range(2, HALF))
    run(text(operator, "near", "all"))
    write_history(given, tmp_path, BATCHES, range(HALF, BATCHES))
    counts = run(text(operator, "all", "near", "equal", stopped="near"))
    check_same(pairs_in(tmp_path, "all"), wanted(given, "all", range(BATCHES)))
    check_same(pairs_in(tmp_path, "near"), wanted(given, "near", range(2, HALF)))
    late = wanted(given, "equal", range(HALF, BATCHES))
    check_same(pairs_in(tmp_path, "equal"), late)
    assert late and counts == {"all": wanted(given, "all", range(HALF, BATCHES)).total(), "equal": late.total()}
    # Once it has been stopped it may go, and the checkpoint knows what is left.
    run(text(operator, "all", "equal"))
    found = recorded(tmp_path / "checkpoint")
    assert found is not None and [one.name for one in found.queries] == ["all", "equal"]
    assert found.started == {"equal"}


@pytest.mark.soak
def test_a_pending_batch_is_done_for_the_queries_it_was_begun_for(
    session: SparkSession, tmp_path: Path, given: History
) -> None:
    """Crashed with a batch half in its places, started with other queries, crashed on the way, and started again."""
    file = tmp_path / "join.yaml"
    operator = "name: biclique, r_units: 2, s_units: 2"
    write_history(given, tmp_path, BATCHES)

    file.write_text(text(operator, "near", "all"))
    crash(session, file, "batch.after_commit:3")
    done = 3  # the third batch is in its places and not in Spark's log
    file.write_text(text(operator, "all", "near", "equal", stopped="near"))
    crash(session, file, "batch.before_commit:1")
    crash(session, file, "batch.after_commit:2")
    run_to_the_end(session, file, 1)
    check_same(pairs_in(tmp_path, "all"), wanted(given, "all", range(BATCHES)))
    check_same(pairs_in(tmp_path, "near"), wanted(given, "near", range(done)))
    check_same(pairs_in(tmp_path, "equal"), wanted(given, "equal", range(done, BATCHES)))


def test_what_cannot_be_is_said_before_anything_starts(session: SparkSession, tmp_path: Path, given: History) -> None:
    file = tmp_path / "join.yaml"
    write_history(given, tmp_path, BATCHES, range(2))
    file.write_text(text("name: biclique, r_units: 2, s_units: 2", "near", "equal"))
    bound = bind(load(file))
    run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)

    def refused(content: str) -> InputError:
        file.write_text(content)
        with pytest.raises(InputError) as refusal:
            bind(load(file))
        return refusal.value

    operator = "name: biclique, r_units: 2, s_units: 2"
    longer = refused(text(operator, "near", "equal", "all"))
    assert isinstance(longer, UnsupportedError) and longer.field == "queries.all.query"
    assert "this is full history, and tuples are stored for within 20 us" in longer.message
    gone = refused(text(operator, "near"))
    assert "state is of equal too" in gone.message and "stopped: true" in gone.message
    other = refused(text(operator, "near", "equal").replace("20 MICROSECONDS", "10 MICROSECONDS", 1))
    assert other.field == "queries.near.query" and "another name" in other.message
    unkept = '  more: {query: "SELECT ONLINE r.y FROM r, s WHERE r.k = s.k WITHIN 20 MICROSECONDS"}\n'
    more = refused(text(operator, "near", "equal") + unkept)
    assert more.field == "queries.more.query" and "this reads y of r" in more.message
