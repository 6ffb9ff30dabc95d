"""Sketches in the state of groups: a job that is killed goes on with them bit by bit, with other slots."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from streamjoin.operators.aggregate.sketches import REGISTERS
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from tests.conformance.loops import cut, joined, loop_of

from .command import KILLS_S_MAX, Command
from .jobs import check_same, run_to_the_end, write_file

pytestmark = pytest.mark.spark

BATCHES, ROWS = 4, 1_500
COLUMNS = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.int64()), ("f", pa.float64())])
DELAY_US = 15
QUERY = (
    "SELECT ONLINE a.k, WINDOW_START() AS since, APPROX_COUNT_DISTINCT(b.x) AS some, "
    "APPROX_QUANTILE(b.f, 0.9) AS most, COUNT(DISTINCT b.x) AS exactly FROM a, b WHERE a.k = b.k "
    "WITHIN 20 MICROSECONDS GROUP BY a.k, HOP(50 MICROSECONDS, 200 MICROSECONDS)"
)


def history(seed: int) -> list[pa.RecordBatch]:
    """Rows out of order by less than the delay, whose values differ mostly."""
    chosen = np.random.default_rng(seed)
    made = []
    for _ in "ab":
        times = np.sort(chosen.integers(0, 400, ROWS)) + chosen.integers(0, DELAY_US, ROWS)
        values = {
            "k": chosen.integers(0, 2, ROWS),
            "x": chosen.integers(0, 5_000, ROWS),
            "f": chosen.normal(9, 3, ROWS),
        }
        made.append(pa.RecordBatch.from_pydict({"ts": times, **values}, COLUMNS))
    return made


def join_file(folder: Path) -> Path:
    streams = "\n".join(f"  {name}: {{source: parquet, path: {name}, time: ts, delay: {DELAY_US}us}}" for name in "ab")
    file = folder / "join.yaml"
    file.write_text(
        f"streams:\n{streams}\nquery: {QUERY!r}\nresults: {{parquet: results}}\n"
        "run: {checkpoint: checkpoint, files_per_batch: 1, slots: 2}\n"
    )
    return file


def registers_kept(folder: Path) -> int:
    """How many registers the segments of the groups' stage have, of all groups and versions."""
    kept = 0
    for file in (folder / "checkpoint" / "state" / "1").rglob("*.arrow"):
        rows = ds.dataset(file, format="arrow").to_table()
        kept += sum(len(rows.column(at).combine_chunks().flatten())
                    for at, kind in enumerate(rows.schema.types) if kind == REGISTERS)  # fmt: skip
    return kept


def in_one_batch(given: Sequence[pa.RecordBatch], folder: Path) -> Counter[Any]:
    streams = {name: StreamSchema(name, COLUMNS, "ts", "us", DELAY_US) for name in "ab"}
    return joined(loop_of(plan_query(QUERY, streams), "matrix", folder, slots=1), given, 1, 1)


@pytest.mark.soak
@pytest.mark.kills
@pytest.mark.timeout(KILLS_S_MAX)
@pytest.mark.parametrize("place", ["unit.before_manifest:11", "unit.mid_results:4"])
def test_a_job_that_is_killed_goes_on_with_its_sketches(place: str, session: SparkSession, tmp_path: Path) -> None:
    given = history(1)
    for number, pieces in enumerate(cut(given, BATCHES, 1)):
        for name, (part,) in zip("ab", pieces, strict=True):
            write_file(tmp_path / name, number, part)
    file = join_file(tmp_path)
    name, _, visit = place.partition(":")
    with Command(file, "--until-end", "--quiet", failpoints=f"{name}:kill:{visit}") as command:
        assert command.exit_status() == -signal.SIGKILL, command.output()
    assert registers_kept(tmp_path) > 500
    run_to_the_end(session, file, 3)
    rows = ds.dataset(tmp_path / "results").to_table()
    found = Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    check_same(found, in_one_batch(given, tmp_path / "alone"))
    assert sum(exactly > 300 for *_, exactly in found) > 8
    assert all(abs(some - exactly) <= 0.05 * exactly + 1 for _, _, some, _, exactly in found)
