"""How many streams, relations, jobs, saved queries and uploads there may be: of one user, and of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.auth.actor import Actor
from backend.catalog.database import Lock, hold
from backend.catalog.models import Job, Relation, SavedQuery, Stream
from backend.context import Context
from backend.problems import Problem
from backend.settings import Settings
from backend.shares import has_share
from backend.uploads import store
from backend.uploads.names import folder_of

Kind = type[Stream] | type[Relation] | type[Job] | type[SavedQuery]
_SUBCODES: Final[Mapping[str, str]] = {
    "streams": "too_many_streams",
    "relations": "too_many_relations",
    "jobs": "too_many_jobs",
    "saved_queries": "too_many_saved_queries",
    "uploads": "too_many_uploads",
}


def check_room(settings: Settings, session: Session, kind: Kind, actor: Actor, *, held: bool = False) -> None:
    """Refuse one more than there may be.

    Args:
        held: nobody else adds one until this transaction, which may write, ends.
    Raises:
        Problem: names the limit, and the setting.
    Cost: counts the rows of a table.
    """
    if held:
        hold(session, Lock.ADDING)

    def count(owner_id: str | None = None) -> int:
        counted = select(func.count()).select_from(kind)
        return session.scalars(counted if owner_id is None else counted.where(kind.owner_id == owner_id)).one()

    _check(settings, session, kind.__tablename__, actor, count)


def check_room_of_uploads(context: Context, actor: Actor, name: str) -> None:
    """Refuse one more upload than there may be. Uploads that come in at the same moment are not counted.

    Args:
        name: of the upload; sending one again that is there does not make it one more.
    Raises:
        Problem: names the limit, and the setting.
    Cost: that of `store.all_of`.
    """
    folder = folder_of(context.settings)
    if store.find(folder, name) is not None:
        return
    there = store.all_of(folder)

    def count(owner_id: str | None = None) -> int:
        return sum(owner_id in (None, upload.owner_id) for upload in there)

    with context.catalog.read() as session:
        _check(context.settings, session, "uploads", actor, count)


def _check(settings: Settings, session: Session, many: str, actor: Actor, count: Callable[..., int]) -> None:
    """Compare the count of all with its limit, and then that of one user."""
    words = many.replace("_", " ")
    setting, most = f"{many}_max", getattr(settings, f"{many}_max")
    if count() >= most:
        raise _full(many, f"there are {most:,} {words}, and there may be no more", "all", setting, most)
    if not has_share(settings, session, actor.id):
        return
    setting, most = settings.of_one_user(setting)
    if count(actor.id) >= most:
        raise _full(many, f"you have {most:,} {words}, and one user may have no more", "one", setting, most)


def _full(many: str, what: str, of: str, setting: str, most: int) -> Problem:
    way_out = f"delete one that is not needed, or ask the platform's owner to raise STREAMJOIN_{setting.upper()}"
    return Problem(f"conflict.{_SUBCODES[many]}", f"{what}; {way_out}", params={"limit": most, "of": of})
