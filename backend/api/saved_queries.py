"""Questions that people keep, to ask them again."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from backend.api.room import check_room
from backend.api.shapes import Body, Limit, Page, StartingAfter, iso, link_next, page_of
from backend.auth.actor import Operator, Viewer, may_change, owned
from backend.catalog.events import record
from backend.catalog.ids import new_id, now_us
from backend.catalog.models import SavedQuery
from backend.context import InContext
from backend.idempotency import done_once
from backend.lookup import by_id_or_name
from backend.problems import Problem
from backend.results.question import QueryIn

router = APIRouter(prefix="/api/v1/saved-queries", tags=["queries"])


class SavedQueryIn(Body):
    """A question to keep, as for POST /queries."""

    name: str = Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")
    question: QueryIn


class SavedQueryOut(BaseModel):
    """A kept question."""

    id: str
    name: str
    question: dict[str, Any]
    owner_id: str | None
    created_at: str | None


@router.get("")
def list_saved_queries(
    context: InContext, actor: Viewer, request: Request, response: Response, limit: Limit = 50,
    starting_after: StartingAfter = None,
) -> Page[SavedQueryOut]:  # fmt: skip
    """All kept questions, newest first."""
    with context.catalog.read() as session:
        page = page_of(session, select(SavedQuery), SavedQuery.id, limit, starting_after, _shape)
    link_next(request, response, page.has_more, [item.id for item in page.data])
    return page


@router.post("", status_code=201)
@done_once
def save_query(context: InContext, actor: Operator, body: SavedQueryIn, response: Response) -> SavedQueryOut:
    """Keep a question under a name."""
    question = body.question.model_dump(mode="json", by_alias=True, exclude_unset=True)
    kept = SavedQuery(
        id=new_id("qry"), name=body.name, owner_id=actor.id, version=1, question=question, created_at_us=now_us()
    )
    try:
        with context.catalog.begin() as session:
            if session.scalar(select(SavedQuery.id).where(SavedQuery.name == body.name)) is not None:
                raise _taken(body.name)
            check_room(context.settings, session, SavedQuery, actor, held=True)
            session.add(kept)
            record(session, "saved_query.created", f"question {kept.name} was saved", actor_id=actor.id,
                   data={"query_id": kept.id})  # fmt: skip
    except IntegrityError:
        raise _taken(body.name) from None
    response.headers["Location"] = f"/api/v1/saved-queries/{kept.id}"
    return _shape(kept)


@router.get("/{id}")
def get_saved_query(context: InContext, actor: Viewer, id: str) -> SavedQueryOut:
    """One, by id or name."""
    with context.catalog.read() as session:
        return _shape(by_id_or_name(session, SavedQuery, id, "saved query"))


@router.delete("/{id}", status_code=204)
@owned
def delete_saved_query(context: InContext, actor: Operator, id: str) -> None:
    """Forget one."""
    with context.catalog.begin() as session:
        kept = by_id_or_name(session, SavedQuery, id, "saved query")
        may_change(actor, kept.owner_id)
        session.delete(kept)
        record(session, "saved_query.deleted", f"question {kept.name} was forgotten", actor_id=actor.id,
               data={"query_id": kept.id})  # fmt: skip


def _taken(name: str) -> Problem:
    return Problem("conflict.name_taken", f'there is a saved query "{name}" already; take another name')


def _shape(kept: SavedQuery) -> SavedQueryOut:
    return SavedQueryOut(
        id=kept.id, name=kept.name, question=kept.question, owner_id=kept.owner_id, created_at=iso(kept.created_at_us)
    )
