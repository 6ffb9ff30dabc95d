"""The Celery tasks: each takes seconds, has plain arguments, and does nothing the second time."""

from __future__ import annotations

import logging
import os
from typing import Final

from celery import Celery

from backend.catalog.database import Catalog
from backend.settings import Settings
from worker import launch as drivers

LAUNCH: Final = "streamjoin.launch"
STOP: Final = "streamjoin.stop"
FORGET: Final = "streamjoin.forget"
_log = logging.getLogger("streamjoin.worker")
_catalogs: dict[tuple[int, str], Catalog] = {}


def add_tasks(app: Celery, settings: Settings) -> None:
    """Give an app its tasks."""

    @app.task(name=LAUNCH, ignore_result=True)
    def launch(job_id: str, generation: int) -> None:
        """Begin a generation of a job on this machine."""
        if drivers.launch(settings, _catalog(settings), job_id, generation, settings.machine):
            _log.info("job %s: generation %d launched", job_id, generation)

    @app.task(name=STOP, ignore_result=True)
    def stop(job_id: str, generation: int, force: bool) -> None:
        """End the driver of a generation on this machine."""
        gone = drivers.stop(settings, _catalog(settings), job_id, generation, settings.machine, force=force)
        _log.info("job %s: generation %d %s", job_id, generation, "is gone" if gone else "was asked to end")

    @app.task(name=FORGET, ignore_result=True)
    def forget(job_id: str) -> None:
        """Remove what a job that is gone left on this machine."""
        drivers.forget(settings, _catalog(settings), job_id)


def _catalog(settings: Settings) -> Catalog:
    # Connections must not be shared by the processes that Celery forks.
    key = os.getpid(), settings.catalog
    if key not in _catalogs:
        _catalogs[key] = Catalog(settings.catalog)
    return _catalogs[key]
