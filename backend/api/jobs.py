"""Jobs: check a query and its costs, create a job, start and stop it, change it, and see what it did."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.api.figures import Figures, Metrics, Point
from backend.api.filters import OfKind, OfPhase, Owner, Since, in_phase, narrowed, of_kind
from backend.api.sections import OperatorIn, ResultsIn, RunIn
from backend.api.shapes import (
    Body,
    IfMatch,
    Limit,
    Page,
    StartingAfter,
    check_version,
    check_version_if_given,
    etag,
    iso,
    link_next,
    page_of,
    with_example,
)
from backend.auth.actor import Actor, Operator, Viewer, may_change, owned
from backend.catalog import lifecycle
from backend.catalog.events import FIRST_BATCH, record
from backend.catalog.ids import new_id, now_us
from backend.catalog.models import Event, Job, JobRevision, Lease, Report
from backend.columns import Column, columns_of
from backend.context import Context, InContext
from backend.idempotency import done_once
from backend.jobs import service
from backend.jobs.change import Change, diff, starts_anew
from backend.jobs.inputs import Inputs, inputs_of, secrets_of
from backend.jobs.joinfile import check_spec, with_store
from backend.jobs.limits import check_limits
from backend.jobs.previews import PreviewOut, previewed
from backend.problems import Place, Problem
from streamjoin.errors import StreamJoinError
from streamjoin.explain.plans import explain, summary
from streamjoin.settings.values import SLOTS_MAX
from streamjoin.sources.credentials import MASK, SECRET_SETTINGS
from streamjoin.spec.prepare import Bound

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,99}")
_QUERY = (
    "SELECT ONLINE auctions.id, bids.price FROM auctions, bids "
    "WHERE auctions.id = bids.auction AND bids.price >= auctions.reserve WITHIN 10 SECONDS"
)
REPORTS_MAX = 3000
"""A day has 2,580, thinned out as they age."""
LOG_BYTES_MAX = 256 << 10


class FurtherQuery(Body):
    """A query beside a job's own, over the same streams and the same stored tuples, with results of its own.

    Args:
        stopped: it ends: its results are completed and stay, its tuples and its index go.
    """

    query: str = Field(max_length=65_536)
    stopped: bool = False


Queries = Annotated[dict[Annotated[str, Field(max_length=63)], FurtherQuery], Field(max_length=63)]


class Draft(Body):
    """A query with all that decides how it runs.

    Args:
        streams: names; unless given, those that the query names.
        queries: further ones, by name; their results are those of `job:name`.
        operator: `{name: auto}` or another, with its knobs.
        results: where, select, retain, snapshot and store, as in a join file.
        run: slots, files_per_batch, offsets_per_batch, heartbeat, strict, driver_memory; `until_end` lets the job end
            with its streams.
    """

    query: str = Field(max_length=65_536)
    streams: list[Annotated[str, Field(max_length=100)]] | None = Field(default=None, max_length=100)
    queries: Queries = Field(default_factory=dict)
    operator: OperatorIn | None = None
    results: ResultsIn | None = None
    run: RunIn | None = None
    model_config = with_example({"query": _QUERY})


class JobIn(Draft):
    """A job to create; it is stopped unless `start` is true."""

    name: str = Field(max_length=200)
    start: bool = False
    model_config = with_example({"name": "bids that win", "query": _QUERY})


class JobChange(Body):
    """What is to change; sections that are not given stay.

    Args:
        queries: each is added, or changed; others stay. A new one begins with the pairs whose later tuple comes then.
        refresh_streams: take over the streams and relations as they are registered now.
        start_anew: agree that the job begins again without its state, where the change needs that. Results kept so
            far stay in the store, under the job's earlier name, until the job is deleted.
    """

    query: str | None = Field(default=None, max_length=65_536)
    queries: Queries | None = None
    operator: OperatorIn | None = None
    results: ResultsIn | None = None
    run: RunIn | None = None
    refresh_streams: bool = False
    start_anew: bool = False
    model_config = with_example({"run": {"slots": 2}})


class Rescale(Body):
    """How many slots the unit stage is to have; state moves by name, not by copying."""

    slots: int = Field(ge=1, le=SLOTS_MAX)


class Diagnostics(BaseModel):
    """What is wrong with a draft, for an editor; empty where it is right."""

    valid: bool
    diagnostics: list[Place]
    columns: list[Column]
    summary: str | None


class Explanation(BaseModel):
    """How a draft would run, and what each operator would cost."""

    plan: dict[str, Any]
    text: str
    columns: list[Column]


class ChangeOut(BaseModel):
    """A field that differs; `effect` is keeps_state or starts_anew."""

    field: str
    before: Any
    after: Any
    effect: str


class Diff(BaseModel):
    """What a change would do."""

    changes: list[ChangeOut]
    starts_anew: bool


class Run(BaseModel):
    """The generation that runs, or ran last."""

    generation: int
    host: str
    pid: int | None
    since: str | None
    alive_until: str | None
    ended: bool


class Start(BaseModel):
    """What the last start took until its first batch was committed.

    Args:
        cause: start, restart, change or recovery.
        warm: whether the driver had waited for a job.
        seconds: in all, since it was asked for, or since the failure.
        steps: seconds of each: launch, process, spark, state, first_batch.
    """

    generation: int
    at: str | None
    cause: str
    warm: bool
    seconds: float
    steps: dict[str, float]


class JobOut(BaseModel):
    """A job. `wanted` is what people asked for, `observed` what was seen last, `phase` one word for both."""

    id: str
    name: str
    version: int
    query: str
    queries: dict[str, FurtherQuery] = Field(default_factory=dict)
    streams: list[str]
    relations: list[str]
    operator: dict[str, Any]
    results: dict[str, Any]
    run: dict[str, Any]
    wanted: str
    wanted_since: str | None
    observed: str
    observed_since: str | None
    phase: str
    reason: str | None
    generation: int
    failures: int
    last_run: Run | None
    last_start: Start | None
    owner_id: str | None
    created_at: str | None
    updated_at: str | None


class Revision(BaseModel):
    """An earlier version of a job."""

    version: int
    query: str
    queries: dict[str, FurtherQuery] = Field(default_factory=dict)
    operator: dict[str, Any]
    results: dict[str, Any]
    run: dict[str, Any]
    until: str | None


class EventOut(BaseModel):
    """Something that happened."""

    id: str
    job_id: str | None
    at: str | None
    kind: str
    severity: str
    message: str
    data: dict[str, Any]
    actor_id: str | None


@router.post("/validate")
def validate_job(context: InContext, actor: Viewer, body: Draft) -> Diagnostics:
    """Check a query against what is registered. Mistakes are the answer, so the status is 200."""
    try:
        with context.catalog.read() as session:
            inputs = service.entries(session, body.query, body.streams)
        bound = service.bound_draft(context.settings, _spec(body), inputs)
    except (StreamJoinError, Problem) as wrong:
        return Diagnostics(valid=False, diagnostics=service.diagnose(wrong), columns=[], summary=None)
    return Diagnostics(valid=True, diagnostics=[], columns=_columns(bound), summary=summary(bound))


@router.post("/explain")
def explain_job(context: InContext, actor: Viewer, body: Draft) -> Explanation:
    """Show how a query would run, and what every operator would cost, from a sample of the streams."""
    with context.catalog.read() as session:
        inputs = service.entries(session, body.query, body.streams)
    bound = service.bound_draft(context.settings, _spec(body), inputs)
    found = explain(bound)
    return Explanation(plan=found.to_json(), text=str(found), columns=_columns(bound))


@router.post("/preview")
def preview_job(context: InContext, actor: Viewer, body: Draft) -> PreviewOut:
    """Show a few rows that a query would give, from samples of the streams, or why there are none. Nothing is started.

    Samples, time and the answer are bounded, and so are previews side by side: one too many answers 429.
    """
    with context.catalog.read() as session:
        inputs = service.entries(session, body.query, body.streams)
        secrets = secrets_of(context.settings, session, inputs.streams)
    return previewed(context, service.bound_draft(context.settings, _spec(body), inputs, secrets), actor.id)


@router.get("")
def list_jobs(
    context: InContext, actor: Viewer, request: Request, response: Response, limit: Limit = 50,
    starting_after: StartingAfter = None, phase: OfPhase = None, owner: Owner = None, since: Since = None,
) -> Page[JobOut]:  # fmt: skip
    """All jobs, newest first."""
    rows = in_phase(narrowed(select(Job), Job, actor, owner, since), phase)
    with context.catalog.read() as session:
        page = page_of(session, rows, Job.id, limit, starting_after, lambda job: job)
        ran = _ran(session, page.data)
    shown: Page[JobOut] = Page(data=[_shape(job, ran) for job in page.data], has_more=page.has_more)
    link_next(request, response, shown.has_more, [item.id for item in shown.data])
    return shown


@router.post("", status_code=201)
@done_once
def create_job(context: InContext, actor: Operator, body: JobIn, response: Response) -> JobOut:
    """Create a job. Its query is bound to its streams first, so what is wrong shows now."""
    if not _NAME.fullmatch(body.name):
        raise Problem("invalid.bad_name",
                      "name: letters, digits, blanks, ., _ and -, 100 at most, a letter or digit first",
                      errors=[Place(pointer="/name", detail="is no name")])  # fmt: skip
    spec = _spec(body)
    with context.catalog.read() as session:
        inputs = service.entries(session, body.query, body.streams)
        if session.scalars(select(func.count()).select_from(Job)).one() >= context.settings.jobs_max:
            raise Problem(
                "conflict.too_many_jobs", f"there are {context.settings.jobs_max} jobs already; delete one first"
            )
    at_us = now_us()
    job = Job(
        id=new_id("job"), name=body.name, owner_id=actor.id, version=1, spec=spec,
        streams=inputs.streams, relations=inputs.relations,
        wanted=lifecycle.STOPPED, wanted_since_us=at_us, observed=lifecycle.STOPPED, observed_since_us=at_us,
        generation=0, failures=0, restart_version=0, incarnation=0, created_at_us=at_us, updated_at_us=at_us,
    )  # fmt: skip
    job.spec = with_store(context.settings, job)
    service.bound_job(context.settings, job)
    try:
        with context.catalog.begin() as session:
            session.add(job)
            session.flush()
            record(session, "job.created", f"job {body.name} was created", job_id=job.id, actor_id=actor.id)
            if body.start:
                service.want(session, job, lifecycle.RUNNING, actor.id)
    except IntegrityError:
        raise Problem(
            "conflict.name_taken", f'there is a job "{body.name}" already; change it, or take another name'
        ) from None
    response.headers["Location"] = f"/api/v1/jobs/{job.id}"
    response.headers["ETag"] = etag(job.version)
    return _shape(job, _Ran({}, {}))


@router.get("/{id}")
def get_job(context: InContext, actor: Viewer, id: str, response: Response) -> JobOut:
    """One job, by id or name."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        ran = _ran(session, [job])
    response.headers["ETag"] = etag(job.version)
    return _shape(job, ran)


@router.post("/{id}/diff")
def diff_job(context: InContext, actor: Viewer, id: str, body: JobChange) -> Diff:
    """Show what a change would do, without doing it; one that would be refused is refused here too."""
    job, spec, inputs = _changed(context, id, body)
    changes = diff(service.definition(job.spec, inputs_of(job)), service.definition(spec, inputs))
    return Diff(changes=[_shown(item) for item in changes], starts_anew=starts_anew(changes))


@router.patch("/{id}")
@owned
def change_job(
    context: InContext, actor: Operator, id: str, body: JobChange, response: Response, if_match: IfMatch = None
) -> JobOut:
    """Change a job. A running one restarts with the change at a batch boundary.

    A change that does not fit the state joined so far needs `start_anew`.
    """
    _, spec, inputs = _changed(context, id, body)  # outside of a transaction that writes: it opens files
    with context.catalog.begin() as session:
        job = service.find_job(session, id)
        may_change(actor, job.owner_id)
        check_version(if_match, job.version, f"job {job.name}")
        changes = diff(service.definition(job.spec, inputs_of(job)), service.definition(spec, inputs))
        has_begun = job.generation > 0
        anew = has_begun and starts_anew(changes)
        if anew and not body.start_anew:
            fields = ", ".join(item.field for item in changes if item.effect == "starts_anew")
            raise Problem("conflict.starts_anew", f"the state joined so far does not fit a change of {fields}",
                          hint='send "start_anew": true to begin again without it, or create another job')  # fmt: skip
        service.change(session, job, spec, inputs, anew=anew, actor_id=actor.id)
        ran = _ran(session, [job])
    response.headers["ETag"] = etag(job.version)
    return _shape(job, ran)


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
        spec = {**job.spec, "run": {**(job.spec.get("run") or {}), "slots": body.slots}}
        service.change(session, job, spec, inputs_of(job), anew=False, actor_id=actor.id)

    return _act(context, actor, id, if_match, rescale)


@router.get("/{id}/revisions")
def list_revisions(context: InContext, actor: Viewer, id: str) -> Page[Revision]:
    """Earlier versions of a job, newest first."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        rows = session.scalars(
            select(JobRevision).where(JobRevision.job_id == job.id).order_by(JobRevision.version.desc()).limit(200)
        ).all()
    return Page(
        data=[
            Revision(
                version=row.version, query=row.spec["query"], queries=row.spec.get("queries") or {},
                operator=row.spec.get("operator") or {},
                results=row.spec.get("results") or {}, run=row.spec.get("run") or {}, until=iso(row.created_at_us),
            )
            for row in rows
        ],
        has_more=False,
    )  # fmt: skip


@router.get("/{id}/events")
def list_job_events(
    context: InContext, actor: Viewer, id: str, limit: Limit = 50, starting_after: StartingAfter = None,
    kind: OfKind = None, since: Since = None,
) -> Page[EventOut]:  # fmt: skip
    """What happened to a job, newest first."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        rows = of_kind(select(Event).where(Event.job_id == job.id), kind, since)
        return page_of(session, rows, Event.id, limit, starting_after, partial(event_shape, actor))


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
    """The end of a log of the job, where it ran on this host; without places outside of the job's folder."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
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
    return PlainTextResponse(text.replace(str(context.settings.data.absolute()), "."))


def event_shape(actor: Actor, event: Event) -> EventOut:
    """An event as this actor sees it: where people sit is for admins."""
    data = {name: value for name, value in event.data.items() if name != "address" or actor.role == "admin"}
    return EventOut(
        id=event.id, job_id=event.job_id, at=iso(event.at_us), kind=event.kind, severity=event.severity,
        message=event.message, data=data, actor_id=event.actor_id,
    )  # fmt: skip


def _shown(change: Change) -> ChangeOut:
    before, after = change.before, change.after
    if change.field.endswith(tuple(SECRET_SETTINGS)):
        before, after = (value and MASK for value in (before, after))
    return ChangeOut(field=change.field, before=before, after=after, effect=change.effect)


def _columns(bound: Bound) -> list[Column]:
    """The result columns of the job's own query."""
    return columns_of(bound.queries[0].query.output)


def _spec(body: Draft) -> dict[str, Any]:
    spec = {"query": body.query, "operator": body.operator or {"name": "auto"}, "results": body.results or {},
            "run": body.run or {}, **body.model_dump(include={"queries"}, exclude_defaults=True)}  # fmt: skip
    check_spec(spec)
    return spec


def _changed(context: Context, id: str, body: JobChange) -> tuple[Job, dict[str, Any], Inputs]:
    """A job, and what it is to be, which could be started."""
    with context.catalog.read() as session:
        job = service.find_job(session, id)
        spec, inputs = _definition(session, job, body)
    # What starts anew has nothing to fit.
    anew = starts_anew(diff(service.definition(job.spec, inputs_of(job)), service.definition(spec, inputs)))
    draft = Job(
        id=job.id, spec=spec, streams=inputs.streams, relations=inputs.relations, incarnation=job.incarnation + anew
    )
    service.bound_job(context.settings, draft)
    return job, spec, inputs


def _definition(session: Session, job: Job, body: JobChange) -> tuple[dict[str, Any], Inputs]:
    given = body.model_dump(include=set(service.SECTIONS), exclude_none=True)
    spec = {**job.spec, **given}
    if body.queries is not None:
        spec["queries"] = {**(job.spec.get("queries") or {}), **given["queries"]}
    if (store := (job.spec.get("results") or {}).get("store")) is not None:
        spec["results"] = {"store": store, **(spec["results"] or {})}
    check_spec(spec)
    if body.query is not None and not body.refresh_streams:
        return spec, service.entries(session, body.query, None).as_in(inputs_of(job))
    if body.refresh_streams:
        return spec, service.entries(session, spec["query"], None)
    return spec, inputs_of(job)


def _act(
    context: Context, actor: Actor, id: str, if_match: str | None, act: Callable[[Session, Job], object]
) -> JobOut:
    """Do something to a job, if its owner or an admin asks."""
    with context.catalog.begin() as session:
        job = service.find_job(session, id)
        may_change(actor, job.owner_id)
        check_version_if_given(if_match, job.version, f"job {job.name}")
        act(session, job)
        ran = _ran(session, [job])
    return _shape(job, ran)


class _Ran(NamedTuple):
    """Who runs jobs, or ran them last, and what their last starts took; by job."""

    leases: dict[str, Lease]
    starts: dict[str, Event]


def _ran(session: Session, jobs: Sequence[Job]) -> _Ran:
    ids = [job.id for job in jobs]
    last = select(func.max(Event.id)).where(Event.job_id.in_(ids), Event.kind == FIRST_BATCH).group_by(Event.job_id)
    leases = session.scalars(select(Lease).where(Lease.job_id.in_(ids)))
    starts = session.scalars(select(Event).where(Event.id.in_(last)))
    return _Ran({lease.job_id: lease for lease in leases}, {str(event.job_id): event for event in starts})


def _shape(job: Job, ran: _Ran) -> JobOut:
    lease, start = ran.leases.get(job.id), ran.starts.get(job.id)
    last_run = lease and Run(
        generation=lease.generation, host=lease.host, pid=lease.pid, since=iso(lease.taken_at_us),
        alive_until=iso(lease.expires_at_us), ended=lease.ended,
    )  # fmt: skip
    last_start = start and Start(at=iso(start.at_us), **start.data)
    return JobOut(
        id=job.id, name=job.name, version=job.version, query=job.spec["query"],
        queries=job.spec.get("queries") or {}, streams=sorted(job.streams),
        relations=sorted(job.relations), operator=job.spec.get("operator") or {},
        results=job.spec.get("results") or {}, run=job.spec.get("run") or {},
        wanted=job.wanted, wanted_since=iso(job.wanted_since_us), observed=job.observed,
        observed_since=iso(job.observed_since_us), phase=lifecycle.phase(job.wanted, job.observed), reason=job.reason,
        generation=job.generation, failures=job.failures, last_run=last_run, last_start=last_start,
        owner_id=job.owner_id, created_at=iso(job.created_at_us), updated_at=iso(job.updated_at_us),
    )  # fmt: skip
