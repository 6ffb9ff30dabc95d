"""What happened anywhere on the platform."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from sqlalchemy import select

from backend.api.filters import OfKind, Since, of_kind
from backend.api.shapes import Limit, Page, StartingAfter, iso, link_next, page_of
from backend.auth.actor import Actor, Viewer
from backend.catalog.models import Event
from backend.context import InContext

router = APIRouter(prefix="/api/v1/events", tags=["events"])


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


@router.get("")
def list_events(
    context: InContext, actor: Viewer, request: Request, response: Response, limit: Limit = 50,
    starting_after: StartingAfter = None, kind: OfKind = None, since: Since = None,
) -> Page[EventOut]:  # fmt: skip
    """What happened, newest first."""
    with context.catalog.read() as session:
        page = page_of(
            session, of_kind(select(Event), kind, since), Event.id, limit, starting_after, partial(event_shape, actor)
        )
    link_next(request, response, page.has_more, [event.id for event in page.data])
    return page


def event_shape(actor: Actor, event: Event) -> EventOut:
    """An event as this actor sees it: where people sit is for admins."""
    data = {name: value for name, value in event.data.items() if name != "address" or actor.role == "admin"}
    return EventOut(
        id=event.id, job_id=event.job_id, at=iso(event.at_us), kind=event.kind, severity=event.severity,
        message=event.message, data=data, actor_id=event.actor_id,
    )  # fmt: skip
