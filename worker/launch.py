"""Starting and ending the drivers of this machine."""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from typing import Final

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.catalog import lifecycle
from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import Job, Lease
from backend.jobs.runs import run_of
from backend.settings import Settings, without_secrets
from worker import leases, processes, waiting
from worker.observed import observe

LOG = "driver.log"
JOB_ID: Final = re.compile(r"job_[0-9a-z]{26}")
DRIVER_NEEDS: Final = ("secret_key", "cassandra_password", "catalog_url", "redis_url", "spark_settings", "state")
"""Secrets that a driver gets. Java and Python workers, which it starts, get none."""
_log = logging.getLogger("streamjoin.worker")
_children: list[subprocess.Popen[bytes]] = []


def launch(settings: Settings, catalog: Catalog, job_id: str, generation: int, host: str) -> bool:
    """Begin a generation of a job here; tell whether it was begun. Doing it again does nothing.

    Raises:
        SQLAlchemyError: the catalog does not answer.
    """
    home = leases.home_of(settings)
    with catalog.read() as session:
        before = session.get(Job, job_id)
    try:
        with catalog.begin() as session:
            leases.take(session, job_id, generation, host, now_us=now_us(), lease_s=settings.lease_s, home=home)
            spec = session.get_one(Job, job_id).spec
    except leases.LeaseRefusedError as reason:
        _log.info("not launched: %s", reason)
        return False
    try:
        # A driver that died may have left children behind, and they hold what the next one needs. One that stopped ends
        # what it started by itself.
        gone = generation - 1 if before is not None and before.observed == lifecycle.STOPPED else generation
        left = processes.kill_all(partial(processes.members, settings.data, job_id, below=gone))
        if left:
            raise OSError(f"processes {left} of an earlier generation cannot be ended")
        pid = start(settings, job_id, generation, waiting.key_of(run_of(settings, spec.run)))
    except OSError as failure:
        with catalog.begin() as session:
            leases.end(session, job_id, generation)
            observe(session, job_id, generation, lifecycle.FAILED, now_us=now_us(),
                    reason=f"the driver could not be started: {failure}")  # fmt: skip
        return False
    since = processes.started(pid)
    try:
        with catalog.begin() as session:
            leases.enter(session, job_id, generation, pid, since or "", home=home)
    except (SQLAlchemyError, leases.LeaseLostError) as failure:
        _log.warning("driver %d was started, and will say so itself: %s", pid, failure)
    return True


def start(settings: Settings, job_id: str, generation: int, key: str) -> int:
    """Give the job to a driver that waits, or start one, in a session of its own; gives its process id.

    Args:
        key: see `waiting.key_of`.
    Raises:
        OSError: it cannot be started.
    """
    folder = settings.job_folder(job_id)
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        **without_secrets({**os.environ, **settings.environment()}, DRIVER_NEEDS),
        processes.MARK: processes.mark_of(job_id, generation),
    }
    # Whoever started a driver never asks how it ended; without this it would stay in the table of processes.
    _children[:] = [child for child in _children if child.poll() is None]
    with open(folder / LOG, "ab") as log:
        pid = waiting.give(settings, key, job_id, generation, environment, log)
        if pid is not None:
            return pid
        child = subprocess.Popen(
            command_of(job_id, generation),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True, close_fds=True,
        )  # fmt: skip
    _children.append(child)
    return child.pid


def command_of(job_id: str, generation: int) -> list[str]:
    """The command of a driver that has its job from the beginning."""
    given = os.environ.get(processes.DRIVER_COMMAND)
    command = shlex.split(given) if given else [sys.executable, "-m", "worker.driver"]
    return [*command, job_id, str(generation)]


def stop(settings: Settings, catalog: Catalog, job_id: str, generation: int, host: str, *, force: bool) -> bool:
    """End the driver of a generation if it runs here; tell whether it holds no lease any more.

    Args:
        force: at once, with all it started; else it is asked to, and gives its lease back itself.
    """
    with catalog.read() as session:
        lease = session.get(Lease, job_id)
    if lease is None or lease.generation != generation:
        return True
    if lease.host != host:
        return False
    if not force:
        return lease.pid is None or not processes.ask_to_end(lease.pid, lease.pid_started)
    left = processes.kill_all(partial(processes.members, settings.data, job_id, below=generation + 1))
    if left:
        _log.error("processes %s of job %s cannot be ended", left, job_id)
        return False
    with catalog.begin() as session:
        free(session, lease, "its driver did not end by itself, and was killed")
    return True


def forget(settings: Settings, catalog: Catalog, job_id: str) -> None:
    """Remove the folder of a job that was removed, unless the catalog still has it."""
    with catalog.read() as session:
        if not JOB_ID.fullmatch(job_id) or session.get(Job, job_id) is not None:
            return
    remove_folder(settings, job_id)


def remove_folder(settings: Settings, job_id: str) -> None:
    """End what still runs here of a job that is gone, then remove its folder."""
    if not processes.kill_all(partial(processes.members, settings.data, job_id)):
        shutil.rmtree(settings.job_folder(job_id), ignore_errors=True)


def free(session: Session, lease: Lease, reason: str) -> bool:
    """A driver is gone without having said so: give its lease back for it, unless it was renewed since.

    A job that was to stop has stopped then; another one has failed.
    """
    if not leases.end(session, lease.job_id, lease.generation, expires_at_us=lease.expires_at_us):
        return False
    job = session.get_one(Job, lease.job_id)
    stops = lease.stop or job.wanted != lifecycle.RUNNING
    after = lifecycle.STOPPED if stops else lifecycle.FAILED
    return observe(session, lease.job_id, lease.generation, after, now_us=now_us(), reason=reason)
