"""A join of three streams against its two joins of two, run one after the other on the same input.

python -m benchmarks.three_way              seven pairs of turns of 3 x 200,000 rows
python -m benchmarks.three_way --quick      toy sizes: shows that it works, its ratio means nothing
python -m benchmarks.three_way --ring       instead of two joins of two, a ring of all three; with 1 M rows a batch

Both ways run in one Spark session and give the same rows, which is checked. The second join of two reads what the first
one wrote, as a stream of Parquet files. It prints the seconds of each turn, starts of the queries included, and
the ratio of the two ways: below 1 the join of three is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from streamjoin.spark.run import run_job
from streamjoin.spark.session import open_session
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind

STREAMS = ("a", "b", "c")
SPAN_US = 100
"""Event time between two rows of a stream."""
WINDOW_US = 1_000_000
FILES = 4
HASH = {"name": "biclique", "routing": "hash", "r_units": 2, "s_units": 2}
THREE = (
    "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a, b, c WHERE a.k = b.k AND b.k = c.k "
    f"WITHIN {WINDOW_US} MICROSECONDS"
)
FIRST = (
    "SELECT ONLINE a.id AS a, b.id AS b, b.k AS k, GREATEST(a.ts, b.ts) AS ts, LEAST(a.ts, b.ts) AS oldest FROM a, b "
    f"WHERE a.k = b.k WITHIN {WINDOW_US} MICROSECONDS"
)
SECOND = (
    "SELECT ONLINE ab.a AS a, ab.b AS b, c.id AS c FROM ab, c WHERE ab.k = c.k AND c.ts <= ab.oldest + "
    f"INTERVAL '{WINDOW_US}' MICROSECOND WITHIN {WINDOW_US} MICROSECONDS"
)


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of a stream, keys, and pairs of turns."""

    rows: int
    keys: int
    pairs: int


FULL = Size(rows=200_000, keys=10_000, pairs=7)
LARGE = Size(rows=1_333_333, keys=10_000, pairs=3)
"""1 M rows of all streams together in each batch."""
QUICK = Size(rows=2_000, keys=200, pairs=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit status 1 where the two ways differ in their results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.three_way", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--pairs", type=int, help="pairs of turns")
    parser.add_argument("--ring", action="store_true", help="a tree of bicliques against a ring")
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else LARGE if options.ring else FULL
    with tempfile.TemporaryDirectory(prefix="three-way-") as work:
        folder = Path(work)
        write_all(folder, size)
        try:
            pairs = measured(folder, size, options.pairs or size.pairs, print, ring=options.ring)
        except DifferentError as wrong:
            print(wrong, file=sys.stderr)
            return 1
    ratios = [three / other for three, other in pairs]
    print(f"ratio: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} pairs")
    return 0


class DifferentError(Exception):
    """The two ways differ in their results."""


def measured(
    folder: Path, size: Size, pairs: int, show: Callable[[str], None], *, ring: bool = False
) -> Sequence[tuple[float, float]]:
    """Both ways in turn, in a session of their own; the first pair compiles and is not counted.

    Args:
        folder: has the streams, see `write`.
        show: is told of each pair.
        ring: the second way is a ring of the three streams.

    Returns:
        Seconds of the join of three, and of the other way, for each pair.

    Raises:
        DifferentError: they differ in their results.
    """
    session: SparkSession | None = None
    took_s: list[tuple[float, float]] = []
    try:
        for number in range(pairs + 1):
            here = folder / str(number)
            here.mkdir()
            session = session or open_session(load(join_file(here, "three", THREE, STREAMS, size)))
            took_three = turn(session, [join_file(here, "three", THREE, STREAMS, size)])
            took_two = turn(session, other_way(here, size, ring=ring))
            if (found := rows_of(here / "three")) != rows_of(here / "second"):
                raise DifferentError("the two ways differ in their results")
            if number:
                took_s.append((took_three, took_two))
                other = "ring" if ring else "two joins"
                show(
                    f"pair {number}: three streams {took_three:.2f} s, {other} {took_two:.2f} s, ratio "
                    f"{took_three / took_two:.2f}, {len(found):,} results, load {os.getloadavg()[0]:.1f}"
                )
    finally:
        if session is not None:
            session.stop()
    return took_s


def other_way(folder: Path, size: Size, *, ring: bool) -> list[Path]:
    """The join files of the second way, of which the last one gives the results."""
    if ring:
        return [join_file(folder, "second", THREE, STREAMS, size, {"name": "ring", "nodes": 2})]
    return [join_file(folder, "first", FIRST, STREAMS[:2], size), join_file(folder, "second", SECOND, ("c",), size)]


def turn(session: SparkSession, files: Sequence[Path]) -> float:
    """Run joins one after the other to their ends; seconds."""
    begun = time.monotonic()
    for file in files:
        bound = bind(load(file))
        run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)
    return time.monotonic() - begun


def join_file(
    folder: Path, name: str, query: str, streams: Sequence[str], size: Size, operator: Mapping[str, Any] = HASH
) -> Path:
    """A join file whose results go to the folder of its name."""
    stream: dict[str, Any] = {
        read: {"source": "parquet", "path": f"../{read}", "time": "ts", "delay": "0us"} for read in streams
    }
    if query == SECOND:
        # Units write what they find as they find it: a batch's results are out of order by its span.
        late_us = 2 * (size.rows * SPAN_US // FILES + WINDOW_US)
        stream = {"ab": {"source": "parquet", "path": "first", "time": "ts", "delay": f"{late_us}us"}, **stream}
    content = {
        "streams": stream, "query": query, "results": {"parquet": name},
        "operator": operator,
        "run": {"checkpoint": f"{name}-state", "files_per_batch": 1 if query != SECOND else 2, "slots": 2},
    }  # fmt: skip
    file = folder / f"{name}.yaml"
    file.write_text(json.dumps(content))
    return file


def rows_of(folder: Path) -> list[tuple[int, int, int]]:
    """The results in a folder, in order."""
    return duckdb.connect().execute(f"SELECT a, b, c FROM '{folder}/*.parquet' ORDER BY ALL").fetchall()


def write_all(folder: Path, size: Size) -> None:
    """All streams, each in a folder of its name."""
    for seed, name in enumerate(STREAMS):
        write(folder / name, size, seed)


def write(folder: Path, size: Size, seed: int) -> None:
    """One stream."""
    folder.mkdir()
    keys = np.random.default_rng(seed).integers(0, size.keys, size.rows)
    ids = np.arange(size.rows)
    times = pa.array(ids * SPAN_US).cast(pa.timestamp("us", "UTC"))
    rows = pa.table({"id": ids, "k": keys, "ts": times})
    each = -(-size.rows // FILES)
    for number in range(FILES):
        pq.write_table(rows.slice(number * each, each), folder / f"{number:06d}.parquet")


if __name__ == "__main__":
    sys.exit(main())
