"""Logging in and out, for browsers; programs have API keys."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Request, Response
from pydantic import Field
from sqlalchemy import select

from backend.api.shapes import Body
from backend.api.users import Me, Password, shape_me
from backend.auth.actor import Actor, Viewer
from backend.auth.limits import address_of, limits_of
from backend.auth.passwords import hash_password, is_outdated, matches
from backend.auth.sessions import COOKIE, clear_cookie, end_session, open_session, set_cookie
from backend.catalog.events import record
from backend.catalog.models import User
from backend.context import Context, InContext
from backend.problems import Problem

router = APIRouter(prefix="/api/v1/sessions", tags=["sessions"])
_log = logging.getLogger("streamjoin.auth")


class LogIn(Body):
    """A name and its password."""

    name: str = Field(max_length=100)
    password: Password


@router.post("", status_code=201)
def log_in(context: InContext, request: Request, response: Response, body: LogIn) -> Me:
    """Log in: the answer sets a cookie that opens everything else, until it expires or is ended."""
    settings = context.settings
    if settings.auth == "off":
        raise Problem("conflict.auth_is_off", "auth is off, so nobody logs in; set STREAMJOIN_AUTH=on")
    name = body.name.lower()
    address = address_of(request.scope.get("client"))
    limits = limits_of(context)
    limits.check_login(name, address)
    seen = None
    if name.isprintable():  # a database may refuse to look for anything else
        with context.catalog.read() as session:
            seen = session.scalar(select(User).where(User.name == name))
    # The password first, whatever else is wrong: the answer and its time are the same for all reasons.
    if not matches(body.password, seen.password if seen else None) or seen is None or seen.disabled:
        # Not what was typed: people type passwords into the wrong field.
        _note_failure(context, seen, address)
        raise _refused()
    limits.forgive_login(name, address)
    renewed = hash_password(body.password) if seen.password and is_outdated(seen.password) else None
    with context.catalog.begin() as session:
        user = session.get(User, seen.id)
        if user is None or user.disabled or user.password != seen.password:
            raise _refused()
        if renewed is not None:
            user.password = renewed
        token = open_session(session, user.id, settings.session_hours, request.cookies.get(COOKIE))
        record(session, "session.opened", f"{user.name} logged in", actor_id=user.id, data={"address": address})
    set_cookie(settings, request, response, token)
    return shape_me(Actor(user.id, user.name, user.role))


@router.delete("/current", status_code=204)
def log_out(context: InContext, actor: Viewer, request: Request, response: Response) -> None:
    """End this login; the cookie opens nothing any more, wherever it was copied to.

    The API keys that it made end as well, but for those that were made to go on (`ends_with_login: false`).
    """
    token = request.cookies.get(COOKIE)
    if token is not None:
        with context.catalog.begin() as session:
            if (keys := end_session(session, token)) is not None:
                address = address_of(request.scope.get("client"))
                more = f", which ended {keys} key{'' if keys == 1 else 's'}" if keys else ""
                record(session, "session.closed", f"{actor.name} logged out{more}", actor_id=actor.id,
                       data={"address": address, "keys": keys})  # fmt: skip
        clear_cookie(context.settings, request, response)


def _note_failure(context: Context, seen: User | None, address: str) -> None:
    name = seen.name if seen else "an unknown user"
    _log.warning("refused to log in %s from %s", name, address)
    # Attempts are limited, and so are these lines.
    with context.catalog.begin() as session:
        record(session, "session.refused", f"somebody failed to log in as {name}", severity="warning",
               data={"address": address, "user_id": seen.id if seen else None})  # fmt: skip


def _refused() -> Problem:
    return Problem(
        "unauthenticated.wrong_login", "the name or the password is wrong, or the user is disabled",
        headers={"WWW-Authenticate": "Bearer"},
    )  # fmt: skip
