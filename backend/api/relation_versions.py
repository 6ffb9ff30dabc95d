"""Versions of registered relations in the jobs that join them, and reading them anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import defer

from backend.api.registered import RELATIONS
from backend.api.shapes import iso
from backend.auth.actor import Operator, Viewer, may_change, owned
from backend.catalog import lifecycle
from backend.catalog.entries import names_in
from backend.catalog.events import record
from backend.catalog.ids import now_us
from backend.catalog.machines import folder_id
from backend.catalog.models import Job, Lease
from backend.context import Context, InContext
from backend.jobs import service
from backend.problems import Problem
from streamjoin.errors import StateError
from streamjoin.relations.history import History, versions_known
from streamjoin.spec.job import tables_folder

router = APIRouter(prefix="/api/v1", tags=["relations"])


class RelationVersion(BaseModel):
    """One version of a relation in one job.

    Args:
        rows, bad: what was read, and records that could not be.
        bytes: as it is kept, with the columns that the job's query reads.
        used_at: when a batch first joined it, and which; null before.
        state: next, in use, kept for batches that may be repeated, or removed.
    """

    version: int
    rows: int
    bad: int
    bytes: int
    read_at: str | None
    used_at: str | None
    batch: int | None
    state: Literal["next", "in use", "kept", "removed"]


class RelationInJob(BaseModel):
    """What one job has of one relation.

    Args:
        refreshes, refresh_failures: looks while the job ran that found a new version, and that failed.
        problem: why the last look failed; null where it did not.
        looked_at: when that was.
        reading_version, reading_rows: the version that is being read just now, and how many rows were; null where none
            is.
        versions: newest first.
    """

    relation: str
    job_id: str
    job: str
    phase: str
    refresh: str | None
    refreshes: int
    refresh_failures: int
    problem: str | None
    looked_at: str | None
    reading_version: int | None
    reading_rows: int | None
    versions: list[RelationVersion]


class RelationsInJobs(BaseModel):
    """Relations as jobs have them."""

    data: list[RelationInJob]


class Asked(BaseModel):
    """The running jobs that were told to look for a new version."""

    jobs: list[str]


@router.get("/relations/{id}/versions")
def list_relation_versions(context: InContext, actor: Viewer, id: str) -> RelationsInJobs:
    """A relation's versions in each job that joins it: every job reads it for itself."""
    name = RELATIONS.get(context, id).name
    users = _users(context, name)
    elsewhere = _elsewhere(context, users)
    return RelationsInJobs(data=[_in_job(context, job, name, elsewhere.get(job.id)) for job in users])


@router.get("/jobs/{id}/relations")
def list_job_relations(context: InContext, actor: Viewer, id: str) -> RelationsInJobs:
    """The relations that a job joins, with their versions."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
    host = _elsewhere(context, [job]).get(job.id)
    return RelationsInJobs(data=[_in_job(context, job, name, host) for name in sorted(job.relations)])


@router.post("/relations/{id}/refresh")
@owned
def refresh_relation(context: InContext, actor: Operator, id: str) -> Asked:
    """Have the running jobs that join a relation look for a new version now, whatever its `refresh` says.

    Everybody's jobs do, so only the relation's owner or an admin may ask. They go on with the version that they have
    until the new one is whole.
    """
    relation = RELATIONS.get(context, id)
    may_change(actor, relation.owner_id)
    asked = []
    users = [job for job in _users(context, relation.name) if job.wanted == lifecycle.RUNNING]
    elsewhere = _elsewhere(context, users)
    if users and len(elsewhere) == len(users):
        named = ", ".join(sorted(set(elsewhere.values()))[:5])
        raise Problem("conflict", f"the jobs that join it run on {named}, {_ASK}")
    for job in users:
        if (history := _history(context, job, relation.name)).folder.is_dir():
            history.ask()
            asked.append(job)
    with context.catalog.begin() as session:
        for job in asked:
            record(session, "relation.refresh_asked", f"{job.name} is to look for a new version of {relation.name}",
                   job_id=job.id, actor_id=actor.id)  # fmt: skip
    return Asked(jobs=[job.name for job in asked])


def _users(context: Context, relation: str) -> list[Job]:
    with context.catalog.read() as session:
        there = select(Job.id, names_in(Job.relations)).where(Job.wanted != lifecycle.DELETED)
        ids = [id for id, names in session.execute(there) if relation in names]
        users = select(Job).options(defer(Job.streams)).where(Job.id.in_(ids)).order_by(Job.id.desc())
        return list(session.scalars(users))


_ASK = "where versions of relations are in a data folder that this API has not got; ask one that has it"


def _elsewhere(context: Context, jobs: Sequence[Job]) -> dict[str, str]:
    """The machines in whose data folders the versions of jobs are, by job; without those that have them here."""
    here = folder_id(context.settings.data)
    chosen = select(Lease.job_id, Lease.host).where(
        Lease.job_id.in_([job.id for job in jobs]), Lease.folder.is_not(None), Lease.folder != here
    )
    with context.catalog.read() as session:
        return {row.job_id: row.host for row in session.execute(chosen)}


def _history(context: Context, job: Job, relation: str) -> History:
    return History(tables_folder(context.settings.checkpoint_folder(job.id, job.incarnation)), relation)


def _in_job(context: Context, job: Job, relation: str, host: str | None) -> RelationInJob:
    history = _history(context, job, relation)
    look = history.look()
    try:
        known = versions_known(history.folder.parent, relation)
    except StateError:  # paths of the host are nothing for clients
        raise Problem(
            "unavailable", f"what {job.name} keeps of relation {relation} is damaged; its log says where"
        ) from None
    if host is not None:
        look = replace(look, problem=f"the job is on {host}, {_ASK}")
    reading = history.reading(now_us())
    return RelationInJob(
        relation=relation, job_id=job.id, job=job.name, phase=job.phase,
        refresh=job.relations[relation].get("refresh"), refreshes=look.refreshes, refresh_failures=look.failures,
        problem=look.problem, looked_at=iso(look.looked_us), versions=[_version(one) for one in known],
        reading_version=reading and reading.version, reading_rows=reading and reading.rows,
    )  # fmt: skip


def _version(known: dict[str, Any]) -> RelationVersion:
    return RelationVersion(
        **{name: known[name] for name in ("version", "rows", "bad", "bytes", "batch", "state")},
        read_at=iso(known["read_us"]), used_at=iso(known["used_us"]),
    )  # fmt: skip
