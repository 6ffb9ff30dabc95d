"""The memory of recent snapshots in Redis: what a driver keeps there, so that followers need not ask the store.

A driver goes on without it. What it cannot tell the memory is in the durable store; the head in the memory is then no
longer renewed, ends by itself after `HEAD_TTL_S`, and everybody reads the durable store until the memory is back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from backend.settings import Settings
from streamjoin.results.head import Head
from streamjoin.results.recent import Fetch, Recent
from streamjoin.results.snapshot import FIRST, Snapshot
from streamjoin.results.stores.redis import RedisStore
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import StoreError

BYTES_A_JOB = 32 << 20
HEAD_TTL_S = 15.0
READ_TIMEOUT_S = 0.5
AGAIN_S = 5.0
"""After a failure the driver leaves the memory alone for so long: waiting for it would hold the job up."""

_log = logging.getLogger("streamjoin.results")


def memory_spec(settings: Settings, *, reading: bool = False) -> StoreSpec:
    """How to reach the memory.

    Args:
        reading: for API processes, who would rather read the durable store than wait; else for drivers and their tasks.
    """
    values: dict[str, Any] = {"url": settings.redis_url}
    values |= {"timeout_s": READ_TIMEOUT_S} if reading else {"head_ttl_s": HEAD_TTL_S, "best_effort": True}
    return StoreSpec("redis", tuple(values.items()))


class _GoneError(StoreError):
    """The memory answers, and has forgotten the job."""


class SharedRecent(Recent):
    """The newest snapshots of one job in Redis; as `Recent`, but its failures are nobody else's.

    Args:
        spec: from `memory_spec`.
        job: the name of the job's results.
    """

    def __init__(self, spec: StoreSpec, job: str, bytes_max: int = BYTES_A_JOB) -> None:
        store = spec.open()
        assert isinstance(store, RedisStore)
        # Blocks that the tasks could not put are fetched; here a failure must be seen.
        super().__init__(RedisStore(store.url, store.prefix, store.head_ttl_s), job, bytes_max)
        self._description = b""
        self._works = False
        self._shows: bytes | None = None
        self._from = FIRST
        self._again_s = 0.0
        self._stopped = threading.Event()
        self._renewing: threading.Thread | None = None

    def begin(self, description: bytes, head: Head) -> None:
        """See `Recent`; without Redis it begins when there is one."""
        self._description = description
        self._begin(head)
        if self._renewing is None:
            self._renewing = threading.Thread(target=self._renew, name="recent-results", daemon=True)
            self._renewing.start()

    def _begin(self, head: Head) -> None:
        self._keys.clear()
        self._names.clear()
        self._shows, self._from = None, head.state.last
        self._works = True
        self._try(lambda: super(SharedRecent, self).begin(self._description, head))

    def publish(self, snapshot: Snapshot, head: Head, fetch: Fetch) -> None:
        """See `Recent`; after a failure it begins anew, after the newest snapshot there is."""
        if not self._works:
            if time.monotonic() < self._again_s:
                return
            self._begin(head)
        if snapshot.id > self._from:
            self._try(lambda: self._publish(snapshot, head, fetch))

    def _publish(self, snapshot: Snapshot, head: Head, fetch: Fetch) -> None:
        try:
            super().publish(snapshot, head, fetch)
        except _GoneError as failure:
            # As after a machine stood still. The server answers, so there is nothing to wait for.
            _log.warning("recent results of %s begin anew in memory after %s: %s", self.job, snapshot.id, failure)
            self._begin(head)

    def _shown(self) -> Head:
        if self._shows is None:
            raise StoreError(f"{self.store} does not have these results")
        return Head.from_bytes(self._shows)

    def _show(self, head: Head) -> None:
        new = head.to_bytes()
        # A driver that was replaced and does not know it yet must not take the memory back to what it knows.
        if not self.store.swap_head(self.job, self._shows, new):
            if self.store.head(self.job) is None:
                raise _GoneError(f"the head in {self.store} is gone")
            raise StoreError(f"the head in {self.store} is another driver's")
        self._shows = new

    def close(self) -> None:
        """Stop renewing; what is there ends by itself."""
        self._stopped.set()
        if self._renewing is not None:
            self._renewing.join(timeout=5)
        self.store.close()

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except StoreError as failure:
            self._works = False
            self._again_s = time.monotonic() + AGAIN_S
            _log.warning("recent results of %s are not in memory for now: %s", self.job, failure)

    def _renew(self) -> None:
        assert isinstance(self.store, RedisStore)
        while not self._stopped.wait(HEAD_TTL_S / 5):
            if self._works:
                try:
                    self._works = self.store.renew(self.job)
                except StoreError:
                    self._works = False


def recent_for(settings: Settings, results_name: str) -> tuple[SharedRecent, StoreSpec]:
    """What a driver gives its sink as `recent` and `memory`."""
    spec = memory_spec(settings)
    return SharedRecent(spec, results_name), spec
