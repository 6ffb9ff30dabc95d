"""What single steps of a join take here, for the cost formulas of joins of three streams and more.

    python -m benchmarks.step_times

One unit a side joins two streams in one process, without Spark. Rows that match nothing tell what a row costs: it is
stored and dropped, looked up, and sent twice, which count as a quarter each. The same rows with many matches tell what
a pair that is looked at costs.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators import registry
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.state.memory import MemoryStates

COLUMNS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64())])
QUERY = "SELECT ONLINE a.id AS a, b.id AS b FROM a, b WHERE a.k = b.k WITHIN 1 SECOND"
BATCHES = 10
ROWS = 100_000
"""Of each stream in a batch, which spans two seconds."""
TRIES = 3


def run(keys: int) -> tuple[float, int]:
    """Seconds of a join of rows whose keys are so many, and the pairs that it found."""
    streams = {name: StreamSchema(name, COLUMNS, "ts", "us", 0) for name in "ab"}
    plan = plan_query(QUERY, streams)
    states = [MemoryStates() for _ in plan.stages]
    operators = registry.build_all("biclique", {"r_units": 1, "s_units": 1}, plan, 1)
    loop = Loop(plan, operators, lambda stage: states[stage], 1)
    chosen = np.random.default_rng(1)
    pairs, taken_s = 0, 0.0
    for number in range(BATCHES):
        ts = np.linspace(number, number + 1, ROWS, endpoint=False) * 2e6
        pieces = [
            [pa.RecordBatch.from_arrays([pa.array(ts.astype(np.int64)), pa.array(np.arange(ROWS)),
                                         pa.array(chosen.integers(0, keys, ROWS) * 2 + side * (keys > ROWS))],
                                        schema=COLUMNS)]
            for side in range(2)
        ]  # fmt: skip
        begun_s = time.perf_counter()
        brought = Brought(pieces, 1_000_000 * number)
        found = sum(part.num_rows for _, part in loop.batch(brought))
        loop.commit(brought)
        if number:  # the first one compiles, and meets nothing stored
            taken_s += time.perf_counter() - begun_s
            pairs += found
    return taken_s, pairs


def main() -> None:
    """Print what a row and a pair cost."""
    run(10 * ROWS)
    rows = 2 * ROWS * (BATCHES - 1)
    few_s = min(run(10 * ROWS)[0] for _ in range(TRIES))
    many_s, pairs = min(run(2_000) for _ in range(TRIES))
    print(f"a row {few_s / rows * 1e6:.3f} us, a quarter of it {few_s / rows / 4 * 1e6:.3f} us")
    print(f"a pair {(many_s - few_s) / pairs * 1e6:.4f} us, of {pairs:,}")


if __name__ == "__main__":
    main()
