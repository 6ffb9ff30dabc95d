"""What operators that read a relation of 10^7 rows again and again count as memory, and what their process has.

    python -m benchmarks.semistream_memory [--rows 10000000] [--rounds 3]

A unit of `ssbj` and one of `meshjoin` alone, without Spark, join a stream after Zipf's law with a relation of 120 bytes
a row, with memory for 1, 2, 5 and 10 % of it. More comes than may enter, so memory is full. Each runs in a process of
its own, whose anonymous memory is looked at every 5 ms while it joins a batch; what it had after a small join is left
out. That process also has what the count leaves out by its definition: the batch that comes, whose size is printed
beside it, results on their way out, and what Python and Arrow take meanwhile. Rates are of all rounds but the first,
with what is left of their batches outside. They count the time to join and commit a batch, not the time to make it. The
relation's pages are in the page cache.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.footprint import most
from benchmarks.lookup import STREAM, TEXT, planned, read_relation
from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators.meshjoin import MeshJoin
from streamjoin.operators.meshjoin.scan import Scan
from streamjoin.operators.ssbj import BalancedJoin
from streamjoin.relations.versions import Tables, Version
from streamjoin.state.store import StateStore

OPERATORS = {"ssbj": BalancedJoin, "meshjoin": MeshJoin}
SHARES = (0.01, 0.02, 0.05, 0.1)
SAMPLE_S = 0.005
COME_TIMES = 4
"""So many times as many tuples come as fill the memory in a round."""
TUPLE_BYTES = 24
SMALL_ROWS, SMALL_BYTES = 20_000, 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """One operator with one memory.

    Args:
        counted_bytes: what the operator counts, at most.
        come_bytes: the tuples that a batch brings.
        own_bytes: anonymous memory of its process at most, above what it had before.
        outside: tuples that wait at the end and have not entered.
    """

    memory_bytes: int
    counted_bytes: int
    come_bytes: int
    own_bytes: int
    tuples_per_s: float
    outside: int


def relation(folder: Path, rows: int) -> Version:
    """The relation, as it comes, for one unit."""
    return read_relation(folder, TEXT, rows, {0: 1})


def measured(folder: Path, name: str, version: Version, memory_bytes: int, rounds: int) -> Found:
    """Join for some rounds through the relation, after two through a small one."""
    with tempfile.TemporaryDirectory(dir=folder) as small:
        _joined(Path(small), name, relation(Path(small), SMALL_ROWS), SMALL_BYTES, 2)
    return _joined(folder, name, version, memory_bytes, rounds)


def _joined(folder: Path, name: str, version: Version, memory_bytes: int, rounds: int) -> Found:
    scan = Scan(memory_bytes=memory_bytes)
    size = sum(part.bytes for part in version.stages[0])
    parts = scan.parts(version.rows, size, 1)
    steps = scan.steps_of(parts, size)
    rows = round(COME_TIMES * memory_bytes / TUPLE_BYTES * steps / parts)
    batches = -(-parts // steps)
    with tempfile.TemporaryDirectory(dir=folder) as state:
        store = StateStore(Path(state), sync=False)
        loop = Loop(planned(TEXT), (OPERATORS[name](1, scan),), lambda stage: store, tables=Tables(folder))
        rng, keys = np.random.default_rng(2), np.random.default_rng(1).permutation(version.rows)
        bounds = np.cumsum(1 / np.arange(1, version.rows + 1))
        joined = highest = come = 0
        seconds = 0.0
        before = _anonymous_bytes()
        for number in range(rounds * batches):
            if number == batches:
                joined, seconds = 0, 0.0
            some = _made(keys[np.searchsorted(bounds, rng.random(rows) * bounds[-1])], number)
            come = some.nbytes
            brought = Brought([[some]], number, versions={"r": 1})
            with most(_anonymous_bytes, SAMPLE_S) as held:
                begun_s = time.perf_counter()
                for _ in loop.batch(brought):
                    pass  # results are let go as they come
                loop.commit(brought)
                seconds += time.perf_counter() - begun_s
            highest = max(highest, held[0])
            joined += loop.reports[0].reading["tuples"]
        holding = loop.reports[0].holding
    counted, outside = holding["memory_bytes_max"], holding["outside_rows"]
    return Found(memory_bytes, counted, come, highest - before, joined / seconds, outside)


def _made(keys: np.ndarray, number: int) -> pa.RecordBatch:
    """A batch of tuples with these keys."""
    rows = len(keys)
    times = pa.array(np.arange(rows) + number * rows).cast(STREAM.field("ts").type)
    return pa.RecordBatch.from_arrays([times, pa.array(np.arange(rows)), pa.array(keys)], schema=STREAM)


def main() -> int:
    """Measure and print; the exit status is 1 where an operator counted more than it may have."""
    parser = argparse.ArgumentParser(description="Memory of ssbj and meshjoin beside a large relation.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    context, worst = multiprocessing.get_context("spawn"), 0.0
    with tempfile.TemporaryDirectory(prefix="semistream-") as name:
        with context.Pool(1) as pool:
            version = pool.apply(relation, (Path(name), asked.rows))
        size = sum(part.bytes for part in version.stages[0])
        print(f"relation {version.rows:,} rows, {size / 2**20:,.0f} MiB")
        names = ("memory", "counted", "a batch", "process")
        print(f"{'':<10}{'share':>6}" + "".join(f"{one:>10}" for one in names) + f"{'tuples/s':>12}{'outside':>13}")
        for share in SHARES:
            for operator in OPERATORS:
                with context.Pool(1) as pool:
                    given = (Path(name), operator, version, round(share * size), asked.rounds)
                    found = pool.apply(measured, given)
                worst = max(worst, found.counted_bytes / found.memory_bytes)
                mib = [
                    one / 2**20 for one in (found.memory_bytes, found.counted_bytes, found.come_bytes, found.own_bytes)
                ]
                print(
                    f"{operator:<10}{share:>6.0%}"
                    + "".join(f"{one:>10.1f}" for one in mib)
                    + f"{found.tuples_per_s:>12,.0f}{found.outside:>13,}",
                    flush=True,
                )
    return 1 if worst > 1 else 0


def _anonymous_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not tell how much memory of a process no file backs")


if __name__ == "__main__":
    raise SystemExit(main())
