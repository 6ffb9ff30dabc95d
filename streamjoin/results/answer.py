"""Answering a question: which blocks can hold an answer is settled on the manifests' numbers.

Only those are read, one handful at a time, and rows leave as they are found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.results.block import BlockRef
from streamjoin.results.cursor import Cursor
from streamjoin.results.question import Question, check
from streamjoin.results.reader import BlockIndex, Reader
from streamjoin.results.rows import Rows
from streamjoin.results.snapshot import FIRST, SnapshotId

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

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches


def ask(reader: Reader, question: Question, recent: Reader | None = None) -> Answer:
    """Answer a question as of now. Nothing is read before the answer is iterated, and stopping early stops reading.

    Args:
        reader: of the durable store.
        recent: of the newest snapshots in memory. What it has is read there; where a time range lies wholly in it, the
            durable store is not asked at all. Questions by key read both.
    Raises:
        InputError: the question does not fit the job's results.
    """
    check(question)
    rows = Rows(question, (recent or reader).description.schema)
    begun = Cursor.read(question)
    if rows.keyed and (question.limit is not None or begun):
        # Pages of a key range go on in key order, which a seam that moves between two pages would break.
        recent = None
    after = SnapshotId.parse(question.after) if question.after else FIRST
    upto = begun.upto if begun else SnapshotId.parse(question.upto) if question.upto else None
    parts: list[tuple[Reader, _Found]] = []
    seam = FIRST
    if recent is not None:
        head = recent.refresh()
        seam = head.floor
        upto = min(upto or head.state.last, head.state.last)
        parts.append((recent, _find(recent, question, rows, max(after, seam), upto)))
        older = after < seam and (head.below_time_max_us is None or _reaches(question, head.below_time_max_us))
    else:
        older = True
    if older:
        head = reader.refresh()
        # What a cursor has given may be gone; what is to come may not.
        if begun.id <= head.floor if begun else question.after and after < head.floor:
            raise InputError(f"snapshots up to {head.floor} have been removed; ask from there on")
        if recent is None or upto is None:
            seam = upto = min(upto or head.state.last, head.state.last)
        parts.insert(0, (reader, _find(reader, question, rows, max(after, head.floor), min(seam, upto))))
    assert upto is not None
    answer = Answer(
        rows.schema,
        max(upto, after),
        sum(found.snapshots for _, found in parts),
        sum(found.stored for _, found in parts),
        sum(len(found.places) for _, found in parts),
    )
    answer._batches = _read(parts, reader if recent is not None else None, question, rows, begun, answer)
    return answer


def _reaches(question: Question, below_us: int) -> bool:
    """Whether a question may be answered by results up to `below_us`."""
    by_time = question.from_us is not None
    by_key = question.key is not None or question.key_from is not None or question.key_to is not None
    return by_key or not by_time or (question.from_us or 0) <= below_us


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

    def beyond(self, count: int) -> _Places:
        """Without so many at the beginning."""
        return _Places(self.index, self.at[count:])


@dataclass(frozen=True, slots=True)
class _Found:
    """What the manifests of one store could not rule out."""

    snapshots: int
    stored: int
    places: _Places


def _find(reader: Reader, question: Question, rows: Rows, after: SnapshotId, upto: SnapshotId) -> _Found:
    code = reader.description.code
    index = reader.index()
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
    return _Found(max(end - first, 0), len(index.refs), _Places(index, at))


def _read(
    parts: Sequence[tuple[Reader, _Found]],
    behind: Reader | None,
    question: Question,
    rows: Rows,
    begun: Cursor | None,
    answer: Answer,
) -> Iterator[pa.RecordBatch]:
    left, skip = question.limit, begun.skip if begun else 0
    for reader, found in parts:
        places = found.places
        if begun is not None:
            start = next((at for at, place in enumerate(places) if begun.is_at(*place)), None)
            if start is None:
                continue
            places, begun = places.beyond(start), None
        read = reader.rows((ref for _, ref in places), behind if reader is not behind else None, rows.wanted)
        for (id, _), (ref, batch) in zip(places, read, strict=True):
            answer.blocks_read += 1
            if not batch.num_rows:  # none of its keys is asked for
                continue
            answer.rows_read += ref.rows
            some = rows.of(batch, by_key=False)
            some, before, skip = some.slice(skip), skip, 0
            if left is not None and some.num_rows > left:
                at = Cursor(answer.last, id, ref.key.batch, ref.key.unit, ref.key.number, before + left)
                answer.cursor = at.text(question)
                some = some.slice(0, left)
            if some.num_rows:
                answer.rows += some.num_rows
                yield some
            if left is not None:
                left -= some.num_rows
                if answer.cursor:
                    return
    if begun is not None:
        raise InputError("what this cursor points to has been removed; leave it out to begin anew")
