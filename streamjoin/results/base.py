"""Bases of groups that change: the last row of each living group, of all snapshots up to one of them.

A question about present groups reads the newest base and what came after it, however much there was before. As of a
time or a snapshot it reads the newest base that is not later. Retention needs one for what it removes.

The base of removed snapshots is named by the head in the step that removes them, so that whoever reads sees the
snapshots or their base and never neither. Others are named by the snapshots that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from streamjoin.errors import StateError
from streamjoin.failpoints import failpoint
from streamjoin.results.block import BlockRef, cut, decode
from streamjoin.results.description import Description
from streamjoin.results.head import Head, latest_us
from streamjoin.results.latest import latest, living
from streamjoin.results.names import BASES, LAST_GENERATION, base_name
from streamjoin.results.patience import Patience
from streamjoin.results.snapshot import BaseId, Snapshot, SnapshotId
from streamjoin.results.stores.store import BlockKey, Store

BASE_UNIT = 1 << 20
"""Blocks of a base say that they are of this unit, which no job has."""
TAIL_MAX = 100_000
"""A base is due once reading what came after the last one costs as much as so many rows, about 40 ms ..."""
TAIL_BASES = 4
"""... and as much as the last one so many times: where there are many groups, bases are rare."""
BLOCK_ROWS = 500
"""Fetching and decoding a block costs as much as so many rows in it."""
_BASE_PART = 10
_LATE_PART = 8
_BLOCKS_A_FETCH = 64


class Bases:
    """The one writer of a job's bases, of which its ledger has one."""

    def __init__(self, store: Store, job: str, description: Description, patience: Patience) -> None:
        self.store = store
        self.job = job
        self.description = description
        self.patience = patience
        self._number = 0
        self._newest: Snapshot | None = None
        self._there: set[BaseId] = set()

    @property
    def named(self) -> BaseId | None:
        """The base that the next snapshots name."""
        return None if self._newest is None else BaseId(self._newest.id, self._newest.generation)

    def begin(self, head: Head) -> None:
        """Go on where the driver before stopped."""
        self._newest = self._newest_of(head.floor_base, head.newest_base)

    def with_tail(self, before: Head, after: Head, snapshots: Sequence[Snapshot]) -> Head:
        """A head that says what reading the snapshots after its newest base costs, these included."""
        goes_on = after.newest_base in (before.newest_base, before.floor_base)  # `replaced` has looked after that one
        tail = before.tail if goes_on else 0
        return replace(after, tail=tail + sum(reading_cost(found.blocks) for found in snapshots))

    def write_due(self, head: Head, owned: Callable[[SnapshotId, SnapshotId], Sequence[Snapshot]]) -> None:
        """Write a base if one is due. It is read once snapshots name it; after a crash it is written again.

        Args:
            owned: the snapshots after one up to another.
        """
        if not is_due(head.tail, self._newest):
            return
        since = head.floor if self._newest is None else self._newest.id
        self._newest = self._write(head, head.state.last, self._newest, owned(since, head.state.last))
        failpoint("ledger.after_base")

    def pays(self, rows: int, late_us: int, retain_us: int | None) -> bool:
        """Whether to remove snapshots with so many rows, the first of which should have gone so long ago.

        With few groups always. With many, all of which are written anew, once the rows are a tenth of them, or an
        eighth of `retain_us` has passed.
        """
        if self._newest is None or retain_us is None:
            return True
        return rows * _BASE_PART >= self._newest.rows or late_us * _LATE_PART > retain_us

    def replaced(self, head: Head, removed: Sequence[Snapshot], floor: SnapshotId) -> Head:
        """The head that names a base in place of snapshots: those after its floor up to the new one."""
        base = self._newest_of(*(one for one in self._there if one.upto <= floor))
        if base is None or base.id < floor:
            base = self._write(head, floor, base, _after(base, removed))
        failpoint("ledger.after_base")
        if self._newest is None or self._newest.id < floor:
            gone = sum(reading_cost(one.blocks) for one in _after(self._newest, removed))
            head = replace(head, tail=max(head.tail - gone, 0))
            self._newest = base
        return head.based(base.generation, latest_us(one.time_max_us for one in removed))

    def _newest_of(self, *named: BaseId | None) -> Snapshot | None:
        newest = max((one for one in named if one is not None), default=None)
        if newest is None:
            return None
        found = self.patience.steadily(lambda: read_base(self.store, self.job, newest))
        if found is None:
            raise self._lost(f"the base {newest.upto}")
        return found

    def _lost(self, what: str) -> StateError:
        return StateError(
            f"{what} of the groups of job {self.job} is lost from the store, and what they were cannot be known "
            "without it; restore the store from a copy, or start the job anew"
        )

    def _write(self, head: Head, upto: SnapshotId, before: Snapshot | None, snapshots: Sequence[Snapshot]) -> Snapshot:
        """Write a base; it is garbage until a head or a snapshot names it.

        Args:
            before: the base to start from.
            snapshots: those after it, up to `upto`.
        Cost: reads all of them, and writes as many rows as there are groups.
        """
        sources = [*([before] if before else []), *snapshots]
        rows = latest(self._rows([ref for one in sources for ref in one.blocks]), self.description.identity)
        refs: list[BlockRef] = []
        for batch in living(rows).combine_chunks().to_batches() if rows is not None else []:
            for ref, content in cut(
                batch, self.description.code, generation=head.generation, batch=max(head.batch, 0), unit=BASE_UNIT,
                first_number=self._number, block_bytes=self.store.block_bytes,
            ):  # fmt: skip
                self._steadily(ref.key, content)
                refs.append(ref)
                self._number = ref.key.number + 1
        base = Snapshot.of(upto, head.generation, refs, head.marks_us, head.clock_us, (0, head.batch))
        record = base_name(upto, head.generation), base.to_bytes()
        self.patience.steadily(lambda: self.store.put_records(self.job, [record]))
        self._there.add(BaseId(upto, head.generation))
        return base

    def sweep(self, head: Head) -> None:
        """Remove every base of earlier generations that nobody comes to, and blocks that such ones left.

        This generation has written none yet. One of a later generation is no concern of a driver that was thought dead.
        """
        kept: set[BlockKey] = set()
        self._there = set()
        gone: list[str] = []
        for name, content in self._records(*BASES):
            base = Snapshot.from_bytes(content)
            if head.has_base(found := BaseId(base.id, base.generation)):
                self._there.add(found)
                kept.update(ref.key for ref in base.blocks)
            elif base.generation < head.generation:
                gone.append(name)
        keys = self.patience.steadily(lambda: list(self.store.list_blocks(self.job)))
        litter = [key for key in keys if key.unit == BASE_UNIT and key.generation < head.generation and key not in kept]
        self._delete(litter, gone)

    def remove_old(self, head: Head) -> None:
        """Remove the bases before that of the head."""
        last = base_name(head.floor, LAST_GENERATION)
        old = {
            name: base
            for name, content in self._records(BASES[0], last)
            for base in (Snapshot.from_bytes(content),)
            if not head.has_base(BaseId(base.id, base.generation))
        }
        self._delete([ref.key for base in old.values() for ref in base.blocks], list(old))
        self._there = {one for one in self._there if one.upto > head.floor or one == head.floor_base}

    def _records(self, first: str, last: str) -> list[tuple[str, bytes]]:
        return self.patience.steadily(lambda: list(self.store.get_records(self.job, first, last)))

    def _delete(self, blocks: Sequence[BlockKey], names: Sequence[str]) -> None:
        """Blocks go first, for after a crash they are found by what names them."""
        if blocks:
            self.patience.steadily(lambda: self.store.delete_blocks(self.job, blocks))
        if names:
            self.patience.steadily(lambda: self.store.delete_records(self.job, names))

    def _rows(self, refs: Sequence[BlockRef]) -> Iterator[pa.RecordBatch]:
        for first in range(0, len(refs), _BLOCKS_A_FETCH):
            some = refs[first : first + _BLOCKS_A_FETCH]
            found = self._blocks([ref.key for ref in some])
            for ref in some:
                if ref.key not in found:
                    raise self._lost(f"the block {ref.key}")
                yield decode(ref, found[ref.key], self.description.schema)

    def _blocks(self, keys: Sequence[BlockKey]) -> dict[BlockKey, bytes]:
        return self.patience.steadily(lambda: dict(self.store.get_blocks(self.job, keys)))

    def _steadily(self, key: BlockKey, content: bytes) -> None:
        self.patience.steadily(lambda: self.store.put_blocks(self.job, [(key, content)]))


def _after(base: Snapshot | None, snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    return [one for one in snapshots if base is None or one.id > base.id]


def reading_cost(blocks: Sequence[BlockRef]) -> int:
    """What reading blocks costs, in rows."""
    return sum(block.rows + BLOCK_ROWS for block in blocks)


def is_due(tail: int, newest: Snapshot | None) -> bool:
    """Whether what came after the newest base costs so much to read that another one pays."""
    return tail >= max(TAIL_MAX, 0 if newest is None else TAIL_BASES * reading_cost(newest.blocks))


def read_base(store: Store, job: str, base: BaseId) -> Snapshot | None:
    """A base; None if it has been removed meanwhile."""
    name = base_name(base.upto, base.generation)
    return next((Snapshot.from_bytes(content) for _, content in store.get_records(job, name, name)), None)
