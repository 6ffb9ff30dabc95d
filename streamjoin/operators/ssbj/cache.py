"""Rows of a relation that are kept in memory (H_R): of each join value that is cached, all rows or none.

A value may be cached without any row: then its tuples are known to have no partner.

Source: SSBJ (DAPD 2019), section 3. Invariant: the rows of a cached value are all that the relation has of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamjoin.index.layout import sorted_by
from streamjoin.index.segment import Segment
from streamjoin.index.view import CELL, KEY, column_of
from streamjoin.operators.meshjoin.scan import arranged

ENTRY_BYTES = 24
"""What a cached value takes beside its rows: the value, its count and its round, 8 bytes each."""
_VALUES = ("cell", "hits", "since")


@dataclass
class Cache:
    """The cached values and their rows.

    Args:
        rows: sorted by (cell, key); None where there are none.
        cells: the cached values in rising order, int64 of shape (n,).
        hits: how many tuples each has joined since it was counted last, int64 of shape (n,).
        since: the round from which it is counted, int64 of shape (n,).
    """

    rows: pa.RecordBatch | None
    cells: np.ndarray
    hits: np.ndarray
    since: np.ndarray

    @staticmethod
    def empty() -> Cache:
        """No value."""
        none = np.zeros(0, np.int64)
        return Cache(None, none, none, none)

    @staticmethod
    def opened(rows: Sequence[pa.RecordBatch], values: Sequence[pa.RecordBatch]) -> Cache:
        """What `rows` and `values_kept` say, read again."""
        if not values:
            return Cache.empty()
        cells, hits, since = (np.array(values[0].column(name)) for name in _VALUES)
        return Cache(rows[0] if rows else None, cells, hits, since)

    @property
    def values_kept(self) -> pa.RecordBatch:
        """The values as a file has them."""
        arrays = [pa.array(values) for values in (self.cells, self.hits, self.since)]
        return pa.RecordBatch.from_arrays(arrays, list(_VALUES))

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return (self.rows.nbytes if self.rows is not None else 0) + ENTRY_BYTES * int(self.cells.size)

    @property
    def row_count(self) -> int:
        """How many rows are cached."""
        return self.rows.num_rows if self.rows is not None else 0

    @property
    def empty_values(self) -> int:
        """How many values are cached without any row."""
        cells = column_of(self.rows, CELL) if self.rows is not None else np.zeros(0, np.int64)
        return int(self.cells.size - np.count_nonzero(np.diff(cells)) - (cells.size > 0))

    @property
    def segment(self) -> Segment | None:
        """The rows as they are probed."""
        return arranged(self.rows) if self.rows is not None else None

    def found(self, cells: np.ndarray) -> np.ndarray:
        """Which of the values are cached, with rows or without, bool of shape (n,)."""
        return places_in(self.cells, cells)[1]

    def count(self, cells: np.ndarray) -> None:
        """Note tuples that were joined here; their values are cached."""
        places, _ = places_in(self.cells, cells)
        self.hits = self.hits + np.bincount(places, minlength=self.cells.size)

    def sizes(self) -> np.ndarray:
        """Bytes of each value's rows, by the mean size of a row, float64 of shape (n,)."""
        if self.rows is None:
            return np.zeros(self.cells.size)
        places, _ = places_in(self.cells, column_of(self.rows, CELL))
        return np.bincount(places, minlength=self.cells.size) * (self.rows.nbytes / self.rows.num_rows)

    def add(self, cells: np.ndarray, rows: Sequence[pa.RecordBatch], now: int) -> None:
        """Values that are not cached, with all their rows."""
        merged = np.concatenate([self.cells, cells])
        order = np.argsort(merged, kind="stable")
        self.cells = merged[order]
        self.hits = np.concatenate([self.hits, np.zeros(cells.size, np.int64)])[order]
        self.since = np.concatenate([self.since, np.full(cells.size, now, np.int64)])[order]
        if rows:
            every = pa.concat_batches([*([self.rows] if self.rows is not None else []), *rows])
            by = sorted_by(column_of(every, CELL), column_of(every, KEY), every.num_rows)
            self.rows = every.take(pa.array(by))

    def keep(self, which: np.ndarray) -> None:
        """Let go all other values, each with all its rows.

        Args:
            which: bool of shape (n,).
        """
        self.cells, self.hits, self.since = self.cells[which], self.hits[which], self.since[which]
        if self.rows is not None:
            stay = self.found(column_of(self.rows, CELL))
            self.rows = self.rows.filter(pa.array(stay)) if stay.any() else None


def places_in(ordered: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where values are among others that are in rising order, and whether they are there; each of shape (n,)."""
    if not ordered.size:
        return np.zeros(cells.size, np.int64), np.zeros(cells.size, bool)
    places = np.minimum(np.searchsorted(ordered, cells), ordered.size - 1)
    return places, ordered[places] == cells
