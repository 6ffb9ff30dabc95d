"""The memory of recent snapshots beside the durable store, in a Redis that the drivers fill.

It is used where it answers and has the job, and is never needed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from backend.results.places import KNOWN_MAX
from backend.results.watch import Watch, WatchedStore
from streamjoin.results.stores.redis import RedisStore
from streamjoin.results.stores.store import BlockKey, Store, StoreError

AWAY_S = 2.0
"""After the memory did not answer it is left alone for so long."""

ABSENT_S = 0.5
"""So long a job that the memory does not have is taken for absent: the durable store has all that it could get."""
MEMORY_TIMEOUT_S = 0.5

_log = logging.getLogger("streamjoin.results")


class Memory:
    """The memory of recent snapshots, if there is one."""

    def __init__(self, store: RedisStore | None) -> None:
        self.store = store
        self._away_until_s = 0.0
        self._absent_until_s: dict[str, float] = {}

    def has(self, name: str) -> bool:
        """Whether it can be asked about these results just now."""
        now_s = time.monotonic()
        if self.store is None or now_s < self._away_until_s or now_s < self._absent_until_s.get(name, 0.0):
            return False
        try:
            if self.store.head(name) is not None:
                return True
        except StoreError as failure:
            self.is_away(failure)
            return False
        if len(self._absent_until_s) >= KNOWN_MAX:
            self._absent_until_s = {}
        self._absent_until_s[name] = now_s + ABSENT_S
        return False

    def is_away(self, failure: StoreError) -> None:
        """Leave it alone for a while."""
        if time.monotonic() >= self._away_until_s:
            _log.warning("the memory of recent results is not used: %s", failure)
        self._away_until_s = time.monotonic() + AWAY_S


class MemoryStore(WatchedStore):
    """The memory: blocks that it does not give are simply not there, and are read in the durable store."""

    def __init__(self, store: Store, watch: Watch, memory: Memory) -> None:
        super().__init__(store, watch)
        self._memory = memory

    def _watched(self, coming: Iterator[tuple[BlockKey, bytes]]) -> Iterator[tuple[BlockKey, bytes]]:
        self._watch.check()
        try:
            yield from coming
        except StoreError as failure:
            self._memory.is_away(failure)
