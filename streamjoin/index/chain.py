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
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamjoin.block import TS, Block
from streamjoin.expression import Columns
from streamjoin.index.kernels import radix_order
from streamjoin.index.layout import IndexLayout
from streamjoin.index.segment import CELL, KEY, RANK, Segment, SegmentInfo, build

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
        segments: in order of construction; the last ones may still be merged with what comes.
        archive_period: P, in the window's coordinate: us, or rows; None without a window.
        names: the columns that results and rechecks read, and so are kept.
    """

    layout: IndexLayout
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

    def store(self, block: Block, columns: Columns, coordinates: np.ndarray, ranks: np.ndarray | None) -> None:
        """Add a batch's tuples as new segments; they are not yet merged or saved.

        Args:
            columns: the block's columns as expressions read them.
            coordinates: window coordinates of the tuples as stored ones; empty without a window.
        """
        order, cells, keys = self.layout.arrange(columns, coordinates, len(block))
        ts_us = block.ts_us[order]
        kept = (
            pa.RecordBatch.from_arrays(
                [block.rows.column(name) for name in self.names],
                schema=pa.schema([block.rows.schema.field(name) for name in self.names]),
            )
            if self.names
            else pa.RecordBatch.from_struct_array(pa.array([{}] * len(block), pa.struct([])))
        )
        rows = kept.take(pa.array(order)) if self.names else kept
        ranks = None if ranks is None else ranks[order]
        for part in self._periods(ts_us if ranks is None else ranks):
            batch, info = build(
                _rows(rows, part), ts_us[part], None if ranks is None else ranks[part],
                cells[part] if cells.size else cells, keys[part] if keys.size else keys,
            )  # fmt: skip
            self.segments.append(Segment.attach(batch, info, self.layout))

    def _periods(self, coordinates: np.ndarray) -> Iterator[np.ndarray | slice]:
        """Row numbers for each new segment, oldest period first; each keeps the rows' order."""
        period = self.archive_period
        newest, oldest = int(coordinates.max()), int(coordinates.min())
        if period is None or newest - oldest <= period:
            yield slice(0, coordinates.size)
            return
        # Counted back from the newest tuple, so that one far tuple cannot make a million empty periods.
        ages = (newest - coordinates) // period
        numbers, shares = np.unique(ages, return_counts=True)
        large = numbers[shares >= SMALL_ROWS]
        if large.size <= 1:
            yield slice(0, coordinates.size)
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
                chain[place] = [self._merged(group)]
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

    def _merged(self, group: Sequence[Segment]) -> Segment:
        rows = pa.concat_batches([segment.rows for segment in group])

        def column(name: str) -> np.ndarray | None:
            return rows.column(name).to_numpy() if name in rows.schema.names else None

        ts_us, ranks, cells, keys = column(TS), column(RANK), column(CELL), column(KEY)
        assert ts_us is not None
        second = keys
        if self.layout.window_is_key:
            second = ts_us if ranks is None else ranks
        order = np.arange(rows.num_rows, dtype=np.int64)
        for values in (second, cells):
            if values is not None:
                order = radix_order(values, order)
        rows = rows.take(pa.array(order))
        infos = [segment.info for segment in group]
        info = SegmentInfo(
            "", rows.num_rows, rows.nbytes,
            min(info.ts_min_us for info in infos), max(info.ts_max_us for info in infos),
            min(info.first for info in infos),
            min(info.rank_min for info in infos), max(info.rank_max for info in infos),
        )  # fmt: skip
        return Segment.attach(rows, info, self.layout)


def _rows_of(group: Sequence[Segment]) -> int:
    return sum(segment.info.rows for segment in group)


def _rows(rows: pa.RecordBatch, part: np.ndarray | slice) -> pa.RecordBatch:
    return rows if isinstance(part, slice) else rows.take(pa.array(part))
