"""Every operator on a real Spark gives the reference's pairs, with one, two and four slots."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.driver import Driver
from streamjoin.spark.progress import Progress
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from tests.conformance.check import expected, plan
from tests.conformance.histories import TIMESTAMP, history, split
from tests.servers.process import comes_true

from .jobs import (
    STREAMS,
    check_same,
    check_same_in_duckdb,
    join_text,
    query,
    result_rows,
    run_spark_join,
    run_text,
    write_file,
    write_history,
)

pytestmark = pytest.mark.spark

BATCHES = 3
ANY_CONDITION = ("equality", "band", "two bands", "inequality", "text equality")
KEYED = ("equality", "text equality", "equality, then band")
BANDS = ("band", "two bands")
WINDOWS = ("20 us", "only after", "7 rows", "full history")
SLOTS = (1, 2, 4)

OPERATORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "biclique by random": ("name: biclique, routing: random, r_units: 2, s_units: 3", ANY_CONDITION),
    "biclique by hash": ("name: biclique, routing: hash, r_units: 3, s_units: 2", KEYED),
    "biclique by contrand": (
        "name: biclique, routing: contrand, r_units: 4, s_units: 3, r_groups: 2, s_groups: 3",
        KEYED,
    ),
    "biclique by contrand on a band": (
        "name: biclique, routing: contrand, r_units: 4, s_units: 4, r_groups: 3, s_groups: 2, r_bounds: [20, 40], "
        "s_bounds: [30]",
        BANDS,
    ),
    "matrix 2x2": ("name: matrix, rows: 2, columns: 2", ANY_CONDITION),
    "splitjoin 3": ("name: splitjoin, cores: 3", ANY_CONDITION),
}
"""name -> (`operator:` of a join file, the conditions it can route)."""

# The conformance tests run every combination without Spark. Here each operator meets each of its conditions, and
# windows and numbers of slots as they come round.
CASES = [
    (operator, condition, WINDOWS[(number + row) % 4], SLOTS[(number + row) % 3])
    for number, (operator, (_, conditions)) in enumerate(OPERATORS.items())
    for row, condition in enumerate(conditions)
]


KEPT = [CASES[number] for number in (1, 5, 9, 12, 15, 21)]
"""One of each operator, in `make test`; the others are in `make soak`."""


@pytest.mark.parametrize("cases", [CASES, KEPT])
def test_each_operator_window_and_number_of_slots_comes_round(cases: list[tuple[str, str, str, int]]) -> None:
    assert {operator for operator, *_ in cases} == set(OPERATORS)
    assert {window for _, _, window, _ in cases} == set(WINDOWS) and {slots for *_, slots in cases} == set(SLOTS)


@pytest.mark.parametrize(
    ("operator", "condition", "window", "slots"),
    [pytest.param(*case, marks=[] if case in KEPT else [pytest.mark.soak]) for case in CASES],
)
def test_spark_joins_exactly(
    operator: str, condition: str, window: str, slots: int, session: SparkSession, tmp_path: Path
) -> None:
    seed = CASES.index((operator, condition, window, slots))
    given = history(seed, r=90, s=80, time_shape="disordered", delay_us=15)
    write_history(given, tmp_path, BATCHES)
    text = join_text(query(condition, window), OPERATORS[operator][0], delay_us=15, run=f"slots: {slots}")
    progress = run_text(session, text, tmp_path)
    want = Counter(expected(given, condition, plan(given, condition, window), BATCHES))
    assert progress.batches == BATCHES and progress.tuples_in == [len(given.r), len(given.s)]
    assert progress.results == want.total() > 0
    check_same(result_rows(tmp_path / "results"), want)


ROWS, FILES, BEGIN_US = 50_000, 5, 1_000_000_000_000_000
LARGE = pa.schema([("id", pa.int64()), ("ts", TIMESTAMP), ("k", pa.int64()), ("x", pa.int64()), ("v", pa.float64())])


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100,000 tuples: one a millisecond and stream, disordered by up to 200 ms."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(42)
    for stream in STREAMS:
        numbers = np.arange(ROWS)
        # One key of 400 is hot: every twentieth tuple has it.
        keys = np.where(rng.random(ROWS) < 0.05, 7, rng.integers(0, 400, ROWS))
        columns = [
            pa.array(numbers),
            pa.array(BEGIN_US + numbers * 1_000 + rng.integers(0, 200_000, ROWS)).view(TIMESTAMP),
            pa.array(keys, mask=rng.random(ROWS) < 0.01),
            pa.array(rng.integers(0, 10_000, ROWS)),
            pa.array(rng.random(ROWS)),
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=LARGE)
        for number, part in enumerate(split(rows, FILES)):
            write_file(folder / stream, number, part)
    return folder


EQUALITY = "r.k = s.k AND ABS(r.x - s.x) <= 500 AND r.v < 0.7 AND s.x % 3 <> 0"
BAND = "ABS(r.x - s.x) <= 20 AND r.v < 0.7 AND s.x % 3 <> 0"
LARGE_CASES = {
    "biclique by random": BAND,
    "biclique by hash": EQUALITY,
    "biclique by contrand": EQUALITY,
    "biclique by contrand on a band": BAND,
    "matrix 2x2": EQUALITY,
}


def large_reference(folder: Path, where: str) -> str:
    """What DuckDB makes of the large streams."""
    return f"""
        SELECT r.id AS r_id, s.id AS s_id, r.v, s.ts FROM '{folder}/r/*.parquet' r, '{folder}/s/*.parquet' s
        WHERE {where} AND s.ts BETWEEN r.ts - INTERVAL 2 SECONDS AND r.ts + INTERVAL 3 SECONDS"""


def large_text(folder: Path, where: str, operator: str, target: Path) -> str:
    text = join_text(
        f"SELECT ONLINE r.id AS r_id, s.id AS s_id, r.v, s.ts FROM r, s WHERE {where} WITHIN (2 SECONDS, 3 SECONDS)",
        operator,
        delay_us=200_000,
        results=f"{{parquet: '{target / 'results'}'}}",
        run="slots: 2",
    )
    return text.replace("checkpoint: checkpoint", f"checkpoint: '{target / 'checkpoint'}'")


@pytest.mark.parametrize(
    "operator",
    [
        "biclique by hash",
        "matrix 2x2",
        pytest.param("biclique by contrand on a band", marks=pytest.mark.soak),
        pytest.param("biclique by random", marks=pytest.mark.soak),
        pytest.param("biclique by contrand", marks=pytest.mark.soak),
    ],
)
def test_a_hundred_thousand_tuples_join_as_in_duckdb(
    operator: str, large: Path, session: SparkSession, tmp_path: Path
) -> None:
    where = LARGE_CASES[operator]
    progress = run_text(session, large_text(large, where, OPERATORS[operator][0], tmp_path), large)
    assert sum(progress.tuples_in) == 2 * ROWS and progress.late == [0, 0]
    found = check_same_in_duckdb(tmp_path / "results", large_reference(large, where))
    assert found == progress.results > 10_000


@pytest.mark.soak
def test_sparks_own_join_agrees_on_the_same_streams(large: Path, session: SparkSession, tmp_path: Path) -> None:
    report = run_spark_join(session, large_text(large, EQUALITY, "name: spark", tmp_path), large)
    assert report["tuples_in"] == {"r": ROWS, "s": ROWS} and report["late"] == {"both": 0}
    found = check_same_in_duckdb(tmp_path / "results", large_reference(large, EQUALITY))
    assert found == report["results"] > 10_000


def test_there_is_one_spark_job_a_batch(session: SparkSession, tmp_path: Path) -> None:
    given = history(1)
    write_history(given, tmp_path, 4)
    bound = bind(parse(join_text(query("equality", "20 us"), OPERATORS["biclique by hash"][0]), base=tmp_path))
    groups: list[str] = []

    def on_batch(progress: Progress, batch: BatchReport) -> None:
        groups.extend(str(query.runId) for query in session.streams.active)

    progress = Driver(session, bound.job(heartbeat=False), bound.sinks(), on_batch=on_batch).run(until_end=True)
    assert progress.batches == 4 and len(set(groups)) == 1
    # A streaming query's jobs are in the group of its run; Spark's tracker is told of them a little later.
    jobs = session.sparkContext.statusTracker().getJobIdsForGroup
    assert comes_true(lambda: len(jobs(groups[0])) >= progress.batches, 60)
    time.sleep(1)  # one too many would be told of by now
    assert len(jobs(groups[0])) == progress.batches
