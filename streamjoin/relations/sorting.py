"""Sorting the rows of a relation, of which there may be more than memory holds, into segments.

    add(rows)   rows are selected, projected and held; what is held becomes a sorted run, a file, once it is large
    parts()     one run is a segment as it is; of several, each range of first keys is read from all and sorted

A range is chosen from samples of all runs so that it has about as many rows as a segment should. Rows of one key that
are more than that become several segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamjoin.durable import sync_file
from streamjoin.index.columns import stored_columns
from streamjoin.index.files import mapped_rows, write_rows
from streamjoin.index.layout import IndexLayout, layout_of, sorted_by
from streamjoin.index.table import Part, Table, first_key
from streamjoin.index.view import CELL, KEY, column_of
from streamjoin.intake.selection import select
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.window import S

RUN_BYTES = 64 << 20
"""Rows that are held until they become a run, in bytes; sorting them needs about three times as much memory."""
SEGMENT_BYTES = 64 << 20
"""About how large a segment becomes."""
RUN_ROWS_MAX = 1 << 22
_SAMPLED = 1 << 12
"""Of so many rows of a run one is looked at to find ranges."""

COUNTED = "__counted"
"""In place of columns where none is kept, as rows without columns cannot be counted; nothing is looked up by it."""


@dataclass
class Sorting:
    """Rows of one relation on their way into one stage's segments.

    Args:
        query: the join of the stage; the relation is its S.
        folder: where segments go; it is empty, and nobody else writes there.
        version: of the relation, for queries that ask for it.
        rows: how many were kept so far, and `given` how many came.
    """

    query: JoinPlan
    folder: Path
    sync: bool = True
    version: int = 0
    rows: int = 0
    given: int = 0
    _held: list[pa.RecordBatch] = field(default_factory=list)
    _held_bytes: int = 0
    _held_rows: int = 0
    _runs: list[Path] = field(default_factory=list)

    @property
    def layout(self) -> IndexLayout:
        """How the rows are laid out."""
        return layout_of(self.query, S)

    @property
    def columns(self) -> pa.Schema:
        """The columns that are kept; those that only keys are computed from are not."""
        schema = self.query.streams[S].columns
        return pa.schema([schema.field(name) for name in stored_columns(self.query, S)])

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows with all columns that the join reads; those that can match nothing are left out."""
        self.given += rows.num_rows
        rows = self.query.streams[S].versioned_rows(rows, self.version)
        joinable = select(self.query, S, rows).joinable
        if not joinable.all():
            rows = rows.filter(pa.array(joinable))
        if not rows.num_rows:
            return
        self.rows += rows.num_rows
        kept = self._keyed(rows)
        self._held.append(kept)
        self._held_rows += kept.num_rows
        self._held_bytes += kept.nbytes
        if self._held_bytes >= RUN_BYTES or self._held_rows >= RUN_ROWS_MAX:
            self._let_go()
            self._held, self._held_bytes, self._held_rows = [], 0, 0

    def _let_go(self) -> None:
        """What is held becomes a file."""
        self._runs.append(self._written(self._sorted(self._held), f".run-{len(self._runs)}"))

    def _keyed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that are kept, and what rows are sorted by."""
        name, layout = self.query.names[S], self.layout
        columns = {(name, column): rows.column(column) for column in rows.schema.names}
        keys = {
            CELL: layout.stored_cells(columns, rows.num_rows),
            KEY: layout.stored_keys(columns, rows.num_rows),
        }
        arrays = {column: rows.column(column) for column in self.columns.names}
        arrays |= {column: pa.array(values) for column, values in keys.items() if values.size}
        if not arrays:  # nothing is read of it, and nothing is indexed: only how many rows there are matters
            arrays = {COUNTED: pa.array(np.zeros(rows.num_rows, np.int64))}
        return pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))

    @staticmethod
    def _sorted(held: list[pa.RecordBatch]) -> pa.RecordBatch:
        rows = pa.concat_batches(held)
        order = sorted_by(column_of(rows, CELL), column_of(rows, KEY), rows.num_rows)
        return rows.take(pa.array(order))

    def _written(self, rows: pa.RecordBatch, name: str) -> Path:
        path = self.folder / name
        write_rows(path, rows)
        return path

    def parts(self) -> list[Part]:
        """The segments, written, in the order of the first key; no further rows may come.

        Cost: every row is written twice where there is more than one run, and else once.
        """
        found: list[Part] = []
        if not self._runs:
            if self._held:
                found.append(self._part(self._sorted(self._held), 0))
            return found
        if self._held:
            self._let_go()
        self._held = []
        runs = [mapped_rows(path) for path in self._runs]
        for rows in _ranges(runs):
            found.append(self._part(rows, len(found)))
        del runs
        for path in self._runs:
            path.unlink()
        return found

    def _part(self, rows: pa.RecordBatch, number: int) -> Part:
        path = self._written(rows, f"{number}.arrow")
        if self.sync:
            sync_file(path)
        return _described(rows, path.name, path.stat().st_size)


def table_of(query: JoinPlan, rows: pa.RecordBatch, version: int) -> Table:
    """Rows of a relation as a table of one segment, in memory."""
    sorting = Sorting(query, Path(), version=version)
    rows = query.streams[S].versioned_rows(rows, version)
    joinable = select(query, S, rows).joinable
    kept = sorting._sorted([sorting._keyed(rows.filter(pa.array(joinable)))])
    parts = [(_described(kept, "", kept.nbytes), kept)] if kept.num_rows else []
    return Table.of(version, sorting.columns, parts, sorting.layout)


def _described(rows: pa.RecordBatch, file: str, size: int) -> Part:
    """What is known of sorted rows."""
    keys = first_key(rows)
    low, high = (int(keys[0]), int(keys[-1])) if keys.size else (0, 0)
    return Part(file, rows.num_rows, size, low, high)


def _ranges(runs: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sorted rows for each segment, from sorted runs."""
    keys = [first_key(run) for run in runs]
    if not all(key.size for key in keys):
        yield from runs
        return
    rows, size = sum(run.num_rows for run in runs), sum(run.nbytes for run in runs)
    wanted = max(rows * SEGMENT_BYTES // max(size, 1), 1)
    samples = np.sort(np.concatenate([key[::_SAMPLED] for key in keys]))
    bounds = np.unique(samples[:: max(wanted // _SAMPLED, 1)])
    starts = [np.zeros(bounds.size + 1, np.int64) for _ in keys]
    for start, key in zip(starts, keys, strict=True):
        start[:-1] = np.searchsorted(key, bounds, "left")
        start[0], start[-1] = 0, key.size
    for number in range(bounds.size):
        slices = [
            run.slice(start[number], start[number + 1] - start[number])
            for run, start in zip(runs, starts, strict=True)
            if start[number + 1] > start[number]
        ]
        if sum(part.num_rows for part in slices) > 2 * wanted:
            yield from slices  # one key has more rows than a segment should have
        elif slices:
            yield Sorting._sorted(slices)
