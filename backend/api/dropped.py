"""What a job loses where it begins anew, told before anybody agrees to it."""

from __future__ import annotations

from pydantic import BaseModel
from sqlalchemy import func, select

from backend.api.shapes import iso
from backend.catalog.models import Event, Job, Report
from backend.context import Context
from backend.problems import Problem
from backend.results.service import service_of
from backend.results.trouble import NoResults
from streamjoin.errors import StreamJoinError


class Dropped(BaseModel):
    """What a job that begins anew leaves behind.

    Args:
        state_at: the start of the last batch that its state has, or of the last one that its driver told of where the
            store of its results does not answer; null where it has had none since it last began anew.
        results: how many rows all its queries have found so far; they stay in the store, but are no longer the job's.
            Null where nobody can tell.
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
    names = (job.id, *(f"{job.id}:{query}" for query in job.queries[1:]))
    try:
        clocks_us, rows = zip(*(_found(context, name) for name in names), strict=True)
    except (Problem, StreamJoinError):  # their store is away
        return Dropped(state_at=iso(_told_us(context, job)), results=None, could_go_on=could_go_on)
    state_us = max(clocks_us) or _told_us(context, job)
    return Dropped(state_at=iso(state_us), results=sum(rows), could_go_on=could_go_on)


def _found(context: Context, name: str) -> tuple[int, int]:
    """When the last batch with results of a query began, 0 where there was none, and how many there are."""
    service = service_of(context)
    try:
        with service.readers.lent(service.places.find(name)) as opened:
            opened.describe()
            head = opened.durable.refresh()
    except NoResults:
        return 0, 0
    return head.clock_us, head.rows


def _told_us(context: Context, job: Job) -> int | None:
    """Of which moment a driver told last, since the job last began anew."""
    with context.catalog.read() as session:
        began = select(Event.at_us, Event.data).where(Event.job_id == job.id, Event.kind == "job.changed")
        begun_us = max((at_us for at_us, data in session.execute(began) if data.get("starts_anew")), default=0)
        told = select(func.max(Report.at_us)).where(Report.job_id == job.id, Report.at_us >= begun_us)
        return session.scalar(told)
