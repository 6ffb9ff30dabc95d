"""Questions to groups that change: the last value of each, as of a snapshot or a moment, and then what is asked of it.

The last values are found first, so a condition or a range of times sees what a group is, and not what it once was.
A key is asked for before, as a group has the same one in all its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.plan.changing import OPERATION
from streamjoin.plan.expression import columns_of
from streamjoin.plan.join import RESULT_TIME
from streamjoin.results.cursor import Cursor
from streamjoin.results.finding import Answer, Place, find, find_in
from streamjoin.results.jsonlines import iso_times
from streamjoin.results.latest import Holds, latest, living
from streamjoin.results.question import Question
from streamjoin.results.reader import Reader
from streamjoin.results.rows import Rows
from streamjoin.results.snapshot import FIRST, SnapshotId


def ask_latest(
    reader: Reader, question: Question, rows: Rows, begun: Cursor | None, holds: Holds | None = None
) -> Answer:
    """Answer a question about the last row of each group; rows come ordered by their groups.

    Args:
        holds: the last values of all groups are in memory until the answer has been read.
    Raises:
        InputError: what is asked for has been removed, or was not yet.
    """
    upto, until_us = _moment(question)
    if begun is not None:
        upto = begun.upto
    head = reader.refresh(after_base=upto is None and until_us is None)
    upto = min(upto or head.state.last, head.state.last)
    if upto < head.floor:
        raise InputError(
            f"snapshots before {head.floor} have been removed, and groups are known from there on; ask as of "
            f"{head.floor} or later"
        )
    below_us = head.below_time_max_us
    if until_us is not None and head.base and below_us is not None and until_us < below_us:
        raise InputError(
            f"what groups were at {_iso(until_us)} is not known any more: retention has kept the last values up to "
            f"{_iso(below_us)}; ask as of that time or later"
        )
    base = reader.base(head, upto, until_us)
    # By time nothing is ruled out but what is later than the moment.
    asked = replace(question, from_us=None, to_us=until_us)
    found = find(reader, asked, rows, head.floor if base is None else base.id, upto)
    places, stored = [*found.places], found.stored
    if base is not None:
        places = [*find_in(base, reader.description.code, asked, rows).places, *places]
        stored += len(base.blocks)
    answer = Answer(rows.schema, upto, found.snapshots, stored, len(places))
    answer.give(_rows(reader, places, question, rows, until_us, begun.skip if begun else 0, answer, holds))
    return answer


def _moment(question: Question) -> tuple[SnapshotId | None, int | None]:
    """What is asked as of: a snapshot, a time, or neither, which is now."""
    asked = question.upto if question.as_of is None else question.as_of
    if asked is None:
        return None, None
    return (None, asked) if isinstance(asked, int) else (SnapshotId.parse(asked), None)


def _iso(time_us: int) -> str:
    """A time to the microsecond, so that it can be asked for as it stands."""
    return str(iso_times(pa.array([time_us], pa.timestamp("us", "UTC")))[0])


def _rows(
    reader: Reader, places: list[Place], question: Question, rows: Rows, until_us: int | None, skip: int,
    answer: Answer, holds: Holds | None,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    identity = reader.description.identity
    needed = {*identity, RESULT_TIME, OPERATION, *rows.names}
    if rows.where is not None:
        needed |= {name for _, name in columns_of(rows.where)}
    names = [name for name in reader.description.schema.names if name in needed]  # what nobody looks at is not held

    def read() -> Iterator[pa.RecordBatch]:
        for ref, batch in reader.rows((ref for _, ref in places), None, rows.wanted):
            answer.blocks_read += 1
            answer.rows_read += ref.rows if batch.num_rows else 0
            yield batch.select(names)

    found = latest(read(), identity, until_us, holds)
    if found is None:
        return
    given, found = skip, living(found)
    for batch in found.to_batches():
        some = rows.of(batch, by_key=False)
        some, skip = some.slice(skip), max(skip - some.num_rows, 0)
        left = None if question.limit is None else question.limit - answer.rows
        if left is not None and some.num_rows > left:
            some = some.slice(0, left)
            answer.cursor = Cursor(answer.last, FIRST, FIRST, 0, 0, 0, given + left).text(question, reader.job)
        given += some.num_rows
        if some.num_rows:
            answer.rows += some.num_rows
            yield some
        if answer.cursor:
            return
