"""Recent snapshots of a job in memory: what continuous queries read, and the newer end of time ranges.

The durable store is written first; memory is a copy of its newest snapshots, bounded in bytes. A row leaves memory only
when it can be read from the durable store, and a reader at the seam sees it once, because both sides go by snapshot id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from streamjoin.results.description import DESCRIPTION
from streamjoin.results.head import Head, latest_us
from streamjoin.results.names import snapshot_name
from streamjoin.results.snapshot import Snapshot, SnapshotId
from streamjoin.results.stores.store import BlockKey, Store

RECENT_BYTES_MAX = 256 << 20

Fetch = Callable[[Sequence[BlockKey]], Sequence[tuple[BlockKey, bytes]]]


@dataclass
class Recent:
    """Keeps the newest snapshots of one job in a memory store.

    Args:
        store: such as a `MemoryStore`; blocks may be in it already, if their writers put them there too.
        bytes_max: of blocks; the oldest snapshots go, but never the newest one.
        evicted: snapshots that have left so far.
    """

    store: Store
    job: str
    bytes_max: int = RECENT_BYTES_MAX
    evicted: int = 0
    _kept: deque[tuple[SnapshotId, int, int | None]] = field(default_factory=deque)
    _keys: dict[SnapshotId, list[BlockKey]] = field(default_factory=dict)
    _names: dict[SnapshotId, str] = field(default_factory=dict)
    _size: int = 0

    def begin(self, description: bytes, head: Head) -> None:
        """Start empty, at the durable store's newest snapshot."""
        self.store.drop(self.job)
        self._kept.clear()
        self._size = 0
        self.store.put_records(self.job, [(DESCRIPTION, description)])
        # Whatever is older than this may have any time.
        self._show(replace(head, floor=head.state.last, below_time_max_us=None if head.snapshots == 0 else 2**62))

    def publish(self, snapshot: Snapshot, head: Head, fetch: Fetch) -> None:
        """Show a snapshot that the durable store shows.

        Args:
            fetch: gives blocks that are not in memory yet.
        """
        keys = [block.key for block in snapshot.blocks]
        there = {key for key, _ in self.store.get_blocks(self.job, keys)}
        if missing := [key for key in keys if key not in there]:
            self.store.put_blocks(self.job, fetch(missing))
        name = snapshot_name(snapshot.id, snapshot.generation)
        self.store.put_records(self.job, [(name, snapshot.to_bytes())])
        self._kept.append((snapshot.id, snapshot.size, snapshot.time_max_us))
        self._keys[snapshot.id], self._names[snapshot.id] = keys, name
        self._size += snapshot.size
        shown = self._shown()
        floor, below_us = shown.floor, shown.below_time_max_us
        gone: list[SnapshotId] = []
        while self._size > self.bytes_max and len(self._kept) > 1:
            id, size, time_max_us = self._kept.popleft()
            self._size -= size
            floor = id
            below_us = latest_us((below_us, time_max_us))
            gone.append(id)
        state = replace(head.state, last=snapshot.id)
        self._show(replace(head, state=state, floor=floor, below_time_max_us=below_us))
        for id in gone:
            self.store.delete_records(self.job, [self._names.pop(id)])
            self.store.delete_blocks(self.job, self._keys.pop(id))
        self.evicted += len(gone)

    def forget(self, keys: Sequence[BlockKey]) -> None:
        """Let go of blocks that their writers put there, and that no snapshot will have."""
        self.store.delete_blocks(self.job, keys)

    def _shown(self) -> Head:
        stored = self.store.head(self.job)
        assert stored is not None, "begin comes first"
        return Head.from_bytes(stored)

    def _show(self, head: Head) -> None:
        self.store.swap_head(self.job, self.store.head(self.job), head.to_bytes())
