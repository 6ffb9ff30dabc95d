"""Removes jobs beside the reconciler's looks: removing the results of one job may take minutes."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 2
_log = logging.getLogger("streamjoin.reconciler")


class Removals:
    """Removes jobs in a few daemon threads. They end when no job is left to remove, or with the process.

    Args:
        remove: removes the job with this id. If it fails, a later look asks again.
    """

    def __init__(self, remove: Callable[[str], None]) -> None:
        self._remove = remove
        self._lock = threading.Lock()
        self._waiting: deque[str] = deque()
        self._under_way: set[str] = set()
        self._threads = 0

    def __contains__(self, job_id: str) -> bool:
        """Whether this job is being removed, or waits for that."""
        return job_id in self._under_way

    def __len__(self) -> int:
        """How many there are."""
        return len(self._under_way)

    def ask(self, job_id: str) -> None:
        """Remove a job soon, unless it is being removed already."""
        with self._lock:
            if job_id in self._under_way:
                return
            self._under_way.add(job_id)
            self._waiting.append(job_id)
            if self._threads == AT_ONCE:
                return
            self._threads += 1
        # Not a pool: a process that ends would wait until the pool has done everything.
        threading.Thread(target=self._run, name="removal", daemon=True).start()

    def _run(self) -> None:
        while (job_id := self._next()) is not None:
            try:
                self._remove(job_id)
            except Exception:
                _log.exception("job %s could not be removed, and will be later", job_id)
            finally:
                self._under_way.discard(job_id)

    def _next(self) -> str | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None
