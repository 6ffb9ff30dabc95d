"""Removes what deleted jobs left on this machine, which may have been off when the others were told."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.catalog.models import Event, Job
from backend.settings import Settings
from worker import launch
from worker.machines import Machines
from worker.removal import REMOVED

EVERY_S: Final = 3600.0
_log = logging.getLogger("streamjoin.worker")


def start(settings: Settings, machine: Machines) -> None:
    """Sweep now and once an hour, in a thread that ends with the process."""

    def run() -> None:
        while True:
            sweep(settings, machine)
            time.sleep(EVERY_S)

    threading.Thread(target=run, name="sweep", daemon=True).start()


def sweep(settings: Settings, machine: Machines) -> None:
    """Remove what deleted jobs left here. If the catalog does not answer, the next sweep does it."""
    try:
        with machine.closed_after(), machine.catalog.read() as session:
            gone = left_by(settings, session)
    except SQLAlchemyError as failure:
        _log.warning("it cannot be seen what removed jobs left on this machine: %s", failure)
        return
    for job_id in gone:
        _log.info("job %s was removed, and its folder goes", job_id)
        launch.remove_folder(settings, job_id)


def left_by(settings: Settings, session: Session) -> list[str]:
    """The jobs that have a folder here and that the catalog says were removed.

    It is not enough that the catalog does not know a job: the catalog may be new, another platform's or an old backup,
    and the folder may hold the only copy of the job's state.
    """
    folders = {path.name for path in settings.job_folder("").glob("job_*") if launch.JOB_ID.fullmatch(path.name)}
    unknown = folders.difference(session.scalars(select(Job.id))) if folders else folders
    if not unknown:
        return []
    removed = session.scalars(select(Event.data).where(Event.kind == REMOVED, Event.job_id.is_(None)))
    return sorted(unknown.intersection(str(data.get("job_id")) for data in removed))
