"""Reading a job's committed snapshots: the head first, then manifests, then blocks that a question needs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
import pyarrow as pa

from streamjoin.engine.arranging import in_order
from streamjoin.errors import InputError, StateError
from streamjoin.index.keys import INT64_MAX, INT64_MIN
from streamjoin.plan.join import RESULT_KEY
from streamjoin.plan.ordering import NEWER, Ordering
from streamjoin.results.base import read_base
from streamjoin.results.block import BlockRef, KeyCode, check, decode_all, one_column, ordered_codes, sums_of_parts
from streamjoin.results.description import DESCRIPTION, Description
from streamjoin.results.head import Head
from streamjoin.results.names import LAST_GENERATION, snapshot_name
from streamjoin.results.snapshot import FIRST, BaseId, Snapshot, SnapshotId
from streamjoin.results.stores.store import BlockKey, Store

LOOKS_MAX = 5
BLOCKS_FIRST = 4
BLOCKS_A_FETCH = 128
BYTES_A_FETCH = 16 << 20

_Fetch = tuple[list[BlockRef], dict[BlockKey, pa.RecordBatch], Iterator[tuple[BlockKey, bytes]]]
"""Blocks, the rows of those that are kept, and the others as they come."""


class ExpiredError(InputError):
    """What was asked for has been removed meanwhile; begin again at the oldest snapshot there is."""


@dataclass(slots=True)
class Reads:
    """What reading cost.

    Args:
        blocks, size: read from the store, and their bytes.
        rows: in those blocks.
    """

    blocks: int = 0
    size: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class BlockIndex:
    """All blocks of some snapshots as columns, so that skipping is arithmetic and not a loop.

    Args:
        ids: of the snapshots, rising.
        snapshots: the place of each block's snapshot among them, rising.
        time_min_us, time_max_us, code_min, code_max, buckets: int64 of shape (blocks,).
    """

    ids: Sequence[SnapshotId]
    refs: Sequence[BlockRef]
    snapshots: np.ndarray
    time_min_us: np.ndarray
    time_max_us: np.ndarray
    code_min: np.ndarray
    code_max: np.ndarray
    buckets: np.ndarray

    @staticmethod
    def of(snapshots: Sequence[Snapshot], numbers: Sequence[np.ndarray]) -> BlockIndex:
        """An index of all their blocks; `numbers` is `block_numbers` of each."""
        refs = [ref for snapshot in snapshots for ref in snapshot.blocks]
        places = np.repeat(np.arange(len(snapshots)), [len(snapshot.blocks) for snapshot in snapshots])
        columns = np.concatenate(numbers, axis=1) if numbers else np.zeros((5, 0), np.int64)
        return BlockIndex([snapshot.id for snapshot in snapshots], refs, places, *columns)


def block_numbers(snapshot: Snapshot) -> np.ndarray:
    """What can rule a block out, int64 of shape (5, blocks), in the order of `BlockIndex`."""
    rows = [(ref.time_min_us, ref.time_max_us, ref.code_min, ref.code_max, ref.key.bucket) for ref in snapshot.blocks]
    return np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 5).T)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which keys are asked for.

    Args:
        mask: tells it for each key.
        codes: the lowest and the highest code, where all keys between them are wanted and no others; else None.
    """

    mask: Callable[[pa.Array], np.ndarray]
    codes: tuple[int, int] | None

    def of(self, rows: pa.RecordBatch, code: KeyCode) -> pa.RecordBatch:
        """The rows of a block that have such keys."""
        keys = rows.column(RESULT_KEY)
        if self.codes is None or not code.ordered or keys.null_count:
            return _chosen(rows, self.mask(keys))
        codes = ordered_codes(keys)  # by which a block's rows are sorted
        first = int(np.searchsorted(codes, self.codes[0], "left"))
        return rows.slice(first, int(np.searchsorted(codes, self.codes[1], "right")) - first)


def _chosen(rows: pa.RecordBatch, chosen: np.ndarray) -> pa.RecordBatch:
    if not chosen.any():
        return rows.slice(0, 0)
    return rows if chosen.all() else rows.filter(pa.array(chosen))


@dataclass
class _Bases:
    """The bases that snapshots name, rising, with the latest time of what each stands for."""

    bases: list[BaseId] = field(default_factory=list)
    times_us: list[int] = field(default_factory=list)
    _latest: list[tuple[SnapshotId, int]] = field(default_factory=list)

    def add(self, snapshot: Snapshot) -> None:
        """The next snapshot."""
        named = snapshot.base
        if named is not None and (not self.bases or named > self.bases[-1]):
            at = bisect_right(self._latest, (named.upto, INT64_MAX))
            self.bases.append(named)
            # One of removed snapshots only is not asked for a time: that of the head stands for it.
            self.times_us.append(self._latest[at - 1][1] if at else INT64_MIN)
            del self._latest[: max(at - 1, 0)]
        before = self._latest[-1][1] if self._latest else INT64_MIN
        self._latest.append(
            (snapshot.id, max(before, before if snapshot.time_max_us is None else snapshot.time_max_us))
        )

    def newest(self, upto: SnapshotId, until_us: int | None) -> BaseId | None:
        """The newest base that is not later than either."""
        at = bisect_right(self.bases, BaseId(upto, LAST_GENERATION))
        at = at if until_us is None else min(at, bisect_right(self.times_us, until_us))
        return self.bases[at - 1] if at else None


@dataclass
class Reader:
    """One job's results in one store. Manifests never change, so they are read once and kept.

    Args:
        reads: what this reader has read so far.
    """

    store: Store
    job: str
    reads: Reads = field(default_factory=Reads)
    _description: Description | None = None
    _head: Head | None = None
    _stored: bytes = b""
    _begins: SnapshotId = FIRST
    _snapshots: list[Snapshot] = field(default_factory=list)
    _numbers: list[np.ndarray] = field(default_factory=list)
    _times: _Bases = field(default_factory=lambda: _Bases())
    _index: BlockIndex | None = None

    @property
    def is_known(self) -> bool:
        """Whether the store need not be asked what the results are."""
        return self._description is not None

    @property
    def description(self) -> Description:
        """What the results are.

        Raises:
            InputError: the store has no results of this job.
        """
        if self._description is None:
            found = list(self.store.get_records(self.job, DESCRIPTION, DESCRIPTION))
            if not found or self.store.head(self.job) is None:
                there = self.store.jobs()
                known = f"there are {', '.join(there[:12])}" if there else "it has none"
                raise InputError(f"the store has no results of a job {self.job}; {known}")
            self._description = Description.from_bytes(found[0][1])
        return self._description

    def refresh(self, *, after_base: bool = False) -> Head:
        """Look for what was committed since the last look. Snapshots never disappear but by retention.

        Args:
            after_base: those after the newest base are enough; the first look reads no others.
        """
        for _ in range(LOOKS_MAX):
            if (head := self._look(after_base)) is not None:
                return head
            self._forget()
        raise ExpiredError("results were removed faster than they could be looked at; ask again")

    def _look(self, after_base: bool) -> Head | None:
        """None where retention has removed meanwhile all that the head spoke of."""
        stored = self.store.head(self.job)
        if stored is None:
            self.description  # noqa: B018  # says that there is no such job
            self._forget()
            raise InputError(f"the results of job {self.job} were dropped")
        is_whole = after_base or self._head is None or self._begins <= self._head.floor
        if self._head is not None and stored == self._stored and is_whole:
            return self._head
        head = Head.from_bytes(stored)
        if self._head is not None and (_is_anew(self._head, head) or not is_whole):
            self._forget()
        if self._head is None:
            self._snapshots, self._numbers, self._times = [], [], _Bases()  # a first look may have broken off
            self._begins = head.newest_base.upto if after_base and head.newest_base else head.floor
        if self._head is not None and (self._head.state.last, self._head.floor) == (head.state.last, head.floor):
            self._head, self._stored = head, stored
            return head
        newest = self._snapshots[-1].id if self._snapshots else max(head.floor, self._begins)
        names = snapshot_name(newest), snapshot_name(head.state.last, LAST_GENERATION)
        known = self._snapshots[-1].id if self._snapshots else self._begins
        for _, content in self.store.get_records(self.job, *names):
            found = Snapshot.from_bytes(content)
            if head.owns(found) and found.id > known:
                self._snapshots.append(found)
                self._numbers.append(block_numbers(found))
                self._times.add(found)
        # Manifests may have been removed after the look at the head; the floor rose before the first of them went.
        if (again := self.store.head(self.job)) is not None and again != stored:
            now = Head.from_bytes(again)
            if now.floor > head.floor:
                if now.floor >= head.state.last or _is_anew(head, now):
                    return None
                # What was removed, and the base that stands for it, are of one head.
                head = replace(head, floor=now.floor, base=now.base, below_time_max_us=now.below_time_max_us)
        removed = bisect_right([found.id for found in self._snapshots], head.floor)
        del self._snapshots[:removed], self._numbers[:removed]
        self._head, self._stored, self._index = head, stored, None
        return head

    def _forget(self) -> None:
        self._description = self._head = self._index = None
        self._snapshots, self._numbers, self._times = [], [], _Bases()

    def snapshots(self, after: SnapshotId = FIRST, upto: SnapshotId | None = None) -> list[Snapshot]:
        """Committed snapshots with after < id <= upto, oldest first, as of the last `refresh`."""
        ids = [found.id for found in self._snapshots]
        stop = len(ids) if upto is None else bisect_right(ids, upto)
        return self._snapshots[bisect_right(ids, after) : stop]

    def base(self, head: Head, upto: SnapshotId | None = None, until_us: int | None = None) -> Snapshot | None:
        """The newest base that is not later than a snapshot and has nothing later than a moment; None if there is none.

        That of removed snapshots is taken whatever it has.

        Raises:
            ExpiredError: retention has replaced it meanwhile.
        """
        named = self._times.newest(upto or head.state.last, until_us)
        if named is None or named.upto <= head.floor:
            named = head.floor_base
        if named is None:
            return None
        found = read_base(self.store, self.job, named)
        if found is None:
            raise ExpiredError("groups were removed while they were read; ask again")
        return found

    def index(self) -> BlockIndex:
        """Of all snapshots, as of the last `refresh`."""
        if self._index is None:
            self._index = BlockIndex.of(self._snapshots, self._numbers)
        return self._index

    @property
    def indexed(self) -> int | None:
        """How many blocks the index has; None if it has to be made first."""
        return None if self._description is None or self._index is None else len(self._index.refs)

    def snapshot_rows(self, snapshot: Snapshot, behind: Reader | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a snapshot, in the order that the join promises; as they lie in blocks where it promises none.

        Cost: with an order, the whole snapshot is in memory.

        Raises:
            ExpiredError, StateError: as `rows`.
        """
        batches = (batch for _, batch in self.rows(snapshot.blocks, behind))
        if NEWER not in self.description.schema.names:
            yield from batches
        else:
            yield from in_order(Ordering.TOTAL, list(batches))

    def rows(
        self,
        refs: Iterable[BlockRef],
        behind: Reader | None = None,
        wanted: Wanted | None = None,
    ) -> Iterator[tuple[BlockRef, pa.RecordBatch]]:
        """The rows of blocks, in the order of `refs`; only some blocks are in memory at a time.

        Args:
            behind: where blocks are that this store has let go.
            wanted: rows with other keys are left out, and of a block without any that is wanted only the keys are
                decompressed.
        Raises:
            ExpiredError: retention removed one meanwhile.
            StateError: one is missing or damaged.
        """
        fetches = self._fetches(refs)
        coming = next(fetches, None)
        while coming is not None:
            group, kept, fetched = coming
            coming, found = None, None
            for ref in group:
                if (rows := kept.get(ref.key)) is not None:
                    yield ref, rows if wanted is None else wanted.of(rows, self.description.code)
                    continue
                if found is None:  # who has enough in the blocks that are kept causes no fetch
                    found = dict(fetched)
                    coming = next(fetches, None)  # a store may fetch them while these are decoded
                    there = [(ref, found[ref.key]) for ref in group if ref.key in found]
                    self.reads.blocks += len(there)
                    self.reads.size += sum(len(content) for _, content in there)
                    decoded = self._decoded(there, None if wanted is None else wanted.mask)
                if ref.key in found:
                    rows, chosen = next(decoded)
                    if rows.num_rows == ref.rows:  # else it has none of the keys, and was not decoded
                        self.keep(ref, rows)
                    yield ref, rows if chosen is None else _chosen(rows, chosen)
                elif behind is not None:
                    yield from behind.rows([ref], None, wanted)
                else:
                    self._explain_missing(ref)
                    raise StateError(f"result block {ref.key} of job {self.job} is missing; the store lost it")
            if found is None:
                coming = next(fetches, None)

    def kept(self, ref: BlockRef) -> pa.RecordBatch | None:
        """The rows of a block that need not be read any more."""
        return None

    def keep(self, ref: BlockRef, rows: pa.RecordBatch) -> None:
        """Told of the rows of a block that was read."""

    def _fetches(self, refs: Iterable[BlockRef]) -> Iterator[_Fetch]:
        for group in _groups(refs):
            kept = {ref.key: rows for ref in group if (rows := self.kept(ref)) is not None}
            missing = [ref.key for ref in group if ref.key not in kept]
            yield group, kept, self.store.get_blocks(self.job, missing) if missing else iter(())

    def _decoded(
        self, blocks: list[tuple[BlockRef, bytes]], wanted_keys: Callable[[pa.Array], np.ndarray] | None
    ) -> Iterator[tuple[pa.RecordBatch, np.ndarray | None]]:
        """The rows of each block, and which are wanted; no rows of those without wanted keys, None for all rows."""
        schema = self.description.schema
        wanted = np.ones(len(blocks), np.bool_)
        chosen: list[np.ndarray | None] = [None] * len(blocks)
        for ref, content in blocks:
            check(ref, content)
        if wanted_keys is not None and blocks:
            place = schema.get_field_index(RESULT_KEY)
            keys = [one_column(content, place) for _, content in blocks]
            lengths = [len(part) for part in keys]
            mask = wanted_keys(pa.concat_arrays(keys))
            wanted = sums_of_parts(mask.astype(np.int64), lengths) > 0
            chosen = list(np.split(mask, np.cumsum(lengths)[:-1]))
        rows = iter(decode_all(list(compress(blocks, wanted)), schema))
        no_rows = pa.RecordBatch.from_pylist([], schema=schema)
        for (ref, _), is_wanted, part in zip(blocks, wanted.tolist(), chosen, strict=True):
            self.reads.rows += ref.rows if is_wanted else 0
            yield (next(rows), part) if is_wanted else (no_rows, None)

    def _explain_missing(self, ref: BlockRef) -> None:
        owner = next((found for found in self._snapshots if ref in found.blocks), None)
        stored = self.store.head(self.job)
        # What this reader no longer knows has been removed as well.
        if stored is None or owner is None or owner.id <= Head.from_bytes(stored).floor:
            raise ExpiredError(f"{f'snapshot {owner.id}' if owner else 'it'} was removed while it was read; ask again")


def _groups(refs: Iterable[BlockRef]) -> Iterator[list[BlockRef]]:
    """What is fetched and decoded at a time.

    Most questions have a limit and end after a block or two; the longer one goes on, the more is fetched at once.
    """
    group: list[BlockRef] = []
    size, most = 0, BLOCKS_FIRST
    for ref in refs:
        if group and (len(group) == most or size + ref.size > BYTES_A_FETCH):
            yield group
            group, size, most = [], 0, min(most * 2, BLOCKS_A_FETCH)
        group.append(ref)
        size += ref.size
    if group:
        yield group


def _is_anew(known: Head, head: Head) -> bool:
    """Whether a head is of a job that was dropped and begun anew."""
    back = (head.generation, head.state.last, head.floor) < (known.generation, known.state.last, known.floor)
    same_generation = head.generation == known.generation
    return head.origin != known.origin or back or (same_generation and head.writer != known.writer)
