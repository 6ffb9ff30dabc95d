"""A driver's hold on its lease: renews it, passes on that it is to stop, and ends the process when the lease is lost.

Two threads. One talks to the catalog, and may wait for it for long; the other only looks at a clock, and ends the
process while nobody else can have taken the lease yet.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.catalog import lifecycle
from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import Job
from backend.settings import Settings
from worker import leases, processes
from worker.observed import observe

LOOK_S: Final = 1.0
LOST_STATUS: Final = 3
_log = logging.getLogger("streamjoin.driver")


class Keeper:
    """Holds the lease of one generation while it is entered.

    Args:
        stop: set when the driver is to end after its batch.
        die: ends the process; None for `die_hard`.
    """

    def __init__(
        self,
        settings: Settings,
        catalog: Catalog,
        job_id: str,
        generation: int,
        stop: threading.Event,
        die: Callable[[str], None] | None = None,
    ) -> None:
        self.settings = settings
        self.catalog = catalog
        self.job_id = job_id
        self.generation = generation
        self.stop = stop
        self.state = lifecycle.STARTING
        self.die = die or partial(die_hard, settings.data, job_id, generation)
        self._renewed_s = time.monotonic()
        self._over = threading.Event()
        self._giving_back = threading.Lock()

    def enter(self) -> Job:
        """Say which process this is, and hold the lease from now on; gives the job to run.

        Raises:
            LeaseLostError: it is another's.
        """
        pid, asked_s = os.getpid(), time.monotonic()
        with self.catalog.begin() as session:
            job = leases.enter(
                session, self.job_id, self.generation, pid, processes.started(pid) or "",
                home=leases.home_of(self.settings),
            )  # fmt: skip
            leases.renew(session, self.job_id, self.generation, now_us=now_us(), lease_s=self.settings.lease_s)
        self._renewed_s = asked_s  # a commit may take long, and the lease is counted from before it
        for run in (self._renew, self._watch):
            threading.Thread(target=run, name=run.__name__.strip("_"), daemon=True).start()
        return job

    def observe(self, after: str, reason: str | None = None) -> None:
        """This generation is seen to be something; what cannot be written now is written with a later renewal."""
        self.state = after
        try:
            with self.catalog.begin() as session:
                observe(session, self.job_id, self.generation, after, now_us=now_us(), reason=reason)
        except SQLAlchemyError as failure:
            _log.warning("that it is %s will be written later: %s", after, failure)

    def leave(self, after: str, reason: str | None, *, own_fault: bool = False, at_end: bool = False) -> None:
        """Give the lease back, with what came out. Waits for the catalog as long as the lease lasts, and dies then.

        Args:
            at_end: the streams have ended, and the job is done: nobody wants it to run any more.
        """
        while True:
            try:
                with self._giving_back:
                    with self.catalog.begin() as session:
                        now = now_us()
                        held = leases.end(session, self.job_id, self.generation)
                        if held:
                            observe(session, self.job_id, self.generation, after, now_us=now, reason=reason,
                                    own_fault=own_fault)  # fmt: skip
                            job = session.get_one(Job, self.job_id)
                            if at_end and job.wanted == lifecycle.RUNNING:
                                job.wanted, job.wanted_since_us = lifecycle.STOPPED, now
                    self._over.set()
                return
            except SQLAlchemyError as failure:
                _log.warning("the lease will be given back later: %s", failure)
                time.sleep(LOOK_S)

    def _renew(self) -> None:
        every_s = self.settings.lease_s / 4
        due_s = time.monotonic() + every_s
        while not self._over.wait(min(LOOK_S, every_s)):
            asked_s = time.monotonic()
            try:
                if asked_s >= due_s:
                    with self.catalog.begin() as session:
                        stop = leases.renew(
                            session, self.job_id, self.generation, now_us=now_us(), lease_s=self.settings.lease_s
                        )
                        self._tell(session)
                    self._renewed_s = asked_s
                    due_s = asked_s + every_s
                else:
                    with self.catalog.read() as session:
                        stop = leases.asked_to_stop(session, self.job_id, self.generation)
            except leases.LeaseLostError as lost:
                with self._giving_back:  # it may have been given back just now
                    if not self._over.is_set():
                        self.die(str(lost))
                return
            except SQLAlchemyError as failure:
                _log.warning("the lease could not be renewed, and will be tried again: %s", failure)
                continue
            if stop and not self.stop.is_set():
                _log.info("asked to stop")
                self.stop.set()

    def _tell(self, session: Session) -> None:
        # Somebody who could not look calls the job unknown, and a catalog that was down missed a move.
        if self.state in (lifecycle.STARTING, lifecycle.RUNNING):
            observe(session, self.job_id, self.generation, self.state, now_us=now_us())

    def _watch(self) -> None:
        allowed_s = leases.OWN_END * self.settings.lease_s
        while not self._over.wait(min(LOOK_S, allowed_s / 10)):
            if time.monotonic() - self._renewed_s > allowed_s:
                self.die(f"the lease could not be renewed for {allowed_s:g} s")
                return


def die_hard(data: Path, job_id: str, generation: int, why: str) -> NoReturn:
    """End this driver and all it started, at once, without committing anything more."""
    _log.error("job %s: generation %d ends at once: %s", job_id, generation, why)
    me = os.getpid()
    processes.kill_all(
        lambda: [pid for pid in processes.members(data, job_id, below=generation + 1) if pid != me], within_s=1.0
    )
    os._exit(LOST_STATUS)


def end_with_platform(die: Callable[[str], None]) -> None:
    """End when whoever started the platform is gone, however that came about."""
    path = os.environ.get(processes.UP_PIPE)
    if path is None:
        return
    try:
        # Without O_NONBLOCK this would wait for somebody to write, who may be gone by now.
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        die("the platform is gone")
        return
    os.set_blocking(pipe, True)

    def wait() -> None:
        while os.read(pipe, 1):
            pass
        die("the platform is gone")

    threading.Thread(target=wait, name="platform", daemon=True).start()
