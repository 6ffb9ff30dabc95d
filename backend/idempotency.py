"""`Idempotency-Key` on POST: the same request under the same key is done once, and answered the same for 24 hours.

That holds for routes marked with `done_once`. Their replies are kept in the catalog, in clear, so a repetition may
reach another API process. Only what was done is kept: what was refused, or failed on our side, may be cured by another
request or by time, so repeating it tries again.

Whoever works on a request says so every few seconds, under a token of its own. When that has been missing for long, its
process has died, and the next repetition takes the request over; of several at once one does. Who finds at the end that
it was taken over keeps nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from anyio.to_thread import run_sync
from sqlalchemy import CursorResult, delete, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from starlette.types import ASGIApp, Receive, Scope, Send

from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import Idempotency
from backend.kept import Reply, Room, again, replay
from backend.paths import endpoint_of, path_of
from backend.private import kept_secret
from backend.problems import CATALOG_IS_AWAY, Problem, catalog_away, send_problem
from backend.settings import Settings

KEPT_US = 24 * 3600 * 1_000_000
BEAT_S = 5.0
"""How often whoever works on a request says so."""
GIVEN_UP_US = 60 * 1_000_000
"""A request of which nothing has been heard for so long died with its process."""
HEADER: Final = "Idempotency-Key"
OWN_KEY: Final = "idempotency-key"
"""A file of the data folder, where there is no secret key."""
_KEY = re.compile(rb"[\x21-\x7e]{1,200}")
_MARK: Final = "is_done_once"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_log = logging.getLogger("streamjoin.backend")


def done_once(endpoint: Endpoint) -> Endpoint:
    """Mark the function of a POST route whose reply may be kept; without the mark an Idempotency-Key changes nothing.

    Not for replies that hold secrets, and not for reading, which may be repeated anyway and has long replies.
    """
    setattr(endpoint, _MARK, True)
    return endpoint


def is_done_once(endpoint: Callable[..., Any] | None) -> bool:
    """Whether a route is marked."""
    return getattr(endpoint, _MARK, False)


@dataclass(frozen=True, slots=True)
class Claim:
    """A request that is being worked on.

    Args:
        id: of its row.
        owner: the token of whoever works on it.
    """

    id: int
    owner: str


class IdempotentPosts:
    """ASGI middleware around the whole app.

    Args:
        actor_of: who asks, as a text of 40 characters at most; from the scope of a request that was let in.
    """

    def __init__(self, app: ASGIApp, settings: Settings, catalog: Catalog, actor_of: Callable[[Scope], str]) -> None:
        self.app = app
        self.catalog = catalog
        self.actor_of = actor_of
        self._settings = settings
        self._room = Room(catalog)
        self._hash_key: bytes | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        headers = dict(scope["headers"]) if scope["type"] == "http" and scope["method"] == "POST" else {}
        key = headers.get(HEADER.lower().encode())
        if key is None or not is_done_once(endpoint_of(scope)):
            await self.app(scope, receive, send)
            return
        try:
            if not _KEY.fullmatch(key):
                detail = f"{HEADER} is 1 to 200 printable characters without blanks"
                raise Problem("bad_request.bad_idempotency_key", detail)
            body = await _body(receive)
            asked = b"\n".join(
                (path_of(scope).encode(), scope["query_string"], headers.get(b"content-type", b""), body)
            )
            actor = self.actor_of(scope)
            found = await run_sync(self._begin, actor, key.decode(), asked)
        except Problem as problem:
            await send_problem(scope, problem, send)
            return
        except CATALOG_IS_AWAY as failure:
            await send_problem(scope, catalog_away(failure), send)
            return
        if isinstance(found, Idempotency):
            await replay(found, self.app, scope, send)
        else:
            await self._work(found, actor, scope, again(body), send)

    async def _work(self, claim: Claim, actor: str, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply()
        is_done = False
        beating = asyncio.create_task(self._beat(claim))
        try:
            await self.app(scope, receive, reply.take)
            is_done = reply.status is not None and reply.status < 400
        finally:
            beating.cancel()
            try:
                await run_sync(self._end, claim, actor, reply if is_done else None)
            except CATALOG_IS_AWAY as failure:
                # It is done, or was refused: that is told all the same. A repetition finds the request given up.
                _log.warning("a reply could not be kept: %s", catalog_away(failure).detail)
        for message in reply.messages:
            await send(message)

    async def _beat(self, claim: Claim) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            with suppress(SQLAlchemyError):  # the next one may come through
                await run_sync(self._change, claim, {"beat_at_us": now_us()})

    def _begin(self, actor: str, key: str, asked: bytes) -> Idempotency | Claim:
        """Claim a request; or what it was answered before.

        Raises:
            Problem: it is being worked on, or the key belongs to another request.
        """
        request_hash = hmac.new(self._secret(), asked, hashlib.sha256).hexdigest()
        owner, now = secrets.token_hex(16), now_us()
        with self.catalog.begin() as session:
            session.execute(delete(Idempotency).where(Idempotency.created_at_us < now - KEPT_US))
        row = Idempotency(
            actor=actor, key=key, request_hash=request_hash, owner=owner, created_at_us=now, beat_at_us=now
        )
        try:
            with self.catalog.begin() as session:
                session.add(row)
            return Claim(row.id, owner)
        except IntegrityError:
            pass
        with self.catalog.read() as session:
            known = session.scalar(select(Idempotency).where(Idempotency.actor == actor, Idempotency.key == key))
        if known is None:  # it failed just now
            raise Problem("still_running.failed_just_now", "the same request just failed; send it again")
        if known.request_hash != request_hash:
            raise Problem("key_reused.other_request", f"another request had this {HEADER}; give every request its own")
        if known.status is not None:
            return known
        # Of several that find it given up, one changes it from what they all saw.
        is_over = known.beat_at_us <= now_us() - GIVEN_UP_US
        if is_over and self._change(Claim(known.id, known.owner), {"owner": owner, "beat_at_us": now_us()}, known):
            return Claim(known.id, owner)
        raise Problem("still_running.in_progress", "the same request is being worked on; ask again in a moment",
                      headers={"Retry-After": "1"})  # fmt: skip

    def _end(self, claim: Claim, actor: str, reply: Reply | None) -> None:
        if reply is not None:
            body = bytes(reply.body) if self._room.takes(actor, len(reply.body)) else None
            self._change(claim, {"status": reply.status, "headers": reply.kept_headers(), "reply": body})
            return
        with self.catalog.begin() as session:
            session.execute(delete(Idempotency).where(*_held(claim)))

    def _change(self, claim: Claim, values: dict[str, Any], seen: Idempotency | None = None) -> bool:
        """Change a row if it is held, and as it was seen; tell whether it was."""
        change = update(Idempotency).where(*_held(claim)).values(values)
        if seen is not None:
            change = change.where(Idempotency.beat_at_us == seen.beat_at_us)
        with self.catalog.begin() as session:
            return cast("CursorResult[Any]", session.execute(change)).rowcount == 1

    def _secret(self) -> bytes:
        """What hashes of requests are made with: a plain hash of a body would let a password in it be guessed."""
        if self._hash_key is None:
            given = self._settings.secret_key
            text = given.get_secret_value() if given is not None else kept_secret(self._settings.data / OWN_KEY)
            self._hash_key = hmac.digest(text.encode(), b"idempotency", "sha256")
        return self._hash_key


def _held(claim: Claim) -> tuple[Any, ...]:
    return Idempotency.id == claim.id, Idempotency.owner == claim.owner, Idempotency.status.is_(None)


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem("bad_request.body_ended", "the request ended before its body did")
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)
