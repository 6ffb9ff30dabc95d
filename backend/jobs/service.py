"""Jobs as the API changes them: what is checked, and what is written in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Text, cast, delete, func, select
from sqlalchemy.orm import Session

from backend.catalog import lifecycle
from backend.catalog.events import record
from backend.catalog.ids import now_us
from backend.catalog.jobspec import JobSpec
from backend.catalog.models import Job, JobRevision, Registered, Relation, Stream
from backend.jobs.change import Change, diff
from backend.jobs.inputs import Inputs, inputs_of
from backend.jobs.joinfile import (
    bound_apart,
    check_fits,
    check_places,
    check_store,
    draft_file,
    first_store,
    join_file,
    with_store_for,
)
from backend.jobs.limits import check_limits
from backend.jobs.secrets import Secrets
from backend.lookup import by_id_or_name
from backend.problems import Place, Problem, from_engine
from backend.settings import Settings
from streamjoin.errors import StreamJoinError, UnsupportedError
from streamjoin.operators import registry
from streamjoin.spec.prepare import Bound

REVISIONS_BYTES_MAX = 4 << 20
"""Of all earlier versions of a job together. The newest is kept however large it is."""


def find_job(session: Session, id_or_name: str, *, held: bool = False) -> Job:
    """A job by its id or name.

    Args:
        held: see `by_id_or_name`.
    Raises:
        Problem: there is none.
    """
    return by_id_or_name(session, Job, id_or_name, "job", held=held)


def entries(session: Session, named: Mapping[str, str], given: Sequence[str] | None, *, held: bool = False) -> Inputs:
    """The entries of the streams and relations of a job's queries, as they are registered now.

    Args:
        named: what the queries name; see `reading.names_of`.
        given: names of streams; None for those that the queries name.
        held: nobody changes or removes them until this transaction, which may write, ends.
    Raises:
        Problem: a stream is not registered.
    """
    relations = _registered(session, Relation, named, held)
    wanted = list(given) if given is not None else [name for name in named if name.lower() not in relations]
    streams = _registered(session, Stream, wanted, held)
    for name in wanted:
        if name.lower() not in streams:
            others = session.scalars(select(Stream.name).order_by(Stream.name).limit(20)).all()
            there = f"; there are {', '.join(others)}" if others else "; none is registered yet"
            detail = f'there is no stream "{name[:100]}"{there}'
            place = Place(
                pointer="/streams" if given is not None else f"/{named[name].replace('.', '/')}", detail=detail
            )
            raise Problem("invalid.unknown_stream", detail, errors=[place])
    return Inputs({streams[name.lower()].name: streams[name.lower()].spec for name in wanted},
                  {row.name: row.spec for row in relations.values()})  # fmt: skip


Row = TypeVar("Row", bound=Registered)


def _registered(session: Session, table: type[Row], names: Iterable[str], held: bool) -> dict[str, Row]:
    """Those of the names that there are, by their names in small letters."""
    found = select(table).where(func.lower(table.name).in_([name.lower() for name in names])).order_by(table.name)
    rows = session.scalars(found.with_for_update(read=True) if held else found)
    return {row.name.lower(): row for row in rows}


def definition(spec: JobSpec, inputs: Inputs) -> dict[str, Any]:
    """What `diff` compares."""
    return {
        **spec.to_json(),
        "streams": dict(inputs.streams),
        "relations": dict(inputs.relations),
    }


def bound_draft(settings: Settings, spec: JobSpec, inputs: Inputs, secrets: Secrets) -> Bound:
    """Bind a job that need not exist.

    Args:
        secrets: see `inputs.secrets_of`.
    Raises:
        InputError: it is wrong; the message names the place.
        Problem: a stream or relation is where none may be read.
    Cost: opens the first file of file streams.
    """
    check_places(settings, inputs, secrets)
    check_store(settings, spec)
    file = draft_file(settings, spec, inputs, secrets)
    check_limits(settings, file.slots, file.run.driver_memory)
    return bound_apart(file)


def bound_job(settings: Settings, job: Job, secrets: Secrets, *, elsewhere: bool = False) -> Bound:
    """Bind a job as a driver will, its results included.

    Args:
        secrets: see `inputs.secrets_of`.
        elsewhere: what it has joined so far is in another data folder, and a driver there compares it with that.
    Raises:
        InputError: it is wrong; the message names the place.
        OtherJoinError: another join began its checkpoint.
        Problem: a stream or relation is where none may be read.
    """
    check_places(settings, inputs_of(job), secrets)
    check_store(settings, job.spec)
    file = join_file(settings, job, secrets)
    check_limits(settings, file.slots, file.run.driver_memory)
    bound = bound_apart(file, elsewhere=elsewhere)
    if registry.is_sparks(bound.operator):
        raise UnsupportedError(
            "Spark's own join keeps no results in a store; take another operator, or compare it on the command line",
            field="operator.name",
        )
    if not elsewhere:
        check_fits(bound)
    return bound


def spec_of_new(settings: Settings, job: Job, secrets: Secrets) -> JobSpec:
    """Bind a job that is to be created, once, and name the store of its results.

    Args:
        job: its spec is changed, too.
        secrets: see `inputs.secrets_of`.
    Raises:
        InputError, Problem: as `bound_job` does.
    """
    store, is_open = first_store(settings, job.spec)
    job.spec = job.spec.with_store(store)
    bound = bound_job(settings, job, secrets)
    return with_store_for(settings, job.spec, bound) if is_open else job.spec


def check_job(settings: Settings, job: Job, secrets: Secrets, *, elsewhere: bool = False) -> None:
    """Refuse a job that `bound_job` refuses; it gives nothing, so that it can be called in a process apart.

    Raises:
        InputError, Problem: as `bound_job` does.
    """
    bound_job(settings, job, secrets, elsewhere=elsewhere)


def diagnose(error: StreamJoinError | Problem) -> list[Place]:
    """A mistake as diagnostics for an editor."""
    if isinstance(error, Problem):
        return error.errors or [Place(detail=error.detail)]
    return from_engine(error).errors or [Place(detail=str(error))]


def check_stays(job: Job) -> None:
    """Refuse to do anything with a job that is on its way out.

    Raises:
        Problem: it is being deleted.
    """
    if job.wanted == lifecycle.DELETED:
        raise Problem(
            "conflict.being_deleted",
            f"job {job.name} is being deleted, and comes back no more; create another job once it is gone",
        )


def want(session: Session, job: Job, wanted: str, actor_id: str | None) -> None:
    """People want a job to run, to stop or to go; whoever reconciles sees to it.

    Raises:
        Problem: the job is being deleted.
    """
    check_stays(job)
    if wanted == lifecycle.RUNNING:
        job.failures = 0
        if job.observed == lifecycle.FAILED:
            job.reason = None
    if job.wanted != wanted:
        job.wanted, job.wanted_since_us = wanted, now_us()
        verb = {lifecycle.RUNNING: "started", lifecycle.STOPPED: "stopped", lifecycle.DELETED: "deleted"}[wanted]
        record(session, f"job.{verb}_by_user", f"job {job.name} is to be {verb}", job_id=job.id, actor_id=actor_id)


def ask_restart(job: Job) -> None:
    """Let a running job start again after its batch. Its version is that of its definition, and stays as it is."""
    job.restart_version = max(job.version, job.restart_version) + 1


def change(
    session: Session, job: Job, spec: JobSpec, inputs: Inputs, *, anew: bool,
    actor_id: str | None, kept: int,
) -> list[Change]:  # fmt: skip
    """Give a job another definition, as a new version; a running job restarts with it at a batch boundary.

    Args:
        kept: so many earlier versions at most, the newest of them.
    Raises:
        Problem: the job is being deleted.
    """
    check_stays(job)
    changes = diff(definition(job.spec, inputs_of(job)), definition(spec, inputs))
    session.add(JobRevision(
        job_id=job.id, version=job.version, spec=job.spec,
        streams=None if inputs.streams == job.streams else job.streams,
        relations=None if inputs.relations == job.relations else job.relations,
    ))  # fmt: skip
    _forget_old(session, job, kept)
    job.spec, job.streams, job.relations = spec, dict(inputs.streams), dict(inputs.relations)
    ask_restart(job)
    job.version += 1
    job.updated_at_us = now_us()
    job.failures = 0
    if anew:
        job.incarnation += 1
    fields = ", ".join(item.field for item in changes[:10]) or ("it begins anew" if anew else "nothing")
    record(session, "job.changed", f"job {job.name} was changed: {fields}", job_id=job.id, actor_id=actor_id,
           data={"version": job.version, "starts_anew": anew})  # fmt: skip
    return changes


def _forget_old(session: Session, job: Job, kept: int) -> None:
    """Drop the oldest of a job's earlier versions if there are too many, or if they take too many bytes.

    Cost: the catalog reads all kept versions of the job.
    """
    columns = (JobRevision.spec, JobRevision.streams, JobRevision.relations)
    spec, streams, relations = (func.length(cast(column, Text)) for column in columns)
    newest = select(JobRevision.version, spec + streams + relations).where(JobRevision.job_id == job.id)
    total, too_old = 0, job.version - kept
    for version, taken in session.execute(newest.order_by(JobRevision.version.desc()).limit(kept)):
        total += taken
        if total > REVISIONS_BYTES_MAX and version < job.version:
            too_old = max(too_old, version)
            break
    session.execute(delete(JobRevision).where(JobRevision.job_id == job.id, JobRevision.version <= too_old))
