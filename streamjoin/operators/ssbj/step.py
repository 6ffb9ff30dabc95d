"""A unit's work on one batch: the steps of MESHJOIN, and before each of them what the cache can join.

A tuple whose value is cached is joined with all rows of it and never waits; any other enters as a chunk. What a round
begins with (`moving.py`) is done after the tuples of its first step have entered: so those count that come with a batch
that reads the whole relation, and all that wait when values are cached leave by the end of that round.

    cache, values       rows that are cached, and their values
    counted, collected  values on their way into the cache, and rows of them
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.engine.state import Table
from streamjoin.engine.unit import Work
from streamjoin.index.segment import Segment, SegmentInfo
from streamjoin.index.view import CELL, column_of
from streamjoin.operators.meshjoin.scan import Scan
from streamjoin.operators.meshjoin.step import MeshStep
from streamjoin.operators.meshjoin.waiting import Chunk, by_value, fitting
from streamjoin.operators.reading import PHASES
from streamjoin.operators.ssbj.cache import Cache
from streamjoin.operators.ssbj.moving import Moving, Rule, evict

CACHE, VALUES, COUNTED, COLLECTED = "cache", "values", "counted", "collected"
_TUPLE_BYTES = "tuple_bytes"
LOOKED_FOR = 16_384
"""Of the rows outside, so many are looked for in the cache at first, and four times as many again while they fit."""
COLLECTED_SHARE = 8
"""This part of the memory is set aside for rows that are collected, whether there are any or not: so the memory that
they take is free when they come. As large a part is never cached, but left to tuples that wait."""


class BalancedStep(MeshStep):
    """See `Step`."""

    KEPT_FREE_SHARE = 1 / COLLECTED_SHARE

    def __init__(self, work: Work, scan: Scan, rule: Rule) -> None:
        super().__init__(work, scan)
        self.rule = rule
        self._files = {name: work.before.segments(name) for name in (CACHE, VALUES, COUNTED, COLLECTED)}
        rows, values, counted, collected = (
            [work.open_segment(info) for info in self._files[name]] for name in (CACHE, VALUES, COUNTED, COLLECTED)
        )
        self.cache = Cache.opened(rows, values)
        self.moving = Moving.opened(counted, collected)
        self._segment = self.cache.segment
        self._cached_before = self.cache.rows
        self.tuple_bytes: float = work.before.values.get(_TUPLE_BYTES, 0.0)
        self.counted |= {"cache_hits": 0, "values_cached": 0, "values_evicted": 0}

    @property
    def round(self) -> int:
        """The number of the round that the step is in, from 1: modulo three it says what kind of round it is.

        1 counts, 2 switches, 0 phases out.
        """
        return self.step // self.reader.parts + 1

    def let_in(self, rows: pa.RecordBatch, room: int | None) -> Generator[pa.RecordBatch, None, int]:
        """See `MeshStep`; what is cached is joined at once, and takes no room."""
        hit, missed, misses = self._looked_for(rows, room)
        if room is not None:
            if self._is_in_the_way(misses):  # else it would wait for the next eviction
                self.counted["values_evicted"] += int(self.cache.cells.size)
                self.forget()
                return (yield from self.let_in(rows, self.room()))
            count = self.at_least_one(misses, fitting(misses, room))
            if count < missed.size:  # the first that does not fit, and all behind it, wait outside
                hit, misses = hit[: missed[count]], misses.slice(0, count)
        taken = self.buffer.take(hit.size)
        if misses.num_rows:
            self.append(misses)
        if hit.any():
            yield from self._from_cache(taken.filter(pa.array(hit)))
        return int(hit.size)

    def _is_in_the_way(self, misses: pa.RecordBatch) -> bool:
        """Whether no tuple waits, and the first miss does not fit only because of what is cached or being collected."""
        if self.queue or not misses.num_rows or not self.cache.bytes + self.moving.bytes:
            return False
        return misses.slice(0, 1).nbytes > self.for_tuples()

    def _looked_for(self, rows: pa.RecordBatch, room: int | None) -> tuple[np.ndarray, np.ndarray, pa.RecordBatch]:
        """Which of the first rows are cached, bool of shape (n,), and the others, as places and as rows: more than
        there is room for, or all. What waits outside may be long, and only its beginning can enter."""
        count = rows.num_rows if room is None else min(LOOKED_FOR, rows.num_rows)
        while True:
            hit = self.cache.found(column_of(rows.slice(0, count), CELL))
            missed = np.nonzero(~hit)[0]
            misses = rows.take(pa.array(missed))
            if count == rows.num_rows or (room is not None and misses.nbytes > room):
                return hit, missed, misses
            count = min(4 * count, rows.num_rows)

    def append(self, rows: pa.RecordBatch) -> None:
        """See `MeshStep`."""
        super().append(rows)
        self.tuple_bytes = rows.nbytes / rows.num_rows

    def _from_cache(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        chunk = Chunk(by_value(rows), self.step, self.joined)
        self.cache.count(chunk.cells)
        self.counted["tuples"] += len(chunk)
        self.counted["cache_hits"] += len(chunk)
        if self._segment is not None:
            yield from chunk.probe(self._segment)
        yield from chunk.leave(self.reader.version)
        self.report.unmatched_rows += chunk.unmatched

    def begin_round(self) -> None:
        """First what is evicted, then what this kind of round begins with."""
        if self.round % self.rule.eviction_period == 0:
            self.counted["values_evicted"] += evict(self.cache, self.rule, self.tuple_bytes, self.round)
        match self.round % 3:
            case 1:
                self.moving.begin(self._waiting())
            case 2:
                self.moving.mark(self._waiting(), self.tuple_bytes, self.rule, self._room_to_move())
            case _:
                self.counted["values_cached"] += self.moving.move(self.cache, self.round)
        self._segment = self.cache.segment

    def _waiting(self) -> np.ndarray:
        """The values of all tuples that wait, int64."""
        return np.concatenate([np.zeros(0, np.int64), *(chunk.cells for chunk in self.queue)])

    def reads_anyway(self) -> bool:
        """While values are counted, or rows of them collected, the relation is read although nothing waits."""
        match self.round % 3:
            case 1:
                return self.moving.cells.size > 0
            case 2:
                return bool(self.moving.marked.any())
            case _:
                return False

    def look(self, segment: Segment) -> None:
        """See `MeshStep`."""
        match self.round % 3:
            case 1:
                self.moving.count(segment)
            case 2:
                self.moving.collect(segment, self._collected_room())

    def _collected_room(self) -> int | None:
        """Bytes that are set aside for rows that are collected."""
        if self.scan.memory_bytes is None:
            return None
        return (self.scan.memory_bytes // self._work.units - self.reader.buffer_bytes) // COLLECTED_SHARE

    def _room_to_move(self) -> int | None:
        """Bytes that values may take that are marked now."""
        if self.scan.memory_bytes is None:
            return None
        room, left = self._collected_room() or 0, self.for_tuples()
        return max(min(room, left - room), 0)

    def set_aside(self) -> int:
        """See `MeshStep`: also what is cached."""
        return super().set_aside() + self.cache.bytes

    def always_set_aside(self) -> int:
        """See `MeshStep`: also room for what is collected."""
        return super().always_set_aside() + (self._collected_room() or 0)

    def memory_bytes(self) -> int:
        """See `MeshStep`."""
        return super().memory_bytes() + self.cache.bytes + self.moving.bytes

    def holding(self) -> dict[str, int]:
        """See `MeshStep`; empty values are cached without any row. Of the kinds of round, one is that of this unit."""
        phase = PHASES[self.round % 3]
        return {
            **super().holding(), "cached_rows": self.cache.row_count, "cached_values": int(self.cache.cells.size),
            "empty_values": self.cache.empty_values, **{name: int(name == phase) for name in PHASES},
        }  # fmt: skip

    def forget(self) -> None:
        """See `MeshStep`."""
        self.cache, self.moving, self._segment = Cache.empty(), Moving(), None

    def kept_tables(self) -> dict[str, Table]:
        """See `MeshStep`."""
        cached = self._files[CACHE] if self.cache.rows is self._cached_before else self._saved(self.cache.rows)
        collected = tuple(info for rows in self.moving.collected for info in self.save(rows))
        files = {
            CACHE: cached, VALUES: self.save(self.cache.values_kept), COUNTED: self.save(self.moving.kept()),
            COLLECTED: collected,
        }  # fmt: skip
        return {name: Table(None, infos) for name, infos in files.items()}

    def _saved(self, rows: pa.RecordBatch | None) -> tuple[SegmentInfo, ...]:
        return () if rows is None else self.save(rows)

    def kept_values(self) -> dict[str, Any]:
        """See `MeshStep`."""
        return {_TUPLE_BYTES: self.tuple_bytes}
