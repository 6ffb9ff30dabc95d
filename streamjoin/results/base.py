"""The base of groups that change: the last row of each, of all snapshots that retention has removed.

It is written before the head says that they are gone, and named by the head, so that whoever reads sees the snapshots
or their base and never neither. It is replaced whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from streamjoin.results.block import BlockRef, cut, decode
from streamjoin.results.description import Description
from streamjoin.results.head import Head
from streamjoin.results.latest import latest, living
from streamjoin.results.names import BASES, base_name
from streamjoin.results.patience import Patience
from streamjoin.results.snapshot import Snapshot, SnapshotId
from streamjoin.results.stores.store import BlockKey, Store

BASE_UNIT = 1 << 20
"""Blocks of a base say that they are of this unit, which no job has."""
_BLOCKS_A_FETCH = 64


class Bases:
    """The one writer of a job's base. Its ledger says when."""

    def __init__(self, store: Store, job: str, description: Description, patience: Patience) -> None:
        self.store = store
        self.job = job
        self.description = description
        self.patience = patience

    def write(self, head: Head, removed: Sequence[Snapshot], floor: SnapshotId) -> Head:
        """Write what is left of snapshots that are about to be removed; the head that names it.

        Args:
            removed: those after the floor of `head` up to the new one.
        """
        before = self.read(head)
        sources = [*([before] if before else []), *removed]
        rows = latest(self._rows([ref for one in sources for ref in one.blocks]), self.description.identity)
        first = max((ref.key.number + 1 for ref in before.blocks), default=0) if before else 0
        refs: list[BlockRef] = []
        for batch in living(rows).combine_chunks().to_batches() if rows is not None else []:
            for ref, content in cut(
                batch, self.description.code, generation=head.generation, batch=max(head.batch, 0), unit=BASE_UNIT,
                first_number=first, block_bytes=self.store.block_bytes, period_us=self.description.period_us,
            ):  # fmt: skip
                self._steadily(ref.key, content)
                refs.append(ref)
                first = ref.key.number + 1
        base = Snapshot.of(floor, head.generation, refs, head.marks_us, head.clock_us, (0, head.batch))
        record = base_name(floor, head.generation), base.to_bytes()
        self.patience.steadily(lambda: self.store.put_records(self.job, [record]))
        return head.based(head.generation, max((one.time_max_us or 0 for one in removed), default=0))

    def read(self, head: Head) -> Snapshot | None:
        """The base that a head names; None if it names none."""
        return self.patience.steadily(lambda: read_base(self.store, self.job, head))

    def sweep(self, head: Head) -> None:
        """Remove every base but the one that the head names."""
        current = self.read(head)
        kept = {ref.key for ref in current.blocks} if current else set()
        keys = self.patience.steadily(lambda: list(self.store.list_blocks(self.job)))
        if dead := [key for key in keys if key.unit == BASE_UNIT and key not in kept]:
            self.patience.steadily(lambda: self.store.delete_blocks(self.job, dead))
        self._forget(head)

    def replace(self, before: Snapshot | None, head: Head) -> None:
        """Remove the base that was there before that of the head."""
        if before is not None and before.blocks:
            keys = [ref.key for ref in before.blocks]
            self.patience.steadily(lambda: self.store.delete_blocks(self.job, keys))
        self._forget(head)

    def _forget(self, head: Head) -> None:
        named = base_name(head.floor, head.base) if head.base else None
        found = self.patience.steadily(lambda: list(self.store.get_records(self.job, *BASES)))
        if names := [name for name, _ in found if name != named]:
            self.patience.steadily(lambda: self.store.delete_records(self.job, names))

    def _rows(self, refs: Sequence[BlockRef]) -> Iterator[pa.RecordBatch]:
        for first in range(0, len(refs), _BLOCKS_A_FETCH):
            some = refs[first : first + _BLOCKS_A_FETCH]
            found = self._blocks([ref.key for ref in some])
            for ref in some:
                yield decode(ref, found[ref.key], self.description.schema)

    def _blocks(self, keys: Sequence[BlockKey]) -> dict[BlockKey, bytes]:
        return self.patience.steadily(lambda: dict(self.store.get_blocks(self.job, keys)))

    def _steadily(self, key: BlockKey, content: bytes) -> None:
        self.patience.steadily(lambda: self.store.put_blocks(self.job, [(key, content)]))


def read_base(store: Store, job: str, head: Head) -> Snapshot | None:
    """The base that a head names; None if it names none, or if it has been replaced meanwhile."""
    if not head.base:
        return None
    name = base_name(head.floor, head.base)
    return next((Snapshot.from_bytes(content) for _, content in store.get_records(job, name, name)), None)
