"""Waiting until there is something to look at: a driver that ended, a wish, a state that was seen."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import sqlalchemy
from sqlalchemy import func
from sqlalchemy.exc import SQLAlchemyError

from backend.catalog.database import Catalog
from backend.catalog.models import Job
from worker import processes

EVERY_S: Final = 0.2
"""The catalog is asked so often whether anything changed; that is one row."""


class Watch:
    """Watches the processes of drivers, and the catalog."""

    def __init__(self, catalog: Catalog, every_s: float = EVERY_S) -> None:
        self.catalog = catalog
        self.every_s = every_s
        self._open: dict[tuple[int, str], int] = {}
        self._seen: tuple[Any, ...] | None = None

    def on(self, drivers: Iterable[tuple[int, str]]) -> None:
        """From now on these processes are watched, and no others: number and start of each, see `processes.started`."""
        wanted = set(drivers)
        for driver in self._open.keys() - wanted:
            os.close(self._open.pop(driver))
        for pid, since in wanted - self._open.keys():
            with suppress(OSError):  # it has ended, which the next look shows, or the system does not have it
                self._open[pid, since] = os.pidfd_open(pid)
                if not processes.is_alive(pid, since):  # the number is another's by now
                    os.close(self._open.pop((pid, since)))

    def mark(self) -> None:
        """What the catalog says now is known."""
        self._seen = self._now()

    def wait(self, stop: threading.Event, at_most_s: float, clock_s: Callable[[], float]) -> None:
        """Until something is to be looked at, `stop` is set, or so long."""
        until_s = clock_s() + at_most_s
        poll = select.poll()
        for number in self._open.values():
            poll.register(number, select.POLLIN)
        while not stop.is_set() and (left_s := until_s - clock_s()) > 0:
            if poll.poll(1000 * min(left_s, self.every_s)):
                return
            now = self._now()
            if now is not None and now != self._seen:
                return

    def close(self) -> None:
        """Watch nothing any more."""
        self.on(())

    def _now(self) -> tuple[Any, ...] | None:
        columns = (Job.wanted_since_us, Job.observed_since_us, Job.version, Job.restart_version)
        question = sqlalchemy.select(func.count(), *map(func.sum, columns))
        try:
            with self.catalog.read() as session:
                return tuple(session.execute(question).one())
        except SQLAlchemyError:
            return None
