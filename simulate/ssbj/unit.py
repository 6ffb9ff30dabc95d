"""One unit that joins as fast as its memory lets it: the stream always has more tuples.

It decides as `operators/ssbj/step.py` does, by the same cache and the same rules; tuples are join values alone. What a
step takes follows from what was done in it, by equation 2.

Source: SSBJ (DAPD 2019), section 3, Algorithm 1.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from simulate.ssbj.disk import Disk
from streamjoin.index.segment import Segment
from streamjoin.index.view import CELL, column_of
from streamjoin.operators.ssbj.cache import Cache
from streamjoin.operators.ssbj.moving import Moving, Rule, evict
from streamjoin.operators.ssbj.step import COLLECTED_SHARE

_TAKEN_MAX = 100_000
"""A step takes no more tuples, which matters where all are cached."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a unit has.

    Args:
        bytes: M; None for as much as the rate takes.
        tuple_bytes: of one that waits.
        parts: k.
        rate_per_s: lambda, where memory is not given.
    """

    bytes: int | None
    tuple_bytes: int
    parts: int
    rate_per_s: float = 0.0


@dataclass(slots=True)
class Counts:
    """What was done since counting began.

    Args:
        due: how many results the tuples have that were taken.
    """

    steps: int = 0
    seconds: float = 0.0
    tuples: int = 0
    hits: int = 0
    results: int = 0
    due: int = 0
    rows_read: int = 0
    memory_bytes: int = 0
    memory_bytes_max: int = 0

    @property
    def rate_per_s(self) -> float:
        """mu."""
        return self.tuples / self.seconds

    @property
    def cached_share(self) -> float:
        """P."""
        return self.hits / self.tuples

    @property
    def rows_read_per_tuple(self) -> float:
        """Rows of the relation that come from the disk for each tuple."""
        return self.rows_read / self.tuples

    @property
    def memory_bytes_mean(self) -> float:
        """Over all steps."""
        return self.memory_bytes / self.steps


class Unit:
    """A unit, its stream and its disk.

    Args:
        shares: of each join value in the stream.
        rule: what is cached; None for MESHJOIN.
    """

    def __init__(self, disk: Disk, shares: np.ndarray, memory: Memory, rule: Rule | None, seed: int) -> None:
        self.disk, self.memory, self.rule = disk, memory, rule
        self._random = np.random.default_rng(seed)
        self._sums = np.cumsum(shares)
        self._arrived = np.zeros(0, np.int64)
        self.cache, self.moving = Cache.empty(), Moving()
        self.rows_of = np.bincount(disk.rows, minlength=shares.size)
        self.waiting = np.zeros(shares.size, np.int64)
        self._cached_of = np.zeros(shares.size, np.int64)
        self.queue: deque[np.ndarray] = deque()
        self.step = 0
        self.counts = Counts()
        self._last_s = 0.0
        self._owed = 0.0
        self._parts: dict[int, Segment] = {}

    @property
    def round(self) -> int:
        """From 1; modulo three it says what kind of round it is."""
        return self.step // self.memory.parts + 1

    @property
    def buffer_bytes(self) -> int:
        """Of the part that is read."""
        return -(-self.disk.rows.size // self.memory.parts) * self.disk.row_bytes

    def run(self, rounds: int) -> Counts:
        """So many rounds, counted from their beginning."""
        self.counts = Counts()
        for _ in range(rounds * self.memory.parts):
            self._one()
        return self.counts

    def drain(self) -> None:
        """What waits meets all parts; no more comes."""
        while any(chunk.size for chunk in self.queue):
            self._one(enters=False)

    def _one(self, *, enters: bool = True) -> None:
        counts = self.counts
        hits, misses = self._taken() if enters else (np.zeros(0, np.int64),) * 2
        self.cache.count(hits)
        found = int(self._cached_of[hits].sum())
        self.queue.append(misses)
        np.add.at(self.waiting, misses, 1)
        if self.rule is not None and self.step % self.memory.parts == 0:
            self._begin_round(self.rule)
        number = self.step % self.memory.parts
        if number not in self._parts:
            self._parts[number] = self.disk.part(number, self.memory.parts)
        segment = self._parts[number]
        found += int(self.waiting[segment.views[0].cells].sum())
        self._look(segment)
        held = self.memory_bytes()
        self.step += 1
        gone = self.queue.popleft() if len(self.queue) == self.memory.parts else np.zeros(0, np.int64)
        np.subtract.at(self.waiting, gone, 1)
        times = self.disk.times
        seconds = times.reading(segment.info.rows) + hits.size * times.hit(0) + found * times.output
        seconds += misses.size * (times.take + times.append) + gone.size * times.remove
        self._last_s = seconds * 1e-9
        counts.steps += 1
        counts.seconds += self._last_s
        counts.tuples += hits.size + misses.size
        counts.hits += hits.size
        counts.results += found
        counts.due += int(self.rows_of[hits].sum()) + int(self.rows_of[misses].sum())
        counts.rows_read += segment.info.rows
        counts.memory_bytes += held
        counts.memory_bytes_max = max(counts.memory_bytes_max, held)

    def _taken(self) -> tuple[np.ndarray, np.ndarray]:
        """Tuples that the cache joins, and those that wait."""
        if self.memory.bytes is None:
            self._owed += self.memory.rate_per_s * self._last_s
            # One tuple starts the clock: in no time none comes.
            count = int(self._owed) if self.step else 1
            self._owed -= count if self.step else 0
            taken = self._drawn(count)
            hit = self.cache.found(taken)
            return taken[hit], taken[~hit]
        room = self._room() // self.memory.tuple_bytes
        while True:
            hit = self.cache.found(self._arrived)
            missed = np.nonzero(~hit)[0]
            if missed.size > room or hit.size >= _TAKEN_MAX:
                break
            self._arrived = np.concatenate([self._arrived, self._drawn(max(4 * room, 64))])
        count = int(missed[room]) if missed.size > room else hit.size
        taken, self._arrived = self._arrived[:count], self._arrived[count:]
        return taken[hit[:count]], taken[~hit[:count]]

    def _drawn(self, count: int) -> np.ndarray:
        places = np.searchsorted(self._sums, self._random.random(count))
        return np.minimum(places, self._sums.size - 1)

    def _begin_round(self, rule: Rule) -> None:
        size = float(self.memory.tuple_bytes)
        if self.round % rule.eviction_period == 0:
            evict(self.cache, rule, size, self.round)
        waiting = np.concatenate(list(self.queue))
        match self.round % 3:
            case 1:
                self.moving.begin(waiting)
            case 2:
                self.moving.mark(waiting, size, rule, self._room_to_move())
            case _:
                self.moving.move(self.cache, self.round)
        rows = self.cache.rows
        cells = np.zeros(0, np.int64) if rows is None else column_of(rows, CELL)
        self._cached_of = np.bincount(cells, minlength=self.rows_of.size)

    def _look(self, segment: Segment) -> None:
        if self.rule is None:
            return
        match self.round % 3:
            case 1:
                self.moving.count(segment)
            case 2:
                self.moving.collect(segment, self._collected_room())

    def _collected_room(self) -> int | None:
        if self.memory.bytes is None:
            return None
        return (self.memory.bytes - self.buffer_bytes) // COLLECTED_SHARE

    def _room_to_move(self) -> int | None:
        if self.memory.bytes is None:
            return None
        room = self._collected_room() or 0
        return max(min(room, self.memory.bytes - self._set_aside() - room), 0)

    def _set_aside(self) -> int:
        collected = self._collected_room() if self.rule is not None else 0
        return self.buffer_bytes + self.cache.bytes + (collected or 0)

    def _room(self) -> int:
        assert self.memory.bytes is not None
        whole = self.memory.bytes - self._set_aside()
        waits = int(self.waiting.sum()) * self.memory.tuple_bytes
        return max(min(whole // self.memory.parts, whole - waits), 0)

    def memory_bytes(self) -> int:
        """What is kept in memory from step to step."""
        waits = int(self.waiting.sum()) * self.memory.tuple_bytes
        return self.buffer_bytes + self.cache.bytes + self.moving.bytes + waits
