"""A unit's work on one batch: some steps, each of which lets tuples enter and reads one part of the relation.

    enter    what has come becomes a chunk, as far as memory allows
    read     the next part of the relation; every chunk meets it
    leave    the chunk that has met k parts, which are all

Source: SSBJ (DAPD 2019), section 2.2. A tuple meets k parts in a row, from wherever the reading stands. In a batch
that brings nothing of the stream all that waits is finished, in as many steps as it takes. So it is when a new version
of the relation is due, or another number of parts or memory: what comes with that batch enters after it.

    queue    tuples of chunks; `entered` says of each in which step
    buffer   tuples that have come and not entered
    matched  of outer, semi and anti joins: whether each tuple of the queue has met a partner
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.engine.emit import one_sided
from streamjoin.engine.joining import Joining
from streamjoin.engine.routing import ALONE, PROBE
from streamjoin.engine.state import Table, UnitState
from streamjoin.engine.unit import Work
from streamjoin.errors import StateError
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import ProbeCounts, Segment, SegmentInfo
from streamjoin.operators.meshjoin.scan import BUFFER_SHARE, MIB, Reader, Scan
from streamjoin.operators.meshjoin.waiting import Buffer, Chunk, Joined, by_value, fitting, held, info_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.window import R, S

QUEUE, BUFFER, MATCHED = "queue", "buffer", "matched"
RELATION, VERSION = "relation", "version"
_STEP, _CUT, _ENTERED, _STATED, _MEMORY = "step", "cut", "entered", "output_mark_us", "memory_bytes_max"


class MeshStep:
    """See `Step`.

    Args:
        step: how many steps were done with this version of the relation; the next part is that number mod k.
    """

    KEPT_FREE_SHARE = 0.0
    """Of what a part of the relation leaves free, what tuples of the stream may never take."""

    def __init__(self, work: Work, scan: Scan) -> None:
        self.joining = Joining(work)
        self.report = self.joining.report
        self.state = work.before
        self.span = range(work.before.sequence, work.before.sequence)
        (query,) = work.plan.queries
        assert isinstance(query, JoinPlan)
        self.joined = Joined(query, layout_of(query, S), ProbeCounts())
        self.scan = scan
        self._work = work
        values = work.before.values
        self.step: int = values.get(_STEP, 0)
        self._known: int | None = values.get(VERSION)
        self._cut: list[Any] = [self._known, *values.get(_CUT, [])]
        self.memory_max: int = values.get(_MEMORY, 0)
        self.counted: dict[str, int] = {"tuples": 0, "steps": 0, "relation_rows": 0, "relation_bytes": 0}
        self.queue = deque(self._opened(values.get(_ENTERED, [])))
        self.buffer = Buffer(work.before.segments(BUFFER), work.open_segment)
        self.reader: Reader

    def _opened(self, entered: list[int]) -> Iterator[Chunk]:
        before = self._work.before
        matched = [self._work.open_segment(info).column(0).to_numpy(False) for info in before.segments(MATCHED)]
        first = 0
        for info, step in zip(before.segments(QUEUE), entered, strict=True):
            chunk = Chunk(self._work.open_segment(info), step, self.joined, info)
            if matched:
                chunk.matched[:] = matched[0][first : first + len(chunk)]
            first += len(chunk)
            yield chunk

    @property
    def query(self) -> int:
        """See `Step`; there is one."""
        return 0

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        (counted,) = self.joining.counts
        for rows in self.report.timed(self._found(), self._work.seconds):
            counted.results += rows.num_rows
            yield rows
        counted.add(self.joined.counts)
        self._finish()

    def _found(self) -> Iterator[pa.RecordBatch]:
        table = self._work.table()
        reader = self._reader(table, self.scan)
        if self._known is not None and self._cut != [reader.version, reader.parts, self.scan.memory_bytes]:
            yield from self._done_with(self._known)
        self.reader = reader
        for alone in self.joining.gather(R, ALONE) if R in self.joined.query.kind.preserved else ():
            self.report.unmatched_rows += len(alone)
            yield from one_sided(self.joined.query, R, alone.rows, alone.ts_us, table.version)
        for arrived in self.joining.gather(R, PROBE):
            self.buffer.add(held(arrived, self.joined))
        for _ in range(self.reader.steps):
            yield from self._one()
        while not self.joining.arrived[R] and (self.queue or len(self.buffer)):
            yield from self._one()
        for chunk in self.queue:
            yield from chunk.flush()
        self._count_reading()

    def _reader(self, table: Any, scan: Scan) -> Reader:
        return Reader(table, self._work.unit.number, self._work.units, self.joined.layout, scan)

    def _done_with(self, version: int | None) -> Iterator[pa.RecordBatch]:
        """What has entered meets the rest of the version that it began with, in the parts that it was cut into; then
        nothing of that version is left."""
        if self.queue:
            self.reader = self._reader(self._work.table(version), replace(self.scan, partitions=self._cut[1]))
            while self.queue:
                yield from self._one(enters=False)
            self._count_reading()
        self.step = 0
        self.forget()

    def _count_reading(self) -> None:
        self.counted["relation_rows"] += self.reader.read_rows
        self.counted["relation_bytes"] += self.reader.read_bytes

    def _one(self, *, enters: bool = True) -> Iterator[pa.RecordBatch]:
        """One step."""
        if enters:
            yield from self.enter()
        if self.step % self.reader.parts == 0:
            self.begin_round()
        if self.queue or self.reads_anyway():
            for segment in self.reader.read(self.step % self.reader.parts):
                self.look(segment)
                for chunk in self.queue:
                    yield from chunk.probe(segment)
        self.memory_max = max(self.memory_max, self.memory_bytes())
        self.step += 1
        self.counted["steps"] += 1
        while self.queue and self.queue[0].entered + self.reader.parts <= self.step:
            chunk = self.queue.popleft()
            yield from chunk.leave(self.reader.version)
            self.report.unmatched_rows += chunk.unmatched

    def enter(self) -> Iterator[pa.RecordBatch]:
        """Tuples that have come become chunks, as many as memory allows."""
        room, waited = self.room(), self.waiting_bytes()
        left = room
        while (rows := self.buffer.first) is not None:
            taken = yield from self.let_in(rows, left)
            if taken < rows.num_rows:
                return
            if room is not None:
                left = max(room - (self.waiting_bytes() - waited), 0)

    def let_in(self, rows: pa.RecordBatch, room: int | None) -> Generator[pa.RecordBatch, None, int]:
        """Of the first tuples of the buffer those enter that fit into so many bytes; returns how many it takes."""
        count = rows.num_rows if room is None else self.at_least_one(rows, fitting(rows, room))
        self.append(self.buffer.take(count))
        yield from ()
        return count

    def append(self, rows: pa.RecordBatch) -> None:
        """Tuples enter, as one chunk."""
        if rows.num_rows:
            self.counted["tuples"] += rows.num_rows
            self.queue.append(Chunk(by_value(rows), self.step, self.joined))

    def room(self) -> int | None:
        """How many bytes may enter in this step: a k-th of what the stream's tuples may take, if so much is free."""
        if self.scan.memory_bytes is None:
            return None
        whole = self.for_tuples()
        return max(min(whole // self.reader.parts, whole - self.waiting_bytes()), 0)

    def at_least_one(self, rows: pa.RecordBatch, count: int) -> int:
        """How many tuples enter, where `count` fit into their share: one if none has in this step and so much is free.

        Raises:
            StateError: not even one fits, and none will leave.
        """
        if count or not rows.num_rows or (self.queue and self.queue[-1].entered == self.step):
            return count
        size = rows.slice(0, 1).nbytes
        if size <= self.for_tuples() - self.waiting_bytes():
            return 1
        assert self.scan.memory_bytes is not None
        if not self.queue and size > self.scan.memory_bytes // self._work.units - self.always_set_aside():
            raise StateError(
                f"a memory of {self.scan.memory_bytes / MIB:g} MiB has no room for a tuple of {size:,} bytes; give "
                f"operator.memory at least {self._least_mib(size)}"
            )
        return 0

    def _least_mib(self, size: int) -> int:
        """The memory of all units, in MiB, with which a tuple of so many bytes has room in one."""
        alone = size / (1 - self.KEPT_FREE_SHARE)
        grows = self.scan.partitions is None  # a part of the relation takes more of more memory
        least = alone / (1 - 1 / BUFFER_SHARE) if grows else alone + self.reader.buffer_bytes
        return math.ceil(least * self._work.units / MIB)

    def for_tuples(self) -> int:
        """Bytes that tuples which have entered may take together now, where a memory is given."""
        assert self.scan.memory_bytes is not None
        return self.scan.memory_bytes // self._work.units - self.set_aside()

    def set_aside(self) -> int:
        """Bytes that the stream's tuples may not take now."""
        return self.always_set_aside()

    def always_set_aside(self) -> int:
        """Bytes that they may never take."""
        return self.reader.buffer_bytes

    def waiting_bytes(self) -> int:
        """Bytes of the tuples that have entered."""
        return sum(chunk.rows.nbytes for chunk in self.queue)

    def memory_bytes(self) -> int:
        """Bytes of all that is kept in memory from step to step."""
        return self.reader.buffer_bytes + self.waiting_bytes()

    def holding(self) -> dict[str, int]:
        """What is in memory and waits, for the report; `memory_bytes_max` is the most that there ever was."""
        allowed = self.scan.memory_bytes
        return {
            "waiting_rows": sum(len(chunk) for chunk in self.queue), "outside_rows": len(self.buffer),
            "memory_bytes": self.memory_bytes(), "memory_bytes_max": self.memory_max,
            **({} if allowed is None else {"memory_bytes_allowed": allowed // self._work.units}),
        }  # fmt: skip

    def begin_round(self) -> None:
        """The first part is read next."""

    def reads_anyway(self) -> bool:
        """Whether the next part is of use although no tuple waits."""
        return False

    def look(self, segment: Segment) -> None:
        """Rows of the relation that are read."""

    def forget(self) -> None:
        """Nothing of the version before may be used any more."""

    def kept_tables(self) -> dict[str, Table]:
        """What is kept beside tuples of the stream."""
        return {}

    def kept_values(self) -> dict[str, Any]:
        """As `kept_tables`, of plain values."""
        return {}

    def save(self, rows: pa.RecordBatch) -> tuple[SegmentInfo, ...]:
        """Rows without times as a file; nothing where there are none."""
        return (self._work.save_segment(rows, info_of(rows, timed=False)),) if rows.num_rows else ()

    def _finish(self) -> None:
        begun = self._work.seconds()
        queue = self.joining.saved(self.queue)
        buffer = self.buffer.saved(lambda rows: self._work.save_segment(rows, info_of(rows)))
        tables = {QUEUE: Table(R, queue), BUFFER: Table(R, buffer), **self.kept_tables()}
        if self.joined.decides and self.queue:
            bits = np.concatenate([chunk.matched for chunk in self.queue])
            tables[MATCHED] = Table(None, self.save(pa.RecordBatch.from_arrays([pa.array(bits)], ["matched"])))
        clocks = self.joining.clocks()
        after = self.joining.after({R: (*queue, *buffer)}, clocks, self.counted)
        self.report.reading, self.report.holding = self.counted, self.holding()
        values = {
            RELATION: self.joined.query.names[S], VERSION: self.reader.version, _STEP: self.step,
            _CUT: [self.reader.parts, self.scan.memory_bytes],
            _ENTERED: [chunk.entered for chunk in self.queue], _STATED: self._mark_us(clocks[R], (*queue, *buffer)),
            _MEMORY: self.memory_max, **self.kept_values(),
        }  # fmt: skip
        self.report.output_mark_us = values[_STATED]
        self.report.ended = clocks[R].ended and not queue and not buffer
        self.state = _with_dropped(replace(after, tables=tables, values=values), self._work.before)
        self.report.seconds["store"] += self._work.seconds() - begun

    def _mark_us(self, clock: StreamClock, waiting: tuple[SegmentInfo, ...]) -> int | None:
        """The stream's mark, or the oldest tuple that waits; a late one does not take back what was stated."""
        stated: int | None = self._work.before.values.get(_STATED)
        if clock.mark_us is None:
            return stated
        lowest = min([clock.mark_us, *(info.ts_min_us for info in waiting)])
        return lowest if stated is None else max(stated, lowest)


def _with_dropped(after: UnitState, before: UnitState) -> UnitState:
    """The state, which says what files it let go."""
    kept = {info.file for info in after.named()}
    return replace(after, dropped=tuple(info.file for info in before.named() if info.file not in kept))
