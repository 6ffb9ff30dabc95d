"""What single steps of joins with relations take here, for the rates that `explain` predicts of them.

    python -m benchmarks.reading_times

One unit joins a stream with a relation in one process, without Spark. Counted is what its report says that the unit
took, but by the thread's own clock, which stands still while others have the core. Each figure is a difference between
runs that differ in one thing. At the end two joins whose memory is full, which no figure was taken from, beside what
the model says of them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmarks.machine import describe
from streamjoin.engine.loop import Brought, Loop
from streamjoin.engine.operator import Operator
from streamjoin.operators.costs.keys import zipf_keys
from streamjoin.operators.costs.reading import CACHE_TIMES, SCAN_TIMES
from streamjoin.operators.costs.ssbj import Bytes, Join
from streamjoin.operators.lookup import Lookup
from streamjoin.operators.meshjoin import MeshJoin
from streamjoin.operators.meshjoin.scan import Scan
from streamjoin.operators.reading import WORK, measured
from streamjoin.operators.ssbj import BalancedJoin
from streamjoin.operators.ssbj.cache import ENTRY_BYTES
from streamjoin.operators.ssbj.moving import Rule
from streamjoin.operators.ssbj.step import COLLECTED_SHARE
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query
from streamjoin.relations.versions import Tables, Versions
from streamjoin.state.store import StateStore

STREAM = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64())])
RELATION = pa.schema([("k", pa.int64()), ("x", pa.int64()), ("name", pa.string())])
ROWS, TUPLES = 1_000_000, 200_000
TRIES, BATCHES = 3, 5


@dataclass(frozen=True, slots=True)
class Ran:
    """What a unit did in its last batches: seconds, and counts of its report by name."""

    seconds: float
    counts: dict[str, int]


def ran(operator: Operator, relation: np.ndarray, batches: Sequence[np.ndarray], warm: int = 1) -> Ran:
    """A unit's work.

    Args:
        relation, batches: join values; a stream's by batch.
        warm: so many of the first batches do not count, as they compile or fill the memory.
    """
    inputs = {"a": StreamSchema("a", STREAM, "ts", "us", 0), "c": StreamSchema.of_relation("c", RELATION)}
    plan = plan_query("SELECT ONLINE a.id, c.x FROM a JOIN c ON a.k = c.k", inputs)
    assert isinstance(plan, Cascade)
    (join,) = (stage.plan for stage in plan.stages)
    assert isinstance(join, JoinPlan)
    rows = pa.RecordBatch.from_arrays(
        [pa.array(relation), pa.array(relation), pa.array(["n" * 60] * relation.size)], schema=RELATION
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        units = {0: 1} if operator.capabilities.reads_parts else None
        Versions(folder / "relations", "c", sync=False).read([(rows, 0)], {0: join}, "made", units=units)
        loop = Loop(plan, (operator,), lambda stage: StateStore(folder / "state", stage, sync=False),
                    tables=Tables(folder / "relations"))  # fmt: skip
        seconds, counts = 0.0, dict[str, int]()
        for number, keys in enumerate(batches):
            numbers = pa.array(np.arange(keys.size) + number)
            piece = pa.RecordBatch.from_arrays([numbers, numbers, pa.array(keys)], schema=STREAM)
            brought = Brought([[piece]], 1_000_000 * number, versions={"c": 1})
            with patch("time.perf_counter", time.thread_time):
                for _ in loop.batch(brought):
                    pass
            loop.commit(brought)
            if number >= warm:
                (report,) = loop.reports
                seconds += sum(report.seconds.values())
                for what, count in report.reading.items():
                    counts[what] = counts.get(what, 0) + count
    return Ran(seconds, counts)


def seconds_of(operator: Operator, relation: np.ndarray, keys: np.ndarray) -> float:
    """Seconds of a batch of these keys, the least of some tries."""
    return min(ran(operator, relation, [keys] * (BATCHES + 1)).seconds / BATCHES for _ in range(TRIES))


def mesh(parts: int, steps: int) -> MeshJoin:
    """One unit that reads so many parts a batch."""
    return MeshJoin(1, Scan(parts, None, steps))


def main() -> None:
    """Print what a step costs, and how far the model is from two joins."""
    random = np.random.default_rng(1)
    even, small = 2 * random.permutation(ROWS), 2 * random.permutation(1_000)
    one, hot = np.ones(1, np.int64), 2 * random.integers(0, 1_000, TUPLES)
    said: list[tuple[str, float]] = []

    def tell(what: str, seconds: float) -> float:
        said.append((what, seconds))
        print(f"{what:<48} {seconds * 1e9:>12,.1f} ns", flush=True)
        return seconds

    print(describe())
    alone = 2 * random.integers(0, ROWS, TUPLES)
    missed = seconds_of(Lookup(1), even, alone + 1)
    tell("lookup: a tuple (take, look_up)", missed / TUPLES)
    tell("lookup: a result (output)", (seconds_of(Lookup(1), even, alone) - missed) / TUPLES)
    tell("a row that is read and put in order (read)", seconds_of(mesh(1, 1), even, one) / ROWS)
    cut, whole = (seconds_of(mesh(parts, parts), small, one) for parts in (500, 1))
    tell("a part (seek), with one chunk", (cut - whole) / 499)
    once = seconds_of(mesh(1, 1), small, hot + 1)
    ten = seconds_of(mesh(10, 10), small, hot + 1)
    search = tell("a tuple that waits, in each part (search)", (ten - once) / 9 / TUPLES)
    tell("a tuple that waits, beside that (take, append)", once / TUPLES - search)
    tell("a result of it (output)", (seconds_of(mesh(1, 1), small, hot) - once) / TUPLES)
    cached = BalancedJoin(1, Scan(1, None, 1))
    batches = [hot] * 20
    hits = min((ran(cached, small, batches, warm=12) for _ in range(TRIES)), key=lambda found: found.seconds)
    assert hits.counts["cache_hits"] == 8 * TUPLES
    tell("ssbj: a tuple that the cache joins, with its result", hits.seconds / 8 / TUPLES)
    never = BalancedJoin(1, Scan(1, None, 1), rule=Rule(switching_factor=1000.0))
    tell("ssbj: a tuple that waits, its search included", seconds_of(never, small, hot + 1) / TUPLES)
    tell("a chunk in a part (meet)", _meet())
    for caches in (False, True):
        _beside(caches)


def _meet() -> float:
    """Chunks of one tuple, up to 200 at once, which meet 200 parts of 5 rows."""
    relation, parts = 2 * np.arange(1_000), 200
    keys = 2 * np.random.default_rng(1).integers(0, 1_000, 4_000) + 1

    def took(memory: int) -> float:
        found = ran(MeshJoin(1, Scan(parts, memory, parts)), relation, [keys] * 4)
        return found.seconds / found.counts["steps"]

    few = min(ran(mesh(parts, parts), relation, [one := keys[:1]] * 4 + [one]).seconds for _ in range(TRIES)) / 4
    many = min(took(12_000) for _ in range(TRIES))
    return (many - few / parts) / (parts - 1)


def _beside(caches: bool, rows: int = 200_000, skew: float = 1.0) -> None:
    """A join whose memory is full, beside the model."""
    parts, warm, row_bytes = 10, 30, 8 + 8 + 16  # the query does not read the text
    memory = int(rows * row_bytes * 0.6)
    times = CACHE_TIMES if caches else SCAN_TIMES
    model = Join(Bytes(4 * 8, row_bytes, entry=ENTRY_BYTES), times, rows, zipf_keys(rows, skew, rows))
    kept = (memory - rows / parts * row_bytes) / COLLECTED_SHARE if caches else 0.0
    said = model.given_memory(memory - kept, rows / parts, caches=caches)
    random, shares = np.random.default_rng(7), np.arange(1, rows + 1) ** -skew
    chosen, each = np.cumsum(shares / shares.sum()), round(said.round_tuples)
    scan = Scan(parts, memory, parts)
    operator = BalancedJoin(1, scan) if caches else MeshJoin(1, scan)
    keys = [np.searchsorted(chosen, random.random(each)) for _ in range(warm + 6)]
    found = ran(operator, random.integers(0, rows, rows), keys, warm)
    counts = measured({**found.counts, WORK: round(found.seconds * 1e6)}, 1)
    print(
        f"{operator.name}: {counts['rate_per_s']:,.0f} tuples/s, the model says {said.rate_per_s:,.0f}; "
        f"cached {counts['cached_share'] or 0:.0%}, the model says {said.cached_share:.0%}"
    )


if __name__ == "__main__":
    main()
