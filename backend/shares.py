"""What one user may have of what all share. Whoever is alone may have all of it: nobody else would miss it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.catalog.models import Stream, User
from backend.context import Context
from backend.problems import Problem
from backend.settings import Settings
from backend.space import Space, bytes_in
from backend.streams import spool
from backend.uploads import store
from backend.uploads.names import folder_of


def has_share(settings: Settings, session: Session, owner_id: str | None) -> bool:
    """Whether an owner's share is a limit: it is known who that is, and somebody else may send or start things, too."""
    if settings.auth == "off" or owner_id is None:
        return False
    others = select(User.id).where(User.id != owner_id, User.disabled.is_(False), User.role != "viewer")
    return session.scalar(others.limit(1)) is not None


def spool_space(context: Context, owner_id: str | None) -> Space:
    """The space for rows that are pushed into streams of this owner, whoever pushes them."""
    whole = _whole(context, context.settings.data.absolute() / "spool", "spool_bytes_max")
    return _share(context, whole, owner_id, "spool_bytes_max", partial(_bytes_pushed, context, owner_id),
                  "the rows in streams of this stream's owner take",
                  "delete streams that are not needed, whose rows go with them")  # fmt: skip


def uploads_space(context: Context, owner_id: str | None) -> Space:
    """The space for files that this user uploads, whoever uses them."""
    folder = folder_of(context.settings)
    whole = _whole(context, folder, "uploads_bytes_max")
    return _share(context, whole, owner_id, "uploads_bytes_max", lambda: store.bytes_of(folder, owner_id),
                  "the files that you uploaded take", "delete uploads that are not needed")  # fmt: skip


def _bytes_pushed(context: Context, owner_id: str | None) -> int:
    with context.catalog.read() as session:
        ids = session.scalars(select(Stream.id).where(Stream.owner_id == owner_id)).all()
    return bytes_in(*(spool.folder_of(context.settings.data, id) for id in ids))


def _whole(context: Context, folder: Path, setting: str) -> Space:
    bytes_max: int = getattr(context.settings, setting)

    def refusal(taken: int) -> Problem:
        return Problem(
            "conflict.space_used_up",
            f"what people sent takes {taken:,} bytes, and {bytes_max:,} is the limit; remove what "
            f"is not needed, or ask the platform's owner, who set STREAMJOIN_{setting.upper()}",
            params={"limit": bytes_max},
        )

    return cast(Space, context.shared.setdefault(setting, Space(partial(bytes_in, folder), bytes_max, refusal)))


def _share(
    context: Context, whole: Space, owner_id: str | None, setting: str, measured: Callable[[], int],
    what: str, way_out: str,
) -> Space:  # fmt: skip
    """An owner's part of the whole; the whole where that owner has no share."""
    with context.catalog.read() as session:
        if not has_share(context.settings, session, owner_id):
            return whole
    setting, bytes_max = context.settings.of_one_user(setting)

    def refusal(taken: int) -> Problem:
        return Problem(
            "conflict.space_share_used_up",
            f"{what} {taken:,} bytes, and {bytes_max:,} is the limit for one user; {way_out}, or ask the platform's "
            f"owner to raise STREAMJOIN_{setting.upper()}",
            params={"limit": bytes_max, "used": taken},
        )

    made = Space(measured, bytes_max, refusal, within=whole)
    return cast(Space, context.shared.setdefault(f"{setting} {owner_id}", made))
