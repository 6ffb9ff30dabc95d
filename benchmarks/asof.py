"""ASOF JOIN: rows of r a second, each with the row of s of its key that is the latest as of its time.

The whole job from Parquet in turns of one session, and beside it Flink's temporal join of the same files. Then the join
alone, in one process without Spark, reading or writing: intake, routing, units in turn, batch by batch; and DuckDB,
which has all rows at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import systems
from benchmarks.baselines.duckdb_join import count_asof
from benchmarks.data import STREAMS, make_equi, stream_files
from benchmarks.rates import rate_after
from benchmarks.scale import OutOfTimeError, Scale
from benchmarks.systems import Report
from benchmarks.turns import complain, take_turns
from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators import registry
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.state.memory import MemoryStates

EXPECTED_S = 420
TARGET = 500_000
"""Rows of r a second."""
OURS, FLINK = "streamjoin-driver", "flink-temporal-heap-60s"
QUERY = "SELECT ONLINE r.val AS r_val, s.val AS s_val FROM r ASOF JOIN s ON r.key = s.key AND r.ts >= s.ts"
DUCKDB_SQL = "SELECT count(*), sum(s.val) FROM r ASOF JOIN s ON r.key = s.key AND r.ts >= s.ts"
COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.int64()), ("val", pa.float64())])
DELAY_US = 1_000_000
UNITS = 2


@dataclass(frozen=True, slots=True)
class Size:
    """A stream has a row each millisecond, a file is a batch of the job, and the first one is the warm-up.

    Args:
        pieces: how many batches the join alone makes of a file; each is measured.
    """

    files: int
    rows_per_file: int
    keys: int
    turns: int
    memory_mb: int
    limit_s: float
    pieces: tuple[int, ...]


FULL = Size(files=8, rows_per_file=524_288, keys=100_000, turns=3, memory_mb=10_240, limit_s=420, pieces=(1, 4))
QUICK = Size(files=4, rows_per_file=8192, keys=1000, turns=1, memory_mb=512, limit_s=180, pieces=(1, 4))


def run(scale: Scale) -> dict[str, Any]:
    """`runs` by system with `rate_measured`, tuples of both streams a second after the first batch.

    `alone`: what the join alone does. `duckdb`: left rows a second. `flink`: why it was not measured.
    """
    size = scale.pick(FULL, QUICK)
    work = systems.folder(scale, "asof")
    data = scale.data / f"asof-{size.rows_per_file}x{size.files}"
    make_equi(
        data, files=size.files, rows_per_file=size.rows_per_file, keys=size.keys, span_ms_per_file=size.rows_per_file,
        seed=1,
    )  # fmt: skip
    count = count_asof(data)
    joins = {OURS: systems.join_file(work, OURS, systems.parquet_streams(data), QUERY, {"name": "auto"})}
    turns = take_turns(scale, work, "asof", joins, size.turns, 2 * size.rows_per_file, size.limit_s)
    runs: dict[str, Report] = {OURS: turns.whole(OURS, count)}
    skipped, unmeasured = [], None if scale.quick else systems.no_flink()
    try:
        if not scale.quick and unmeasured is None:
            runs[FLINK] = _flink(scale, work, data, size)
    except OutOfTimeError as spent:
        skipped.append(f"{FLINK}: {spent}")
    alone = [_alone(scale, data, pieces) for pieces in size.pieces]
    wrong = [f"{one['rows_per_batch']:,} rows a batch" for one in alone if one["results"] != count]
    return {
        "workload": asdict(size), "left_rows": size.rows_per_file * size.files, "results": count, "runs": runs,
        "alone": alone, "duckdb": _duckdb(data, size), "flink": unmeasured,
        **complain(runs, skipped), **({"error": f"wrong counts: {', '.join(wrong)}"} if wrong else {}),
    }  # fmt: skip


def _flink(scale: Scale, work: Path, data: Path, size: Size) -> Report:
    report = systems.flink(
        scale, work, FLINK, data, checkpoint_s=60, window_s=0, limit_s=size.limit_s, memory_mb=size.memory_mb,
        query="temporal",
    )  # fmt: skip
    report["rate_all"] = report.get("rows_per_second")
    report["rate_measured"] = rate_after(report, 2 * size.rows_per_file)
    report["right"] = None
    report["batch_rows"] = report["batch_ms"] = []  # Polls, twice a second.
    return report


def _alone(scale: Scale, data: Path, pieces: int) -> dict[str, Any]:
    """The median rate over batches without the first one, which compiles, and the rows of state at most."""
    streams = {name: StreamSchema(name, COLUMNS, "ts", delay_us=DELAY_US) for name in STREAMS}
    plan = plan_query(QUERY, streams)
    states = MemoryStates()
    loop = Loop(plan, registry.build_all("auto", {"units": UNITS}, plan, UNITS), lambda stage: states, UNITS)
    seconds, results, kept, rows = [], 0, 0, 0
    for number, batch in enumerate([*_batches(data, pieces), None]):
        scale.seconds(1)
        brought = Brought([[], []] if batch is None else [[rows] for rows in batch], number, drains=batch is None)
        begun_s = time.perf_counter()
        results += sum(found.num_rows for _, found in loop.batch(brought))
        seconds.append(time.perf_counter() - begun_s)
        loop.commit(brought)
        kept = max(kept, sum(sum(report.stored_rows) for report in loop.reports))
        rows = rows if batch is None else batch[0].num_rows
    rate = rows / float(np.median(seconds[1:-1]))
    return {"rows_per_batch": rows, "left_rows_per_second": rate, "results": results, "kept_rows": kept}


def _batches(data: Path, pieces: int) -> Iterator[list[pa.RecordBatch]]:
    """A batch of each stream."""
    for files in zip(*(stream_files(data, stream) for stream in STREAMS), strict=True):
        tables = [pq.read_table(file).combine_chunks() for file in files]
        each = tables[0].num_rows // pieces
        for first in range(0, each * pieces, each):
            yield [table.slice(first, each).cast(COLUMNS).to_batches()[0] for table in tables]


def _duckdb(data: Path, size: Size) -> dict[str, float]:
    """One thread, rows in memory."""
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        for stream in STREAMS:
            database.register(stream, pa.concat_tables([pq.read_table(file) for file in stream_files(data, stream)]))
        begun_s = time.perf_counter()
        found = database.execute(DUCKDB_SQL).fetchone()
        seconds = time.perf_counter() - begun_s
    assert found is not None
    return {"left_rows_per_second": size.rows_per_file * size.files / seconds, "results": found[0]}
