"""How join values get into the cache and out of it, in rounds of three kinds, one after the other.

    counting    of each value that waits at its beginning, how many rows does the relation have?
    switching   of the values that are worth it, all rows are collected
    phase-out   they are in the cache from its beginning on; their tuples that wait still meet all parts, and leave

All is decided at the beginning of a round. A value is worth it if its rows take less memory than the tuples that wait
for them (the cache inequality, Theorem 1 to 3). Without the phase-out, tuples that wait would have a value counted that
is cached already, and its rows would be cached twice.

Source: SSBJ (DAPD 2019), section 3, Algorithm 1. As printed it loses results: line 33 decides row by row while tuples
come and go, so a part of a value's rows is cached; and it counts too few rows of values that come in mid-round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import pyarrow as pa

from streamjoin.index.segment import Segment
from streamjoin.index.view import CELL, column_of
from streamjoin.operators.ssbj.cache import ENTRY_BYTES, Cache, places_in


class Inequality(StrEnum):
    """What the cache inequality compares."""

    BYTES = "bytes"
    """All bytes, those of a value's entry included."""
    PAPER = "paper"
    """Bytes of tuples and rows alone, as the paper has it: a value without any row is cached for nothing."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When a value is cached, and for how long.

    Args:
        switching_factor: how many times as much memory the waiting tuples must take, and the cached rows (s_f).
        eviction_period: after how many rounds cached values are looked at again.
    """

    switching_factor: float = 1.0
    eviction_period: int = 10
    inequality: Inequality = Inequality.BYTES

    @property
    def entry_bytes(self) -> int:
        """What the inequality takes a value's entry to cost."""
        return ENTRY_BYTES if self.inequality is Inequality.BYTES else 0


def _none() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass
class Moving:
    """Values on their way into the cache.

    Args:
        cells: those that are counted, in rising order, int64 of shape (n,).
        rows, sizes: how many rows the relation has of each, and their bytes, int64 of shape (n,).
        marked: which of them are to be cached, bool of shape (n,).
        collected: rows of the marked ones (s_B).
    """

    cells: np.ndarray = field(default_factory=_none)
    rows: np.ndarray = field(default_factory=_none)
    sizes: np.ndarray = field(default_factory=_none)
    marked: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    collected: list[pa.RecordBatch] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Of the rows that are collected, and of the entries that their values will have."""
        return sum(rows.nbytes for rows in self.collected) + ENTRY_BYTES * int(np.count_nonzero(self.marked))

    def begin(self, waiting: np.ndarray) -> None:
        """Count rows of the values that wait."""
        self.cells = np.unique(waiting)
        self.rows, self.sizes = np.zeros(self.cells.size, np.int64), np.zeros(self.cells.size, np.int64)
        self.marked, self.collected = np.zeros(self.cells.size, bool), []

    def count(self, segment: Segment) -> None:
        """Rows that are read while values are counted, whether tuples still wait for them or not."""
        places, there = places_in(self.cells, segment.views[0].cells)
        gained = np.bincount(places[there], minlength=self.cells.size)
        self.rows = self.rows + gained
        self.sizes = self.sizes + gained * -(-segment.info.bytes // segment.info.rows)

    def mark(self, waiting: np.ndarray, tuple_bytes: float, rule: Rule, room: int | None) -> None:
        """Choose what is worth it; of more than there is room for, what saves most.

        Args:
            waiting: the values of all tuples that wait, int64.
            tuple_bytes: the mean size of one.
            room: bytes that rows and entries may take; None for any.
        """
        places, there = places_in(self.cells, waiting)
        wait = np.bincount(places[there], minlength=self.cells.size) * tuple_bytes
        cached = self.sizes + rule.entry_bytes
        self.marked = wait > rule.switching_factor * cached
        if room is not None:
            best = np.argsort(np.where(self.marked, cached - wait, np.inf), kind="stable")
            taken = np.cumsum(np.where(self.marked[best], self.sizes[best] + ENTRY_BYTES, 0))
            self.marked[best[taken > room]] = False

    def collect(self, segment: Segment, room: int | None) -> None:
        """Rows that are read after values were marked: those of the marked ones are kept."""
        if not self.marked.any():
            return
        view = segment.views[0]
        _, there = places_in(self.cells[self.marked], view.cells)
        if there.any():
            self.collected.append(segment.rows.take(pa.array(view.order[there])))
        if room is not None:
            self._shrink(room)

    def _shrink(self, room: int) -> None:
        """Where rows turn out to be larger than the mean, values are left for the next time, each as a whole."""
        while self.collected and self.bytes > room:
            largest = int(np.argmax(np.where(self.marked, self.sizes, -1)))
            self.marked[largest] = False
            kept = [rows.filter(pa.array(column_of(rows, CELL) != self.cells[largest])) for rows in self.collected]
            self.collected = [rows for rows in kept if rows.num_rows]

    def move(self, cache: Cache, now: int) -> int:
        """The marked values are cached from now on; how many they are."""
        moved = self.cells[self.marked]
        if moved.size:
            cache.add(moved, self.collected, now)
        self.begin(_none())
        return int(moved.size)

    def kept(self) -> pa.RecordBatch:
        """All but the collected rows, as a file has it."""
        arrays = [pa.array(values) for values in (self.cells, self.rows, self.sizes, self.marked)]
        return pa.RecordBatch.from_arrays(arrays, ["cell", "rows", "bytes", "marked"])

    @staticmethod
    def opened(kept: Sequence[pa.RecordBatch], collected: list[pa.RecordBatch]) -> Moving:
        """The inverse of `kept`."""
        if not kept:
            return Moving()
        cells, rows, sizes, marked = (np.array(kept[0].column(name)) for name in ("cell", "rows", "bytes", "marked"))
        return Moving(cells, rows, sizes, marked, collected)


def evict(cache: Cache, rule: Rule, tuple_bytes: float, now: int) -> int:
    """Let go the values whose rows are not worth it any more, by the tuples that they have joined in each round since
    they were counted last; how many they are."""
    rounds = now - cache.since
    counted = rounds > 0
    wait = cache.hits / np.maximum(rounds, 1) * tuple_bytes
    gone = counted & (cache.sizes() + rule.entry_bytes >= rule.switching_factor * wait)
    cache.hits = np.where(counted, 0, cache.hits)
    cache.since = np.where(counted, now, cache.since)
    if gone.any():
        cache.keep(~gone)
    return int(np.count_nonzero(gone))
