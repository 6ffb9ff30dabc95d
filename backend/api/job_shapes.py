"""What the API says of jobs and takes for them: drafts, changes, jobs, earlier versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.api.dropped import Dropped
from backend.api.sections import OperatorIn, ResultsIn, RunIn
from backend.api.shapes import Body, iso, with_example
from backend.catalog.entries import names_in
from backend.catalog.events import FIRST_BATCH
from backend.catalog.jobspec import SECTIONS, JobSpec
from backend.catalog.models import Event, Job, Lease
from backend.given import at_most
from backend.jobs.change import Change
from backend.jobs.joinfile import check_spec
from backend.jobs.texts import check_texts
from streamjoin.settings.values import SLOTS_MAX
from streamjoin.sources.credentials import MASK, SECRET_SETTINGS

NAME_MAX = 100
"""Letters of a job's name; what says so says all of its rule."""
_QUERY = (
    "SELECT ONLINE auctions.id, bids.price FROM auctions, bids "
    "WHERE auctions.id = bids.auction AND bids.price >= auctions.reserve WITHIN 10 SECONDS"
)


class FurtherQuery(Body):
    """A query beside a job's own, over the same streams and the same stored tuples, with results of its own.

    Args:
        stopped: it ends: its results are completed and stay, its tuples and its index go.
    """

    query: str = Field(max_length=65_536)
    stopped: bool = False


def _no_null(query: object) -> object:
    if query is None:
        raise ValueError(
            "is null, and a query that a job has had keeps its name and its results; to end it send its query with "
            '"stopped": true'
        )
    return query


QUERIES_MAX = 63
Queries = Annotated[
    dict[Annotated[str, Field(max_length=63)], Annotated[FurtherQuery, BeforeValidator(_no_null)]],
    Field(max_length=QUERIES_MAX),
    at_most(QUERIES_MAX),
]


class Draft(Body):
    """A query with all that decides how it runs.

    Args:
        streams: names; unless given, those that the query names.
        queries: further ones, by name; their results are those of `job:name`.
        operator: `{name: auto}` or another, with its knobs.
        results: where, select, retain, snapshot and store, as in a join file.
        run: slots, files_per_batch, offsets_per_batch, heartbeat, every, strict, driver_memory; `until_end` lets the
            job end with its streams.
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

    name: str = Field(json_schema_extra={"maxLength": NAME_MAX})
    start: bool = False
    model_config = with_example({"name": "bids that win", "query": _QUERY})


class JobChange(Body):
    """What is to change; sections that are not given stay.

    Args:
        queries: each is added, or changed; others stay. A new one begins with the pairs whose later tuple comes then.
        refresh_streams: take over the streams and relations as they are registered now.
        start_anew: agree that the job begins again without its state, where the change needs that, and where it may
            need it: changed queries of a job whose state is in a data folder that this API does not see, and a job
            that is `failed` and stays as it is. Results kept so far stay in the store, under the job's earlier name,
            until the job is deleted.
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


class ChangeOut(BaseModel):
    """A field that differs; `effect` is keeps_state or starts_anew.

    `reason` says why it begins anew, where the same change of another job would keep its state; null else.
    """

    field: str
    before: Any
    after: Any
    effect: str
    reason: str | None = None


class Diff(BaseModel):
    """What a change would do.

    Args:
        drops: what is lost where the job begins anew; null where it does not, or has never run.
    """

    changes: list[ChangeOut]
    starts_anew: bool
    drops: Dropped | None = None


class Run(BaseModel):
    """The generation that runs, or ran last.

    Args:
        steps: seconds of each step of its start that is done, see `last_start`; empty where nobody told of them.
    """

    generation: int
    host: str
    pid: int | None
    since: str | None
    alive_until: str | None
    ended: bool
    steps: dict[str, float]


class Start(BaseModel):
    """What the last start took until its first batch was committed.

    Args:
        cause: start, restart, change or recovery.
        warm: whether the driver had waited for a job.
        seconds: in all, since it was asked for, or since the failure.
        steps: seconds of each: launch, process, spark, state, first_batch; before that first_look, if the first look at
            the streams found nothing to read.
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


def spec_of(body: Draft) -> JobSpec:
    """What a job of this draft is to be.

    Raises:
        InputError: a section is wrong.
        Problem: its texts together are too long.
    """
    spec = JobSpec.of(body.model_dump(include=set(SECTIONS), exclude_none=True))
    check_texts(spec)
    check_spec(spec)
    return spec


def change_shape(change: Change) -> ChangeOut:
    """A field that differs, without secrets."""
    before, after = change.before, change.after
    if change.field.endswith(tuple(SECRET_SETTINGS)):
        before, after = (value and MASK for value in (before, after))
    return ChangeOut(field=change.field, before=before, after=after, effect=change.effect, reason=change.reason)


class Ran(NamedTuple):
    """Who runs jobs, or ran them last, and what their last starts took; by job."""

    leases: dict[str, Lease]
    starts: dict[str, Event]


def ran(session: Session, jobs: Sequence[Job]) -> Ran:
    """Who runs these jobs; two questions to the catalog."""
    ids = [job.id for job in jobs]
    last = select(func.max(Event.id)).where(Event.job_id.in_(ids), Event.kind == FIRST_BATCH).group_by(Event.job_id)
    leases = session.scalars(select(Lease).where(Lease.job_id.in_(ids)))
    starts = session.scalars(select(Event).where(Event.id.in_(last)))
    return Ran({lease.job_id: lease for lease in leases}, {str(event.job_id): event for event in starts})


class Read(NamedTuple):
    """Names of what a job reads."""

    streams: Iterable[str]
    relations: Iterable[str]


def read_by(session: Session, jobs: Sequence[Job]) -> dict[str, Read]:
    """What these jobs read, by job; they need not have their entries."""
    found = select(Job.id, names_in(Job.streams), names_in(Job.relations)).where(Job.id.in_([job.id for job in jobs]))
    return {id: Read(streams, relations) for id, streams, relations in session.execute(found)}


def job_shape(job: Job, ran: Ran, read: Read | None = None) -> JobOut:
    """A job as the API shows it.

    Args:
        read: of a job without its entries.
    """
    read = read or Read(job.streams, job.relations)
    lease, start = ran.leases.get(job.id), ran.starts.get(job.id)
    last_run = lease and Run(
        generation=lease.generation, host=lease.host, pid=lease.pid, since=iso(lease.taken_at_us),
        alive_until=iso(lease.expires_at_us), ended=lease.ended,
        steps=lease.steps or {},
    )  # fmt: skip
    last_start = start and Start(at=iso(start.at_us), **start.data)
    return JobOut(
        id=job.id, name=job.name, version=job.version, query=job.spec.query,
        queries=job.spec.queries, streams=sorted(read.streams),
        relations=sorted(read.relations), operator=job.spec.operator,
        results=job.spec.results, run=job.spec.run,
        wanted=job.wanted, wanted_since=iso(job.wanted_since_us), observed=job.observed,
        observed_since=iso(job.observed_since_us), phase=job.phase, reason=job.reason,
        generation=job.generation, failures=job.failures, last_run=last_run, last_start=last_start,
        owner_id=job.owner_id, created_at=iso(job.created_at_us), updated_at=iso(job.updated_at_us),
    )  # fmt: skip
