"""Replies to requests that are done once: how much of a reply is kept, and what a repetition gets.

Status and headers are always kept, the body as long as the actor has room for it. Without the body, a repetition gets
what the request made, read anew; if that is gone or was changed, it is told that the request was done before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, select
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.catalog.database import Catalog
from backend.catalog.models import Idempotency
from backend.paths import path_of
from backend.problems import Problem, send_problem

SMALL_BYTES = 256
"""Bodies up to this size are always kept, as their row takes more. The rate limit bounds how many there are."""
REPLY_BYTES_MAX = 64 << 10
ACTOR_BYTES_MAX = 16 << 20
"""All larger bodies of one actor together."""
LOOK_S: Final = 60.0
"""How often the real amount is looked up: other processes keep replies too, and old replies go away."""
REPLAYED: Final = "Idempotency-Replayed"
_KEPT_HEADERS: Final = ("content-type", "location", "etag")


class Reply:
    """What the app answered, held back until it is kept."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.body = bytearray()
        self.messages: list[MutableMapping[str, Any]] = []

    async def take(self, message: MutableMapping[str, Any]) -> None:
        """The app sends a part of it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
        self.messages.append(message)

    def kept_headers(self) -> dict[str, str]:
        """The headers that a repetition gets, too."""
        start = next(message for message in self.messages if message["type"] == "http.response.start")
        return {
            name.decode(): value.decode() for name, value in start["headers"] if name.decode().lower() in _KEPT_HEADERS
        }


@dataclass(slots=True)
class _Looked:
    """How many bytes one actor's bodies take, and when that was last looked up."""

    at_s: float
    size: int


class Room:
    """What one process knows about the bodies kept for each actor. Safe for threads."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[str, _Looked] = {}
        self._lock = threading.Lock()

    def takes(self, actor: str, size: int) -> bool:
        """Whether a body of so many bytes is to be kept; it counts from now on.

        Cost: for bodies that are not small, the catalog reads all of the actor's rows every `LOOK_S`.
        """
        if size <= SMALL_BYTES or size > REPLY_BYTES_MAX:
            return size <= SMALL_BYTES
        known = self._known.get(actor)
        if known is None or time.monotonic() - known.at_s >= LOOK_S:
            known = self._known[actor] = _Looked(time.monotonic(), self._kept_of(actor))
        with self._lock:
            if known.size + size > ACTOR_BYTES_MAX:
                return False
            known.size += size
            return True

    def _kept_of(self, actor: str) -> int:
        size = func.length(Idempotency.reply)
        with self._catalog.read() as session:
            found = select(func.coalesce(func.sum(size), 0)).where(Idempotency.actor == actor, size > SMALL_BYTES)
            return session.scalar(found) or 0


async def replay(known: Idempotency, app: ASGIApp, scope: Scope, send: Send) -> None:
    """Answer a repetition.

    Args:
        known: what was done.
        app: asked for what the request made, if the body was not kept.
    """
    headers: dict[str, str] = known.headers or {}
    body = known.reply if known.reply is not None else await _read_again(headers, app, scope)
    if body is None:
        await send_problem(scope, _not_kept(known.status, headers, scope), send)
        return
    sent = [(name.encode(), str(value).encode()) for name, value in headers.items()]
    sent += [(b"content-length", str(len(body)).encode()), (REPLAYED.lower().encode(), b"true")]
    await send({"type": "http.response.start", "status": known.status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


async def _read_again(headers: dict[str, str], app: ASGIApp, scope: Scope) -> bytes | None:
    """The body of what a request made; None where it is gone or another version by now."""
    if (location := headers.get("location")) is None:
        return None
    path = scope.get("root_path", "") + location
    asked = {**scope, "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": []}
    reply = Reply()
    await app(asked, again(b""), reply.take)
    is_same = reply.status == 200 and reply.kept_headers().get("etag") == headers.get("etag")
    return bytes(reply.body) if is_same else None


def _not_kept(status: int | None, headers: dict[str, str], scope: Scope) -> Problem:
    where = headers.get("location") or path_of(scope).rpartition("/")[0]  # actions stand below what they change
    shown: dict[str, str] = {name: headers[name] for name in ("location", "etag") if name in headers}
    return Problem(
        "conflict.reply_not_kept",
        f"this request was done before, and answered with {status}; that reply was too large to keep, and what the "
        f"request made is gone or was changed since: read {scope.get('root_path', '')}{where}",
        params={"status": status or 0, "location": scope.get("root_path", "") + where},
        headers={**shown, REPLAYED: "true"},
    )


def again(body: bytes) -> Receive:
    """Gives a body that was already read to whoever reads it next."""
    given = False

    async def receive() -> Message:
        nonlocal given
        if given:
            return {"type": "http.disconnect"}
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
