"""Helpers of the Spark tests: histories as files, join files over them, results compared as multisets."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from streamjoin.errors import RunError
from streamjoin.spark.baseline import run_baseline
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import run_job
from streamjoin.spec.joinfile import JoinFile, load, parse
from streamjoin.spec.prepare import bind
from tests import duck
from tests.conformance.check import WINDOWS
from tests.conformance.conditions import CONDITIONS
from tests.conformance.histories import History
from tests.failing import failing_at

STREAMS = ("r", "s")
BEGIN_S = 1_700_000_000


def write_file(folder: Path, number: int, rows: pa.RecordBatch) -> None:
    """A Parquet file of a stream; it appears under its name when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:06d}.parquet"
    hidden = path.with_name(f".{path.name}")
    pq.write_table(pa.Table.from_batches([rows]), hidden)
    # Spark's own file source reads by age, in milliseconds; two files may not be equally old.
    os.utime(hidden, (BEGIN_S + number, BEGIN_S + number))
    hidden.rename(path)


def write_history(history: History, folder: Path, batches: int, numbers: Iterable[int] | None = None) -> None:
    """Both streams as one file a batch each, below `folder`; `numbers` picks batches."""
    chosen = set(range(batches) if numbers is None else numbers)
    for number, pieces in enumerate(history.cuts(batches)):
        if number in chosen:
            for stream, (rows,) in zip(STREAMS, pieces, strict=True):
                write_file(folder / stream, number, rows)


def query(condition: str, window: str) -> str:
    """A condition and a window of the conformance tests as a query."""
    where = CONDITIONS[condition][0]
    text = "SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s" + (f" WHERE {where}" if where else "")
    return f"{text} {WINDOWS[window]}".strip()


def join_text(
    query: str, operator: str, *, delay_us: int = 0, results: str = "{parquet: results}", run: str = "slots: 2"
) -> str:
    """A join file over the folders r and s, one file of each a batch."""
    return f"""\
streams:
  r: {{source: parquet, path: r, time: ts, delay: {delay_us}us}}
  s: {{source: parquet, path: s, time: ts, delay: {delay_us}us}}
query: {query!r}
operator: {{{operator}}}
results: {results}
run: {{checkpoint: checkpoint, files_per_batch: 1, {run}}}
"""


def run_text(session: SparkSession, text: str, folder: Path) -> Progress:
    """Run a join file to the end of its streams."""
    return _run(session, parse(text, base=folder))


def run_to_the_end(session: SparkSession, file: Path, slots: int) -> None:
    """The start after the last kill: in a Spark that is there already, for another costs more than the join."""
    _run(session, load(file, {"run.slots": str(slots)}))


def crash(session: SparkSession, file: Path, place: str, slots: int = 2) -> None:
    """Run a join file until its driver fails at `place`, a failpoint of the driver's with its visit.

    What is on disk then is what a kill leaves there; `test_crashes` kills at each place to show that. A failure costs a
    tenth of a kill, which ends a Spark that has to be started for it.
    """
    name, _, visit = place.partition(":")
    with failing_at(name, int(visit)), pytest.raises(RunError, match=f"^{name}$"):
        run_to_the_end(session, file, slots)


def _run(session: SparkSession, file: JoinFile) -> Progress:
    bound = bind(file)
    return run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)


def run_spark_join(session: SparkSession, text: str, folder: Path) -> dict[str, Any]:
    """Run a join file by Spark's own operator; the report."""
    return run_baseline(bind(parse(text, base=folder)), until_end=True, session=session)


def result_rows(folder: Path) -> Counter[tuple[Any, ...]]:
    """The rows of a folder of Parquet results, as a multiset."""
    if not list(folder.glob("*.parquet")):
        return Counter()
    return Counter(duck.rows(f"SELECT * FROM '{folder}/*.parquet'"))


def pairs_in_name_order(folder: Path) -> list[tuple[int, int]]:
    """(r_id, s_id) of a folder of Parquet results, file after file."""
    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    return [(row["r_id"], row["s_id"]) for table in tables for row in table.to_pylist()]


def check_same(got: Counter[Any], want: Counter[Any]) -> None:
    """A missing row shows, and one that is there twice."""
    missing, extra = want - got, got - want
    assert not missing and not extra, (
        f"{missing.total()} of {want.total()} rows missing, such as {sorted(missing)[:3]}; "
        f"{extra.total()} too many, such as {sorted(extra)[:3]}"
    )


def check_same_in_duckdb(results: Path, reference: str) -> int:
    """Compare a folder of Parquet results with a SELECT of DuckDB's, as multisets; how many rows there are."""
    joined = f"SELECT * FROM '{results}/*.parquet'"
    ((expected, missing, extra),) = duck.rows(f"""
        SELECT (SELECT count(*) FROM ({reference})),
               (SELECT count(*) FROM (({reference}) EXCEPT ALL ({joined}))),
               (SELECT count(*) FROM (({joined}) EXCEPT ALL ({reference})))""")
    assert (missing, extra) == (0, 0), f"of {expected} rows {missing} are missing and {extra} are too many"
    return int(expected)


_number = count()


def unique(name: str) -> str:
    """A name nobody else in this process uses, such as for a topic."""
    return f"{name}-{next(_number)}"
