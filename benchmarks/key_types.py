"""Tuples a second through one unit of each stream, by the type of the key: `python -m benchmarks.key_types`.

Equality and a band, batch by batch in one process without Spark; rates are medians over batches and rounds, the first
batch of each round left out. docs/query-language.md has the figures of one machine.
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamjoin.operators.biclique import Biclique
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from tests.conformance.local import LocalRun

ROWS = 400_000
"""Of each stream in a batch."""
BATCHES = 6
KINDS = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "decimal(18,2)": pa.decimal128(18, 2),
    "decimal(38,2)": pa.decimal128(38, 2),
}
CONDITIONS = {"equality": ("r.k = s.k", 4 * ROWS), "band": ("ABS(r.k - s.k) <= {}", 100 * ROWS)}
"""A condition, and how many different keys there are."""
WIDTHS = {"int64": "20", "float64": "20"}
"""Of the band, as far as keys are given in units and not in hundredths."""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.key_types", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    keep_freed_memory()
    for name, (condition, keys) in CONDITIONS.items():
        seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
        found = set()
        for _ in range(rounds):  # in turn, so that what the machine does besides meets all types
            for kind in KINDS:
                times, results = run(kind, condition.format(WIDTHS.get(kind, "0.20")), keys)
                seconds[kind] += times
                found.add(results)
        assert len(found) == 1, f"the types do not agree: {found}"
        base = np.median(seconds["int64"])
        for kind, times in seconds.items():
            print(
                f"{name:<9} {kind:<14} {2 * ROWS / np.median(times):>12,.0f} tuples/s  {base / np.median(times):5.2f}"
            )


def keep_freed_memory() -> None:
    """Let the C library reuse freed arrays in place of giving them back.

    It does so or not by how large the arrays before were. Page faults then take a quarter of the time, with some types
    and not with others, and the next run has it the other way round.
    """
    libc = ctypes.CDLL(None)
    for setting in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of mallopt(3)
        libc.mallopt(setting, 1 << 30)


def run(kind: str, condition: str, keys: int) -> tuple[list[float], int]:
    """(seconds of each batch but the first, results)."""
    rng = np.random.default_rng(1)
    batches = [tuple(batch(rng, KINDS[kind], number, keys) for _ in "rs") for number in range(BATCHES)]
    schemas = {name: StreamSchema(name, batches[0][0].schema, "ts") for name in "rs"}
    query = f"SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE {condition} WITHIN {2 * ROWS} MICROSECONDS"
    times, results = [], 0
    plan = plan_query(query, schemas)
    assert isinstance(plan, JoinPlan)
    with tempfile.TemporaryDirectory(prefix="key-types-") as folder:
        job = LocalRun(plan, Biclique(1, 1), Path(folder))
        for r, s in batches:
            begun = time.perf_counter()
            results += sum(part.num_rows for part in job.batch(([r], [s])))
            times.append(time.perf_counter() - begun)
    return times[1:], results


def batch(rng: np.random.Generator, kind: pa.DataType, number: int, keys: int) -> pa.RecordBatch:
    """One stream's rows of a batch, a microsecond apart."""
    places = np.arange(ROWS)
    drawn = rng.integers(0, keys, ROWS)
    times = pa.array(places + number * ROWS).view(pa.timestamp("us", "UTC"))
    return pa.record_batch([pa.array(places), times, column(kind, drawn)], ["id", "ts", "k"])


def column(kind: pa.DataType, numbers: np.ndarray) -> pa.Array:
    """The numbers as keys; as decimals, in hundredths."""
    if not pa.types.is_decimal(kind):
        return pa.array(numbers).cast(kind)
    words = np.stack([numbers, numbers >> 63], axis=1)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(words))])


if __name__ == "__main__":
    main()
