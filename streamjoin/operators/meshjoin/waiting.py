"""Tuples of a stream that wait for their partners: those that have entered, chunk by chunk, and those that may not yet.

A chunk is what entered in one step, sorted by its join values. It leaves as a whole, by the step in which it entered
and never by its values, once it has met every part of the relation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from streamjoin.engine.emit import ProbingTimes, one_sided
from streamjoin.flow.block import TS, Block
from streamjoin.index.chain import Open
from streamjoin.index.layout import IndexLayout, Probes, sorted_by
from streamjoin.index.segment import ProbeCounts, Segment, SegmentInfo
from streamjoin.index.view import CELL
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.values import Columns
from streamjoin.plan.window import R, S

FILE_BYTES_MAX = 4 << 20
"""The largest file of tuples that wait outside: at most this much is written again when a part of a file enters."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What tuples are joined by.

    Args:
        query: the join; the relation is its S.
        layout: how rows of the relation are found.
    """

    query: JoinPlan
    layout: IndexLayout
    counts: ProbeCounts

    @property
    def decides(self) -> bool:
        """Whether it matters of a tuple if it has a partner."""
        return bool(self.query.kind.decided)

    def columns(self, rows: pa.RecordBatch) -> Columns:
        """Tuples of the stream as expressions read them."""
        return {(self.query.names[R], name): rows.column(name) for name in rows.schema.names}


def held(block: Block, joined: Joined) -> pa.RecordBatch:
    """Tuples as they are kept: with their times and join values."""
    cells = joined.layout.cells_of(joined.columns(block.rows), len(block), 1)
    return pa.RecordBatch.from_arrays(
        [*block.rows.columns, pa.array(block.ts_us), pa.array(cells)], [*block.rows.schema.names, TS, CELL]
    )


def by_value(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Tuples in the order of their join values."""
    return rows.take(pa.array(sorted_by(rows.column(CELL).to_numpy(), np.zeros(0, np.int64), rows.num_rows)))


def info_of(rows: pa.RecordBatch, *, timed: bool = True) -> SegmentInfo:
    """What is known of rows that are not a file yet."""
    low = high = 0
    if timed and rows.num_rows:
        times = rows.column(TS).to_numpy()
        low, high = int(times.min()), int(times.max())
    return SegmentInfo("", rows.num_rows, rows.nbytes, low, high, high)


class Chunk:
    """Tuples that entered in one step.

    Args:
        rows: as `held` gives them, sorted by join value.
        entered: in which step.
        matched: whether each has met a partner, bool of shape (n,).
    """

    def __init__(self, rows: pa.RecordBatch, entered: int, joined: Joined, info: SegmentInfo | None = None) -> None:
        self.rows, self.entered, self.info = rows, entered, info or info_of(rows)
        self.matched = np.zeros(rows.num_rows, bool)
        self._joined = joined
        block = Block(rows.drop_columns([TS, CELL]), rows.column(TS).to_numpy())
        self._block = block
        met = partial(_met, self.matched, joined.query.kind.gives_pairs) if joined.decides else None
        numbers = np.arange(len(block)) if joined.decides else None
        self._emitter = ProbingTimes(joined.query, S, block, numbers, met)
        self._probes: Probes | None = None

    def __len__(self) -> int:
        return self.rows.num_rows

    @property
    def cells(self) -> np.ndarray:
        """Join values in rising order, int64 of shape (n,)."""
        return np.asarray(self.rows.column(CELL).to_numpy())

    def probe(self, segment: Segment) -> Iterator[pa.RecordBatch]:
        """Pairs with rows of the relation, in parts of bounded size; `flush` gives the rest."""
        if self._probes is None:
            columns = self._joined.columns(self._block.rows)
            self._probes = self._joined.layout.probes(columns, np.zeros(0, np.int64), len(self))
        layout, counts = self._joined.layout, self._joined.counts
        for probe_rows, stored_rows in segment.probe(0, self._probes, layout, counts):
            yield from self._emitter.add(segment, probe_rows, stored_rows)

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Whatever has been found and not been given."""
        yield from self._emitter.flush()

    def leave(self, version: int) -> Iterator[pa.RecordBatch]:
        """What is left to give of tuples that have met the whole relation."""
        yield from self.flush()
        query = self._joined.query
        if query.kind is JoinKind.SEMI:
            yield from self._one_sided(self.matched)
        elif R in query.kind.preserved:
            yield from self._one_sided(~self.matched, version)

    @property
    def unmatched(self) -> int:
        """How many leave without a partner, where they leave at all."""
        return int(np.count_nonzero(~self.matched)) if R in self._joined.query.kind.preserved else 0

    def _one_sided(self, which: np.ndarray, version: int | None = None) -> Iterator[pa.RecordBatch]:
        some = self._block.take(np.nonzero(which)[0])
        yield from one_sided(self._joined.query, R, some.rows, some.ts_us, version)


def _met(
    matched: np.ndarray, gives_pairs: bool, stored: int, segment: Segment, rows: np.ndarray, numbers: np.ndarray
) -> np.ndarray | None:
    matched[numbers] = True
    return None if gives_pairs else np.zeros(0, np.int64)


@dataclass(slots=True)
class _Piece:
    """Consecutive tuples: a whole file, or rows that have not been written as one yet.

    Args:
        size: how many tuples.
        bytes: of the file, which is a little larger than its rows, or of the rows.
    """

    size: int
    bytes: int
    info: SegmentInfo | None = None
    rows: pa.RecordBatch | None = None

    @staticmethod
    def of(rows: pa.RecordBatch) -> _Piece:
        return _Piece(rows.num_rows, rows.nbytes, rows=rows)

    def takes_in(self, before: _Piece) -> bool:
        """Whether to write the piece before this one again, so that both become one file."""
        return before.size <= self.size and before.bytes + self.bytes <= FILE_BYTES_MAX


class Buffer:
    """Tuples that have come and not entered, in the order in which they came.

    They wait in files. A file is opened when its tuples are looked at. Two things are written again: what is left of
    the first file, and small files together with the tuples behind them. So the work of a batch depends on what
    arrives and enters, and not on how much waits.

    Args:
        infos: the files that hold them; their rows are as `held` gives them.
    """

    def __init__(self, infos: tuple[SegmentInfo, ...], open_segment: Open) -> None:
        self._pieces = deque(_Piece(info.rows, info.bytes, info) for info in infos)
        self._open = open_segment

    def __len__(self) -> int:
        return sum(piece.size for piece in self._pieces)

    def add(self, rows: pa.RecordBatch) -> None:
        """Tuples that come now."""
        if rows.num_rows:
            self._pieces.append(_Piece.of(rows))

    @property
    def first(self) -> pa.RecordBatch | None:
        """The first tuples, as many as lie together; None where there are none."""
        return self._rows(self._pieces[0]) if self._pieces else None

    def take(self, count: int) -> pa.RecordBatch:
        """So many of `first`, which are not here any more."""
        rows = self._rows(self._pieces[0])
        if count:
            self._pieces.popleft()
        if 0 < count < rows.num_rows:
            self._pieces.appendleft(_Piece.of(rows.slice(count)))
        return rows.slice(0, count)

    def saved(self, save: Callable[[pa.RecordBatch], SegmentInfo]) -> tuple[SegmentInfo, ...]:
        """The files that hold them all, once they are durable."""
        kept: list[_Piece] = []
        for piece in self._pieces:
            last = piece
            while last.info is None and kept and last.takes_in(kept[-1]):
                last = _Piece.of(pa.concat_batches([self._rows(kept.pop()), self._rows(last)]))
            kept.append(last)
        return tuple(info for piece in kept for info in self._files_of(piece, save))

    def _rows(self, piece: _Piece) -> pa.RecordBatch:
        if piece.rows is None:
            assert piece.info is not None
            piece.rows = self._open(piece.info)
        return piece.rows

    def _files_of(self, piece: _Piece, save: Callable[[pa.RecordBatch], SegmentInfo]) -> Iterator[SegmentInfo]:
        if piece.info is not None:
            yield piece.info
            return
        rows = self._rows(piece)
        while rows.num_rows:
            count = max(fitting(rows, FILE_BYTES_MAX), 1)
            yield save(rows.slice(0, count))
            rows = rows.slice(count)


def fitting(rows: pa.RecordBatch, size: int) -> int:
    """How many of the first rows take at most so many bytes."""
    count = rows.num_rows
    while count and (taken := rows.slice(0, count).nbytes) > size:
        count = min(int(count * size / taken), count - 1)
    return count
