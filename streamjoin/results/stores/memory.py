"""Results in the memory of one process: what continuous queries read, and what other stores are compared with."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from streamjoin.results.stores.store import BlockKey, Blocks, Records


@dataclass
class _Job:
    head: bytes | None = None
    blocks: dict[BlockKey, bytes] = field(default_factory=dict)
    records: dict[str, bytes] = field(default_factory=dict)


class MemoryStore:
    """Everything in dictionaries under one lock; any number of threads."""

    kind = "memory"
    block_bytes = 1 << 18

    _named: ClassVar[dict[str, MemoryStore]] = {}
    _naming: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()

    @classmethod
    def named(cls, name: str = "results") -> MemoryStore:
        """The store that this process has under a name."""
        with cls._naming:
            return cls._named.setdefault(name, cls())

    def prepare(self) -> None:
        """Nothing to do."""

    def put_blocks(self, job: str, blocks: Blocks) -> None:
        """See `Store`."""
        with self._lock:
            self._job(job).blocks.update(blocks)

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        """See `Store`."""
        with self._lock:
            there = self._jobs.get(job, _Job()).blocks
            found = [(key, there[key]) for key in keys if key in there]
        yield from found

    def delete_blocks(self, job: str, keys: Sequence[BlockKey]) -> None:
        """See `Store`."""
        with self._lock:
            for key in keys:
                self._job(job).blocks.pop(key, None)

    def list_blocks(self, job: str) -> Iterator[BlockKey]:
        """See `Store`."""
        with self._lock:
            keys = list(self._jobs.get(job, _Job()).blocks)
        yield from keys

    def put_records(self, job: str, records: Records) -> None:
        """See `Store`."""
        with self._lock:
            self._job(job).records.update(records)

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        """See `Store`."""
        with self._lock:
            there = self._jobs.get(job, _Job()).records
            names = sorted(there)
            found = [(name, there[name]) for name in names[bisect_left(names, first) : bisect_right(names, last)]]
        yield from found

    def delete_records(self, job: str, names: Sequence[str]) -> None:
        """See `Store`."""
        with self._lock:
            for name in names:
                self._job(job).records.pop(name, None)

    def head(self, job: str) -> bytes | None:
        """See `Store`."""
        with self._lock:
            return self._jobs.get(job, _Job()).head

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        """See `Store`."""
        with self._lock:
            if self._jobs.get(job, _Job()).head != expected:
                return False
            self._job(job).head = new
            return True

    def jobs(self) -> list[str]:
        """See `Store`."""
        with self._lock:
            return sorted(name for name, job in self._jobs.items() if job.head is not None)

    def drop(self, job: str) -> None:
        """See `Store`."""
        with self._lock:
            self._jobs.pop(job, None)

    def close(self) -> None:
        """Nothing is connected."""

    def _job(self, job: str) -> _Job:
        return self._jobs.setdefault(job, _Job())
