"""The processes of the platform's worker side under test: a Celery worker and a reconciler, with stand-in drivers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from backend.catalog.database import Catalog
from backend.settings import Settings
from tests.servers.process import ServerProcess, comes_true
from worker import processes
from worker.app import make_app, send
from worker.processes import DRIVER_COMMAND

from .jobs import job_of, lease_of

READY_S_MAX = 30.0
SEEN_S_MAX = 30.0


class Workers:
    """Starts what `settings` describe, and leaves no process behind.

    Args:
        how: what stand-in drivers do, see `stand_in`; None for the driver itself.
    """

    def __init__(self, settings: Settings, catalog: Catalog, how: str | None = "") -> None:
        self.settings = settings
        self.catalog = catalog
        self.app = make_app(settings)
        self.variables = {**settings.environment(), "PYTHONUNBUFFERED": "1", "STAND_IN": how or ""}
        if how is not None:
            self.variables[DRIVER_COMMAND] = f"{sys.executable} -m tests.worker.stand_in"
        self.started: list[ServerProcess] = []

    def worker(self) -> ServerProcess:
        """A Celery worker that takes tasks."""
        return self._start("worker", "worker.app", " ready.")

    def reconciler(self) -> ServerProcess:
        """A reconciler."""
        return self._start("reconciler", "worker.reconcile", "reconciling")

    def _start(self, name: str, module: str, ready: str) -> ServerProcess:
        variables = [f"{key}={value}" for key, value in self.variables.items()]
        log = self.settings.data / f"{name}-{len(self.started)}.log"
        process = ServerProcess(name, ["env", *variables, sys.executable, "-m", module], log)
        self.started.append(process)
        process.wait_for_output(ready, READY_S_MAX)
        return process

    def send(self, task: str, *arguments: Any, queue: str = "streamjoin") -> None:
        """Send a task, as a reconciler does."""
        send(self.app, task, list(arguments), queue, expires_s=600)

    def drivers(self) -> list[int]:
        """The drivers that run."""
        return processes.leaders(self.settings.data)

    def wait_observed(
        self, job: str, observed: str, generation: int | None = None, within_s: float = SEEN_S_MAX
    ) -> None:
        """Wait until a job is seen to be something."""

        def is_so() -> bool:
            found = job_of(self.catalog, job)
            return found.observed == observed and (generation is None or found.generation == generation)

        if not comes_true(is_so, within_s):
            found, lease = job_of(self.catalog, job), lease_of(self.catalog, job)
            held = lease and (lease.generation, lease.pid, lease.stop, lease.ended)
            raise AssertionError(
                f"the job is not {observed} within {within_s:g} s: {found.wanted=} {found.observed=} "
                f"{found.generation=} {found.reason=} lease {held}\n{self.tails(job)}"
            )

    def tails(self, job: str) -> str:
        """The ends of all logs."""
        logs = [process.log for process in self.started]
        logs += sorted(self.settings.job_folder(job).glob("*.log"))
        logs += sorted((self.settings.data / "logs").glob("*.log"))
        return "\n".join(
            f"--- {log.name}\n" + "\n".join(log.read_text().splitlines()[-25:]) for log in logs if log.exists()
        )

    def close(self) -> None:
        """End all of it."""
        for process in self.started:
            process.kill()
        left = processes.kill_all(partial(processes.members, self.settings.data))
        assert not left, left


@contextmanager
def workers(settings: Settings, catalog: Catalog, how: str | None = "") -> Iterator[Workers]:
    """Workers that end with the block."""
    made = Workers(settings, catalog, how)
    try:
        yield made
    finally:
        made.close()
