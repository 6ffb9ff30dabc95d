"""The order of joins that `auto` chooses, on Spark: kept over failures and other rates, and the same answers by key."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import RunError
from streamjoin.explain.order import ordered
from streamjoin.plan.stages import Cascade
from streamjoin.results.question import Question
from streamjoin.spark.run import report, run_job
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind
from tests import duck
from tests.failing import failing_at

from .jobs import check_same, write_file
from .test_store_crashes import reader_of, rows_of

pytestmark = pytest.mark.spark

SPAN_US = 4_000_000
COUNTS = {"a": 160, "b": 160, "c": 40}
QUERY = (
    "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j AND a.x < c.x "
    "WITHIN 2 SECONDS"
)


def write(folder: Path, number: int, keys: int, others: int) -> None:
    """A file of each stream, of the same time; of `k` there are few values, of `j` many, or the other way round."""
    chosen = random.Random(number)
    for name, count in COUNTS.items():
        columns = {
            "ts": [number * SPAN_US + place * SPAN_US // count for place in range(count)],
            "id": [number * 1000 + place for place in range(count)],
            "k": [chosen.randrange(keys) for _ in range(count)],
            "j": [chosen.randrange(others) for _ in range(count)],
            "x": [chosen.randrange(100) for _ in range(count)],
        }
        write_file(folder / name, number, pa.RecordBatch.from_pydict(columns))


def join_file(folder: Path, job: str, operator: str = "{}") -> Path:
    streams = "\n".join(f"  {name}: {{source: parquet, path: {name}, time: ts}}" for name in COUNTS)
    file = folder / f"{job}.yaml"
    file.write_text(
        f"streams:\n{streams}\nquery: {QUERY!r}\noperator: {operator}\n"
        f"results: {{store: sqlite, path: {job}.db, job: {job}, snapshot: {{batches: 1}}}}\n"
        f"run: {{checkpoint: checkpoint-{job}, files_per_batch: 1, slots: 2}}\n"
    )
    return file


def start(session: SparkSession, file: Path) -> tuple[str, Any]:
    """How its streams are joined, and what the report says of that."""
    bound = ordered(bind(load(file)))
    job = bound.job(heartbeat=False)
    progress = run_job(session, bound, job, bound.sinks(), until_end=True)
    assert isinstance(bound.plan, Cascade)
    return bound.plan.shape, report(bound, job, progress, 0.0, 0).get("order")


def answer(file: Path, **question: Any) -> Counter[Any]:
    return rows_of(reader_of(file), Question(select=("a", "b", "c"), **question))


@pytest.mark.soak
def test_the_order_is_kept_over_a_failure_and_other_rates(session: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path, number, keys=3, others=60)
    file = join_file(tmp_path, "chosen")
    with failing_at("batch.before_commit", 2), pytest.raises(RunError, match="before_commit"):
        start(session, file)
    for number in range(2, 4):
        write(tmp_path, number, keys=60, others=3)
    shape, told = start(session, file)
    assert shape == "(a, (b, c))" and told["tree"] == ("a", ("b", "c"))
    # Of the two files that came after the failure, the second one's rows.
    assert told["drift"]["rates"] == pytest.approx({"a": 40.0, "b": 40.0, "c": 10.0}, rel=0.1)
    assert told["drift"]["chosen_for"] == pytest.approx({"a": 40.0, "b": 40.0, "c": 10.0}, rel=0.1)
    written = join_file(tmp_path, "written", "{tree: [[a, b], c]}")
    assert start(session, written) == ("((a, b), c)", None)
    tables = ", ".join(f"'{tmp_path}/{name}/*.parquet' {name}" for name in COUNTS)
    near = " AND ".join(f"GREATEST(a.ts, b.ts, c.ts) <= {name}.ts + 2000000" for name in COUNTS)
    wanted = duck.rows(f"SELECT a.id, b.id, c.id FROM {tables} WHERE a.k = b.k AND b.j = c.j AND a.x < c.x AND {near}")
    assert len(wanted) > 50
    for one in (file, written):
        check_same(answer(one), Counter(wanted))
    keys = duck.rows(f"SELECT DISTINCT j FROM '{tmp_path}/b/*.parquet' ORDER BY j LIMIT 4")
    by_key = [answer(file, key=key) for (key,) in keys]
    assert sum(map(Counter.total, by_key)) > 10
    assert by_key == [answer(written, key=key) for (key,) in keys]
