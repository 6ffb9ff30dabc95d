"""A stream looked up in a relation of 10^7 rows of 120 bytes, without Spark: intake, routing and units in processes.

    python -m benchmarks.lookup [--rows 10000000] [--batch-rows 1048576] [--batches 8] [--processes 2]

The relation is read and sorted once, and its segments are mapped by all processes. Each joins its own batches of
random keys, of which nine in ten are there; the first batch, which maps the pages, is not timed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators.lookup import Lookup
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query
from streamjoin.relations.versions import Tables, Versions
from streamjoin.state.memory import MemoryStates

BLOCK_ROWS = 1 << 18
TEXT_BYTES = 104
STREAM = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("k", pa.int64())])
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


def looked_up(folder: Path, select: str, rows: int, batch_rows: int, batches: int, seed: int, ready: object) -> float:
    """Rows a second of one process."""
    rng = np.random.default_rng(seed)
    states = MemoryStates()
    loop = Loop(planned(select), (Lookup(1),), lambda stage: states, tables=Tables(folder))
    brought = []
    for number in range(batches + 1):
        times = pa.array(np.arange(batch_rows) + number * batch_rows).cast(STREAM.field("ts").type)
        keys = pa.array(rng.integers(0, rows * 10 // 9, batch_rows))
        arrays = [times, pa.array(np.arange(batch_rows)), keys]
        brought.append(Brought([[pa.RecordBatch.from_arrays(arrays, schema=STREAM)]], number, versions={"r": 1}))
    begun_s = 0.0
    for number, batch in enumerate(brought):
        if number == 1:
            ready.wait()  # type: ignore[attr-defined]  # a barrier
            begun_s = time.perf_counter()
        found = sum(part.num_rows for _, part in loop.batch(batch))
        assert 0.85 * batch_rows < found < 0.95 * batch_rows
        loop.commit(batch)
    return batches * batch_rows / (time.perf_counter() - begun_s)


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description="Look rows of a stream up in a relation.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--batch-rows", type=int, default=1 << 20)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    for what, select in (("a number", "s.id, r.city"), ("the text", "s.id, r.name")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (plan,) = (stage.plan for stage in planned(select).stages)
            assert isinstance(plan, JoinPlan)
            begun_s, process = time.perf_counter(), psutil.Process()
            version = Versions(folder, "r", sync=False).read(blocks(asked.rows), {0: plan}, "made")
            assert version is not None
            seconds, size = time.perf_counter() - begun_s, process.memory_info().rss
            print(
                f"{what}: {version.rows:,} rows read and sorted in {seconds:.1f} s, {version.bytes / 2**20:,.0f} MiB "
                f"in {len(version.stages[0])} segments; the process had {size / 2**20:,.0f} MiB"
            )
            context = multiprocessing.get_context("fork")
            ready = context.Barrier(asked.processes)
            with context.Pool(asked.processes, initializer=_keep, initargs=(ready,)) as pool:
                given = [
                    (folder, select, asked.rows, asked.batch_rows, asked.batches, seed)
                    for seed in range(asked.processes)
                ]
                rates = pool.starmap(_one, given, chunksize=1)
            print(f"{what}: {sum(rates):,.0f} stream rows/s in {asked.processes} processes")


_ready: object = None


def _keep(ready: object) -> None:
    global _ready  # a pool's workers get a barrier at their start only
    _ready = ready


def _one(folder: Path, select: str, rows: int, batch_rows: int, batches: int, seed: int) -> float:
    return looked_up(folder, select, rows, batch_rows, batches, seed, _ready)


if __name__ == "__main__":
    main()
