"""Several queries in one job on Spark: each has its own results, and a driver that dies changes none of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamjoin.results.answer import ask
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.spark.run import report, run_job
from streamjoin.spec.joinfile import load, parse
from streamjoin.spec.outputs import store_job, store_spec
from streamjoin.spec.prepare import bind
from tests.conformance.check import expected, pairs_of, plan
from tests.conformance.histories import History, history

from .jobs import check_same, crash, pairs_in_name_order, query, result_rows, run_to_the_end, write_history

pytestmark = pytest.mark.spark

BATCHES = 8
QUERIES = {"near": ("band", "20 us"), "equal": ("equality", "only after"), "kept": ("two bands", "full history")}
RESULTS = {"near": "{parquet: near}", "equal": "{jsonl: equal.jsonl}", "kept": "{store: sqlite, path: results.db}"}


def text(operator: str, results: dict[str, str] = RESULTS) -> str:
    entries = "\n".join(
        f"  {name}: {{query: {query(*QUERIES[name])!r}, results: {target}}}" for name, target in results.items()
    )
    return f"""\
streams:
  r: {{source: parquet, path: r, time: ts, delay: 15us}}
  s: {{source: parquet, path: s, time: ts, delay: 15us}}
queries:
{entries}
operator: {{{operator}}}
run: {{checkpoint: checkpoint, files_per_batch: 1, slots: 2}}
"""


@pytest.fixture
def given(tmp_path: Path) -> History:
    made = history(51, r=10 * BATCHES, s=9 * BATCHES, time_shape="disordered", delay_us=15)
    write_history(made, tmp_path, BATCHES)
    return made


def wanted(given: History, name: str) -> Counter[Any]:
    return Counter(expected(given, QUERIES[name][0], plan(given, *QUERIES[name]), BATCHES))


def check_results(folder: Path, given: History) -> None:
    """What each query left, in its own place."""
    check_same(result_rows(folder / "near"), wanted(given, "near"))
    lines = [json.loads(line) for line in (folder / "equal.jsonl").read_text().splitlines()]
    check_same(Counter((line["r_id"], line["s_id"]) for line in lines), wanted(given, "equal"))
    kept = load(folder / "join.yaml").of("kept")
    answer = ask(Reader(store_spec(kept).open(), store_job(kept)), Question())
    check_same(Counter(pairs_of(list(answer))), wanted(given, "kept"))


@pytest.mark.parametrize(
    "operator",
    [
        "name: biclique, r_units: 2, s_units: 3",
        *(
            pytest.param(name, marks=pytest.mark.soak)
            for name in ("name: splitjoin, cores: 3", "name: handshake, workers: 3")
        ),
    ],
)
def test_each_query_has_its_own_results(operator: str, session: SparkSession, tmp_path: Path, given: History) -> None:
    (tmp_path / "join.yaml").write_text(text(operator))
    bound = bind(load(tmp_path / "join.yaml"))
    job = bound.job(heartbeat=False)
    progress = run_job(session, bound, job, bound.sinks(), until_end=True)
    check_results(tmp_path, given)
    figures = report(bound, job, progress, 1.0, 0)
    assert {name: counts["results"] for name, counts in figures["queries"].items()} == {
        name: wanted(given, name).total() for name in QUERIES
    }
    assert figures["results"] == sum(counts["results"] for counts in figures["queries"].values())
    assert figures["comparisons"] == sum(counts["comparisons"] for counts in figures["queries"].values()) > 0


@pytest.mark.soak
def test_ordered_results_are_gathered_for_each_query(session: SparkSession, tmp_path: Path, given: History) -> None:
    results = {"near": "{parquet: near}", "equal": "{parquet: equal}"}
    ordered = parse(text("name: biclique, r_units: 2, s_units: 2, ordering: total", results), base=tmp_path)
    bound = bind(ordered)
    run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)
    alone = parse(
        text("name: biclique, r_units: 2, s_units: 2, ordering: total", {"near": "{parquet: alone}"})
        .replace("checkpoint: checkpoint", "checkpoint: another"),
        base=tmp_path,
    )  # fmt: skip
    bound = bind(alone)
    run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)
    near, alone_near, equal = (pairs_in_name_order(tmp_path / name) for name in ("near", "alone", "equal"))
    assert near and near == alone_near
    check_same(Counter(equal), wanted(given, "equal"))


def test_a_driver_that_dies_between_two_sinks_leaves_every_result_once(
    session: SparkSession, tmp_path: Path, given: History
) -> None:
    file = tmp_path / "join.yaml"
    file.write_text(text("name: biclique, r_units: 2, s_units: 2"))
    # The first visits are the Parquet sink's, two files a batch; then comes the turn of the lines, then of the store.
    for place in ("batch.mid_commit:3", "ledger.before_head:2"):
        crash(session, file, place)
    run_to_the_end(session, file, 3)
    check_results(tmp_path, given)
