"""Jobs: create one, start and stop it, change it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter, Request, Response
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.api.dropped import dropped_by
from backend.api.filters import OfPhase, Owner, Since, in_phase, narrowed
from backend.api.job_shapes import (
    NAME_MAX,
    Diff,
    JobChange,
    JobIn,
    JobOut,
    Ran,
    Rescale,
    change_shape,
    job_shape,
    ran,
    read_by,
    spec_of,
)
from backend.api.room import check_room
from backend.api.shapes import (
    TRIES,
    IfMatch,
    Limit,
    Page,
    StartingAfter,
    changes_always,
    check_version,
    check_version_if_given,
    etag,
    link_next,
    page_of,
)
from backend.auth.actor import Actor, Operator, Viewer, may_change, owned
from backend.catalog import lifecycle
from backend.catalog.entries import WITHOUT_ENTRIES
from backend.catalog.events import record
from backend.catalog.ids import new_id, now_us
from backend.catalog.jobspec import SECTIONS, JobSpec
from backend.catalog.models import Job
from backend.context import Context, InContext
from backend.idempotency import done_once
from backend.jobs import service
from backend.jobs.change import Change, all_anew, diff, queries_anew, starts_anew
from backend.jobs.elsewhere import host_elsewhere
from backend.jobs.inputs import Inputs, check_sent, inputs_of
from backend.jobs.joinfile import check_spec
from backend.jobs.limits import check_limits, within_share
from backend.jobs.reading import names_of, where_it_fits
from backend.jobs.secrets import secrets_of
from backend.jobs.texts import check_texts
from backend.problems import Place, Problem
from streamjoin.errors import OtherJoinError, QueriesStayError, StreamJoinError

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._ -]{{0,{NAME_MAX - 1}}}")


@router.get("")
def list_jobs(
    context: InContext, actor: Viewer, request: Request, response: Response, limit: Limit = 50,
    starting_after: StartingAfter = None, phase: OfPhase = None, owner: Owner = None, since: Since = None,
) -> Page[JobOut]:  # fmt: skip
    """All jobs, newest first."""
    rows = in_phase(narrowed(select(Job).options(*WITHOUT_ENTRIES), Job, actor, owner, since), phase)
    with context.catalog.read() as session:
        page = page_of(session, rows, Job.id, limit, starting_after, lambda job: job)
        known, read = ran(session, page.data), read_by(session, page.data)
    shown: Page[JobOut] = Page(data=[job_shape(job, known, read[job.id]) for job in page.data], has_more=page.has_more)
    link_next(request, response, shown.has_more, [item.id for item in shown.data])
    return shown


@router.post("", status_code=201)
@done_once
def create_job(context: InContext, actor: Operator, body: JobIn, response: Response) -> JobOut:
    """Create a job. Its query is bound to its streams first, so what is wrong shows now."""
    if not _NAME.fullmatch(body.name):
        detail = f"a name has up to {NAME_MAX} of a-z, A-Z, 0-9, blank, ., _ and -, and begins with a letter or digit"
        raise Problem("invalid.bad_name", f"name: {detail}", errors=[Place(pointer="/name", detail=detail)])
    for _ in range(TRIES):
        job = _created(context, actor, body)
        if job is not None:
            response.headers["Location"] = f"/api/v1/jobs/{job.id}"
            response.headers["ETag"] = etag(job)
            return job_shape(job, Ran({}, {}))
    detail = "what its query reads is changed again and again meanwhile; create the job once others are done"
    raise Problem("conflict.inputs_differ", detail)


def _created(context: Context, actor: Actor, body: JobIn) -> Job | None:
    """Create a job over what is registered; None where that was changed since, so that it has to be looked at anew."""
    spec = spec_of(body)
    named = names_of(actor.id, spec)
    with context.catalog.read() as session:
        inputs = service.entries(session, named, body.streams)
        check_sent(session, context.settings, inputs)
        secrets = secrets_of(context.settings, session, inputs)
        check_room(context.settings, session, Job, actor)  # before its query is bound
    at_us = now_us()
    job = Job(
        id=new_id("job"), name=body.name, owner_id=actor.id, version=1, spec=spec,
        streams=inputs.streams, relations=inputs.relations,
        wanted=lifecycle.STOPPED, wanted_since_us=at_us, observed=lifecycle.STOPPED, observed_since_us=at_us,
        generation=0, failures=0, restart_version=0, incarnation=0, created_at_us=at_us, updated_at_us=at_us,
    )  # fmt: skip
    job.spec = where_it_fits(actor.id, spec, service.spec_of_new, context.settings, job, secrets)
    try:
        with context.catalog.begin() as session:
            # Whoever removes one of them meanwhile sees this job, or this sees that it is gone.
            if service.entries(session, named, body.streams, held=True) != inputs:
                return None
            check_room(context.settings, session, Job, actor, held=True)
            session.add(job)
            session.flush()
            record(session, "job.created", f"job {body.name} was created", job_id=job.id, actor_id=actor.id)
            if body.start:
                with within_share(context.settings, session, job):
                    service.want(session, job, lifecycle.RUNNING, actor.id)
    except IntegrityError:
        raise Problem(
            "conflict.name_taken", f'there is a job "{body.name}" already; change it, or take another name'
        ) from None
    return job


@router.get("/{id}")
def get_job(context: InContext, actor: Viewer, id: str, response: Response) -> JobOut:
    """One job, by id or name."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        known = ran(session, [job])
    response.headers["ETag"] = etag(job)
    return job_shape(job, known)


@router.post("/{id}/diff")
def diff_job(context: InContext, actor: Viewer, id: str, body: JobChange) -> Diff:
    """Show what a change would do, without doing it; one that would be refused is refused here too."""
    found = _changed(context, actor, id, body)
    drops = dropped_by(context, found.job, could_go_on=found.could_go_on()) if found.anew else None
    return Diff(changes=[change_shape(item) for item in found.changes], starts_anew=found.anew, drops=drops)


@router.patch("/{id}")
@owned
def change_job(
    context: InContext, actor: Operator, id: str, body: JobChange, response: Response, if_match: IfMatch = None
) -> JobOut:
    """Change a job. A running one restarts with the change at a batch boundary.

    A change that does not fit the state joined so far needs `start_anew`. Where that state is in a data folder that
    this API does not see, the job's driver compares it, and the job fails where it does not fit.
    """
    for _ in range(TRIES):
        # Outside of a transaction that writes: it opens files.
        found = _changed(context, actor, id, body)
        shown = _change_seen(context, actor, found, body, if_match)
        if shown is not None:
            response.headers["ETag"] = etag(shown)
            return shown
    raise changes_always(found.job, f"job {found.job.name}")


@dataclass(frozen=True, slots=True)
class _Changed:
    """A job as it was seen, what it is to be, and what differs.

    Args:
        named: what its queries name, where the change may let it read something else.
        anew: whether it begins without its state then, if it has any.
        could_go_on: looks whether its state would do; None where nobody can look at it from here.
    """

    job: Job
    spec: JobSpec
    named: Mapping[str, str]
    inputs: Inputs
    changes: list[Change]
    anew: bool
    could_go_on: Callable[[], bool | None]


def _change_seen(
    context: Context, actor: Actor, found: _Changed, body: JobChange, if_match: str | None
) -> JobOut | None:
    """Change a job as it was seen; None where it, or what it is to read, was changed since: then all is made anew."""
    with context.catalog.begin() as session:
        job = service.find_job(session, found.job.id, held=True)
        may_change(actor, job.owner_id)
        check_version(if_match, job, f"job {job.name}")
        spec, inputs = found.spec, found.inputs
        if job.version != found.job.version or _inputs(session, job, body, found.named, held=True) != inputs:
            return None
        has_begun = job.generation > 0
        anew = has_begun and found.anew
        if anew and not body.start_anew:
            fields = ", ".join(item.field for item in found.changes if item.effect == "starts_anew")
            why = next((f": {item.reason}" for item in found.changes if item.reason), "")
            raise Problem("conflict.starts_anew", f"the state joined so far does not fit a change of {fields}{why}",
                          hint='send "start_anew": true to begin again without it, or create another job')  # fmt: skip
        kept = context.settings.job_revisions_max
        with within_share(context.settings, session, job):
            service.change(session, job, spec, inputs, anew=anew, actor_id=actor.id, kept=kept)
        known = ran(session, [job])
    return job_shape(job, known)


@router.delete("/{id}", status_code=202)
@owned
def delete_job(context: InContext, actor: Operator, id: str, if_match: IfMatch = None) -> JobOut:
    """Delete a job with its state and its results. It is stopped first; when all is gone the job is not found."""

    def delete(session: Session, job: Job) -> None:
        if job.wanted != lifecycle.DELETED:
            service.want(session, job, lifecycle.DELETED, actor.id)

    return _act(context, actor, id, if_match, delete)


@router.post("/{id}/start", status_code=202)
@owned
@done_once
def start_job(context: InContext, actor: Operator, id: str, if_match: IfMatch = None) -> JobOut:
    """Let a job run; it goes on where it stopped."""
    return _act(
        context, actor, id, if_match, lambda session, job: service.want(session, job, lifecycle.RUNNING, actor.id)
    )


@router.post("/{id}/stop", status_code=202)
@owned
@done_once
def stop_job(context: InContext, actor: Operator, id: str, if_match: IfMatch = None) -> JobOut:
    """Let a job stop after the batch that runs."""
    return _act(
        context, actor, id, if_match, lambda session, job: service.want(session, job, lifecycle.STOPPED, actor.id)
    )


@router.post("/{id}/restart", status_code=202)
@owned
@done_once
def restart_job(context: InContext, actor: Operator, id: str, if_match: IfMatch = None) -> JobOut:
    """Stop a job after the batch that runs, and start it again."""

    def restart(session: Session, job: Job) -> None:
        service.want(session, job, lifecycle.RUNNING, actor.id)
        service.ask_restart(job)
        record(session, "job.restart_asked", f"job {job.name} is to restart", job_id=job.id, actor_id=actor.id)

    return _act(context, actor, id, if_match, restart)


@router.post("/{id}/rescale", status_code=202)
@owned
@done_once
def rescale_job(context: InContext, actor: Operator, id: str, body: Rescale, if_match: IfMatch = None) -> JobOut:
    """Give a job another number of slots. Units and state stay: unit u then runs in slot u mod slots."""

    check_limits(context.settings, body.slots, 0)

    def rescale(session: Session, job: Job) -> None:
        spec, kept = job.spec.with_slots(body.slots), context.settings.job_revisions_max
        service.change(session, job, spec, inputs_of(job), anew=False, actor_id=actor.id, kept=kept)

    return _act(context, actor, id, if_match, rescale)


def _changed(context: Context, actor: Actor, id: str, body: JobChange) -> _Changed:
    """What a job is to be; it could be started, as far as that can be told here."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        service.check_stays(job)
    spec = job.spec.changed(body.model_dump(include=set(SECTIONS), exclude_none=True))
    check_texts(spec, job.spec)
    check_spec(spec)
    # Outside of a transaction: long queries take a while.
    named = names_of(actor.id, spec) if _reads_anew(body) else {}
    with context.catalog.read() as session:
        inputs = _inputs(session, job, body, named)
        if inputs != inputs_of(job):
            check_sent(session, context.settings, inputs)
        secrets = secrets_of(context.settings, session, inputs)
        host = host_elsewhere(session, context.settings, job)
    changes = diff(service.definition(job.spec, inputs_of(job)), service.definition(spec, inputs))
    surely_anew = starts_anew(changes)  # whatever is stored
    if host is not None and body.start_anew:
        changes = queries_anew(changes, f"what the job has stored is on {host}, and cannot be looked at from here")

    def bind(*, anew: bool) -> None:
        # What starts anew has nothing to fit.
        draft = Job(
            id=job.id, spec=spec, streams=inputs.streams, relations=inputs.relations,
            incarnation=job.incarnation + anew,
        )  # fmt: skip
        where_it_fits(
            actor.id, spec, service.check_job, context.settings, draft, secrets,
            elsewhere=host is not None and not anew,
        )  # fmt: skip

    # A job that its driver refused as it is has no other change to agree to.
    if body.start_anew and not changes and job.phase == lifecycle.FAILED:
        bind(anew=True)
        return _Changed(
            job, spec, named, inputs, changes, True,
            lambda: None if host is not None else _fits(partial(bind, anew=False)),
        )  # fmt: skip
    try:
        bind(anew=starts_anew(changes))
    except QueriesStayError as stays:
        changes = queries_anew(changes, stays.message)
        bind(anew=starts_anew(changes))
    except OtherJoinError as other:
        changes = all_anew(changes, other.differs, by_operator=other.changed == ("operator",))
        bind(anew=True)
    anew = starts_anew(changes)
    unknown = host is not None and anew and not surely_anew
    return _Changed(job, spec, named, inputs, changes, anew, lambda: None if unknown else not anew)


def _fits(bind: Callable[[], None]) -> bool:
    """Whether a job binds to the state that it has."""
    try:
        bind()
    except StreamJoinError:
        return False
    return True


def _reads_anew(body: JobChange) -> bool:
    """Whether a job may read something else after a change."""
    return body.refresh_streams or body.query is not None or body.queries is not None


def _inputs(session: Session, job: Job, body: JobChange, named: Mapping[str, str], *, held: bool = False) -> Inputs:
    """What a job is to read.

    Args:
        named: by its queries, where it may read something else then.
    """
    if not _reads_anew(body):
        return inputs_of(job)
    found = service.entries(session, named, None, held=held)
    if body.refresh_streams:
        return found
    return found.as_in(inputs_of(job)) if body.query is not None else inputs_of(job).and_those(found)


def _act(
    context: Context, actor: Actor, id: str, if_match: str | None, act: Callable[[Session, Job], object]
) -> JobOut:
    """Do something to a job, if its owner or an admin asks."""
    with context.catalog.begin() as session:
        job = service.find_job(session, id, held=True)
        may_change(actor, job.owner_id)
        check_version_if_given(if_match, job, f"job {job.name}")
        with within_share(context.settings, session, job):
            act(session, job)
        known = ran(session, [job])
    return job_shape(job, known)
