"""A stream and a relation for operators that read the relation in parts, and jobs of them in this process."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from streamjoin.engine.loop import Brought
from streamjoin.engine.operator import Operator
from streamjoin.operators.meshjoin import MeshJoin
from streamjoin.operators.meshjoin.scan import Scan
from streamjoin.operators.ssbj import BalancedJoin
from streamjoin.operators.ssbj.moving import Rule
from streamjoin.plan.stages import Cascade
from streamjoin.state.store import StateStore

from .test_relations import RELATION, STREAM, Job

EQUAL = "SELECT ONLINE a.id, c.id, c.name FROM a JOIN c ON a.k = c.k"
Row = dict[str, Any]


def stream(seed: int, count: int, drift: bool = True, keys: int = 12) -> pa.RecordBatch:
    """Skewed keys, the hot ones others after half of the rows; some are NULL and some are nowhere in the relation."""
    chosen = random.Random(seed)
    values = []
    for number in range(count):
        key = min(int(chosen.paretovariate(0.8)) - 1, keys - 1)
        values.append(None if chosen.random() < 0.04 else (keys - 1 - key if drift and number > count // 2 else key))
    rows = [pa.array(range(count)), pa.array(range(count)), pa.array(values, pa.int64())]
    return pa.RecordBatch.from_arrays([*rows, pa.array([chosen.randrange(50) for _ in values])], schema=STREAM)


def relation(seed: int, count: int, keys: int = 10) -> pa.RecordBatch:
    """Rows in no order, with duplicates, NULLs, and values that the stream has not."""
    chosen = random.Random(seed)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(range(count), pa.int64()),
            pa.array([chosen.choice([None, 99, *range(keys)]) for _ in range(count)], pa.int64()),
            pa.array([chosen.randrange(60) for _ in range(count)], pa.int64()),
            pa.array([f"n{chosen.randrange(50)}" for _ in range(count)], pa.string()),
        ],
        schema=RELATION,
    )


class PartsJob(Job):
    """As `Job`, with operators given."""

    def __init__(self, plan: Cascade, folder: Path, operator: Operator) -> None:
        super().__init__(plan, folder)
        self.loop.operators = (operator,) * len(plan.stages)
        self.units = self.parts = len(operator.units)

    def values(self) -> list[dict[str, Any]]:
        """Of each unit."""
        store = StateStore(self.folder / "state", 0, sync=False)
        return [dict(store.load(unit, self.loop.version).values) for unit in range(self.units)]

    def totals(self) -> Counter[str]:
        """Of all units."""
        store = StateStore(self.folder / "state", 0, sync=False)
        return sum((Counter(store.load(u, self.loop.version).totals) for u in range(self.units)), Counter())


def pieces_of(rows: pa.RecordBatch, sizes: Sequence[int]) -> list[list[list[pa.RecordBatch]]]:
    """The stream cut into batches of these sizes, again and again; a batch of 0 rows brings a piece without any."""
    found, first, turn = [], 0, 0
    while first < rows.num_rows:
        size = sizes[turn % len(sizes)]
        found.append([[rows.slice(first, size)]])
        first, turn = first + size, turn + 1
    return found


def run(job: PartsJob, rows: pa.RecordBatch, sizes: Sequence[int], *, repeated: bool = False) -> Counter[Any]:
    """All results, the end of the input included."""
    found: Counter[Any] = Counter()
    for number, pieces in enumerate(pieces_of(rows, sizes)):
        if repeated:
            job.loop.slots = 1 + number % 3
            job.batch(pieces, commit=False)
            job.loop.slots = 1 + (number + 1) % 2
        found += job.batch(pieces)
    return found + drained(job)


def drained(job: PartsJob) -> Counter[Any]:
    """What the end of the input gives."""
    brought = Brought([[] for _ in job.plan.streams], 1_000_000 * job.loop.version, drains=True, versions=job.versions)
    found: Counter[Any] = Counter(
        row
        for _, part in job.loop.batch(brought)
        for row in zip(*(column.to_pylist() for column in part.columns), strict=True)
    )
    job.loop.commit(brought)
    return found


def pairs(a: pa.RecordBatch, c: pa.RecordBatch) -> Counter[Any]:
    """What EQUAL gives, by a nested loop."""
    return Counter(
        (left["id"], right["id"], right["name"])
        for left in a.to_pylist()
        for right in c.to_pylist()
        if left["k"] is not None and left["k"] == right["k"]
    )


def in_duckdb(query: str, a: pa.RecordBatch, c: pa.RecordBatch) -> Counter[Any]:
    """What DuckDB gives."""
    with duckdb.connect() as database:
        database.register("a", pa.Table.from_batches([a]))
        database.register("c", pa.Table.from_batches([c]))
        return Counter(database.execute(query.replace(" ONLINE", "")).fetchall())


NAMES = ("meshjoin", "ssbj")


def units_of(name: str, count: int = 1, rule: Rule = Rule(eviction_period=4), **scan: Any) -> MeshJoin:  # noqa: B008
    """An operator by its name, with `Scan` as given."""
    return MeshJoin(count, Scan(**scan)) if name == "meshjoin" else BalancedJoin(count, Scan(**scan), rule=rule)
