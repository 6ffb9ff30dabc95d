"""Answering a question: which blocks can hold an answer is settled on the manifests' numbers.

Only those are read, one handful at a time, and rows leave as they are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.results.cursor import Cursor
from streamjoin.results.finding import Answer, Found, find
from streamjoin.results.groups import ask_latest
from streamjoin.results.latest import Holds
from streamjoin.results.question import Question, check
from streamjoin.results.reader import Reader
from streamjoin.results.rows import Rows
from streamjoin.results.snapshot import FIRST, SnapshotId


def ask(reader: Reader, question: Question, recent: Reader | None = None, holds: Holds | None = None) -> Answer:
    """Answer a question as of now. Nothing is read before the answer is iterated, and stopping early stops reading.

    Args:
        reader: of the durable store.
        recent: of the newest snapshots in memory. What it has is read there; where a time range lies wholly in it, the
            durable store is not asked at all. Questions by key read both.
        holds: of groups that change, the last values are in memory until the answer has been read; None for any number.
    Raises:
        InputError: the question does not fit the job's results.
    """
    check(question)
    description = (recent or reader).description
    # What came after a snapshot are changes, as those see them who follow.
    rows = Rows(question, description.schema, description.identity if question.after else ())
    begun = Cursor.read(question, reader.job)
    if description.identity:
        if not question.history and question.after is None:
            return ask_latest(reader, question, rows, begun, holds)
    elif question.history or question.as_of is not None:
        raise InputError("the results of this query are final; only groups that change have a history")
    if rows.keyed and (question.limit is not None or begun):
        # Pages of a key range go on in key order, which a seam that moves between two pages would break.
        recent = None
    after = SnapshotId.parse(question.after) if question.after else FIRST
    upto = begun.upto if begun else SnapshotId.parse(question.upto) if question.upto else None
    parts: list[tuple[Reader, Found]] = []
    seam = FIRST
    if recent is not None:
        head = recent.refresh()
        seam = head.floor
        upto = min(upto or head.state.last, head.state.last)
        parts.append((recent, find(recent, question, rows, max(after, seam), upto)))
        older = after < seam and (head.below_time_max_us is None or _reaches(question, head.below_time_max_us))
    else:
        older = True
    if older:
        head = reader.refresh()
        # What a cursor has given may be gone; what is to come may not.
        if begun.needed <= head.floor if begun else question.after and after < head.floor:
            raise InputError(f"snapshots up to {head.floor} have been removed; ask from there on")
        if recent is None or upto is None:
            seam = upto = min(upto or head.state.last, head.state.last)
        parts.insert(0, (reader, find(reader, question, rows, max(after, head.floor), min(seam, upto))))
    assert upto is not None
    answer = Answer(
        rows.schema,
        max(upto, after),
        sum(found.snapshots for _, found in parts),
        sum(found.stored for _, found in parts),
        sum(len(found.places) for _, found in parts),
    )
    answer.give(_read(parts, reader if recent is not None else None, question, rows, begun, answer))
    return answer


def _reaches(question: Question, below_us: int) -> bool:
    """Whether a question may be answered by results up to `below_us`."""
    by_time = question.from_us is not None
    by_key = question.key is not None or question.key_from is not None or question.key_to is not None
    return by_key or not by_time or (question.from_us or 0) <= below_us


def _read(
    parts: Sequence[tuple[Reader, Found]],
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
            start = next((at for at, one in enumerate(places) if begun.is_at(*one)), None)
            if start is None:
                continue
            places, begun = places.beyond(start), None
        read = reader.rows((ref for _, ref in places), behind if reader is not behind else None, rows.wanted)
        for place, ((id, _), (ref, batch)) in enumerate(zip(places, read, strict=True)):
            answer.blocks_read += 1
            if not batch.num_rows:  # none of its keys is asked for
                continue
            answer.rows_read += ref.rows
            some = rows.of(batch, by_key=False)
            some, before, skip = some.slice(skip), skip, 0
            if left is not None and some.num_rows > left:
                at = Cursor(
                    answer.last, places.oldest(place), id, ref.key.batch, ref.key.unit, ref.key.number, before + left
                )
                answer.cursor = at.text(question, reader.job)
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
