"""What people name by its id or by its name."""

from __future__ import annotations

from typing import Any, TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from backend.catalog.database import Lock, hold
from backend.catalog.models import Relation, Stream
from backend.problems import Problem

T = TypeVar("T")


def by_id_or_name(session: Session, kind: type[T], id_or_name: str, what: str, *, held: bool = False) -> T:
    """The row of a table with `id` and a unique `name`.

    Args:
        held: nobody else changes it until this transaction ends, so what it says of its version stays true.
    Raises:
        Problem: there is none.
    """
    table: Any = kind
    # An id goes first, so that no name can stand for another's id.
    named = select(kind).where(table.name == id_or_name)
    found = None
    if "\0" not in id_or_name:  # PostgreSQL fails when asked for one
        found = session.get(kind, id_or_name, with_for_update=held or None) or session.scalar(
            named.with_for_update() if held else named
        )
    if found is None:
        name = id_or_name[:100]
        raise Problem("not_found.unknown_name", f'there is no {what} "{name}"', params={"what": what, "name": name})
    return found


def check_free(session: Session, name: str) -> None:
    """Refuse a name that queries have for a stream or a relation already, in whatever case; nobody takes it meanwhile.

    Raises:
        Problem: it is taken.
    """
    hold(session, Lock.NAMING)
    for table, what in ((Stream, "stream"), (Relation, "relation")):
        taken = session.scalar(select(table.name).where(func.lower(table.name) == name.lower()))
        if taken is not None:
            detail = f'there is a {what} "{taken}" already; change it, or take another name'
            raise Problem("conflict.name_taken", detail, params={"name": taken})
