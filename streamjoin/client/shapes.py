"""Shapes of what the API gives, for type checkers; at run time they are plain dictionaries."""

from __future__ import annotations

from typing import Any, TypedDict


class Column(TypedDict):
    """A column and its type, as join files name types."""

    name: str
    type: str


class Stream(TypedDict):
    """A registered stream; `spec` is an entry of `streams:` of a join file."""

    id: str
    name: str
    version: int
    spec: dict[str, Any]
    has_secrets: bool
    owner_id: str | None
    created_at: str | None
    updated_at: str | None


class Relation(TypedDict):
    """A registered relation; `spec` is an entry of `relations:` of a join file."""

    id: str
    name: str
    version: int
    spec: dict[str, Any]
    owner_id: str | None
    created_at: str | None
    updated_at: str | None
    has_secrets: bool


class Seen(TypedDict):
    """A look at a stream or relation; `skew` is `{column: {distinct, top: [{value, share}]}}`."""

    columns: list[Column]
    rows: list[list[Any]]
    rows_seen: int
    bad_records: dict[str, int]
    skew: dict[str, Any]


class Sample(Seen):
    """A look at a stream.

    `times` are columns that may be its event time, `{name, time_unit}`; `widened` those that were guessed to be text
    because of a few values, `{column, type, instead, values, example}`.
    """

    rate_per_s: float | None
    times: list[dict[str, Any]]
    widened: list[dict[str, Any]]


class RelationSample(Seen):
    """A look at a relation; `row_count` is None where only reading it all would tell, and of a database all three."""

    row_count: int | None
    bytes: int | None
    files: int | None


class RelationVersion(TypedDict):
    """One version of a relation in one job."""

    version: int
    rows: int
    bad: int
    bytes: int
    read_at: str | None
    used_at: str | None
    batch: int | None
    state: str


class RelationInJob(TypedDict):
    """What one job has of one relation."""

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


class Pushed(TypedDict):
    """What became of rows that were pushed."""

    rows: int
    duplicate: bool


class Upload(TypedDict):
    """An uploaded file: `path` is what a `spec` says, `read_by` who reads it, such as `stream orders`."""

    name: str
    path: str
    bytes: int
    format: str | None
    owner_id: str | None
    uploaded_at: str | None
    read_by: list[str]


class Machine(TypedDict):
    """A machine whose worker runs jobs: whether it takes new ones, and how many have a driver there now."""

    name: str
    takes_jobs: bool
    jobs: int
    free_bytes: int
    folder: str
    seen_at: str | None


class FileEntry(TypedDict):
    """A file or folder that may be read: `path` is what a `spec` says, `format` is guessed from the name."""

    name: str
    path: str
    kind: str
    format: str | None
    bytes: int | None


class RejectedCount(TypedDict):
    """Rows of one stream that are missing for one reason; `kept` of them can be looked at."""

    stream: str
    reason: str
    rows: int
    kept: int
    meaning: str


class RejectedRow(TypedDict):
    """A row that was put aside; `position` is its place in `source` in `unit`s: line, row or offset.

    `record` is its text; None for a tombstone, and where it is not UTF-8: then `record_base64` has its bytes.
    """

    id: str
    stream: str
    reason: str
    batch: int
    at: str | None
    source: str
    unit: str
    position: int
    detail: str
    record: str | None
    record_base64: str | None
    truncated: bool


class Place(TypedDict, total=False):
    """One mistake; `span` is where in a query text."""

    pointer: str
    detail: str
    span: dict[str, int]


class Diagnostics(TypedDict):
    """What is wrong with a draft."""

    valid: bool
    diagnostics: list[Place]
    columns: list[Column]
    summary: str | None


class Explanation(TypedDict):
    """How a draft would run, and what each operator would cost; `text` is for people."""

    plan: dict[str, Any]
    text: str
    columns: list[Column]


class Preview(TypedDict):
    """A few rows that a draft would give, from samples; `text` is for people.

    `streams` are `{name, rows, bad_records, large_rows, first, last}`; `queries` are
    `{query, columns, rows, large_rows, reason}`, where `reason` says why there are no rows.
    """

    note: str
    streams: list[dict[str, Any]]
    cut_off: bool
    queries: list[dict[str, Any]]
    text: str


class Start(TypedDict):
    """What a start took until its first batch was committed: seconds in all and of each step, in order.

    `cause` is start, restart, change or recovery; `warm` whether the driver had waited for a job.
    """

    generation: int
    at: str | None
    cause: str
    warm: bool
    seconds: float
    steps: dict[str, float]


class Run(TypedDict):
    """The process that runs a job, or ran it last; `steps` are seconds of each step of its start that is done."""

    generation: int
    host: str
    pid: int | None
    since: str | None
    alive_until: str | None
    ended: bool
    steps: dict[str, float]


class Job(TypedDict):
    """A job. `wanted` is what people asked for, `observed` what was seen last, `phase` one word for both."""

    id: str
    name: str
    version: int
    query: str
    queries: dict[str, dict[str, Any]]
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


class Change(TypedDict):
    """A field that would differ; `effect` is keeps_state or starts_anew.

    `reason` says why it begins anew, where the same change of another job would keep its state; None else.
    """

    field: str
    before: Any
    after: Any
    effect: str
    reason: str | None


class Dropped(TypedDict):
    """What a job that begins anew leaves behind.

    `state_at` is the start of the last batch that its state has; `results` how many rows it has found so far. With
    `could_go_on` nothing but the wish drops it; None where nobody can tell.
    """

    state_at: str | None
    results: int | None
    could_go_on: bool | None


class Diff(TypedDict):
    """What a change would do; `drops` is None where the job keeps its state, or has never run."""

    changes: list[Change]
    starts_anew: bool
    drops: Dropped | None


class Event(TypedDict):
    """Something that happened."""

    id: str
    job_id: str | None
    at: str | None
    kind: str
    severity: str
    message: str
    data: dict[str, Any]
    actor_id: str | None


class Point(TypedDict):
    """What a driver reported for a span of time."""

    at: str | None
    span_s: int
    generation: int
    figures: dict[str, Any]


class Metrics(TypedDict):
    """Reports of a job, oldest first."""

    points: list[Point]
