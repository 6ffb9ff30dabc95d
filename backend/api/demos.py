"""Demos: a live join with one request, for a platform that has no data yet, and gone with another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.api.job_shapes import JobIn, JobOut
from backend.api.jobs import create_job, delete_job, start_job
from backend.api.relations import RelationIn, create_relation, delete_relation
from backend.api.streams import StreamIn, create_stream, delete_stream
from backend.api.uploads import delete_upload, is_as_made, keep_made
from backend.auth.actor import Operator, Viewer, owned
from backend.catalog.models import Job, Relation, Stream
from backend.context import InContext
from backend.demos import DEMOS, Demo
from backend.idempotency import done_once
from backend.problems import Problem

router = APIRouter(prefix="/api/v1/demos", tags=["demos"])


class DemoOut(BaseModel):
    """A demo, and the job that it runs as and whose that is, if somebody started it."""

    name: str
    title: str
    text: str
    query: str
    job_id: str | None
    owner_id: str | None


@router.get("")
def list_demos(context: InContext, actor: Viewer) -> list[DemoOut]:
    """The demos there are."""
    with context.catalog.read() as session:
        jobs = {job.name: job for job in session.scalars(select(Job).where(Job.name.in_(map(_job_name, DEMOS))))}
    return [_shape(name, demo, jobs.get(_job_name(name))) for name, demo in DEMOS.items()]


@router.post("/{name}", status_code=202)
@owned
@done_once
def start_demo(context: InContext, actor: Operator, name: str, response: Response) -> JobOut:
    """Register what a demo joins, create its job, and start it; what is there already is taken as it is."""
    demo = _demo(name)
    there = _registered(context, demo)
    with context.catalog.read() as session:
        job_id = session.scalar(select(Job.id).where(Job.name == _job_name(name)))
    if job_id is not None:  # nothing that it uses can have been removed
        return start_job(context, actor, job_id)
    for stream in demo.streams.keys() - there:
        with _never_mind("name_taken"):  # whoever else starts a demo at this moment makes the same
            create_stream(context, actor, StreamIn(name=stream, spec=demo.streams[stream]), response)
    missing = demo.relations.keys() - there
    for file, made in demo.files.items() if missing else ():
        keep_made(context, actor, file, made)
    for relation in missing:
        with _never_mind("name_taken"):
            create_relation(context, actor, RelationIn(name=relation, spec=demo.relations[relation]), response)
    try:
        with _never_mind("name_taken"):
            create_job(context, actor, JobIn(name=_job_name(name), **demo.job), response)
    except Problem:
        if _registered(context, demo) >= {*demo.streams, *demo.relations}:
            raise
        raise Problem("conflict.demo_removed", f"somebody removed {name} while it started; start it again") from None
    return start_job(context, actor, _job_name(name))


@router.delete("/{name}", status_code=204)
@owned
def remove_demo(context: InContext, actor: Operator, name: str) -> None:
    """Delete a demo's job, and what it brought; what was changed, is used elsewhere or is somebody else's stays."""
    demo = _demo(name)
    with context.catalog.read() as session:
        job_id = session.scalar(select(Job.id).where(Job.name == _job_name(name)))
        streams = _as_brought(session, Stream, demo.streams)
        relations = _as_brought(session, Relation, demo.relations)
    files = []
    for file, made in demo.files.items():
        with _never_mind("not_owner"):
            if is_as_made(context, actor, file, made):
                files.append(file)
    if job_id is not None:
        delete_job(context, actor, job_id)
    for remove, names in ((delete_stream, streams), (delete_relation, relations), (delete_upload, files)):
        for one in names:
            with _never_mind("in_use", "not_owner", "unknown_name", "no_upload"):
                remove(context, actor, one)


def _shape(name: str, demo: Demo, job: Job | None) -> DemoOut:
    job_id, owner_id = (None, None) if job is None else (job.id, job.owner_id)
    return DemoOut(
        name=name, title=demo.title, text=demo.text, query=demo.job["query"], job_id=job_id, owner_id=owner_id
    )


def _registered(context: InContext, demo: Demo) -> set[str]:
    """Which of a demo's streams and relations there are."""
    with context.catalog.read() as session:
        return {
            known
            for table, names in ((Stream, demo.streams), (Relation, demo.relations))
            for known in session.scalars(select(table.name).where(table.name.in_(names)))
        }


def _demo(name: str) -> Demo:
    demo = DEMOS.get(name)
    if demo is None:
        raise Problem("not_found.no_demo", f'there is no demo "{name[:100]}"; demos are {", ".join(DEMOS)}')
    return demo


def _as_brought(session: Session, table: type[Stream] | type[Relation], brought: Mapping[str, Any]) -> list[str]:
    """Those of the names whose entries are still what the demo made them."""
    found = session.scalars(select(table).where(table.name.in_(brought)))
    return [row.name for row in found if row.spec == brought[row.name]]


@contextmanager
def _never_mind(*subcodes: str) -> Iterator[None]:
    """Go on after these problems."""
    try:
        yield
    except Problem as problem:
        if problem.subcode not in subcodes:
            raise


def _job_name(demo: str) -> str:
    return f"demo {demo}"
