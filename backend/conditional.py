"""`If-None-Match`: who has a reply already is told so (304) instead of getting it again.

That is for replies that come in one piece. Where the route named no version, the reply's own bytes are one.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from backend.paths import path_of

STATES: Final = "/api/v1/jobs/"
"""The version of a job is that of its definition; what it does meanwhile is in the reply as well."""
API: Final = "/api/v1/"
_KEPT: Final = (b"etag", b"link", b"cache-control")


class Conditional:
    """ASGI middleware around the routes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        if scope["type"] != "http" or scope["method"] != "GET" or not path_of(scope).startswith(API):
            await self.app(scope, receive, send)
            return
        asked = dict(scope["headers"]).get(b"if-none-match")
        if asked is None or path_of(scope).startswith(STATES):
            await self.app(scope, receive, send)
            return
        known = {tag.strip().removeprefix(b"W/") for tag in asked.split(b",")}
        await self.app(scope, receive, _Answer(send, known).take)


class _Answer:
    """Holds back how an answer begins, until its first piece is there."""

    def __init__(self, send: Send, known: set[bytes]) -> None:
        self.send = send
        self.known = known
        self.start: MutableMapping[str, Any] | None = None

    async def take(self, message: MutableMapping[str, Any]) -> None:
        """The app sends a part of it."""
        if message["type"] == "http.response.start" and message["status"] == 200:
            self.start = message
            return
        if self.start is not None:
            start, self.start = self.start, None
            if not message.get("more_body"):
                headers = dict(start["headers"])
                tag = headers.get(b"etag") or tag_of(message.get("body", b""))
                if b"*" in self.known or tag.removeprefix(b"W/") in self.known:
                    kept = [(name, value) for name, value in start["headers"] if name in _KEPT and name != b"etag"]
                    await self.send({"type": "http.response.start", "status": 304, "headers": [*kept, (b"etag", tag)]})
                    await self.send({"type": "http.response.body", "body": b""})
                    return
                if b"etag" not in headers:
                    start["headers"] = [*start["headers"], (b"etag", tag)]
            await self.send(start)
        await self.send(message)


def tag_of(body: bytes) -> bytes:
    """The version of a reply that has no other."""
    return b'W/"%s"' % hashlib.sha256(body).hexdigest()[:32].encode()
