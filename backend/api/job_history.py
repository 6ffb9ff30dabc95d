"""What a job did: earlier versions, events, figures and logs."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse
from sqlalchemy import select
from sqlalchemy.orm import load_only

from backend.api.events import EventOut, event_shape
from backend.api.figures import Figures, Metrics, Point
from backend.api.filters import OfKind, Since, of_kind
from backend.api.job_shapes import Revision
from backend.api.shapes import LIMIT_MAX, Limit, Page, StartingAfter, iso, link_next, page_of
from backend.auth.actor import Operator, Viewer, may_change, owned
from backend.catalog.ids import now_us
from backend.catalog.models import Event, JobRevision, Lease, Report
from backend.context import InContext
from backend.jobs import service

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

REPORTS_MAX = 3000
"""A day has 2,580, thinned out as they age."""
VERSION_MAX = 2**31 - 1
"""The most that the catalog's column takes."""
LOG_BYTES_MAX = 256 << 10


@router.get("/{id}/revisions")
def list_revisions(
    context: InContext, actor: Viewer, id: str, request: Request, response: Response, limit: Limit = LIMIT_MAX,
    starting_after: Annotated[
        int | None, Query(ge=1, le=VERSION_MAX, description="The last version of the page before.")
    ] = None,
) -> Page[Revision]:  # fmt: skip
    """Earlier versions of a job, newest first."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        shown = load_only(JobRevision.version, JobRevision.spec, JobRevision.created_at_us)
        earlier = select(JobRevision).options(shown).where(JobRevision.job_id == job.id)
        if starting_after is not None:
            earlier = earlier.where(JobRevision.version < starting_after)
        rows = session.scalars(earlier.order_by(JobRevision.version.desc()).limit(limit + 1)).all()
    page = Page[Revision](
        data=[
            Revision(
                version=row.version, query=row.spec.query, queries=row.spec.queries,
                operator=row.spec.operator,
                results=row.spec.results, run=row.spec.run, until=iso(row.created_at_us),
            )
            for row in rows[:limit]
        ],
        has_more=len(rows) > limit,
    )  # fmt: skip
    link_next(request, response, page.has_more, [str(revision.version) for revision in page.data])
    return page


@router.get("/{id}/events")
def list_job_events(
    context: InContext, actor: Viewer, id: str, request: Request, response: Response, limit: Limit = 50,
    starting_after: StartingAfter = None, kind: OfKind = None, since: Since = None,
) -> Page[EventOut]:  # fmt: skip
    """What happened to a job, newest first."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        rows = of_kind(select(Event).where(Event.job_id == job.id), kind, since)
        page = page_of(session, rows, Event.id, limit, starting_after, partial(event_shape, actor))
    link_next(request, response, page.has_more, [event.id for event in page.data])
    return page


@router.get("/{id}/metrics")
def get_job_metrics(
    context: InContext, actor: Viewer, id: str,
    minutes: Annotated[float, Query(gt=0, le=24 * 60, description="How far back.")] = 5.0,
    units: Annotated[Literal["all", "newest"], Query(description="Which reports come with their units.")] = "all",
) -> Metrics:  # fmt: skip
    """What the job's drivers reported, for charts."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        rows = session.scalars(
            select(Report).where(Report.job_id == job.id, Report.at_us >= now_us() - int(minutes * 60e6))
            .order_by(Report.at_us.desc()).limit(REPORTS_MAX)
        ).all()  # fmt: skip
    points = [
        Point(
            at=iso(row.at_us), span_s=row.span_s, generation=row.generation,
            figures=Figures(**(row.body if units == "all" or place == 0 else {**row.body, "units": []})),
        )
        for place, row in enumerate(rows)
    ][::-1]  # fmt: skip
    return Metrics(points=points)


@router.get("/{id}/logs", response_class=PlainTextResponse)
@owned
def get_job_logs(
    context: InContext, actor: Operator, id: str, which: Annotated[Literal["driver", "spark"], Query()] = "driver"
) -> PlainTextResponse:
    """The end of a log of the job, of what this machine has; without places outside of the job's folder."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        lease = session.get(Lease, job.id)
    may_change(actor, job.owner_id)
    settings = context.settings
    path = (settings.job_folder(job.id) / "driver.log" if which == "driver"
            else settings.checkpoint_folder(job.id, job.incarnation) / "spark.log")  # fmt: skip
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(file.tell() - LOG_BYTES_MAX, 0))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        text = ""
    text = text.replace(str(settings.data.absolute()), ".")
    if lease is not None and lease.host != settings.machine and (not text or settings.state is not None):
        text = f"The job ran last on {lease.host}, and its newest log is there. What this machine has follows.\n{text}"
    return PlainTextResponse(text)
