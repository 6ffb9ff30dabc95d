"""Joins of four streams on Spark, by a bushy tree and by a ring, against DuckDB."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import duck
from tests.conformance.loops import cut
from tests.conformance.test_three_streams import rows

from .jobs import check_same, result_rows, run_text, write_file

pytestmark = pytest.mark.spark

NAMES, BATCHES = "abcd", 3
REACHES_US = {"a": 90, "b": 150, "c": 60, "d": 120}
CONDITION = "a.k = b.k AND c.k = d.k AND b.x < c.x AND a.x + d.x > b.x"
SELECTED = ", ".join(f"{name}.id AS {name}" for name in NAMES)
OPERATORS = {
    "a bushy tree": "{name: biclique, routing: random, r_units: 1, s_units: 2, tree: [[a, b], [c, d]]}",
    "a ring": "{name: ring, nodes: 2, lengths: {c: 1}, "
    "orders: {a: [d, b, c], b: [c, d, a], c: [b, a, d], d: [a, c, b]}}",
}


def join_file(operator: str) -> str:
    streams = "\n".join(f"  {name}: {{source: parquet, path: {name}, time: ts, delay: 15us}}" for name in NAMES)
    within = ", ".join(f"{reach} MICROSECONDS FOR {name}" for name, reach in REACHES_US.items())
    return (
        f"streams:\n{streams}\n"
        f"query: SELECT ONLINE {SELECTED} FROM a, b, c, d WHERE {CONDITION} WITHIN {within}\n"
        f"operator: {operator}\nresults: {{parquet: results}}\n"
        "run: {checkpoint: checkpoint, files_per_batch: 1, slots: 2}\n"
    )


def oracle(folder: Path) -> Counter[tuple[int, ...]]:
    """No row is farther from the newest of its result than its stream's reach."""
    newest = f"greatest({', '.join(f'{name}.ts' for name in NAMES)})"
    near = " AND ".join(f"{newest} <= {name}.ts + {reach}" for name, reach in REACHES_US.items())
    files = ", ".join(f"'{folder}/{name}/*.parquet' {name}" for name in NAMES)
    return Counter(duck.rows(f"SELECT {SELECTED} FROM {files} WHERE {CONDITION} AND {near}"))


@pytest.mark.parametrize("operator", ["a ring", pytest.param("a bushy tree", marks=pytest.mark.soak)])
def test_four_streams_join_as_in_duckdb(operator: str, session: SparkSession, tmp_path: Path) -> None:
    for number, pieces in enumerate(cut([rows(40 + place) for place in range(len(NAMES))], BATCHES, 1)):
        for name, (piece,) in zip(NAMES, pieces, strict=True):
            write_file(tmp_path / name, number, piece)
    progress = run_text(session, join_file(OPERATORS[operator]), tmp_path)
    wanted = oracle(tmp_path)
    assert progress.batches == BATCHES and progress.late == [0] * len(NAMES) and wanted.total() > 50
    check_same(result_rows(tmp_path / "results"), wanted)
