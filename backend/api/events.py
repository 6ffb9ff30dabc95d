"""What happened anywhere on the platform."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from sqlalchemy import select

from backend.api.filters import OfKind, Since, of_kind
from backend.api.jobs import EventOut, event_shape
from backend.api.shapes import Limit, Page, StartingAfter, page_of
from backend.auth.actor import Viewer
from backend.catalog.models import Event
from backend.context import InContext

router = APIRouter(prefix="/api/v1/events", tags=["events"])


@router.get("")
def list_events(
    context: InContext, actor: Viewer, limit: Limit = 50, starting_after: StartingAfter = None, kind: OfKind = None,
    since: Since = None,
) -> Page[EventOut]:  # fmt: skip
    """What happened, newest first."""
    with context.catalog.read() as session:
        return page_of(
            session, of_kind(select(Event), kind, since), Event.id, limit, starting_after, partial(event_shape, actor)
        )
