"""As-of joins: left rows a second against so many keys, and DuckDB's beside it: `python -m benchmarks.asof`.

Batch by batch in one process without Spark, reading or writing: intake, routing, units in turn. Each batch brings as
many rows of either stream. Rates are medians over batches, the first one left out, which compiles. DuckDB has all rows
at once, and is given the batches that were joined.
"""

from __future__ import annotations

import argparse
import time

import duckdb
import numpy as np
import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators import registry
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.state.memory import MemoryStates

COLUMNS = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.float64())])
BATCH_US = 1_000_000
"""Event time of a batch; rows of a stream are in order."""
DELAY_US = 1_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.asof", description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of each stream in a batch")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--units", type=int, default=2)
    asked = parser.parse_args()
    streams = {name: StreamSchema(name, COLUMNS, "ts", "us", DELAY_US) for name in "tq"}
    plan = plan_query("SELECT ONLINE t.x AS tx, q.x AS qx FROM t ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts", streams)
    states = MemoryStates()
    operators = registry.build_all("auto", {"units": asked.units}, plan, asked.units)
    loop = Loop(plan, operators, lambda stage: states, asked.units)
    rng = np.random.default_rng(1)
    given: dict[str, list[pa.RecordBatch]] = {"t": [], "q": []}
    seconds, results, kept = [], 0, 0
    for number in range(asked.batches + 1):
        new = {name: [rows(rng, number, asked.rows, asked.keys)] if number < asked.batches else [] for name in given}
        brought = Brought([new["t"], new["q"]], number, drains=number == asked.batches)
        begun = time.perf_counter()
        results += sum(found.num_rows for _, found in loop.batch(brought))
        seconds.append(time.perf_counter() - begun)
        loop.commit(brought)
        kept = max(kept, sum(sum(report.stored_rows) for report in loop.reports))
        for name, pieces in new.items():
            given[name] += pieces
    rate = asked.rows / np.median(seconds[1:-1])
    print(f"StreamJoin {rate:>12,.0f} left rows/s, {results:,} results, {kept:,} rows kept at most")
    begun = time.perf_counter()
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        for name, pieces in given.items():
            database.register(name, pa.Table.from_batches(pieces))
        found = database.execute(
            "SELECT count(*), sum(q.x) FROM t ASOF JOIN q ON t.k = q.k AND t.ts >= q.ts"
        ).fetchone()
    assert found is not None
    rate = asked.rows * asked.batches / (time.perf_counter() - begun)
    print(f"DuckDB     {rate:>12,.0f} left rows/s, {found[0]:,} results, one thread, all rows at once")
    assert found[0] == results


def rows(rng: np.random.Generator, batch: int, count: int, keys: int) -> pa.RecordBatch:
    """Rows of one batch of a stream."""
    times = np.sort(rng.integers(batch * BATCH_US, (batch + 1) * BATCH_US, count))
    columns = [pa.array(times), pa.array(rng.integers(0, keys, count)), pa.array(rng.random(count))]
    return pa.RecordBatch.from_arrays(columns, schema=COLUMNS)


if __name__ == "__main__":
    main()
