"""A job without Spark: its rows are a function of (seed, batch, unit), so everyone knows what must be in the store."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.block import BlockRef, KeyCode, cut, decode
from streamjoin.results.description import Description
from streamjoin.results.parts import BatchDone, PartWriter
from streamjoin.results.policy import Collected, EpochPolicy, Open, Outcome, Policy, PunctuationPolicy
from streamjoin.results.sink import StoreSink
from streamjoin.results.snapshot import SnapshotId
from streamjoin.results.stores.spec import StoreSpec

ORIGIN = "checkpoint"
UNITS = 4
SLOTS = 2
ROWS_MAX = 1 << 12
"""Of one unit's batch."""
PERIOD_US = 1000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.int64()),
        ("text", pa.string()),
        pa.field(RESULT_TIME, pa.int64()),
        pa.field(RESULT_KEY, pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Case:
    """A way to close snapshots, and how rows are spread."""

    policy: Policy
    code: KeyCode


CASES = {
    "epochs, immediate": Case(EpochPolicy(span_us=None, batches=3, threshold_rows=160), KeyCode(ordered=True)),
    "epochs, delayed": Case(
        EpochPolicy(span_us=None, batches=2, threshold_rows=400, immediate=False, delayed=0.5, delays=3),
        KeyCode(ordered=True, buckets=3),
    ),
    "punctuations": Case(PunctuationPolicy(PERIOD_US), KeyCode(ordered=False, buckets=2)),
}


@functools.lru_cache(maxsize=1 << 14)
def unit_rows(seed: int, batch: int, unit: int) -> pa.RecordBatch:
    """The results of a unit's batch; every seventh batch has none, some have many."""
    rng = np.random.default_rng((seed, batch, unit))
    low, high = [(0, 1), (1, 20), (100, 400)][rng.choice(3, p=[0.4, 0.55, 0.05])]
    count = 0 if batch % 7 == 3 else int(rng.integers(low, high))
    keys = rng.integers(-500, 500, count)
    # Around the mark: some are late, and some belong to periods that are still open.
    times = rng.integers((batch - 1) * PERIOD_US * 2 // 3, (batch + 3) * PERIOD_US * 2 // 3, count)
    text = [None if key % 11 == 0 else f"{key:x}" * int(key % 7) for key in keys.tolist()]
    ids = ((batch * UNITS) + unit) * ROWS_MAX + np.arange(count, dtype=np.int64)
    return pa.RecordBatch.from_arrays(
        [pa.array(ids), pa.array(keys), pa.array(text, pa.string()), pa.array(times), pa.array(keys)], schema=SCHEMA
    )


def rows_of_ids(seed: int, ids: np.ndarray) -> pa.Table:
    """The rows that have these ids, in their order; ids that no unit made are left out."""
    found = []
    for place in np.unique(ids // ROWS_MAX).tolist():
        rows = unit_rows(seed, *divmod(place, UNITS))
        numbers = ids[ids // ROWS_MAX == place] % ROWS_MAX
        found.append(rows.take(pa.array(numbers[numbers < rows.num_rows])))
    return pa.Table.from_batches(found, SCHEMA)


def batches_of_ids(ids: np.ndarray) -> np.ndarray:
    """The batch that each row came with."""
    return ids // ROWS_MAX // UNITS


def all_ids(seed: int, batches: int) -> np.ndarray:
    """Of the rows of the first batches, rising."""
    found = [unit_rows(seed, batch, unit).column("id").to_numpy() for batch in range(batches) for unit in range(UNITS)]
    return np.concatenate([np.zeros(0, np.int64), *found])


def done(batch: int) -> BatchDone:
    """What the driver knows of a batch besides its rows; the streams begin one after the other."""
    mark = batch * PERIOD_US * 2 // 3
    marks = (mark, mark - 300 if batch > 1 else None) if batch else (None, None)
    return BatchDone(batch, 1_000_000 + batch * 250_000, marks, output_mark_us=lowest_mark_us(marks))


class CommitLog:
    """Which batches are committed, in a folder: it comes after the sink's commit, as Spark's own does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "commits"
        self.folder.mkdir(exist_ok=True)

    def next(self) -> int:
        """The first batch that is not committed."""
        return max((int(path.name) for path in self.folder.glob("[0-9]*")), default=-1) + 1

    def add(self, batch: int) -> None:
        """A batch is committed; a batch has one name, so that a driver which lost its job takes nothing back."""
        temporary = self.folder / f".{batch}.{os.getpid()}"
        with temporary.open("w") as file:
            os.fsync(file.fileno())
        temporary.rename(self.folder / str(batch))

    def stop_before(self, batch: int) -> None:
        """The streams end."""
        temporary = self.folder / ".end.new"
        temporary.write_text(str(batch))
        temporary.rename(self.folder / "end")

    def end(self) -> int | None:
        """The first batch that there is not."""
        path = self.folder / "end"
        return int(path.read_text()) if path.exists() else None


@dataclass
class Driver:
    """What a driver and its tasks do, a batch a step."""

    spec: StoreSpec
    job: str
    case: Case
    seed: int
    log: CommitLog
    _next: int = 0
    _sink: StoreSink | None = None
    _writer: PartWriter | None = None

    def begin(self) -> None:
        """Become the job's writer."""
        self._sink = StoreSink(self.spec, self.job, description(self.case), self.case.policy)
        self._next = self.log.next()
        self._writer = self._sink.begin(ORIGIN)

    def step(self) -> bool:
        """Do the next batch; False at the end of the streams, once all is committed."""
        assert self._sink is not None and self._writer is not None
        batch, end = self._next, self.log.end()
        if end is not None and batch >= end:
            self._sink.finish()
            return False
        parts = []
        for slot in range(SLOTS):
            # Now and then a task is lost at its end and done again.
            for _ in range(2 if (batch + slot) % 5 == 4 else 1):
                with self._writer.part(batch, slot, SCHEMA) as part:
                    for unit in range(slot, UNITS, SLOTS):
                        part.write(unit_rows(self.seed, batch, unit), unit)
            parts.append(part.summary())
        self._sink.commit(done(batch), parts)
        self.log.add(batch)
        self._next += 1
        return True


def description(case: Case) -> Description:
    """What the job's results are."""
    return Description(SCHEMA, case.code, period_us=case.policy.period_us)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A snapshot that must come: its blocks but for their generation, and the ids of its rows, rising."""

    id: SnapshotId
    blocks: tuple[BlockRef, ...]
    ids: np.ndarray


@dataclass
class Undisturbed:
    """The snapshots of the same job when nobody kills its drivers: no store, no ledger, no crash."""

    case: Case
    seed: int
    block_bytes: int
    batch: int = -1
    snapshots: list[Wanted] = field(default_factory=list)
    waiting: list[BlockRef] = field(default_factory=list)
    _state: Open = field(default_factory=Open)
    _ids: dict[BlockRef, np.ndarray] = field(default_factory=dict)

    def advance(self, batch: int) -> None:
        """Go on up to a batch."""
        while self.batch < batch:
            self.batch += 1
            told = done(self.batch)
            blocks = list(self._cut(self.batch))
            collected = Collected(self.batch, told.clock_us, told.marks_us, blocks, output_mark_us=told.output_mark_us)
            self._take(self.case.policy.collect(self._state, self.waiting, collected))

    def finish(self) -> None:
        """The streams end."""
        self._take(self.case.policy.finish(self._state, self.waiting))

    def _cut(self, batch: int) -> Iterator[BlockRef]:
        for unit in range(UNITS):
            for ref, content in cut(
                unit_rows(self.seed, batch, unit), self.case.code, generation=0, batch=batch, unit=unit,
                first_number=0, block_bytes=self.block_bytes, rows_max=self.case.policy.rows_max,
                period_us=self.case.policy.period_us,
            ):  # fmt: skip
                self._ids[ref] = decode(ref, content).column("id").to_numpy()
                yield ref

    def _take(self, out: Outcome) -> None:
        self._state, self.waiting = out.state, out.waiting
        for closed in out.cuts:
            ids = [self._ids.pop(ref) for ref in closed.blocks]
            self.snapshots.append(
                Wanted(closed.id, closed.blocks, np.sort(np.concatenate([np.zeros(0, np.int64), *ids])))
            )

    def waiting_ids(self) -> np.ndarray:
        """Of the rows that are in no snapshot yet."""
        return np.concatenate([np.zeros(0, np.int64), *(self._ids[ref] for ref in self.waiting)])


def without_generation(ref: BlockRef) -> BlockRef:
    """A block as the job has it, whoever wrote it."""
    return replace(ref, key=replace(ref.key, generation=0))


def sorted_by_id(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """All rows in one order."""
    table = pa.Table.from_batches(batches, schema)
    return table.take(pc.sort_indices(table, [("id", "ascending")]))
