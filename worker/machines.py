"""Which machines take jobs: each worker says so every few seconds, and launches go to one with room.

A job that keeps its state in a data folder goes on where that folder is. One whose state is in a store goes on
anywhere, so a machine that dies loses its jobs to others as soon as their leases are over. Versions of relations,
uploads and pushed rows are in a data folder, so jobs with these keep their state there, too, and stay with it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.machines import takes_jobs
from backend.catalog.models import Machine
from streamjoin.machine import free_bytes

BEAT_S: Final = 3.0
FORGET_S: Final = 86_400.0
_log = logging.getLogger("streamjoin.worker")


@dataclass(frozen=True, slots=True)
class Room:
    """A machine that takes jobs.

    Args:
        free_bytes: of memory, when it said so last.
    """

    name: str
    folder: str
    free_bytes: int


class Machines:
    """This machine among those that take jobs, for as long as its worker runs.

    Celery forks, and a fork while SQLite is open in another thread leaves a child for which the catalog is locked for
    good. So forks wait until this thread has closed what it opened.

    Args:
        first: what is done in the transaction in which it says so for the first time.
    """

    def __init__(
        self, catalog: Catalog, name: str, folder: str, first: Callable[[Session], None] = lambda session: None
    ) -> None:
        self.catalog = catalog
        self.name = name
        self.folder = folder
        self._left = threading.Event()
        self._open = threading.Lock()
        self._first: Callable[[Session], None] | None = first

    def start(self) -> None:
        """Say so from now on, in a thread that ends with the process."""
        release = self._open.release
        os.register_at_fork(before=self._open.acquire, after_in_parent=release, after_in_child=release)
        threading.Thread(target=self._beat, name="machine", daemon=True).start()

    def say(self) -> None:
        """Say once that it is there.

        Raises:
            SQLAlchemyError: the catalog does not answer.
        """
        said = Machine(name=self.name, folder=self.folder, seen_at_us=now_us(), free_bytes=free_bytes())
        with self.closed_after(), self.catalog.begin() as session:
            if self._first is not None:
                self._first(session)
            session.merge(said)
        self._first = None

    def leave(self) -> None:
        """Take no more jobs. A catalog that does not answer finds out by itself."""
        self._left.set()
        with suppress(SQLAlchemyError), self.closed_after(), self.catalog.begin() as session:
            session.execute(delete(Machine).where(Machine.name == self.name))

    @contextmanager
    def closed_after(self) -> Iterator[None]:
        """Have the catalog open in the block, and close it afterwards; nothing forks meanwhile."""
        with self._open:
            try:
                yield
            finally:
                self.catalog.close()

    def _beat(self) -> None:
        while not self._left.is_set():
            try:
                self.say()
            except SQLAlchemyError as failure:
                _log.warning("it cannot be said that this machine takes jobs: %s", failure)
            self._left.wait(BEAT_S)


def rooms(session: Session, at_us: int) -> list[Room]:
    """The machines that take jobs now."""
    found = session.scalars(select(Machine).order_by(Machine.name))
    return [Room(one.name, one.folder, one.free_bytes) for one in found if takes_jobs(one, at_us)]


def forget(session: Session, at_us: int) -> None:
    """Forget machines that have said nothing for a day."""
    session.execute(delete(Machine).where(Machine.seen_at_us < at_us - round(FORGET_S * 1e6)))


def place(
    found: Collection[Room],
    folder: str | None,
    given: Iterable[str],
    driver_bytes: int,
    silent: Mapping[str, float],
) -> Room | None:
    """The machine with the most free memory, of those that have a data folder, or of all; None where there is none.

    Args:
        folder: where the job's state is; None for anywhere.
        given: names of machines, one for each launch that they were told of and that they may not have counted yet.
        driver_bytes: what such a launch will take.
        silent: since when machines do not answer; they are asked only where no other one is able, and then in turn.
    """
    told = Counter(given)
    able = [room for room in found if folder is None or room.folder == folder]
    if answering := [room for room in able if room.name not in silent]:
        return max(answering, key=lambda room: room.free_bytes - told[room.name] * driver_bytes)
    return min(able, key=lambda room: silent[room.name], default=None)
