"""What a start takes, step by step, until its first batch is committed: its lease tells of each, an event of all."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from typing import Final

from sqlalchemy import ScalarResult, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.catalog.database import Catalog
from backend.catalog.events import FIRST_BATCH, record
from backend.catalog.ids import now_us
from backend.catalog.models import Event, Lease

LAUNCH: Final = "launch"
"""From the wish, or the failure, until a driver has the lease; a driver that has to stop first does so in it."""
PROCESS: Final = "process"
SPARK: Final = "spark"
STATE: Final = "state"
LOOK: Final = "first_look"
"""Only of a start that had nothing to read yet: until it had looked. Its first batch may be a heartbeat, much later."""
BATCH: Final = "first_batch"
TRIES: Final = 30
"""So often it is tried to write down the last step, `AGAIN_S` apart: no later one writes it as well."""
AGAIN_S: Final = 1.0
_CAUSES: Final = {
    "job.started_by_user": "start", "job.restart_asked": "restart", "job.changed": "change", "job.failed": "recovery",
}  # fmt: skip
_BEGINS: Final = ("job.starting", "job.restarted")
_log = logging.getLogger("streamjoin.driver")


class Steps:
    """Counts the seconds of a start, and writes them down from threads of its own: no start waits for the catalog.

    Args:
        warm: whether the driver waited for the job.
    """

    def __init__(self, catalog: Catalog, job_id: str, generation: int, *, warm: bool) -> None:
        self.catalog = catalog
        self.job_id = job_id
        self.generation = generation
        self.warm = warm
        with catalog.read() as session:
            taken_us = session.get_one(Lease, job_id).taken_at_us
            self.cause, asked_us = _cause(session, job_id, taken_us)
        self.seconds: dict[str, float] = {LAUNCH: (taken_us - asked_us) / 1e6}
        self._last_us = taken_us
        self._told = threading.Lock()
        self._tell(first=False)

    def done(self, step: str) -> None:
        """A step is over, and the next one begins. The first batch is the last step, and is over once."""
        if BATCH in self.seconds:
            return
        at_us = now_us()
        self.seconds[step] = self.seconds.get(step, 0.0) + (at_us - self._last_us) / 1e6
        self._last_us = at_us
        self._tell(first=step == BATCH)

    def _tell(self, *, first: bool) -> None:
        threading.Thread(target=self._write, args=[first], name="steps", daemon=True).start()

    def _write(self, first: bool) -> None:
        # Whoever comes later has all that was there before, so none goes back. After the first batch nobody comes.
        with self._told:
            seconds = {step: round(value, 3) for step, value in dict(self.seconds).items()}
            message = self._message(seconds) if first else None
            if message is not None:
                _log.info("%s", message)
            left = TRIES if first else 1
            while not self._written(seconds, message) and (left := left - 1):
                time.sleep(AGAIN_S)

    def _written(self, seconds: dict[str, float], message: str | None) -> bool:
        """Whether the catalog took the steps, and the event with this message, if there is one."""
        try:
            with self.catalog.begin() as session:
                session.execute(
                    update(Lease)
                    .where(Lease.job_id == self.job_id, Lease.generation == self.generation)
                    .values(steps=seconds)
                )
                if message is not None:
                    self._record(session, message, seconds)
        except SQLAlchemyError as failure:
            _log.warning("what the start took is not written down: %s", failure)
            return False
        return True

    def _message(self, seconds: dict[str, float]) -> str:
        told = ", ".join(f"{step.replace('_', ' ')} {value:.1f} s" for step, value in seconds.items())
        total = sum(seconds.values())
        return f"generation {self.generation} committed its first batch {total:.1f} s after the {self.cause}: {told}"

    def _record(self, session: Session, message: str, seconds: dict[str, float]) -> None:
        data = {
            "generation": self.generation, "cause": self.cause, "warm": self.warm,
            "seconds": round(sum(seconds.values()), 3), "steps": seconds,
        }  # fmt: skip
        record(session, FIRST_BATCH, message, job_id=self.job_id, data=data)


def _cause(session: Session, job_id: str, taken_us: int) -> tuple[str, int]:
    """Why a generation was begun, and since when it was due: what came last since the one before it began."""

    def latest(kinds: Iterable[str], until_us: int) -> ScalarResult[Event]:
        found = select(Event).where(Event.job_id == job_id, Event.kind.in_(kinds), Event.at_us <= until_us)
        return session.scalars(found.order_by(Event.at_us.desc(), Event.id.desc()).limit(2))

    # The latest that began is this one, which is written down a little after its lease was taken.
    began = latest(_BEGINS, now_us()).all()
    before, cause = began[1] if len(began) > 1 else None, latest(_CAUSES, taken_us).first()
    if cause is None or (before is not None and cause.at_us < before.at_us):
        return "start", taken_us  # the platform was started
    return _CAUSES[cause.kind], cause.at_us
