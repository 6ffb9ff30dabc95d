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
    """A look at a relation; `row_count` is None where only reading it all would tell."""

    row_count: int | None
    bytes: int
    files: int


class Pushed(TypedDict):
    """What became of rows that were pushed."""

    rows: int
    duplicate: bool


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
    owner_id: str | None
    created_at: str | None
    updated_at: str | None


class Change(TypedDict):
    """A field that would differ; `effect` is keeps_state or starts_anew."""

    field: str
    before: Any
    after: Any
    effect: str


class Diff(TypedDict):
    """What a change would do."""

    changes: list[Change]
    starts_anew: bool


class Event(TypedDict):
    """Something that happened."""

    id: str
    job_id: str | None
    at: str
    kind: str
    severity: str
    message: str
    data: dict[str, Any]
    actor_id: str | None


class Point(TypedDict):
    """What a driver reported for a span of time."""

    at: str
    span_s: int
    generation: int
    figures: dict[str, Any]


class Metrics(TypedDict):
    """Reports of a job, oldest first."""

    points: list[Point]
