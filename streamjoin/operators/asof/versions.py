"""The right side of an as-of join in one unit: for each key the rows that a left row may still get.

Rows lie in segments, sorted by key and time. A batch's rows become a segment; a segment is merged with the one before
as long as that is not more than twice as large, and merging lets go what no left row can get any more: of each key all
but the latest row below the oldest left row that waits or may come, and the newer ones.

A row that ends its key is a version like the others, which gives none. It hides the older ones in other segments, and
those that may still come; so it is let go once all segments are merged and the right stream's mark has reached it.

Order of rows of one key and one time: the last by (batch, piece, position), which is the highest number.

Cost: a row is merged about log2(rows / batch) times; a look-up searches each segment, of which there are as many.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.engine.emit import take
from streamjoin.flow.block import TS, Block
from streamjoin.flow.portions import cut_together, is_text, offsets_of, sizes
from streamjoin.index.chain import MERGED_BYTES_MAX
from streamjoin.index.kernels import mix
from streamjoin.index.keys import is_exact
from streamjoin.index.layout import equality_cells, sorted_by
from streamjoin.index.segment import SegmentInfo
from streamjoin.index.view import CELL, NUMBER
from streamjoin.operators.asof.kernels import latest
from streamjoin.plan.asof import ENDS
from streamjoin.plan.decimals import carried_type
from streamjoin.plan.evaluation import evaluate_carried, filter_mask
from streamjoin.plan.expression import Expression, columns_of, conjunction
from streamjoin.plan.functions import comparisons
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.types import BOOL, INT64
from streamjoin.plan.values import Columns
from streamjoin.plan.window import R, S, TimeWindow

NONE = -1
_ENGINE_TYPES = {TS: INT64, ENDS: BOOL}


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows of S by key and time; `info.file` is empty until they are a file."""

    rows: pa.RecordBatch
    info: SegmentInfo

    @property
    def cells(self) -> np.ndarray:
        """Of the rows' keys, int64."""
        return np.asarray(self.rows.column(CELL).to_numpy())

    @property
    def times(self) -> np.ndarray:
        """Event times in us, int64."""
        return np.asarray(self.rows.column(TS).to_numpy())


def sorted_rows(rows: pa.RecordBatch) -> Sorted:
    """Rows, in rising order of their numbers, as a segment."""
    order = sorted_by(rows.column(CELL).to_numpy(), rows.column(TS).to_numpy(), rows.num_rows)
    return described(rows.take(pa.array(order)))


def described(rows: pa.RecordBatch) -> Sorted:
    """Rows that are sorted already, of which there must be one."""
    times = rows.column(TS).to_numpy()
    low, high = int(times.min()), int(times.max())
    return Sorted(rows, SegmentInfo("", rows.num_rows, rows.nbytes, low, high, high))


def columns_of_rows(plan: JoinPlan, side: int, rows: pa.RecordBatch) -> Columns:
    """A side's rows as expressions read them."""
    return {(plan.names[side], name): rows.column(name) for name in rows.schema.names}


def key_values(plan: JoinPlan, side: int, rows: pa.RecordBatch) -> list[pa.Array]:
    """What equal keys are compared by."""
    columns = columns_of_rows(plan, side, rows)
    return [evaluate_carried(expression, columns, rows.num_rows) for expression in plan.equality_keys(side)]


def key_cells(plan: JoinPlan, keys: Sequence[pa.Array]) -> np.ndarray:
    """The cells of rows with these `key_values`, int64 of shape (n,).

    Where NULL joins NULL it has a cell of its own and not that of the value in its place: of rows that take turns in
    one cell none would be let go.
    """
    cells = equality_cells(list(keys))
    for place, (equality, key) in enumerate(zip(plan.predicate.equalities, keys, strict=True)):
        if equality.joins_null and key.null_count:
            cells = np.where(np.asarray(key.is_null()), mix(cells + np.int64(place + 1)), cells)
    return cells


def looked_up_at(plan: JoinPlan, left: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """The times by which left rows look for a version, int64, and which of them have none, bool, of shape (n,) each.

    One that has none waits as long as if it looked by its own time.
    """
    own = left.column(TS).to_numpy()
    if plan.asof is None or plan.asof.at is None:
        return own, np.zeros(left.num_rows, bool)
    times = left.column(plan.asof.at.name)
    missing = np.asarray(times.is_null())
    return np.where(missing, own, np.asarray(pc.fill_null(times, 0))), missing


def unsettled(plan: JoinPlan) -> Expression | None:
    """What must be checked of rows in one cell; None where a cell is a key."""
    equalities = plan.predicate.equalities
    if len(equalities) == 1 and is_exact(equalities[0].keys[S].type) and not equalities[0].joins_null:
        return None
    return conjunction([equality.source for equality in equalities])


@dataclass(slots=True)
class Found:
    """For n probes, the segment and the row in it that each got; NONE where it got none. int64 of shape (n,) each."""

    segment: np.ndarray
    row: np.ndarray

    def part(self, first: int, past: int) -> Found:
        """Of the probes first..past-1, without copying."""
        return Found(self.segment[first:past], self.row[first:past])

    @property
    def by_segment(self) -> list[tuple[int, np.ndarray]]:
        """(segment, places of the probes that got a row of it, int64), of those that have any."""
        there = np.nonzero(np.bincount(self.segment + 1)[1:])[0]
        return [(int(number), np.nonzero(self.segment == number)[0]) for number in there]


@dataclass(slots=True)
class Versions:
    """The rows of S that a unit has.

    Args:
        segments: in order of construction.
        dropped: files that were let go.
    """

    plan: JoinPlan
    segments: list[Sorted]
    dropped: list[str] = field(default_factory=list)

    def add(self, block: Block, names: Sequence[str], first: int) -> None:
        """A batch's rows, numbered on from `first`."""
        rows = block.rows.select(list(names))
        cells = key_cells(self.plan, key_values(self.plan, S, block.rows))
        numbers = np.arange(first, first + len(block), dtype=np.int64)
        columns = [*rows.columns, pa.array(block.ts_us), pa.array(cells), pa.array(numbers)]
        self.segments.append(sorted_rows(pa.RecordBatch.from_arrays(columns, [*rows.schema.names, TS, CELL, NUMBER])))

    def latest(self, left: pa.RecordBatch) -> Found:
        """Which row each of n left rows gets."""
        plan, count = self.plan, left.num_rows
        times, absent = looked_up_at(plan, left)
        keys = key_values(plan, R, left)
        wanted = key_cells(plan, keys)
        assert plan.asof is not None
        until = times - 1 if plan.asof.older else times
        found = Found(np.full(count, NONE), np.full(count, NONE))
        best_us = np.full(count, np.iinfo(np.int64).min)
        if isinstance(plan.window, TimeWindow):
            best_us = times - plan.window.before_us - 1  # what is older is too old
        best_number = np.full(count, np.iinfo(np.int64).max)
        for number, segment in enumerate(self.segments):
            rows = np.empty(count, np.int64)
            latest(segment.cells, segment.times, wanted, until, rows)
            self._checked(left, segment, rows)
            there = np.nonzero(rows != NONE)[0]
            times_us, numbers = segment.times[rows[there]], segment.rows.column(NUMBER).to_numpy()[rows[there]]
            newer = (times_us > best_us[there]) | ((times_us == best_us[there]) & (numbers > best_number[there]))
            at = there[newer]
            found.segment[at], found.row[at] = number, rows[at]
            best_us[at], best_number[at] = times_us[newer], numbers[newer]
        for equality, key in zip(plan.predicate.equalities, keys, strict=True):
            if not equality.joins_null:
                absent = absent | np.asarray(key.is_null())
        if plan.asof.values:
            absent |= np.asarray(pc.fill_null(self.columns(found, (ENDS,))[ENDS], False))
        found.segment[absent], found.row[absent] = NONE, NONE
        return found

    def _checked(self, left: pa.RecordBatch, segment: Sorted, rows: np.ndarray) -> None:
        """Go back from rows of other keys that fell into the same cell."""
        condition = unsettled(self.plan)
        open_ = np.nonzero(rows != NONE)[0] if condition is not None else np.zeros(0, np.int64)
        while open_.size and condition is not None:
            open_ = open_[~self._meet(condition, left, segment, open_, rows[open_])]
            before = np.maximum(rows[open_] - 1, 0)
            same = (rows[open_] > 0) & (segment.cells[before] == segment.cells[rows[open_]])
            rows[open_] = np.where(same, before, NONE)
            open_ = open_[same]

    def _meet(
        self, condition: Expression, left: pa.RecordBatch, segment: Sorted, probes: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Whether left rows and rows of a segment, n of each, are what a condition asks for, bool of shape (n,)."""
        of_left = {(self.plan.names[0], name): (left.column(name), probes) for name in left.schema.names}
        stored = segment.rows
        of_stored = {(self.plan.names[S], name): (stored.column(name), rows) for name in stored.schema.names}
        read = {pair: (of_left | of_stored)[pair] for pair in columns_of(condition)}
        met = np.zeros(probes.size, bool)
        for first, past in cut_together(list(read.values()), probes.size):
            columns = {pair: take(values, at[first:past]) for pair, (values, at) in read.items()}
            met[first:past] = filter_mask(condition, columns, past - first)
        return met

    def columns(self, found: Found, names: Collection[str]) -> dict[str, pa.Array]:
        """Columns of the rows that were found, NULL where none was, n values each.

        Cost: a look at what was found, however much the segments have.
        """
        groups: list[tuple[int, np.ndarray | None]] = list(found.by_segment)
        missing = found.segment == NONE
        if len(groups) < 2:
            at, groups = found.row, [(number, None) for number, _ in groups]
        else:
            at = np.zeros(missing.size, np.int64)
            at[np.concatenate([places for _, places in groups])] = np.arange(np.count_nonzero(~missing))
        wanted = pa.array(np.where(missing, 0, at), mask=missing)
        return {name: self._joined(groups, found, name).take(wanted) for name in names}

    def _joined(self, groups: Sequence[tuple[int, np.ndarray | None]], found: Found, name: str) -> pa.Array:
        """A column of what was found, segment by segment; all of a segment where no places in it are given."""
        parts = [
            values if places is None else take(values, found.row[places])
            for values, places in ((self.segments[number].rows.column(name), places) for number, places in groups)
        ]
        if not parts:
            kind = _ENGINE_TYPES.get(name) or carried_type(self.plan.streams[S].columns.field(name).type)
            return pa.array([], kind)
        return pa.concat_arrays(parts) if len(parts) > 1 else parts[0]

    def sizes(self, found: Found, names: Collection[str]) -> np.ndarray:
        """Bytes of texts that these columns have in the rows that were found, int64 of shape (n,)."""
        total = np.zeros(found.row.size, np.int64)
        columns = self.plan.streams[S].columns
        texts = [name for name in names if name in columns.names and is_text(columns.field(name).type)]
        for number, places in found.by_segment if texts else ():
            for name in texts:
                offsets = offsets_of(self.segments[number].rows.column(name))
                total[places] += sizes(offsets, found.row[places])
        return total

    def settle(self, oldest_us: int | None, mark_us: int | None) -> None:
        """After a batch: merge, and let go what no left row can get.

        Args:
            oldest_us: none that waits or may come is older.
            mark_us: of the right stream.
        """
        if oldest_us is not None and isinstance(self.plan.window, TimeWindow):
            lowest_us = oldest_us - self.plan.window.before_us
            self._replace([], [segment for segment in self.segments if segment.info.ts_max_us < lowest_us])
        while len(self.segments) > 1:
            before, last = self.segments[-2:]
            if before.info.rows > 2 * last.info.rows or before.info.bytes + last.info.bytes > MERGED_BYTES_MAX:
                break
            self._merge([before, last], oldest_us, mark_us)

    def _merge(self, group: list[Sorted], oldest_us: int | None, mark_us: int | None) -> None:
        merged = sorted_rows(pa.concat_batches([segment.rows for segment in group]))
        keep = self._needed(merged, oldest_us)
        if len(group) == len(self.segments):
            keep = self._without_ends(merged, keep, oldest_us, mark_us)
        rows = merged.rows if keep.all() else merged.rows.take(pa.array(np.nonzero(keep)[0]))
        self._replace([described(rows)] if rows.num_rows else [], group)

    def _needed(self, segment: Sorted, oldest_us: int | None) -> np.ndarray:
        """The rows that are not the second best for every left row, bool."""
        keep = np.ones(segment.rows.num_rows, bool)
        times = segment.times
        assert self.plan.asof is not None
        seen = times[1:] == times[:-1]
        if oldest_us is not None:
            seen |= (times[1:] < oldest_us) if self.plan.asof.older else (times[1:] <= oldest_us)
            if isinstance(self.plan.window, TimeWindow):
                keep &= times >= oldest_us - self.plan.window.before_us
        keep[:-1] &= ~(seen & self._same_key(segment))
        return keep

    def _without_ends(
        self, segment: Sorted, keep: np.ndarray, oldest_us: int | None, mark_us: int | None
    ) -> np.ndarray:
        """Of all that there is, rows that are kept still, bool: not those that end a key of which nothing is left."""
        assert self.plan.asof is not None
        if not self.plan.asof.values or oldest_us is None or mark_us is None:
            return keep
        rows = np.nonzero(keep)[0]
        cells, times = segment.cells[rows], segment.times[rows]
        # Before it there is nothing in its cell, where rows of other keys may stand between it and what it hides.
        ends = np.asarray(segment.rows.column(ENDS))[rows] & np.append(True, cells[1:] != cells[:-1])
        ends &= (times < oldest_us) if self.plan.asof.older else (times <= oldest_us)
        keep[rows[ends & (times <= mark_us)]] = False
        return keep

    def _same_key(self, segment: Sorted) -> np.ndarray:
        """Whether each row but the last has the key of the next one, bool."""
        alike = segment.cells[1:] == segment.cells[:-1]
        if unsettled(self.plan) is not None:
            for key in key_values(self.plan, S, segment.rows):
                alike &= np.asarray(comparisons.same([key.slice(1), key.slice(0, len(key) - 1)], BOOL))
        return np.asarray(alike)

    def _replace(self, new: list[Sorted], gone: list[Sorted]) -> None:
        self.dropped += [segment.info.file for segment in gone if segment.info.file]
        self.segments = [segment for segment in self.segments if all(segment is not one for one in gone)] + new
