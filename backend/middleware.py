"""What happens to every request: an id, a limit of its body, and a line in the log if somebody may look for it."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import MutableMapping
from typing import Any

import structlog
from fastapi import FastAPI
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.auth import guard
from backend.auth.actor import STATE
from backend.catalog.ids import new_id
from backend.conditional import Conditional
from backend.context import Context
from backend.idempotency import IdempotentPosts
from backend.paths import Below, path_of
from backend.problems import Problem, send_problem
from backend.streams import spool
from streamjoin.sources.patterns import listing_bounded

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,100}")
_log = logging.getLogger("streamjoin.requests")
SLOW_MS = 500.0
"""Reads come by the hundred a second; those that were answered well and sooner leave no line in the log."""
UPLOAD = ("POST", "/api/v1/uploads")
"""Its body is a file, and has a limit of its own."""
ROWS = re.compile(r"/api/v1/streams/[^/]+/rows")
"""Where rows are pushed; other bodies are short texts, which are parsed while others wait."""
TEXT_BYTES_MAX = 256 << 10
OPEN_BYTES_MAX = 4 << 10
"""Of bodies that are parsed before the sender is known: a name and a password, however they are escaped."""
QUIET = ("/livez", "/readyz", "/metrics")
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
TLS_HEADERS = (
    (b"strict-transport-security", b"max-age=31536000"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
"""Of replies that reach the browser encrypted: browsers take them from no others."""


def install(app: FastAPI, context: Context) -> None:
    """Put all of it around the app; what is added last is outermost."""
    app.add_middleware(Conditional)
    # A reply that is kept is for those who pass the guard today, so the guard stands outside of it.
    app.add_middleware(
        IdempotentPosts, settings=context.settings, catalog=context.catalog, actor_of=idempotent_actor
    )  # fmt: skip
    guard.install(app, context)
    app.add_middleware(Requests, context=context)
    if context.settings.root_path:
        app.add_middleware(Below, root_path=context.settings.root_path)


def idempotent_actor(scope: Scope) -> str:
    """Whose idempotency keys count: the same after logging in again, and others for a key with less rights."""
    actor = scope["state"].get(STATE)
    return f"{actor.id}/{actor.role}" if actor is not None else ""


class Requests:
    """Gives each request its id, refuses bodies that are too large, and logs what was answered."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self.app = app
        self.context = context
        self.rows_bytes_max = context.settings.body_bytes_max
        self.upload_bytes_max = context.settings.upload_bytes_max

    def _limit(self, scope: Scope) -> int:
        method, path = scope["method"], path_of(scope)
        if (method, path) == UPLOAD:
            return self.upload_bytes_max
        if guard.is_open(method, path):
            return OPEN_BYTES_MAX
        return self.rows_bytes_max if ROWS.fullmatch(path) else min(TEXT_BYTES_MAX, self.rows_bytes_max)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given.decode() if _REQUEST_ID.fullmatch(given) else new_id("req")
        scope.setdefault("state", {})["request_id"] = request_id
        begun_s = time.perf_counter()
        root = scope.get("root_path", "").encode()
        always = SECURITY_HEADERS + (TLS_HEADERS if scope["scheme"] == "https" else ())
        status = 500
        taken = 0
        bytes_max = self._limit(scope)

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > bytes_max:
                raise _too_large(scope, bytes_max)
            return message

        async def marked(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *(
                        (name, root + value if name == b"location" and value.startswith(b"/api/") else value)
                        for name, value in message["headers"]
                    ),
                    (b"x-request-id", request_id.encode()),
                    *((name, value) for name, value in always if name not in present),
                ]
            await send(message)

        # Rows that were posted lie in as many files as there were posts, and nobody could choose fewer of them.
        own = spool.all_of(self.context.settings.data)
        with structlog.contextvars.bound_contextvars(request_id=request_id), listing_bounded(own):
            length = headers.get(b"content-length", b"0")
            if length.isdigit() and int(length) > bytes_max:
                await self._refuse(_too_large(scope, bytes_max), scope, marked)
            else:
                try:
                    await self.app(scope, limited, marked)
                except Problem as problem:  # the body grew too large while it was read outside a route
                    await self._refuse(problem, scope, marked)
            took_ms = (time.perf_counter() - begun_s) * 1e3
            if path_of(scope) not in QUIET and (scope["method"] != "GET" or status >= 400 or took_ms >= SLOW_MS):
                _log.info("%s %s -> %d in %.1f ms", scope["method"], scope["path"], status, took_ms)

    async def _refuse(self, problem: Problem, scope: Scope, send: Send) -> None:
        await send_problem(scope, problem, send)
        await guard.note(self.context, problem, HTTPConnection(scope))


def _too_large(scope: Scope, limit: int) -> Problem:
    if (scope["method"], path_of(scope)) == UPLOAD:
        return Problem(
            "too_large.upload_too_large",
            f"the file is larger than {limit:,} bytes, the limit of uploads (STREAMJOIN_UPLOAD_BYTES_MAX); put it into "
            "a folder that streams may read, and register its path",
            params={"limit": limit},
        )
    return Problem("too_large.body_too_large", f"the body is larger than {limit:,} bytes, which is the limit",
                   params={"limit": limit})  # fmt: skip
