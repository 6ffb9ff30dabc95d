"""Demos: a live join with one request, from generators, for a platform that has no data yet."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import BaseModel
from sqlalchemy import select

from backend.api.job_shapes import JobIn, JobOut
from backend.api.jobs import create_job, start_job
from backend.api.streams import StreamIn, create_stream
from backend.auth.actor import Operator, Viewer, owned
from backend.catalog.models import Job, Stream
from backend.context import InContext
from backend.demos import DEMOS
from backend.idempotency import done_once
from backend.problems import Problem

router = APIRouter(prefix="/api/v1/demos", tags=["demos"])


class DemoOut(BaseModel):
    """A demo, and the job it is running as, if somebody started it."""

    name: str
    title: str
    text: str
    query: str
    job_id: str | None


@router.get("")
def list_demos(context: InContext, actor: Viewer) -> list[DemoOut]:
    """The demos there are."""
    with context.catalog.read() as session:
        jobs = {job.name: job.id for job in session.scalars(select(Job).where(Job.name.in_(map(_job_name, DEMOS))))}
    return [
        DemoOut(name=name, title=demo.title, text=demo.text, query=demo.job["query"], job_id=jobs.get(_job_name(name)))
        for name, demo in DEMOS.items()
    ]


@router.post("/{name}", status_code=202)
@owned
@done_once
def start_demo(context: InContext, actor: Operator, name: str, response: Response) -> JobOut:
    """Register a demo's streams, create its job, and start it; what is there already is taken as it is."""
    demo = DEMOS.get(name)
    if demo is None:
        raise Problem("not_found.no_demo", f'there is no demo "{name[:100]}"; demos are {", ".join(DEMOS)}')
    with context.catalog.read() as session:
        streams = set(session.scalars(select(Stream.name)))
        job_id = session.scalar(select(Job.id).where(Job.name == _job_name(name)))
    for stream, spec in demo.streams.items():
        if stream not in streams:
            create_stream(context, actor, StreamIn(name=stream, spec=spec), response)
    if job_id is None:
        job_id = create_job(context, actor, JobIn(name=_job_name(name), **demo.job), response).id
    return start_job(context, actor, job_id)


def _job_name(demo: str) -> str:
    return f"demo {demo}"
