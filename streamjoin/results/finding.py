"""Which blocks can hold an answer, settled on the manifests' numbers, and an answer as far as it has been read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamjoin.results.block import BlockRef, KeyCode
from streamjoin.results.question import Question
from streamjoin.results.reader import BlockIndex, Reader, block_numbers
from streamjoin.results.rows import Rows
from streamjoin.results.snapshot import FIRST, Snapshot, SnapshotId

Place = tuple[SnapshotId, BlockRef]


@dataclass(slots=True)
class Answer:
    """An answer, as far as it has been read.

    Args:
        schema: of the rows.
        last: the newest snapshot it covers; a continuous query after it continues without gap or overlap.
        blocks_stored: blocks of all snapshots; blocks_wanted: those that the manifests could not rule out.
        blocks_read, rows_read, rows: so far.
        cursor: set once the limit was reached and more may follow.
    """

    schema: pa.Schema
    last: SnapshotId
    snapshots: int
    blocks_stored: int
    blocks_wanted: int
    blocks_read: int = 0
    rows_read: int = 0
    rows: int = 0
    cursor: str | None = None
    _batches: Iterator[pa.RecordBatch] = field(default_factory=lambda: iter(()))

    def give(self, batches: Iterator[pa.RecordBatch]) -> None:
        """What its rows are."""
        self._batches = batches

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches


@dataclass(frozen=True, slots=True)
class _Places:
    """Blocks, each with its snapshot; most answers look at the first few only.

    Args:
        at: their places in the index.
    """

    index: BlockIndex
    at: np.ndarray

    def __len__(self) -> int:
        return self.at.size

    def __iter__(self) -> Iterator[Place]:
        ids, snapshots, refs = self.index.ids, self.index.snapshots, self.index.refs
        return ((ids[snapshots[at]], refs[at]) for at in self.at)

    def oldest(self, after: int) -> SnapshotId:
        """The oldest snapshot of the blocks without so many at the beginning."""
        return self.index.ids[int(self.index.snapshots[self.at[after:]].min())]

    def beyond(self, count: int) -> _Places:
        """Without so many at the beginning."""
        return _Places(self.index, self.at[count:])


@dataclass(frozen=True, slots=True)
class Found:
    """What the manifests of one store could not rule out."""

    snapshots: int
    stored: int
    places: _Places


def find(reader: Reader, question: Question, rows: Rows, after: SnapshotId, upto: SnapshotId) -> Found:
    """The blocks of snapshots with after < id <= upto that may have an answer."""
    return _find(reader.index(), reader.description.code, question, rows, after, upto)


def find_in(base: Snapshot, code: KeyCode, question: Question, rows: Rows) -> Found:
    """The blocks of a base that may have an answer."""
    return _find(BlockIndex.of([base], [block_numbers(base)]), code, question, rows, FIRST, base.id)


def _find(
    index: BlockIndex, code: KeyCode, question: Question, rows: Rows, after: SnapshotId, upto: SnapshotId
) -> Found:
    ids = index.ids
    first, end = bisect_right(ids, after), bisect_right(ids, upto)  # ids rise
    keep = np.ones(len(index.refs), np.bool_)
    if first > 0 or end < len(ids):
        keep = (index.snapshots >= first) & (index.snapshots < end)
    if question.from_us is not None:
        keep &= index.time_max_us >= question.from_us
    if question.to_us is not None:
        keep &= index.time_min_us <= question.to_us
    if rows.keyed and code.ordered:
        low, high = rows.codes()
        keep &= (index.code_max >= low) & (index.code_min <= high)
    if rows.key is not None:
        wanted = np.array(rows.bounds[:1]) if code.ordered else code.codes(rows.key)
        keep &= (index.code_max >= wanted[0]) & (index.code_min <= wanted[0])
        if code.buckets > 1:
            keep &= index.buckets == code.buckets_of(wanted)[0]
    at = np.nonzero(keep)[0]
    if rows.keyed:
        # In key order a store that keeps blocks so answers a range by scans, however many snapshots it spans.
        at = np.array(sorted(at.tolist(), key=lambda place: index.refs[place].key), np.int64)
    return Found(max(end - first, 0), len(index.refs), _Places(index, at))
