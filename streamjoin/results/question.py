"""One-time questions to the results of a job: by time, by key, with a filter, a limit and a cursor.

Which blocks can hold an answer is settled on the manifests' numbers; only those are read, one handful at a time, and
rows leave as they are found.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError
from streamjoin.index.keys import INT64_MAX, INT64_MIN, is_exact
from streamjoin.plan.evaluation import filter_mask
from streamjoin.plan.expression import Expression
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.plan.schema import type_name
from streamjoin.results.block import BlockRef, ordered_codes
from streamjoin.results.reader import BlockIndex, Reader, Wanted
from streamjoin.results.sink import RESULTS
from streamjoin.results.snapshot import FIRST, SnapshotId

LIMIT_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. Ranges include both ends; None leaves an end open.

    Args:
        from_us, to_us: the result's time: the latest event time among its tuples.
        key, key_from, key_to: the result's key: R's side of the main predicate.
        select: columns, in order; None for all.
        where: a condition over the result columns.
        limit: rows at most.
        cursor: where an earlier answer with the same question ended.
        after, upto: only snapshots with after < id <= upto.
    """

    from_us: int | None = None
    to_us: int | None = None
    key: Any = None
    key_from: Any = None
    key_to: Any = None
    select: tuple[str, ...] | None = None
    where: str | None = None
    limit: int | None = None
    cursor: str | None = None
    after: str | None = None
    upto: str | None = None


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


Place = tuple[SnapshotId, BlockRef]


def ask(reader: Reader, question: Question, recent: Reader | None = None) -> Answer:
    """Answer a question as of now. Nothing is read before the answer is iterated, and stopping early stops reading.

    Args:
        reader: of the durable store.
        recent: of the newest snapshots in memory. What it has is read there; where a time range lies wholly in it, the
            durable store is not asked at all. Questions by key read both.
    Raises:
        InputError: the question does not fit the job's results.
    """
    _check(question)
    rows = Rows(question, (recent or reader).description.schema)
    begun = _Cursor.read(question)
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
    begun: _Cursor | None,
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
                at = _Cursor(answer.last, id, ref.key.batch, ref.key.unit, ref.key.number, before + left)
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


class Rows:
    """The question's row by row part: filters and columns."""

    def __init__(self, question: Question, stored: pa.Schema) -> None:
        self.question = question
        visible = [name for name in stored.names if not name.startswith("__")]
        for name in question.select or ():
            if name not in visible:
                raise InputError(f'there is no result column "{name}"; there are {", ".join(visible)}')
        self.names = list(question.select) if question.select else visible
        self.schema = pa.schema([stored.field(name) for name in self.names])
        self.where: Expression | None = None
        if question.where is not None:
            from streamjoin.query import bind_condition  # here, since most ask without a condition

            self.where = bind_condition(question.where, stored, RESULTS)
        kind = stored.field(RESULT_KEY).type if RESULT_KEY in stored.names else None
        self.key = _value(question.key, kind)
        self.low = _value(question.key_from, kind)
        self.high = _value(question.key_to, kind)
        if self.low is not None and self.high is not None and _is_above(self.low, self.high):
            raise InputError(f"the key range is empty: {question.key_from} is above {question.key_to}; swap the two")
        self.kind = kind
        self.bounds = self.codes() if self.key is None else (int(ordered_codes(self.key)[0]),) * 2

    @property
    def keyed(self) -> bool:
        """Whether a key range is asked for."""
        return self.low is not None or self.high is not None

    @property
    def wanted(self) -> Wanted | None:
        """Which keys are asked for; None where all are."""
        if self.kind is None or (self.key is None and not self.keyed):
            return None
        return Wanted(self._keys, self.bounds if is_exact(self.kind) else None)

    def codes(self) -> tuple[int, int]:
        """The key range as codes, both ends included; a superset where codes are not one to one."""
        low = INT64_MIN if self.low is None else int(ordered_codes(self.low)[0])
        high = INT64_MAX if self.high is None else int(ordered_codes(self.high)[0])
        return low, high

    def of(self, batch: pa.RecordBatch, *, by_key: bool = True) -> pa.RecordBatch:
        """The rows that answer, with the columns asked for.

        Args:
            by_key: whether to look at keys; not where all rows have one that is asked for.
        """
        masks: list[np.ndarray] = []
        question = self.question
        if question.from_us is not None or question.to_us is not None:
            times = batch.column(RESULT_TIME).to_numpy()
            if question.from_us is not None:
                masks.append(times >= question.from_us)
            if question.to_us is not None:
                masks.append(times <= question.to_us)
        if by_key and (wanted := self.wanted) is not None:
            masks.append(wanted.mask(batch.column(RESULT_KEY)))
        if self.where is not None:
            columns = {(RESULTS, name): batch.column(name) for name in batch.schema.names}
            masks.append(filter_mask(self.where, columns, batch.num_rows, {}))
        chosen = batch.select(self.names)
        if masks:
            keep = np.logical_and.reduce(masks)
            if not keep.all():
                chosen = chosen.filter(pa.array(keep))
        return chosen

    def _keys(self, keys: pa.Array) -> np.ndarray:
        assert self.kind is not None
        found = np.asarray(keys.is_valid().to_numpy(zero_copy_only=False))  # NULL is no key that is asked for
        if is_exact(self.kind):  # codes compare as the engine does: NaN is above all numbers, -0.0 is 0.0
            codes = ordered_codes(keys)
            return np.asarray(found & (codes >= self.bounds[0]) & (codes <= self.bounds[1]))
        for wanted, compare in ((self.key, pc.equal), (self.low, pc.greater_equal), (self.high, pc.less_equal)):
            if wanted is not None:
                found = found & compare(keys, wanted[0]).fill_null(False).to_numpy(zero_copy_only=False)
        return found


def _check(question: Question) -> None:
    if question.key is not None and (question.key_from is not None or question.key_to is not None):
        raise InputError("ask for a key or for a range of keys, not for both")
    if question.from_us is not None and question.to_us is not None and question.from_us > question.to_us:
        raise InputError("the time range is empty: it ends before it begins; swap the two")
    if question.limit is not None and not 1 <= question.limit <= LIMIT_MAX:
        raise InputError(f"a limit is between 1 and {LIMIT_MAX:,}")


def _is_above(low: pa.Array, high: pa.Array) -> bool:
    if is_exact(low.type):  # for which NaN is above all numbers
        return bool(ordered_codes(low)[0] > ordered_codes(high)[0])
    return bool(pc.greater(low[0], high[0]).as_py())


_INTEGER = re.compile("-?[0-9]{1,18}")
_ZONE = re.compile(r"(Z|:[0-9.]+[+-][0-9]{2}(:?[0-9]{2})?)$")


def _value(given: Any, kind: pa.DataType | None) -> pa.Array | None:
    """A key as an array of one value of the key's type."""
    if given is None:
        return None
    if kind is None:
        raise InputError("this join has no key to look up: its condition has neither an equality nor a range")
    try:
        if isinstance(given, bool) and not pa.types.is_boolean(kind):
            raise pa.ArrowInvalid("a truth value")
        if pa.types.is_int64(kind) and isinstance(given, str) and _INTEGER.fullmatch(given):
            return pa.array([int(given)], kind)
        if isinstance(given, str):
            found = pa.array([given], pa.string())
            if pa.types.is_binary(kind):
                return pa.array([given.encode()], kind)
            if pa.types.is_timestamp(kind) and not _ZONE.search(given):
                found = found.cast(pa.timestamp(kind.unit))  # without a zone it is UTC
            return found.cast(kind) if not pa.types.is_string(kind) else found
        if isinstance(given, float) and pa.types.is_integer(kind) and given != int(given):
            raise pa.ArrowInvalid("a fraction")
        if isinstance(given, int) and pa.types.is_decimal(kind):
            given = Decimal(given)
        return pa.array([given]).cast(kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        raise InputError(f'"{given}" is no key of this join; keys are {type_name(kind)}') from None


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Where an answer ended: rows `skip` of the block's answering rows were given."""

    upto: SnapshotId
    id: SnapshotId
    batch: int
    unit: int
    number: int
    skip: int

    def is_at(self, id: SnapshotId, ref: BlockRef) -> bool:
        """Whether a block is the one where it ended."""
        return id == self.id and (ref.key.batch, ref.key.unit, ref.key.number) == (self.batch, self.unit, self.number)

    def text(self, question: Question) -> str:
        """For the client: opaque, and of this question only."""
        value = [str(self.upto), str(self.id), self.batch, self.unit, self.number, self.skip, _digest(question)]
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()

    @staticmethod
    def read(question: Question) -> _Cursor | None:
        """The question's cursor."""
        if question.cursor is None:
            return None
        try:
            upto, id, batch, unit, number, skip, digest = json.loads(base64.urlsafe_b64decode(question.cursor))
            found = _Cursor(SnapshotId.parse(upto), SnapshotId.parse(id), batch, unit, number, skip)
            if any(type(value) is not int or not 0 <= value < 2**62 for value in (batch, unit, number, skip)):
                raise ValueError
        except (ValueError, TypeError, binascii.Error, InputError, AttributeError, RecursionError):
            raise InputError("this is no cursor; take it from an answer as it is") from None
        if digest != _digest(question):
            raise InputError("this cursor is of another question; leave it out to begin anew")
        return found


_ASKED = tuple(field.name for field in fields(Question) if field.name not in ("cursor", "limit"))


def _digest(question: Question) -> str:
    asked = {name: str(getattr(question, name)) for name in _ASKED}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
