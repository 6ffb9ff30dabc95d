"""The chained index of one stream's stored tuples in one unit (BiStream, section 3.3).

Segments are chained in order of construction. A batch's tuples become one segment, or several where they span more
than one archive period; small neighbours of one period are merged, so that a closed period is one segment. Expired
tuples go by whole segments.

The paper closes a sub-index once its span exceeds the archive period P. Here a segment's latest tuples lie within P of
each other batch by batch, and a few tuples that are much older share the segment of the tuples they came with: they
live at most P longer than they must, and never make a segment of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamjoin.flow.block import TS, Block
from streamjoin.index.columns import carried_rows
from streamjoin.index.layout import IndexLayout, sorted_by
from streamjoin.index.segment import Segment, SegmentInfo, build
from streamjoin.index.shared import index_rows, is_index_column, merge_indexes
from streamjoin.index.view import CELL, KEY, RANK, column_of
from streamjoin.plan.values import Columns

SMALL_ROWS = 4096
"""A period's share of a batch smaller than this is kept with the next period's."""
MERGED_ROWS_MAX = 1 << 22
MERGED_BYTES_MAX = 128 << 20
"""Segments stop growing at either, so that merging needs a bounded amount of memory: about three times the bytes."""

Save = Callable[[pa.RecordBatch, SegmentInfo], SegmentInfo]
Open = Callable[[SegmentInfo], pa.RecordBatch]


@dataclass(slots=True)
class Chain:
    """The stored tuples of one side in one unit.

    Args:
        layouts: one for each query.
        segments: in order of construction; the last ones may still be merged with what comes.
        archive_period: P, in the window's coordinate: us, or rows; None without a window.
        names: the columns that results and rechecks read, and so are kept.
    """

    layouts: tuple[IndexLayout, ...]
    names: tuple[str, ...]
    archive_period: int | None
    segments: list[Segment]

    @property
    def rows(self) -> int:
        """Stored tuples."""
        return sum(segment.info.rows for segment in self.segments)

    @property
    def bytes(self) -> int:
        """Size of the stored tuples, engine columns included."""
        return sum(segment.info.bytes for segment in self.segments)

    def store(
        self,
        block: Block,
        columns: Sequence[Columns],
        ranks: np.ndarray | None,
        numbers: np.ndarray | None = None,
    ) -> None:
        """Add a batch's tuples as new segments; they are not yet merged or saved.

        Args:
            columns: the block's columns as each query's expressions read them.
            ranks: of the tuples, where the window is one of rows.
            numbers: sequence numbers of the tuples, where they are kept.
        """
        for part in self._periods(block.ts_us if ranks is None else ranks):
            if part is None:
                self._add(block, columns, ranks, numbers)
                continue
            rows = pa.array(part)
            self._add(
                block.take(part),
                [{name: values.take(rows) for name, values in known.items()} for known in columns],
                None if ranks is None else ranks[part],
                None if numbers is None else numbers[part],
            )

    def _add(
        self,
        block: Block,
        columns: Sequence[Columns],
        ranks: np.ndarray | None,
        numbers: np.ndarray | None,
    ) -> None:
        coordinates = block.ts_us if ranks is None else ranks
        rows = block.rows.select(list(self.names))
        if block.queries is not None:
            index, members = index_rows(self.layouts, columns, coordinates, block.queries)
            built = build(rows, block.ts_us, ranks, index, numbers, block.queries, members)
        else:
            (layout,) = self.layouts
            order, cells, keys = layout.arrange(columns[0], coordinates, len(block))
            built = build(
                rows.take(pa.array(order)) if self.names else rows,
                block.ts_us[order],
                None if ranks is None else ranks[order],
                {CELL: cells, KEY: keys},
                None if numbers is None else numbers[order],
            )
        self.segments.append(Segment.attach(*built, self.layouts))

    def _periods(self, coordinates: np.ndarray) -> Iterator[np.ndarray | None]:
        """Row numbers for each new segment, oldest period first; each keeps the rows' order. None for all rows."""
        period = self.archive_period
        newest, oldest = int(coordinates.max()), int(coordinates.min())
        if period is None or newest - oldest <= period:
            yield None
            return
        # Counted back from the newest tuple, so that one far tuple cannot make a million empty periods.
        ages = (newest - coordinates) // period
        numbers, shares = np.unique(ages, return_counts=True)
        large = numbers[shares >= SMALL_ROWS]
        if large.size <= 1:
            yield None
            return
        # A tuple of a small period goes with the next younger large one, so that nothing leaves too early.
        owner = np.searchsorted(large, ages, side="right") - 1
        for group in range(large.size - 1, -1, -1):
            members = np.nonzero(np.maximum(owner, 0) == group)[0]
            if members.size:
                yield members

    def expire(self, expired: Callable[[SegmentInfo], bool]) -> list[Segment]:
        """Drop the segments of which no tuple can be matched any more, and return them.

        All are looked at: under disorder the latest times do not rise along the chain.
        """
        gone = [segment for segment in self.segments if expired(segment.info)]
        self.segments = [segment for segment in self.segments if not expired(segment.info)]
        return gone

    def merge(self) -> list[Segment]:
        """Merge small neighbours of one archive period, and return the segments that were merged away.

        Cost: a tuple is merged about log2(period / batch) times, and once more when its period closes.
        """
        merged_away: list[Segment] = []
        chain: list[list[Segment]] = [[segment] for segment in self.segments]
        place = 1
        while place < len(chain):
            before, last = chain[place - 1], chain[place]
            closes = place + 1 < len(chain) and not self._fits(before + last, chain[place + 1])
            grown = 2 * _rows_of(last) >= _rows_of(before)
            if self._fits(before, last) and (grown or closes):
                chain[place - 1 : place + 1] = [before + last]
                place = max(place - 1, 1)
            else:
                place += 1
        for place, group in enumerate(chain):
            if len(group) > 1:
                merged_away += group
                chain[place] = [self.merged(group)]
        self.segments = [group[0] for group in chain]
        return merged_away

    def _fits(self, one: Sequence[Segment], other: Sequence[Segment]) -> bool:
        size = sum(segment.info.bytes for segment in (*one, *other))
        if _rows_of(one) + _rows_of(other) > MERGED_ROWS_MAX or size > MERGED_BYTES_MAX:
            return False
        if self.archive_period is None:
            return True
        both = (*one, *other)
        latest = max(segment.span[1] for segment in both)
        return latest - min(segment.info.first for segment in both) <= self.archive_period

    def merged(self, group: Sequence[Segment]) -> Segment:
        """One segment with all rows of `group`, not yet saved."""
        if group[0].info.members:
            return self._merged_shared(group)
        rows = pa.concat_batches([carried_rows(segment.rows) for segment in group])
        (layout,) = self.layouts
        second = column_of(rows, KEY)
        if layout.window_is_key:
            second = column_of(rows, RANK if RANK in rows.schema.names else TS)
        rows = rows.take(pa.array(sorted_by(column_of(rows, CELL), second, rows.num_rows)))
        return Segment.attach(rows, _info_of(rows, group), self.layouts)

    def _merged_shared(self, group: Sequence[Segment]) -> Segment:
        found = [segment.rows for segment in group]
        index, members = merge_indexes(found, [segment.info.members for segment in group], self.layouts)
        names = [name for name in found[0].schema.names if not is_index_column(name)]
        rows = pa.concat_batches([carried_rows(rows.select(names)) for rows in found])
        rows = pa.RecordBatch.from_arrays([*rows.columns, *map(pa.array, index.values())], [*names, *index])
        return Segment.attach(rows, replace(_info_of(rows, group), members=members), self.layouts)


def _info_of(rows: pa.RecordBatch, group: Sequence[Segment]) -> SegmentInfo:
    """What is known of the rows of a group."""
    infos = [segment.info for segment in group]
    return SegmentInfo(
        "", rows.num_rows, rows.nbytes,
        min(info.ts_min_us for info in infos), max(info.ts_max_us for info in infos),
        min(info.first for info in infos),
        min(info.rank_min for info in infos), max(info.rank_max for info in infos),
        number_min=min(info.number_min for info in infos), number_max=max(info.number_max for info in infos),
    )  # fmt: skip


def _rows_of(group: Sequence[Segment]) -> int:
    return sum(segment.info.rows for segment in group)
