"""What lists can be narrowed to."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from fastapi import Query
from sqlalchemy import Select, and_, func, or_

from backend.auth.actor import Actor
from backend.catalog import lifecycle
from backend.catalog.models import Event, Job
from backend.results.question import TimeUs

Owner = Annotated[str | None, Query(max_length=40, description='Only those of this user: an id, or "me".')]
Since = Annotated[TimeUs | None, Query(description="Only those of this time or later: ISO 8601, or us since 1970.")]
Phase = Literal[
    "stopped", "starting", "running", "stopping", "restarting", "recovering", "failed", "unknown", "deleting"
]
OfKind = Annotated[str | None, Query(max_length=60, description="Only events of this kind, such as job.created.")]
OfSource = Annotated[str | None, Query(max_length=20, description="Only those with this source, such as csv.")]
OfPhase = Annotated[Phase | None, Query(description="Only jobs in this phase.")]
PHASES: Final[tuple[str, ...]] = get_args(Phase)


def narrowed(
    rows: Select[Any], table: Any, actor: Actor, owner: str | None = None, since_us: int | None = None
) -> Select[Any]:
    """Rows of an owner, and not older than a time."""
    if owner is not None:
        rows = rows.where(table.owner_id == (actor.id if owner == "me" else owner))
    return rows if since_us is None else rows.where(table.created_at_us >= since_us)


def in_phase(rows: Select[Any], phase: str | None) -> Select[Any]:
    """Jobs in a phase, which follows from what is wanted and what was seen; see `Job.phase`."""
    if phase is None:
        return rows
    given_up = and_(
        Job.failures >= lifecycle.GIVE_UP_FAILURES,
        func.coalesce(Job.reason, "").endswith(lifecycle.GIVEN_UP, autoescape=True),
    )
    found = [
        and_(Job.wanted == wanted, Job.observed == observed, given_up if is_given_up else ~given_up)
        for wanted in lifecycle.WANTED
        for observed in lifecycle.OBSERVED
        for is_given_up in (False, True)
        if lifecycle.phase(wanted, observed, given_up=is_given_up) == phase
    ]
    return rows.where(or_(*found))


def of_kind(rows: Select[Any], kind: str | None, since_us: int | None) -> Select[Any]:
    """Events of a kind, and not older than a time."""
    if kind is not None:
        rows = rows.where(Event.kind == kind)
    return rows if since_us is None else rows.where(Event.at_us >= since_us)


def of_source(rows: Select[Any], table: Any, source: str | None) -> Select[Any]:
    """Streams or relations with a source; pushed rows are kept as files of JSON lines, and marked."""
    if source is None:
        return rows
    is_push = table.spec["push"].as_string().is_not(None)
    if source == "push":
        return rows.where(is_push)
    return rows.where(table.spec["source"].as_string() == source, ~is_push)
