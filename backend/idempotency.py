"""`Idempotency-Key` on POST: the same request under the same key is done once, and answered the same for 24 hours.

That holds for routes marked with `done_once`. Their replies are kept in the catalog, in clear, so a repetition may
reach another API process. A request that failed on our side (5xx) leaves nothing behind: repeating it tries again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, MutableMapping
from typing import Any, Final, TypeVar

from anyio.to_thread import run_sync
from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import Idempotency
from backend.paths import endpoint_of
from backend.problems import Problem, send_problem

KEPT_US = 24 * 3600 * 1_000_000
GIVEN_UP_US = 60 * 1_000_000
"""A request that has not ended by then died with its process."""
REPLY_BYTES_MAX = 1 << 20
_KEY = re.compile(rb"[\x21-\x7e]{1,200}")
_KEPT_HEADERS = ("content-type", "location", "etag")
_UNDONE = (401, 403, 408, 429)
"""Refused before anything was done; the next attempt may be let through."""
_MARK: Final = "is_done_once"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def done_once(endpoint: Endpoint) -> Endpoint:
    """Mark the function of a POST route whose reply may be kept; without the mark an Idempotency-Key changes nothing.

    Not for replies that hold secrets, and not for reading, which may be repeated anyway and has long replies.
    """
    setattr(endpoint, _MARK, True)
    return endpoint


def is_done_once(endpoint: Callable[..., Any] | None) -> bool:
    """Whether a route is marked."""
    return getattr(endpoint, _MARK, False)


class IdempotentPosts:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, catalog: Catalog) -> None:
        self.app = app
        self.catalog = catalog

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        headers = dict(scope["headers"]) if scope["type"] == "http" and scope["method"] == "POST" else {}
        key = headers.get(b"idempotency-key")
        if key is None or not is_done_once(endpoint_of(scope)):
            await self.app(scope, receive, send)
            return
        try:
            if not _KEY.fullmatch(key):
                raise Problem(
                    "bad_request.bad_idempotency_key", "Idempotency-Key is 1 to 200 printable characters without blanks"
                )
            body = await _body(receive)
            credentials = headers.get(b"authorization", b"") + b"\n" + headers.get(b"cookie", b"")
            actor = hashlib.sha256(credentials).hexdigest()[:40]
            asked = b"\n".join((scope["raw_path"], scope["query_string"], headers.get(b"content-type", b""), body))
            # With a key that is not kept: a plain hash of a body would let a password in it be guessed.
            request_hash = hmac.new(credentials, asked, hashlib.sha256).hexdigest()
            known = await run_sync(self._begin, actor, key.decode(), request_hash)
        except Problem as problem:
            await send_problem(scope, problem, send)
            return
        if known is not None:
            await _replay(known, send)
            return
        reply = _Reply()
        finished = False
        try:
            await self.app(scope, _again(body), reply.take)
            finished = reply.status is not None and reply.status < 500 and reply.status not in _UNDONE
            finished = finished and len(reply.body) <= REPLY_BYTES_MAX
        finally:
            await run_sync(self._end, actor, key.decode(), reply if finished else None)
        for message in reply.messages:
            await send(message)

    def _begin(self, actor: str, key: str, request_hash: str) -> Idempotency | None:
        """Note that the request is being worked on; what it was answered before, if it was.

        Raises:
            Problem: it is still being worked on, or the key belongs to another request.
        """
        with self.catalog.begin() as session:
            session.execute(delete(Idempotency).where(Idempotency.created_at_us < now_us() - KEPT_US))
        try:
            with self.catalog.begin() as session:
                session.add(Idempotency(actor=actor, key=key, request_hash=request_hash, created_at_us=now_us()))
            return None
        except IntegrityError:
            pass
        with self.catalog.begin() as session:
            row = session.scalar(select(Idempotency).where(Idempotency.actor == actor, Idempotency.key == key))
            if row is None:  # it was given up just now
                raise Problem("still_running.failed_just_now", "the same request just failed; send it again")
            if row.request_hash != request_hash:
                raise Problem(
                    "key_reused.other_request", "another request had this Idempotency-Key; give every request its own"
                )
            if row.status is not None:
                return row
            if row.created_at_us > now_us() - GIVEN_UP_US:
                raise Problem("still_running.in_progress", "the same request is being worked on; ask again in a moment",
                              headers={"Retry-After": "1"})  # fmt: skip
            row.created_at_us = now_us()
            return None

    def _end(self, actor: str, key: str, reply: _Reply | None) -> None:
        with self.catalog.begin() as session:
            row = session.scalar(select(Idempotency).where(Idempotency.actor == actor, Idempotency.key == key))
            if row is None:
                return
            if reply is None:
                session.delete(row)
            else:
                row.status, row.headers, row.reply = reply.status, reply.kept_headers(), bytes(reply.body)


class _Reply:
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
        """Those that a repetition is told, too."""
        start = next(message for message in self.messages if message["type"] == "http.response.start")
        return {
            name.decode(): value.decode() for name, value in start["headers"] if name.decode().lower() in _KEPT_HEADERS
        }


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem("bad_request.body_ended", "the request ended before its body did")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _again(body: bytes) -> Receive:
    given = False

    async def receive() -> Message:
        nonlocal given
        if given:
            return {"type": "http.disconnect"}
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _replay(known: Idempotency, send: Send) -> None:
    body = known.reply or b""
    headers = [(name.encode(), str(value).encode()) for name, value in (known.headers or {}).items()]
    headers += [(b"content-length", str(len(body)).encode()), (b"idempotency-replayed", b"true")]
    await send({"type": "http.response.start", "status": known.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
