"""One snapshot's rows as a follower gets them, encoded once for all who asked the same."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from backend.cells import rows_of, to_json
from streamjoin.results.snapshot import Snapshot, SnapshotId

ROWS_A_TURN = 500


class Held:
    """Counts the bytes of all payloads that somebody still holds."""

    def __init__(self) -> None:
        self.bytes = 0
        self.count = 0
        # A payload may be collected while this thread counts another.
        self._lock = threading.RLock()

    def add(self, size: int, count: int) -> None:
        """Or take away, below 0."""
        with self._lock:
            self.bytes += size
            self.count += count


class Payload:
    """Encoded rows.

    Args:
        parts: JSON arrays of rows, each for a frame of its own; none where no row passed the filter.
        rows: of all parts.
        truncated: the snapshot has more rows than the parts.
    """

    __slots__ = ("_held", "closed_us", "id", "parts", "rows", "size", "truncated")

    def __init__(
        self, id: SnapshotId, parts: tuple[str, ...], rows: int, truncated: bool, closed_us: int, held: Held
    ) -> None:
        self.id = id
        self.parts = parts
        self.rows = rows
        self.truncated = truncated
        self.closed_us = closed_us
        self.size = sum(map(len, parts)) + 200
        self._held = held
        held.add(self.size, 1)

    def __del__(self) -> None:
        self._held.add(-self.size, -1)


class Encoder:
    """Makes a payload of a snapshot's blocks, one after the other.

    Args:
        part_bytes: a part ends soon after it is so large.
        bytes_max: no more rows are taken once there is so much.
    """

    def __init__(self, snapshot: Snapshot, part_bytes: int, bytes_max: int, held: Held) -> None:
        self._snapshot = snapshot
        self._part_bytes = part_bytes
        self._bytes_max = bytes_max
        self._held = held
        self._parts: list[str] = []
        self._open: list[str] = []
        self._open_size = 0
        self._size = 0
        self._rows = 0
        self._truncated = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows that passed the filter."""
        for start in range(0, batch.num_rows, ROWS_A_TURN):
            if self._size >= self._bytes_max:
                self._truncated = True
                return
            rows: Sequence[Any] = rows_of(batch.slice(start, ROWS_A_TURN))[0]
            text = to_json(rows)[1:-1]
            self._open.append(text)
            self._open_size += len(text)
            self._size += len(text)
            self._rows += len(rows)
            if self._open_size >= self._part_bytes:
                self._close_part()

    def _close_part(self) -> None:
        self._parts.append(f"[{','.join(self._open)}]")
        self._open, self._open_size = [], 0

    def payload(self) -> Payload:
        """What came together."""
        if self._open:
            self._close_part()
        return Payload(
            self._snapshot.id, tuple(self._parts), self._rows, self._truncated, self._snapshot.closed_us, self._held
        )
