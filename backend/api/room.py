"""How many streams, relations and jobs there may be: of one user, and of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.auth.actor import Actor
from backend.catalog.database import Lock, hold
from backend.catalog.models import Job, Relation, Stream
from backend.problems import Problem
from backend.settings import Settings
from backend.shares import has_share

Kind = type[Stream] | type[Relation] | type[Job]
_SUBCODES: Final[Mapping[Kind, str]] = {
    Stream: "too_many_streams",
    Relation: "too_many_relations",
    Job: "too_many_jobs",
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
    many = kind.__tablename__
    setting, most = f"{many}_max", getattr(settings, f"{many}_max")
    if _count(session, kind) >= most:
        raise _full(kind, f"there are {most:,} {many}, and there may be no more", "all", setting, most)
    if not has_share(settings, session, actor.id):
        return
    setting, most = settings.of_one_user(setting)
    if _count(session, kind, actor.id) >= most:
        raise _full(kind, f"you have {most:,} {many}, and one user may have no more", "one", setting, most)


def _count(session: Session, kind: Kind, owner_id: str | None = None) -> int:
    counted = select(func.count()).select_from(kind)
    if owner_id is not None:
        counted = counted.where(kind.owner_id == owner_id)
    return session.scalars(counted).one()


def _full(kind: Kind, what: str, of: str, setting: str, most: int) -> Problem:
    way_out = f"delete one that is not needed, or ask the platform's owner to raise STREAMJOIN_{setting.upper()}"
    return Problem(f"conflict.{_SUBCODES[kind]}", f"{what}; {way_out}", params={"limit": most, "of": of})
