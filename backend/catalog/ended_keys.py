"""API keys that ended: when they did, and forgetting them. Apart from `auth.keys`, so the reconciler can import it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, delete, exists, func, or_
from sqlalchemy.orm import Session, aliased

from backend.catalog.models import ApiKey


def ended_at_us(key: type[ApiKey] = ApiKey) -> ColumnElement[int | None]:
    """When a key was revoked, or else expires; NULL if it does not end."""
    return func.coalesce(key.revoked_at_us, key.expires_at_us)


def forget_ended(session: Session, before_us: int) -> None:
    """Remove keys that ended before some time, except those that made a key which did not."""
    made = aliased(ApiKey)
    lives = or_(ended_at_us(made).is_(None), ended_at_us(made) >= before_us)
    leaves_some = exists().where(made.made_by_key == ApiKey.id, lives)
    session.execute(delete(ApiKey).where(ended_at_us() < before_us, ~leaves_some))
