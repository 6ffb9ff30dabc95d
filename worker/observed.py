"""The one place where what is seen of a job is written down."""

from __future__ import annotations

from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.catalog import lifecycle
from backend.catalog.events import record
from backend.catalog.models import Job

_SEVERITY: Final = {lifecycle.FAILED: "error", lifecycle.UNKNOWN: "warning"}


def observe(
    session: Session,
    job_id: str,
    generation: int,
    after: str,
    *,
    now_us: int,
    reason: str | None = None,
    own_fault: bool = False,
    again: bool = False,
) -> bool:
    """A generation of a job was seen to be something; an event tells of it.

    Nothing is written for a generation that is not the job's last, nor for a move that the life cycle does not have.

    Args:
        reason: one sentence; for a failure its first cause, for a start what takes so long, for a job that runs where
            its tasks do, or what it waits for.
        own_fault: the failure is a mistake in the job itself, such as a query that its streams do not fit.
        again: it is starting because it should have been running all the time.
    Returns:
        Whether it is now seen so.
    """
    job = session.scalar(select(Job).where(Job.id == job_id).with_for_update())
    if job is None or job.generation != generation or not lifecycle.may_follow(job.observed, after):
        return False
    if job.observed == after:
        if after in (lifecycle.STARTING, lifecycle.RUNNING) and reason:
            job.reason = reason
        return True
    job.observed, job.observed_since_us = after, now_us
    kind, message = f"job.{after}", f"generation {generation} is {after}"
    match after:
        case lifecycle.STARTING:
            if again:
                kind, message = "job.restarted", f"generation {generation} takes over"
            else:
                job.reason = None
        case lifecycle.FAILED:
            message = f"generation {generation} failed"
            job.failures += 1
            given_up = own_fault and job.failures >= lifecycle.GIVE_UP_FAILURES
            job.reason = (reason or "nobody knows why") + (lifecycle.GIVEN_UP if given_up else "")
        case _:
            job.reason = reason
    if reason:
        message = f"{message}: {reason}"
    record(
        session, kind, message, job_id=job_id, severity=_SEVERITY.get(after, "info"),
        data={"generation": generation, "version": job.version, "failures": job.failures},
    )  # fmt: skip
    return True
