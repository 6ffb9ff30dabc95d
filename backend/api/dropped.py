"""What a job loses where it begins anew, told before anybody agrees to it."""

from __future__ import annotations

from pydantic import BaseModel
from sqlalchemy import func, select

from backend.api.shapes import iso
from backend.catalog.models import Job, Report
from backend.context import Context
from backend.problems import Problem
from backend.results.service import service_of
from streamjoin.errors import StreamJoinError


class Dropped(BaseModel):
    """What a job that begins anew leaves behind.

    Args:
        state_at: the start of the last batch that its state has, or of the last one that its driver told of where the
            store of its results does not answer; null where it had none.
        results: how many rows it has found so far; they stay in the store, but are no longer the job's. Null where
            nobody can tell.
        could_go_on: whether the job could go on with the state as it is, so that nothing but the wish drops it; null
            where the state is on a machine that this API cannot look at.
    """

    state_at: str | None
    results: int | None
    could_go_on: bool | None


def dropped_by(context: Context, job: Job, *, could_go_on: bool | None) -> Dropped | None:
    """What a job would lose now; None where it has never run.

    Cost: a read of the store of its results, which may not answer for some seconds.
    """
    if job.generation == 0:
        return None
    service = service_of(context)
    try:
        with service.readers.lent(service.places.find(job.id)) as opened:
            head = opened.durable.refresh()
        return Dropped(state_at=iso(head.clock_us or None), results=head.rows, could_go_on=could_go_on)
    except (Problem, StreamJoinError):  # it has no results yet, or their store is away
        with context.catalog.read() as session:
            told_us = session.scalar(select(func.max(Report.at_us)).where(Report.job_id == job.id))
        return Dropped(state_at=iso(told_us), results=None, could_go_on=could_go_on)
