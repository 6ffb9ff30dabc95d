"""GROUP BY over a join against the join alone, run one after the other on the same input.

python -m benchmarks.groups              five pairs of turns of 5 batches of 2 x 500,000 rows, 1,000 groups
python -m benchmarks.groups --quick      toy sizes: shows that it works, its ratio means nothing

Both run in one Spark session, by the same operator, and drop their results; in a turn before the others, which is not
counted, groups are written and compared with DuckDB's. It prints the milliseconds of a batch, the median of all but the
first, the ratio of the two ways, and what travelled between the phases: what pairs would have been, and what views were
(BiStream, Fig. 14).
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

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from streamjoin.spark.progress import Progress
from streamjoin.spark.run import run_job
from streamjoin.spark.session import open_session
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import bind

STREAMS = ("a", "b")
SPAN_US = 10_000_000
"""Event time of a batch; the window is as long, and so are those of the groups."""
GROUPS = 1_000
FROM = "FROM a, b WHERE a.k = b.k WITHIN 10 SECONDS"
WAYS = {
    "join": f"SELECT ONLINE a.g, b.x, b.f {FROM}",
    "groups": (
        "SELECT ONLINE a.g, WINDOW_START() AS since, COUNT(*) AS n, SUM(b.x) AS total, AVG(b.f) AS mean, "
        f"MAX(b.f) AS top {FROM} GROUP BY a.g, TUMBLE(10 SECONDS)"
    ),
}


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of a stream in a batch, batches, and pairs of turns."""

    rows: int
    batches: int
    pairs: int


FULL = Size(rows=500_000, batches=5, pairs=5)
QUICK = Size(rows=2_000, batches=2, pairs=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; exit status 1 where the groups are not DuckDB's."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.groups", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--pairs", type=int, help="pairs of turns")
    options = parser.parse_args(arguments)
    size = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(prefix="groups-") as work:
        folder = Path(work)
        for seed, name in enumerate(STREAMS):
            write(folder / name, size, seed)
        return measure(folder, size, options.pairs or size.pairs)


def measure(folder: Path, size: Size, pairs: int) -> int:
    """Both ways in turn; the first pair compiles and is not counted."""
    session: SparkSession | None = None
    ratios: list[float] = []
    try:
        for number in range(pairs + 1):
            here = folder / str(number)
            here.mkdir()
            session = session or open_session(load(join_file(here, "join")))
            alone, grouped = (turn(session, join_file(here, way, is_kept=not number)) for way in WAYS)
            if not number and not is_right(folder, here):
                print("the groups are not DuckDB's", file=sys.stderr)
                return 1
            if number:
                took_alone, took_grouped = batch_ms(alone), batch_ms(grouped)
                ratios.append(took_grouped / took_alone)
                print(
                    f"pair {number}: join {took_alone:.0f} ms a batch, with groups {took_grouped:.0f} ms, ratio "
                    f"{ratios[-1]:.2f}, load {os.getloadavg()[0]:.1f}"
                )
    finally:
        if session is not None:
            session.stop()
    print(f"ratio: median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} pairs")
    sent = grouped.folded
    print(
        f"between the phases: {sent['tuples']:,} pairs of {sent['tuple_bytes']:,} bytes became {sent['views']:,} views "
        f"of {sent['view_bytes']:,} bytes, 1/{sent['tuple_bytes'] // max(sent['view_bytes'], 1)}"
    )
    return 0


def turn(session: SparkSession, file: Path) -> Progress:
    """Run a join file to its end."""
    bound = bind(load(file))
    return run_job(session, bound, bound.job(heartbeat=False), bound.sinks(), until_end=True)


def batch_ms(progress: Progress) -> float:
    """The median of the batches with input but for the first, in which workers start."""
    timed = [took for took, of in zip(progress.batch_ms, progress.times, strict=False) if of.tuples]
    return statistics.median(timed[1:] or timed)


def join_file(folder: Path, way: str, *, is_kept: bool = False) -> Path:
    """A join file for one of the two ways; `is_kept` writes groups down."""
    stream = {"source": "parquet", "time": "ts", "delay": "0us"}
    content = {
        "streams": {name: {**stream, "path": f"../{name}"} for name in STREAMS},
        "query": WAYS[way],
        "results": {"parquet": "groups"} if is_kept and way == "groups" else {"discard": True},
        "operator": {"name": "biclique", "routing": "hash", "r_units": 2, "s_units": 2},
        "run": {"checkpoint": f"{way}-state", "files_per_batch": 1, "slots": 2},
    }
    file = folder / f"{way}.yaml"
    file.write_text(json.dumps(content))
    return file


def is_right(folder: Path, here: Path) -> bool:
    """Whether the groups are those of DuckDB; sums of floats within 1e-9 of each other."""
    asked = duckdb.connect()
    mine = asked.execute(
        f"SELECT g, epoch_us(since), n, total, mean, top FROM '{here}/groups/*.parquet' ORDER BY 1, 2"
    ).fetchall()
    theirs = asked.execute(
        f"SELECT a.g, greatest(epoch_us(a.ts), epoch_us(b.ts)) // {SPAN_US} * {SPAN_US}, count(*), sum(b.x), avg(b.f), "
        f"max(b.f) FROM '{folder}/a/*.parquet' a JOIN '{folder}/b/*.parquet' b ON a.k = b.k "
        f"AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= {SPAN_US} GROUP BY 1, 2 ORDER BY 1, 2"
    ).fetchall()
    exact = [(*row[:4], row[5]) for row in mine] == [(*row[:4], row[5]) for row in theirs]
    return bool(mine) and exact and all(abs(one[4] - other[4]) < 1e-9 for one, other in zip(mine, theirs, strict=True))


def write(folder: Path, size: Size, seed: int) -> None:
    """One stream, a file a batch."""
    folder.mkdir()
    for number in range(size.batches):
        chosen = np.random.default_rng((seed, number))
        times = np.sort(chosen.integers(0, SPAN_US, size.rows)) + number * SPAN_US
        rows = pa.table(
            {
                "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "k": chosen.integers(0, size.rows, size.rows),
                "g": chosen.integers(0, GROUPS, size.rows),
                "x": chosen.integers(0, 100, size.rows),
                "f": chosen.normal(size=size.rows),
            }
        )
        pq.write_table(rows, folder / f"{number:06d}.parquet")


if __name__ == "__main__":
    sys.exit(main())
