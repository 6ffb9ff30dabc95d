"""Relations that are read when their job starts and anew while it runs, in a thread of the driver's process.

Nothing is handed to anybody: a version that is whole has a number, and the next batch that is planned joins the highest
there is. So batches wait for no read, and however a read ends, they go on with what they have.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from streamjoin.errors import StreamJoinError
from streamjoin.relations.history import History
from streamjoin.relations.versions import Version
from streamjoin.spark.relations import told
from streamjoin.spec.job import Job
from streamjoin.spec.relations import OnRelation, read_relations, refreshed

_log = logging.getLogger("streamjoin.relations")
POLL_S = 0.5
_STOP_S = 60.0
_SHARE, _REST_S_MAX = 0.25, 5.0
"""Of the time in which rows come, so much is work: the database, too, may run where batches do."""
_NICE = 19
"""A batch that waits for its tasks is late at once, and a version that is read has time."""


class _StoppedError(Exception):
    """The job stops, and a version that it reads is given up."""


def first_versions(job: Job, stop: threading.Event, on_relation: OnRelation | None = None) -> dict[str, Version] | None:
    """The newest version of each relation of a job that starts; None once `stop` is set, within a block of a version.

    A thread reads: in the main one the drivers of databases would answer Ctrl-C themselves, with a failure of the read.

    Raises:
        InputError, RunError: a relation cannot be read.
    Cost: as `read_relations`.
    """
    if not job.joined_relations:
        return {}
    found: list[dict[str, Version] | BaseException] = []

    def tell(name: str, rows: int) -> None:
        if stop.is_set():
            raise _StoppedError
        if on_relation:
            on_relation(name, rows)

    def read() -> None:
        try:
            found.append(read_relations(job, tell))
        except BaseException as failure:
            found.append(failure)

    thread = threading.Thread(target=read, name="relations", daemon=True)
    thread.start()
    while thread.is_alive() and not stop.is_set():
        thread.join(POLL_S)
    thread.join(_STOP_S)
    if not found or isinstance(found[0], _StoppedError):
        return None
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def give_way() -> None:
    """Let others of this machine go first from now on, in this thread; Linux has that for single threads."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


class Refreshing:
    """Looks after the relations of one job.

    Args:
        known: by relation, what is known of it; it is kept up to date, and others read it.
        clock: seconds that only grow.
    """

    def __init__(
        self, job: Job, known: MutableMapping[str, dict[str, Any]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.job, self.known, self._clock = job, known, clock
        self._stop = threading.Event()
        self._looked = dict.fromkeys(job.joined_relations, clock())
        self._rested_s = clock()
        for name in self._looked:
            History(job.tables, name).ask_again()
            self._tell(name)

    def run(self) -> None:
        """Until `stop`, in a thread that yields the processors to whatever else wants them."""
        give_way()
        while not self._stop.wait(POLL_S):
            for name in self._looked:
                try:
                    if self.is_due(name) and not self._stop.is_set():
                        self.refresh(name)
                except OSError as wrong:  # such as a full disk, where how a look ended cannot be written down
                    self._looked[name] = self._clock()
                    self.known[name] |= {"reading_rows": None, "problem": str(wrong)}
                    _log.warning("relation %s: %s; it is looked at again", name, wrong)

    def is_due(self, name: str) -> bool:
        """Whether somebody asks for a relation, or its time has come."""
        every_us = self.job.relations[name].refresh_us
        asked = History(self.job.tables, name).is_asked()
        return asked or (every_us is not None and (self._clock() - self._looked[name]) * 1e6 >= every_us)

    def refresh(self, name: str) -> None:
        """Look for a new version, and read it if there is one; whatever goes wrong is counted and told."""
        history, version, problem = History(self.job.tables, name), None, None
        self._rested_s = self._clock()
        try:
            version = refreshed(self.job, self.job.relations[name], self._progress)
        except _StoppedError:
            return
        except Exception as wrong:
            problem = str(wrong) if isinstance(wrong, StreamJoinError) else f"{type(wrong).__name__}: {wrong}"
            _log.warning("relation %s stays as it is: %s", name, problem)
        history.answered()
        look, now_us = history.look(), time.time_ns() // 1_000
        history.looked(look.found(now_us, new=version is not None) if problem is None else look.failed(now_us, problem))
        if version is not None:
            self.known[name] |= told(version)
        self._looked[name] = self._clock()
        self._tell(name)

    def stop(self) -> None:
        """End `run`, within a block of a version that is being read."""
        self._stop.set()

    def _tell(self, name: str) -> None:
        look = History(self.job.tables, name).look()
        self.known[name] |= {
            "reading_rows": None, "refreshes": look.refreshes, "refresh_failures": look.failures,
            "problem": look.problem,
        }  # fmt: skip

    def _progress(self, name: str, rows: int) -> None:
        self.known[name]["reading_rows"] = rows
        worked_s = self._clock() - self._rested_s
        if self._stop.wait(min(worked_s * (1 / _SHARE - 1), _REST_S_MAX)):
            raise _StoppedError
        self._rested_s = self._clock()


@contextmanager
def refreshing(job: Job, known: MutableMapping[str, dict[str, Any]]) -> Iterator[None]:
    """Have a job's relations read anew meanwhile, when they are due and when somebody asks."""
    if not job.joined_relations:
        yield
        return
    looking = Refreshing(job, known)
    thread = threading.Thread(target=looking.run, name="relations", daemon=True)
    thread.start()
    try:
        yield
    finally:
        looking.stop()
        thread.join(_STOP_S)
