"""Who asks, and whether they may: viewers read, operators make things and change their own, admins do everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from anyio.to_thread import run_sync
from fastapi import Depends, Request, Security, WebSocket
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.requests import HTTPConnection

from backend.auth.keys import bearer_of, find_key, touch
from backend.auth.origin import is_allowed_origin
from backend.auth.sessions import COOKIE, find_session
from backend.context import Context, context_of
from backend.problems import Problem

ROLES: Final = ("viewer", "operator", "admin")
"""From the least to the most."""
_OWNED: Final = "is_owned"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
STATE: Final = "actor"
"""Where in a request's state the actor is kept, once known."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks.

    Args:
        id: of the user; None where auth is off.
        role: viewer, operator or admin: the user's, or less where a key has less.
        key_id: of the API key that was used, if one was.
        owner_role: the user's own, where a key may have less.
    """

    id: str | None
    name: str
    role: str
    key_id: str | None = None
    owner_role: str | None = None

    def is_at_least(self, role: str) -> bool:
        """Whether they may do what `role` may."""
        return ROLES.index(self.role) >= ROLES.index(role)


ANYBODY: Final = Actor(None, "anybody", "admin")
"""Everybody, where auth is off."""


async def identify(context: Context, connection: HTTPConnection) -> Actor | None:
    """Who sent this request or opened this websocket; None where that opens nothing.

    A key decides by itself: a wrong one is not made good by a cookie.

    Cost: one look into the catalog, in a thread, where there is something to look for.
    """
    if context.settings.auth == "off":
        return ANYBODY
    key = bearer_of(connection.headers)
    token = connection.cookies.get(COOKIE)
    if key is None and not token:
        return None
    return await run_sync(_look_up, context, key, token or "")


def _look_up(context: Context, key: str | None, token: str) -> Actor | None:
    if key is not None:
        with context.catalog.read() as session:
            found = find_key(session, key)
        if found is None:
            return None
        row, user = found
        touch(context.catalog, row)
        return Actor(user.id, user.name, min(row.role, user.role, key=ROLES.index), row.id, user.role)
    with context.catalog.read() as session:
        owner = find_session(session, token)
    return None if owner is None else Actor(owner.id, owner.name, owner.role)


async def actor_of(connection: HTTPConnection) -> Actor | None:
    """Who asks; looked up once a request."""
    state: dict[str, Any] = connection.scope.setdefault("state", {})
    if STATE not in state:
        state[STATE] = await identify(context_of(connection), connection)
    actor = state[STATE]
    assert actor is None or isinstance(actor, Actor)
    return actor


async def actor_of_websocket(websocket: WebSocket) -> Actor | None:
    """Who is at the other end just now; None where nobody is who may be.

    Asked again it looks again, so that a websocket can end when the login or the key behind it did. A cookie counts
    only if the page that sent it is ours: browsers let every page open websockets everywhere.
    """
    context = context_of(websocket)
    if context.settings.auth == "on" and bearer_of(websocket.headers) is None:
        origin = websocket.headers.get("origin")
        if origin is None or not is_allowed_origin(context.settings, origin, websocket.headers.get("host")):
            return None
    return await identify(context, websocket)


def may_change(actor: Actor, owner_id: str | None) -> None:
    """Operators change and delete what is their own; admins everything.

    Raises:
        Problem: they may not.
    """
    if actor.role == "admin":
        return
    if not actor.is_at_least("operator"):
        raise _too_little(actor, "operator")
    if actor.id is None or actor.id != owner_id:
        raise Problem("forbidden.not_owner", "this belongs to somebody else; its owner or an admin can change it")


def owned(endpoint: Endpoint) -> Endpoint:
    """Mark the function of a route that asks `may_change`; the API's description says so."""
    setattr(endpoint, _OWNED, True)
    return endpoint


def is_owned(endpoint: Callable[..., Any] | None) -> bool:
    """Whether a route is marked."""
    return getattr(endpoint, _OWNED, False)


def unauthenticated() -> Problem:
    """Of who gave no key and no cookie, or ones that open nothing."""
    return Problem(
        "unauthenticated.no_login",
        "log in, or send an API key as Authorization: Bearer sj_...; a key may have been revoked, a login expired",
        headers={"WWW-Authenticate": "Bearer"},
    )


class AtLeast:
    """A dependency of routes: who asks, refused unless they have the role."""

    def __init__(self, role: str) -> None:
        self.role = role

    async def __call__(
        self,
        request: Request,
        _key: Annotated[Any, Security(HTTPBearer(auto_error=False, scheme_name="key"))],
        _cookie: Annotated[Any, Security(APIKeyCookie(name=COOKIE, auto_error=False, scheme_name="session"))],
    ) -> Actor:
        """FastAPI's; the two schemes are there for the API's description."""
        return await self.actor(request)

    async def actor(self, request: Request) -> Actor:
        """Who asks.

        Raises:
            Problem: nobody who may.
        """
        actor = await actor_of(request)
        if actor is None:
            raise unauthenticated()
        if not actor.is_at_least(self.role):
            raise _too_little(actor, self.role)
        return actor


Viewer = Annotated[Actor, Depends(AtLeast("viewer"))]
Operator = Annotated[Actor, Depends(AtLeast("operator"))]
Admin = Annotated[Actor, Depends(AtLeast("admin"))]


def _too_little(actor: Actor, needed: str) -> Problem:
    by = "this key has" if actor.key_id else "you have"
    way = "an admin can change that"
    if actor.key_id and actor.owner_role and ROLES.index(actor.owner_role) >= ROLES.index(needed):
        way = f"make a key with the role {needed}"
    detail = f"this needs the role {needed}, and {by} {actor.role}; {way}"
    return Problem("forbidden.role_too_low", detail, params={"needed": needed, "has": actor.role})
