"""API keys: shown once when they are made, kept as their hash."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Mapping

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.orm import Session

from backend.catalog.database import Catalog
from backend.catalog.ids import new_id, now_us
from backend.catalog.models import ApiKey, User
from backend.problems import CATALOG_IS_AWAY

PREFIX = "sj_"
START_LETTERS = 10
TOUCH_US = 60_000_000
_KEY = re.compile(r"sj_[A-Za-z0-9_-]{43}")
_log = logging.getLogger("streamjoin.auth")


def hash_of(secret: str) -> str:
    """What the catalog keeps of a key or a session's token; they have 256 random bits, so a fast hash will do."""
    return hashlib.sha256(secret.encode()).hexdigest()


def make_key(
    user_id: str, name: str, role: str, expires_at_us: int | None = None, *, by_key: str | None = None,
    by_session: str | None = None, ends_with_login: bool = False,
) -> tuple[ApiKey, str]:  # fmt: skip
    """A new key for the catalog, and its text, which exists nowhere else.

    Args:
        by_key, by_session: the id of the key, or the token of the login, that makes it.
        ends_with_login: whether it ends with that login.
    """
    key = PREFIX + secrets.token_urlsafe(32)
    row = ApiKey(
        id=new_id("key"), user_id=user_id, name=name, start=key[:START_LETTERS], hash=hash_of(key), role=role,
        created_at_us=now_us(), used_at_us=None, revoked_at_us=None, expires_at_us=expires_at_us, made_by_key=by_key,
        made_by_session=None if by_session is None else hash_of(by_session),
        ends_with_login=ends_with_login and by_session is not None,
    )  # fmt: skip
    return row, key


def revoke(session: Session, key: ApiKey) -> list[ApiKey]:
    """Revoke a key in this transaction, with those that it made, and those that these made; gives all of them."""
    ended = [key]
    for one in ended:  # grows
        if one.revoked_at_us is None:
            one.revoked_at_us = now_us()
        ended += session.scalars(select(ApiKey).where(ApiKey.made_by_key == one.id, ApiKey.revoked_at_us.is_(None)))
    return ended


def revoke_keys_of_logins(session: Session, user_id: str) -> int:
    """Revoke what a user's logins made, with what these keys made; gives how many there were.

    Whoever had one of these logins may have made a key to come back with, and have logged out since.
    """
    return _revoke_all(session, ApiKey.user_id == user_id, ApiKey.made_by_session.is_not(None))


def revoke_keys_of_login(session: Session, token: str) -> int:
    """Revoke what one login made to end with it, with what these keys made; gives how many there were."""
    return _revoke_all(session, ApiKey.made_by_session == hash_of(token), ApiKey.ends_with_login.is_(True))


def _revoke_all(session: Session, *which: ColumnElement[bool]) -> int:
    made = session.scalars(select(ApiKey).where(*which, ApiKey.revoked_at_us.is_(None))).all()
    return len({one.id for key in made for one in revoke(session, key)})


def bearer_of(headers: Mapping[str, str]) -> str | None:
    """What stands in `Authorization: Bearer ...`; None where there is no such header."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else None


def find_key(session: Session, key: str) -> tuple[ApiKey, User] | None:
    """The key and its user; None for anything that opens nothing: unknown, revoked, over, or of a disabled user."""
    if not _KEY.fullmatch(key):
        return None
    found = session.execute(
        select(ApiKey, User)
        .join(User, User.id == ApiKey.user_id)
        .where(
            ApiKey.hash == hash_of(key),
            ApiKey.revoked_at_us.is_(None),
            User.disabled.is_(False),
            or_(ApiKey.expires_at_us.is_(None), ApiKey.expires_at_us > now_us()),
        )
    ).one_or_none()
    return None if found is None else (found[0], found[1])


def touch(catalog: Catalog, key: ApiKey) -> None:
    """Note that a key is in use, at most once a minute. Whoever uses it is not made to fail by this."""
    now = now_us()
    if key.used_at_us is not None and now - key.used_at_us < TOUCH_US:
        return
    is_old = or_(ApiKey.used_at_us.is_(None), ApiKey.used_at_us <= now - TOUCH_US)
    try:
        with catalog.begin() as session:
            session.execute(update(ApiKey).where(ApiKey.id == key.id, is_old).values(used_at_us=now))
    except CATALOG_IS_AWAY as failure:
        _log.warning("the use of key %s could not be noted: %s", key.id, failure)
