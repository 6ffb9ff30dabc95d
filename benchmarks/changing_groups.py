"""What it costs to add groups up anew whenever they change, by how many moments WITHIN has.

python -m benchmarks.changing_groups            1,000 groups, batches of 100,000 pairs and 60 s, WITHIN 10 MINUTES
python -m benchmarks.changing_groups --quick    toy sizes: shows that it works, its times mean nothing

Without Spark, in one process, by one unit. It prints for each query the views that the unit holds, how many rows a
batch gives, and the milliseconds of a batch that the unit of the groups takes: the median of the last five batches, in
which the window is full and every group changes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators import registry
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.state.store import StateStore

BATCH_US = 60_000_000
BATCHES = 16
GROUPS = 1_000
COLUMNS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("g", pa.int64()), ("x", pa.float64())])
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us") for name in "ab"}
HEAD = "SELECT ONLINE a.g, COUNT(*) AS n, SUM(b.x) AS total, MAX(b.x) AS top FROM a, b WHERE a.id = b.id "
WAYS = {
    "every second": HEAD + "WITHIN 10 MINUTES GROUP BY a.g EMIT EVERY 1 SECOND",
    "every 10 seconds": HEAD + "WITHIN 10 MINUTES GROUP BY a.g EMIT EVERY 10 SECONDS",
    "every minute": HEAD + "WITHIN 10 MINUTES GROUP BY a.g EMIT EVERY 1 MINUTE",
    "cumulative": HEAD + "WITHIN 10 MINUTES GROUP BY a.g CUMULATIVE EMIT EVERY 1 SECOND",
    "tumbling": HEAD + "WITHIN 10 MINUTES GROUP BY a.g, TUMBLE(1 MINUTE)",
}


def batch(number: int, rows: int) -> pa.RecordBatch:
    """Rows of one stream; those of the other are the same, so each finds one partner."""
    chosen = np.random.default_rng(number)
    times = np.sort(chosen.integers(number * BATCH_US, (number + 1) * BATCH_US, rows))
    ids = np.arange(number * rows, (number + 1) * rows)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(times),
            pa.array(ids),
            pa.array(chosen.integers(0, GROUPS, rows)),
            pa.array(chosen.normal(size=rows)),
        ],
        schema=COLUMNS,
    )


def measured(query: str, rows: int, batches: int) -> tuple[int, int, float]:
    """Views that are held, rows that a batch gives, and milliseconds of a batch."""
    plan = plan_query(query, STREAMS)
    operators = registry.build_all("biclique", {"r_units": 1, "s_units": 1}, plan, 1)
    spent, views, given = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(plan, operators, lambda stage: StateStore(Path(folder), stage, sync=False), 1)
        for number in range(batches):
            some = batch(number, rows)
            brought = Brought([[some], [some]], number)
            given = sum(part.num_rows for _, part in loop.batch(brought))
            loop.commit(brought)
            (unit,) = (report for report in loop.reports if report.label.endswith("G0"))
            spent.append(1000 * sum(unit.seconds.values()))
            views = sum(unit.stored_rows)
    return views, given, statistics.median(spent[-5:])


def main() -> None:
    """Measure all ways and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(f"{'':<18}{'views':>10}{'rows a batch':>14}{'ms a batch':>12}")
    for name, query in WAYS.items():
        views, given, milliseconds = measured(query, 1_000 if quick else 100_000, 3 if quick else BATCHES)
        print(f"{name:<18}{views:>10,}{given:>14,}{milliseconds:>12.0f}")


if __name__ == "__main__":
    main()
