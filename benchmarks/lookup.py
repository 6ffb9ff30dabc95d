"""A stream looked up in a relation of rows of 120 bytes, by the units alone, or by whole jobs of several systems.

    python -m benchmarks.lookup [--rows 10000000] [--batch-rows 1048576] [--batches 8] [--processes 2]

Without Spark: intake, routing and units in processes. The relation is read and sorted once, and its segments are mapped
by all processes. Each joins its own batches of random keys, of which nine in ten are there; the first batch, which maps
the pages, is not timed.

    python -m benchmarks.lookup --systems [--rows 1000000] [--batch-rows 1048576] [--batches 8] [--memory-mb 4096]
        [--limit-s 600]

The whole job from Parquet, with two slots: `lookup`, Spark's own join with the relation broadcast and with both sides
shuffled, each batch a file of the stream, and Flink's lookup join with its full cache. All count the same results.
Rates leave out the first batch, of Flink the first tenth of the rows, and what was read before it.

    python -m benchmarks.lookup --cgroup /sys/fs/cgroup/memory

A relation whose pages have a tenth of its size in memory; see `benchmarks.lookup_limited`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Mapping
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import systems
from benchmarks.baselines.termination import exit_on_terminate
from benchmarks.data import make_equi
from benchmarks.lookup_limited import limited_lookup, timed
from benchmarks.scale import Scale
from benchmarks.systems import Report
from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators.lookup import Lookup
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query
from streamjoin.relations.versions import Tables, Version, Versions
from streamjoin.state.memory import MemoryStates

BLOCK_ROWS = 1 << 18
TEXT_BYTES = 104
STREAM = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("k", pa.int64())])
OURS, FLINK = "lookup", "flink-lookup-full-cache"
SPARKS = ("spark-broadcast", "spark-shuffled")
QUERY = "SELECT ONLINE r.ts, r.key, r.val, c.city, c.name FROM r JOIN c ON r.key = c.id"
TEXT = "s.id, r.name"
ANY_SIZE = {"spark.driver.maxResultSize": "0"}
"""Spark's driver refuses results above 1 GiB, and a relation that is broadcast comes to the driver as one."""
RELATION = pa.schema([("id", pa.int64()), ("city", pa.int64()), ("name", pa.string())])


def planned(select: str) -> Cascade:
    """The join of the stream with the relation."""
    inputs = {"s": StreamSchema("s", STREAM, "ts"), "r": StreamSchema.of_relation("r", RELATION)}
    plan = plan_query(f"SELECT ONLINE {select} FROM s JOIN r ON s.k = r.id", inputs)
    assert isinstance(plan, Cascade)
    return plan


def blocks(rows: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The relation: ids in random order, a number, and a text that fills up the 120 bytes."""
    ids = np.random.default_rng(1).permutation(rows)
    for first in range(0, rows, BLOCK_ROWS):
        some = ids[first : first + BLOCK_ROWS]
        letters = np.random.default_rng(first).integers(97, 123, some.size * TEXT_BYTES, dtype=np.uint8)
        offsets = np.arange(0, some.size * TEXT_BYTES + 1, TEXT_BYTES, dtype=np.int32)
        texts = pa.StringArray.from_buffers(some.size, pa.py_buffer(offsets), pa.py_buffer(letters))
        yield pa.RecordBatch.from_arrays([pa.array(some), pa.array(some % 1000), texts], schema=RELATION), 0


def read_relation(folder: Path, select: str, rows: int, units: Mapping[int, int] | None = None) -> Version:
    """The relation, read and sorted into segments, or dealt out to units; see `Versions.read`."""
    (plan,) = (stage.plan for stage in planned(select).stages)
    assert isinstance(plan, JoinPlan)
    version = Versions(folder, "r", sync=False).read(blocks(rows), {0: plan}, "made", units=units)
    assert version is not None
    return version


def looking(folder: Path, select: str) -> Loop:
    """A job that looks rows up, in this process."""
    states = MemoryStates()
    return Loop(planned(select), (Lookup(1),), lambda stage: states, tables=Tables(folder))


def bring(rng: np.random.Generator, number: int, rows: int, batch_rows: int) -> Brought:
    """A batch of random keys, of which nine in ten are there."""
    times = pa.array(np.arange(batch_rows) + number * batch_rows).cast(STREAM.field("ts").type)
    arrays = [times, pa.array(np.arange(batch_rows)), pa.array(rng.integers(0, rows * 10 // 9, batch_rows))]
    return Brought([[pa.RecordBatch.from_arrays(arrays, schema=STREAM)]], number, versions={"r": 1})


def looked_up(folder: Path, select: str, rows: int, batch_rows: int, batches: int, seed: int, ready: object) -> float:
    """Rows a second of one process."""
    rng = np.random.default_rng(seed)
    loop = looking(folder, select)
    brought = [bring(rng, number, rows, batch_rows) for number in range(batches + 1)]
    begun_s = 0.0
    for number, batch in enumerate(brought):
        if number == 1:
            ready.wait()  # type: ignore[attr-defined]  # a barrier
            begun_s = time.perf_counter()
        found = sum(part.num_rows for _, part in loop.batch(batch))
        assert 0.85 * batch_rows < found < 0.95 * batch_rows
        loop.commit(batch)
    return batches * batch_rows / (time.perf_counter() - begun_s)


def main() -> int:
    """Measure, and print what was found; the exit status is 1 if systems count differently, or one failed."""
    parser = argparse.ArgumentParser(description="Look rows of a stream up in a relation.")
    parser.add_argument("--systems", action="store_true", help="whole jobs of several systems, not the units alone")
    parser.add_argument("--rows", type=int, help="of the relation: 10,000,000, with --systems 1,000,000")
    parser.add_argument("--batch-rows", type=int, help="1,048,576, with --cgroup 4,194,304")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--memory-mb", type=int, default=4096, help="heap of Spark's and Flink's Java")
    parser.add_argument("--limit-s", type=float, default=600.0, help="what each system may take")
    parser.add_argument("--cgroup", type=Path, help="memory cgroup in which others may be made; see limited.py")
    asked = parser.parse_args()
    if asked.cgroup:
        _limited(asked.cgroup, asked.rows or 10_000_000, asked.batch_rows or 1 << 22, asked.batches, asked.processes)
        return 0
    batch_rows = asked.batch_rows or 1 << 20
    if asked.systems:
        exit_on_terminate()
        return _systems(asked.rows or 1_000_000, batch_rows, asked.batches, asked.memory_mb, asked.limit_s)
    _units(asked.rows or 10_000_000, batch_rows, asked.batches, asked.processes)
    return 0


def _systems(rows: int, batch_rows: int, batches: int, memory_mb: int, limit_s: float) -> int:
    """Jobs of several systems over the same files."""
    with tempfile.TemporaryDirectory(prefix="lookup-") as name:
        scale = Scale(False, time.monotonic() + 5 * limit_s, Path(name), Path(name) / "work")
        work, data = systems.folder(scale, "lookup"), Path(name) / "data"
        make_equi(
            data, files=batches + 1, rows_per_file=batch_rows, keys=rows * 10 // 9, span_ms_per_file=batch_rows, seed=1,
            streams=("r",),
        )  # fmt: skip
        (data / "c").mkdir()
        with pq.ParquetWriter(data / "c" / "00000.parquet", RELATION) as written:
            for block, _ in blocks(rows):
                written.write_batch(block)
        reports = {one: _own(scale, work, data, one, memory_mb, limit_s) for one in (OURS, *SPARKS)}
        if reason := systems.no_flink():
            print(f"{FLINK}: left out: {reason}")
        else:
            reports[FLINK] = systems.flink(
                scale, work, FLINK, data, checkpoint_s=60, window_s=0, limit_s=limit_s, memory_mb=memory_mb,
                query="lookup", is_counted=True,
            )  # fmt: skip
    for system, report in reports.items():
        print(f"{system}: {_words(report)}")
    if len({report.get("results") for report in reports.values()}) > 1:
        print("the numbers of results differ")
        return 1
    return 1 if any(report.get("error") for report in reports.values()) else 0


def _own(scale: Scale, work: Path, data: Path, operator: str, memory_mb: int, limit_s: float) -> Report:
    is_sparks = operator in SPARKS
    content = systems.join_file(
        work, operator, systems.parquet_streams(data, streams=("r",)), QUERY, {"name": operator},
        driver_memory=memory_mb, spark=ANY_SIZE if is_sparks else {},
    )  # fmt: skip
    content["relations"] = {"c": {"source": "parquet", "path": str(data / "c")}}
    via = "spark" if is_sparks else "driver"
    (report,) = systems.own(scale, work, operator, [content], limit_s=limit_s, via=via)
    return report


def _words(report: Report) -> str:
    if report.get("error"):
        return f"failed: {report['error']}"
    return (
        f"{report['rows_per_second_after_warmup'] or 0:,.0f} stream rows/s, {report['rows_per_second']:,.0f} with the "
        f"first ones, {report['results']:,} results, {report['memory']['pss_bytes'] / 2**20:,.0f} MiB at most"
    )


def _units(rows: int, batch_rows: int, batches: int, processes: int) -> None:
    """Our units alone."""
    for what, select in (("a number", "s.id, r.city"), ("the text", TEXT)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            begun_s, process = time.perf_counter(), psutil.Process()
            version = read_relation(folder, select, rows)
            seconds, size = time.perf_counter() - begun_s, process.memory_info().rss
            print(
                f"{what}: {version.rows:,} rows read and sorted in {seconds:.1f} s, {version.bytes / 2**20:,.0f} MiB "
                f"in {len(version.stages[0])} segments; the process had {size / 2**20:,.0f} MiB"
            )
            context = multiprocessing.get_context("fork")
            ready = context.Barrier(processes)
            with context.Pool(processes, initializer=_keep, initargs=(ready,)) as pool:
                given = [(folder, select, rows, batch_rows, batches, seed) for seed in range(processes)]
                rates = pool.starmap(_one, given, chunksize=1)
            print(f"{what}: {sum(rates):,.0f} stream rows/s in {processes} processes")


def _limited(parent: Path, rows: int, batch_rows: int, batches: int, processes: int) -> None:
    """Our units below a limit of memory; a batch's rows are shared by the processes."""

    def build(folder: Path) -> int:
        return read_relation(folder, TEXT, rows).bytes

    def join(folder: Path, seed: int, together: Barrier) -> tuple[list[float], int]:
        rng = np.random.default_rng(seed)
        return timed(
            looking(folder, TEXT), lambda number: bring(rng, number, rows, batch_rows // processes), batches, together
        )

    limited_lookup(parent, build, join, [(seed,) for seed in range(processes)], batch_rows=batch_rows)


_ready: object = None


def _keep(ready: object) -> None:
    global _ready  # a pool's workers get a barrier at their start only
    _ready = ready


def _one(folder: Path, select: str, rows: int, batch_rows: int, batches: int, seed: int) -> float:
    return looked_up(folder, select, rows, batch_rows, batches, seed, _ready)


if __name__ == "__main__":
    raise SystemExit(main())
