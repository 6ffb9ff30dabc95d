"""Logins of browsers: a cookie with a random token, whose hash is kept, so that each login can be ended."""

from __future__ import annotations

import secrets
from typing import Any, cast

from fastapi import Request, Response
from sqlalchemy import CursorResult, delete, select
from sqlalchemy.orm import Session as CatalogSession

from backend.auth.keys import hash_of, revoke_keys_of_login, revoke_keys_of_logins
from backend.catalog.ids import now_us
from backend.catalog.models import Session, User
from backend.settings import Settings

COOKIE = "streamjoin_session"


def open_session(session: CatalogSession, user_id: str, hours: float, former: str | None) -> str:
    """Begin a login in this transaction.

    Args:
        former: the token that the browser came with. It is ended, and never taken over: who planted it would share
            the login.
    Returns:
        The token for the cookie.
    """
    now = now_us()
    session.execute(delete(Session).where(Session.expires_at_us <= now))
    if former is not None:
        end_session(session, former)
    token = secrets.token_urlsafe(32)
    session.add(
        Session(hash=hash_of(token), user_id=user_id, created_at_us=now, expires_at_us=now + int(hours * 3.6e9))
    )
    return token


def find_session(session: CatalogSession, token: str) -> User | None:
    """Who is logged in; None where the login ended, expired, or its user is disabled."""
    return session.scalar(
        select(User)
        .join(Session, Session.user_id == User.id)
        .where(Session.hash == hash_of(token), Session.expires_at_us > now_us(), User.disabled.is_(False))
    )


def end_session(session: CatalogSession, token: str) -> int | None:
    """End one login, and the keys that it made to end with it; gives how many these were, None without a login."""
    ended = session.execute(delete(Session).where(Session.hash == hash_of(token)))
    keys = revoke_keys_of_login(session, token)
    return keys if cast("CursorResult[Any]", ended).rowcount else None


def end_sessions_of(session: CatalogSession, user_id: str) -> None:
    """End all logins of a user; keys that logins made, ever, end as well."""
    revoke_keys_of_logins(session, user_id)
    session.execute(delete(Session).where(Session.user_id == user_id))


def set_cookie(settings: Settings, request: Request, response: Response, token: str) -> None:
    """Give the browser its token; scripts cannot read it, and other sites' forms do not carry it."""
    response.set_cookie(
        COOKIE, token, max_age=int(settings.session_hours * 3600), path=settings.root_path or "/", httponly=True,
        samesite="lax", secure=_is_https(request),
    )  # fmt: skip


def clear_cookie(settings: Settings, request: Request, response: Response) -> None:
    """Take it back."""
    response.delete_cookie(
        COOKIE, path=settings.root_path or "/", httponly=True, samesite="lax", secure=_is_https(request)
    )


def _is_https(request: Request) -> bool:
    # Behind a proxy that ends TLS the request itself is plain; the browser's Origin says what it sees.
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
