"""Leases: who may run a job just now.

Everything here works on a session of the catalog and is told the time, so that whoever calls decides about both. A
lease is of one generation; a generation is launched once, and a later one only when the lease before it is free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import CursorResult, or_, select, update
from sqlalchemy.orm import Session

from backend.catalog import lifecycle
from backend.catalog.machines import folder_id
from backend.catalog.models import Job, Lease
from backend.jobs.inputs import inputs_of
from backend.settings import Settings
from streamjoin.errors import StreamJoinError
from worker.observed import observe

OWN_END = 0.8
"""The part of a lease after which a driver that cannot renew ends itself: before anybody else may begin."""


class LeaseRefusedError(StreamJoinError):
    """This generation may not be launched; the message says why."""


class LeaseLostError(StreamJoinError):
    """The lease is another's, or is over: whoever held it must end at once."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where a machine keeps the states of its jobs.

    Args:
        folder: its data folder.
        to_store: they are in a store, but for those of jobs that stay with a data folder.
    """

    folder: str | None = None
    to_store: bool = False

    def binds(self, job: Job) -> str | None:
        """The data folder that a job is bound to by a start here; None where its state goes to the store."""
        return None if self.to_store and not inputs_of(job).stay else self.folder


ANYWHERE = Home()


def home_of(settings: Settings) -> Home:
    """The one of this machine."""
    return Home(folder_id(settings.data), settings.state is not None)


def take(
    session: Session,
    job_id: str,
    generation: int,
    host: str,
    *,
    now_us: int,
    lease_s: float,
    home: Home = ANYWHERE,
) -> Lease:
    """Begin a generation of a job: from now on it is starting, and nobody else may start it.

    Of any number of callers with one generation, one gets it.

    Args:
        generation: the one that is to begin: one more than the job's last.
        host: where its driver will run.
        home: where states are kept there.
    Raises:
        LeaseRefusedError: nobody wants the job to run, the generation was launched before, another one lives, or the
            state is in another folder.
    """
    job = session.scalar(select(Job).where(Job.id == job_id).with_for_update())
    if job is None:
        raise LeaseRefusedError(f"there is no job {job_id}")
    if job.wanted != lifecycle.RUNNING:
        raise LeaseRefusedError(f"job {job_id} is not wanted to run")
    if job.generation != generation - 1:
        raise LeaseRefusedError(f"generation {generation} cannot follow {job.generation}, which was launched already")
    folder = home.binds(job)
    lease = session.scalar(select(Lease).where(Lease.job_id == job_id).with_for_update())
    if lease is not None and not is_free(lease, now_us):
        raise LeaseRefusedError(f"generation {lease.generation} still holds the lease of job {job_id}")
    if lease is not None:
        if (moved := moved_text(lease, job, to_store=folder is None)) is not None:
            raise LeaseRefusedError(f"job {job_id}: {moved}")
        if bound_to(lease, job) not in (None, folder):
            raise LeaseRefusedError(f"the state of job {job_id} is in the data folder of {lease.host}")
    again = lease is not None and job.wanted_since_us <= job.observed_since_us
    job.generation = generation
    if lease is None:
        lease = Lease(job_id=job_id)
        session.add(lease)
    lease.generation = generation
    lease.job_version = version_of(job)
    lease.host, lease.folder, lease.incarnation, lease.ran_in = host, folder, job.incarnation, home.folder
    lease.pid = lease.pid_started = None
    lease.taken_at_us = now_us
    lease.expires_at_us = now_us + round(lease_s * 1e6)
    lease.stop = lease.ended = False
    lease.steps = None
    if not observe(session, job_id, generation, lifecycle.STARTING, now_us=now_us, again=again):
        raise LeaseRefusedError(f"job {job_id} is {job.observed}, and cannot start from there")
    session.flush()
    return lease


def enter(
    session: Session,
    job_id: str,
    generation: int,
    pid: int,
    started: str,
    *,
    home: Home = ANYWHERE,
) -> Job:
    """Say which process holds a lease; the driver itself says so before it does anything else.

    A job that was changed meanwhile is run as it is now, and so is where it is bound to.

    Args:
        started: see `worker.processes.started`.
        home: where states are kept here.
    Returns:
        The job as this generation is to run it.
    Raises:
        LeaseLostError: the lease is over, or another process entered it.
    """
    job = session.scalar(select(Job).where(Job.id == job_id).with_for_update())
    entered = job is not None and _changed(
        session,
        update(Lease)
        .where(Lease.job_id == job_id, Lease.generation == generation, Lease.ended.is_(False))
        .where(or_(Lease.pid.is_(None), (Lease.pid == pid) & (Lease.pid_started == started)))
        .values(
            pid=pid, pid_started=started, job_version=version_of(job), incarnation=job.incarnation,
            folder=home.binds(job), ran_in=home.folder,
        ),
    )  # fmt: skip
    if job is None or not entered:
        raise LeaseLostError(f"generation {generation} of job {job_id} is over, or another process runs it")
    return job


def renew(session: Session, job_id: str, generation: int, *, now_us: int, lease_s: float) -> bool:
    """Hold on to a lease for another `lease_s` from now; also one that ran out, while nobody else took it.

    Returns:
        Whether the driver is asked to stop.
    Raises:
        LeaseLostError: another generation began, or this one was ended.
    """
    expires_at_us = now_us + round(lease_s * 1e6)
    renewed = _changed(
        session,
        update(Lease)
        .where(Lease.job_id == job_id, Lease.generation == generation, Lease.ended.is_(False))
        .values(expires_at_us=expires_at_us),
    )
    if not renewed:
        raise LeaseLostError(f"the lease of generation {generation} of job {job_id} is over")
    return asked_to_stop(session, job_id, generation)


def asked_to_stop(session: Session, job_id: str, generation: int) -> bool:
    """Whether the driver of a generation is asked to stop.

    Raises:
        LeaseLostError: another generation began, or this one was ended.
    """
    stop = session.scalar(
        select(Lease.stop).where(Lease.job_id == job_id, Lease.generation == generation, Lease.ended.is_(False))
    )
    if stop is None:
        raise LeaseLostError(f"the lease of generation {generation} of job {job_id} is over")
    return stop


def ask_to_stop(session: Session, job_id: str, generation: int) -> bool:
    """Ask the driver of a generation to stop after its batch; tell whether it holds the lease."""
    return _changed(
        session,
        update(Lease)
        .where(Lease.job_id == job_id, Lease.generation == generation, Lease.ended.is_(False))
        .values(stop=True),
    )


def end(session: Session, job_id: str, generation: int, *, expires_at_us: int | None = None) -> bool:
    """Give a lease back; tell whether it was held.

    Args:
        expires_at_us: only if it has not been renewed since it said so.
    """
    held = update(Lease).where(Lease.job_id == job_id, Lease.generation == generation, Lease.ended.is_(False))
    if expires_at_us is not None:
        held = held.where(Lease.expires_at_us == expires_at_us)
    return _changed(session, held.values(ended=True))


def expired(lease: Lease, now_us: int) -> bool:
    """Whether it has not been renewed in time."""
    return now_us >= lease.expires_at_us


def is_free(lease: Lease, now_us: int) -> bool:
    """Whether another generation may begin."""
    return lease.ended or expired(lease, now_us)


def bound_to(lease: Lease, job: Job) -> str | None:
    """The data folder where the state is that the job goes on with; None where it has none yet, or one in a store."""
    return lease.folder if lease.incarnation == job.incarnation else None


def adopt(session: Session, folder: str, has_state: Callable[[str, int], bool]) -> None:
    """Bind jobs to this data folder that a version began which knew no others, if their states are in it.

    Args:
        has_state: of a job and its incarnation.
    """
    unbound = select(Lease, Job).join(Job, Job.id == Lease.job_id).where(Lease.incarnation.is_(None))
    for lease, job in session.execute(unbound):
        if has_state(job.id, job.incarnation):
            lease.folder, lease.incarnation = folder, job.incarnation


def moved_text(lease: Lease, job: Job, *, to_store: bool) -> str | None:
    """Why a job cannot go on where states are kept now: its own is not there. None where it can, or has none yet.

    Args:
        to_store: states are in a store now, and else in data folders.
    """
    in_store = lease.folder is None and lease.incarnation is not None  # older versions knew nothing but folders
    if lease.incarnation not in (None, job.incarnation) or in_store == to_store:
        return None
    if in_store and inputs_of(job).stay:
        return (
            "its state is in the store that STREAMJOIN_STATE named, and a job with relations, uploads or pushed rows "
            "keeps it in a data folder; create the job again"
        )
    if in_store:
        return (
            "its state is in the store that STREAMJOIN_STATE named; set it again to go on with it, or create the job "
            "again"
        )
    return (
        f"its state is in the data folder of {lease.host}, and STREAMJOIN_STATE names a store now; leave that out "
        "to go on with it, or create the job again"
    )


def version_of(job: Job) -> int:
    """What rises whenever a driver is to start again: by a change of the job, and by a restart that is asked for."""
    return max(job.version, job.restart_version)


def _changed(session: Session, statement: Any) -> bool:
    return cast("CursorResult[Any]", session.execute(statement)).rowcount == 1
