"""What every request passes before a route sees it: where it comes from, who sent it, and how often they did.

Anonymous requests end here, except on the few routes of `OPEN`: a body of somebody unknown is not even read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from anyio.to_thread import run_sync
from fastapi import FastAPI
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.auth import origin
from backend.auth.actor import STATE, Actor, identify, unauthenticated
from backend.auth.audit import audit_of, is_noted
from backend.auth.gate import gate_of, is_free
from backend.auth.keys import bearer_of
from backend.auth.limits import address_of, limits_of
from backend.auth.sessions import COOKIE
from backend.context import Context
from backend.paths import endpoint_of, path_of
from backend.problems import CATALOG_IS_AWAY, Problem, catalog_away, send_problem
from backend.problems import STATE as PROBLEM

API = "/api/"
METRICS = "/metrics"
"""Beside the API, and read from the catalog as much of it is."""
NOTE = "note"
"""Where in a request's state `note` is for what is refused while a websocket goes on."""
OPEN = frozenset({("GET", "/api/v1/openapi.json"), ("HEAD", "/api/v1/openapi.json"), ("POST", "/api/v1/sessions")})
"""What nobody needs to log in for."""
OPEN_BELOW = ("/api/v1/problems/",)


async def note(context: Context, problem: Problem, connection: HTTPConnection) -> None:
    """Have a line of a refusal that somebody may look for; the actor is who the guard let in, if it came so far."""
    if not is_noted(problem, with_key=bearer_of(connection.headers) is not None):
        return
    scope = connection.scope
    actor = scope["state"].get(STATE)
    who, address, audit = actor and actor.id, address_of(scope.get("client")), audit_of(context)
    if not (times := audit.due(problem, who=who, address=address)):
        return
    await run_sync(partial(
        audit.refused, problem, times=times, who=who, name=actor.name if actor else "somebody", address=address,
        asked=f"{scope.get('method', 'WEBSOCKET')} {path_of(scope)}",
    ))  # fmt: skip


def install(app: FastAPI, context: Context) -> None:
    """Put the guard around the routes and all middleware that was added so far, which sees only what was let in.

    Raises:
        InputError: the setting of a limit is wrong.
    """
    limits_of(context)
    app.add_middleware(Guard, context=context)


class Guard:
    """Refuses foreign pages, strangers and floods."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self.app = app
        self.context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        state = scope.setdefault("state", {})
        async with AsyncExitStack() as held:
            try:
                await self._check(connection)
                await held.enter_async_context(self._turn(connection))
            except Problem as problem:
                await _refuse(problem, scope, send)
                await note(self.context, problem, connection)
                return
            if scope["type"] == "websocket":
                state[NOTE] = partial(note, self.context, connection=connection)
            await self.app(scope, receive, send)
        refused = state.get(PROBLEM)
        if isinstance(refused, Problem):
            await note(self.context, refused, connection)

    async def _check(self, connection: HTTPConnection) -> None:
        scope = connection.scope
        settings = self.context.settings
        origin.check_host(settings, connection.headers.get("host"))
        if scope["type"] == "websocket":
            origin.check_websocket(settings, connection.headers)
        else:
            origin.check_request(settings, scope["method"], connection.headers, has_cookie=COOKIE in connection.cookies)
        path = path_of(scope)
        if "\0" in path or b"%00" in scope.get("query_string", b""):
            # No name has one, and PostgreSQL fails when asked for one.
            raise Problem("bad_request.nul_in_address", "the address has a NUL character; leave it out")
        if not _is_guarded(path):
            return
        actor = await self._admit(connection)
        # A websocket says why it closes only after it was accepted, so its route does that.
        if actor is None and scope["type"] == "http" and not is_open(scope["method"], path):
            raise unauthenticated()

    @asynccontextmanager
    async def _turn(self, connection: HTTPConnection) -> AsyncIterator[None]:
        scope = connection.scope
        has_none = scope["type"] == "websocket" or not _is_guarded(path_of(scope)) or is_free(endpoint_of(scope))
        if self.context.settings.auth == "off" or has_none:
            yield
            return
        async with gate_of(self.context).turn(_who(connection)):
            yield

    async def _admit(self, connection: HTTPConnection) -> Actor | None:
        try:
            actor = await identify(self.context, connection)
        except CATALOG_IS_AWAY as failure:
            raise catalog_away(failure) from None
        if connection.scope["type"] == "http":
            connection.scope["state"][STATE] = actor
        await limits_of(self.context).check_request(_who(connection, actor))
        return actor


def _who(connection: HTTPConnection, actor: Actor | None = None) -> str:
    """Whose limits count. A key or cookie that opens nothing counts for its address: guessing must not escape them."""
    actor = actor or connection.scope["state"].get(STATE)
    return actor.id if actor is not None and actor.id is not None else address_of(connection.scope.get("client"))


def _is_guarded(path: str) -> bool:
    return path.startswith(API) or path == METRICS


def is_open(method: str, path: str) -> bool:
    """Whether this needs no login."""
    return (method, path) in OPEN or (method in ("GET", "HEAD") and path.startswith(OPEN_BELOW))


async def _refuse(problem: Problem, scope: Scope, send: Send) -> None:
    if scope["type"] == "http" or "websocket.http.response" in scope.get("extensions", {}):
        await send_problem(scope, problem, send)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": problem.code})
