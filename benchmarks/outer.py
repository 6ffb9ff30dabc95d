"""An outer join against the inner join of the same rows, and against Spark's own outer join.

python -m benchmarks.outer              LEFT JOIN, five rounds of 2 x 4,000,000 rows, 1,000,000 of each stream a batch
python -m benchmarks.outer --kind FULL  another kind
python -m benchmarks.outer --quick      toy sizes: shows that it works, its figures mean nothing

All ways run in turn in one Spark session, with the results counted and thrown away. Half of the rows of the first
stream find partners. A rate is the rows of a batch of both streams by the median seconds of a batch: of ours without
the first one of its turn, and of Spark's own of all, with the empty one by which it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from streamjoin.spark.baseline import run_baseline
from streamjoin.spark.run import run_job
from streamjoin.spark.session import open_session
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind

SPAN_US = 10
"""Event time between two rows of a stream."""
FILES = 4
KINDS = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of a stream in a batch, and rounds; the window is of two batches."""

    rows: int
    rounds: int


FULL = Size(rows=1_000_000, rounds=5)
QUICK = Size(rows=2_000, rounds=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.outer", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--kind", choices=KINDS, default="LEFT")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--without-spark", action="store_true", help="leave Spark's own join out")
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else FULL
    ways = {"inner": ("INNER", "biclique"), "outer": (options.kind, "biclique")}
    if not options.without_spark and options.kind != "LEFT ANTI":
        ways["spark"] = (options.kind, "spark")
    with tempfile.TemporaryDirectory(prefix="outer-") as work:
        folder = Path(work)
        for seed, name in enumerate("ab"):
            write(folder / name, size, seed)
        measure(folder, size, options.kind, ways, options.rounds or size.rounds)
    return 0


def measure(folder: Path, size: Size, kind: str, ways: dict[str, tuple[str, str]], rounds: int) -> None:
    """All ways in turn; the first round compiles and is not counted."""
    session: SparkSession | None = None
    rates: dict[str, list[float]] = {way: [] for way in ways}
    try:
        for number in range(rounds + 1):
            for way, (join, operator) in ways.items():
                if way == "spark" and number > 1:
                    continue  # it takes minutes, and its rates differ little
                file = join_file(folder, f"{way}-{number}", join, operator, size)
                session = session or open_session(load(file))
                rate, results = turn(session, file, size)
                if number or way == "spark":
                    rates[way].append(rate)
                    print(
                        f"round {number}: {way} {rate:,.0f} rows/s, {results:,} results, {os.getloadavg()[0]:.1f} load"
                    )
    finally:
        if session is not None:
            session.stop()
    ours = statistics.median(rates["outer"])
    of_inner = statistics.median(outer / inner for outer, inner in zip(rates["outer"], rates["inner"], strict=True))
    print(f"{kind} JOIN: {ours:,.0f} rows/s, {of_inner:.2f} of the inner join's")
    if rates.get("spark"):
        print(f"{kind} JOIN: {ours / statistics.median(rates['spark']):.1f} times Spark's own")


def turn(session: SparkSession, file: Path, size: Size) -> tuple[float, int]:
    """(rows a second, results) of one run to the end."""
    bound = bind(load(file))
    if bound.operator == "spark":
        found = run_baseline(bound, until_end=True, session=session)
        return 2 * size.rows / (found["batch_ms"]["p50"] / 1e3), found["results"]
    progress = run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)
    return 2 * size.rows / (statistics.median(list(progress.batch_ms)[1:FILES]) / 1e3), progress.results


def join_file(folder: Path, name: str, kind: str, operator: str, size: Size) -> Path:
    """A join file without results."""
    window_us = 2 * size.rows * SPAN_US
    items = "a.id AS a" if kind in ("LEFT SEMI", "LEFT ANTI") else "a.id AS a, b.id AS b"
    knobs = {"routing": "hash", "r_units": 2, "s_units": 2} if operator == "biclique" else {}
    content = {
        "streams": {one: {"source": "parquet", "path": one, "time": "ts", "delay": "0us"} for one in "ab"},
        "query": f"SELECT ONLINE {items} FROM a {kind} JOIN b ON a.k = b.k WITHIN {window_us} MICROSECONDS",
        "operator": {"name": operator, **knobs},
        "run": {"checkpoint": f"{name}-state", "files_per_batch": 1, "slots": 2},
    }
    file = folder / f"{name}.yaml"
    file.write_text(json.dumps(content))
    return file


def write(folder: Path, size: Size, seed: int) -> None:
    """One stream; a key of the first is in the second one time in two."""
    folder.mkdir()
    made = np.random.default_rng(seed)
    for number in range(FILES):
        ids = np.arange(number * size.rows, (number + 1) * size.rows)
        keys = made.integers(0, 4 * size.rows, size.rows)
        if seed:
            keys = 2 * (keys // 2)
        times = pa.array(ids * SPAN_US).cast(pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"id": ids, "k": keys, "ts": times}), folder / f"{number:06d}.parquet")


if __name__ == "__main__":
    sys.exit(main())
