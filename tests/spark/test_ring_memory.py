"""What a ring takes of memory, measured over all processes of a run: for millions of partial results, and for nine
streams (PSP, section 2)."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.processes import run
from tests import duck
from tests.conformance.histories import TIMESTAMP

from .jobs import result_rows, write_file

pytestmark = [pytest.mark.spark, pytest.mark.soak]

HEAP_MIB = 480
"""The least, so that Java cannot collect a round's partial results."""
LIMIT_S = 300.0


def peak_mib(folder: Path, text: str) -> float:
    """The most that all processes of `streamjoin run` had at one time."""
    file = folder / "join.yaml"
    file.write_text(text)
    command = [sys.executable, "-m", "streamjoin.cli.commands", "run", str(file), "--until-end", "--quiet"]
    ended = run(command, limit_s=LIMIT_S, log=folder / "run.log")
    assert ended.status == 0, ended.tail
    return ended.memory["pss_bytes"] / 2**20


def join_text(names: str, query: str, operator: str) -> str:
    streams = "\n".join(f"  {name}: {{source: parquet, path: {name}, time: ts, delay: 0us}}" for name in names)
    return (
        f"streams:\n{streams}\nquery: {query}\noperator: {operator}\nresults: {{parquet: results}}\n"
        f"run: {{checkpoint: checkpoint, slots: 2, driver_memory: {HEAP_MIB}}}\n"
    )


def crossed(folder: Path, rows: int) -> tuple[float, Counter[tuple[int, ...]]]:
    """The peak of a join whose first step is the cross product of a and b, and its results."""
    count = np.arange(rows)
    # No sum of a and b is odd, so of c only the even ones match.
    for name, x in {"a": 2 * count, "b": 2 * rows * count, "c": 1_001 * count}.items():
        columns = [pa.array(count).view(TIMESTAMP), pa.array(count), pa.array(x)]
        write_file(folder / name, 0, pa.RecordBatch.from_arrays(columns, names=["ts", "id", "x"]))
    text = join_text(
        "abc",
        "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a, b, c WHERE a.x + b.x = c.x WITHIN 1 SECOND",
        "{name: ring, nodes: 2, orders: {a: [b, c], b: [a, c], c: [a, b]}}",
    )
    return peak_mib(folder, text), result_rows(folder / "results")


def test_millions_of_partial_results_of_a_cross_product_go_through_a_small_heap(tmp_path: Path) -> None:
    """A million of b with a, and one of c with a, as all rows of a come before those of b and c."""
    peak, found = crossed(tmp_path, 1_000)
    files = ", ".join(f"'{tmp_path}/{name}/*.parquet' {name}" for name in "abc")
    wanted = duck.rows(f"SELECT a.id, b.id, c.id FROM {files} WHERE a.x + b.x = c.x")
    assert found == Counter(wanted) and len(wanted) == 500
    assert peak < 2_048, f"{peak:,.0f} MiB"


def test_nine_streams_are_joined_inside_4_gib(tmp_path: Path) -> None:
    names, rows = "abcdefghi", 20_000
    numbers = np.random.default_rng(9)
    for name in names:
        ts, k = np.sort(numbers.integers(0, rows, rows)), numbers.integers(0, rows, rows)
        columns = [pa.array(ts).view(TIMESTAMP), pa.array(np.arange(rows)), pa.array(k)]
        batch = pa.RecordBatch.from_arrays(columns, names=["ts", "id", "k"])
        for number in range(2):
            write_file(tmp_path / name, number, batch.slice(number * rows // 2, rows // 2))
    equal = " AND ".join(f"{one}.k = {other}.k" for one, other in pairwise(names))
    selected = ", ".join(f"{name}.id AS {name}" for name in names)
    text = join_text(
        names,
        f"SELECT ONLINE {selected} FROM {', '.join(names)} WHERE {equal} WITHIN 1 SECOND",
        "{name: ring, nodes: 4}",
    )
    peak = peak_mib(tmp_path, text.replace("slots: 2", "slots: 2, files_per_batch: 1"))
    files = ", ".join(f"'{tmp_path}/{name}/*.parquet' {name}" for name in names)
    wanted = Counter(duck.rows(f"SELECT {selected} FROM {files} WHERE {equal}"))
    assert result_rows(tmp_path / "results") == wanted and wanted.total() > 10_000
    assert peak < 4_096, f"{peak:,.0f} MiB"
