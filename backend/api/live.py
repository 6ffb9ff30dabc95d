"""Continuous questions: the websocket, and its twin of server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from backend.auth.actor import STATE as ACTOR
from backend.auth.actor import Actor, Viewer, actor_of_websocket, identify, unauthenticated
from backend.auth.gate import free
from backend.auth.guard import NOTE
from backend.catalog.ids import now_us
from backend.cells import to_json
from backend.context import Ending, InContext, context_of
from backend.problems import CATALOG_IS_AWAY, Problem
from backend.problems import STATE as PROBLEM
from backend.results import frames
from backend.results.connection import CLOSE_S, Connection, news_text
from backend.results.follower import Follower
from backend.results.hub import Hub
from backend.results.limits import Limits
from backend.results.patience import patient
from backend.results.question import JOB_MAX
from backend.results.service import service_of
from backend.version import VERSION

router = APIRouter(prefix="/api/v1", tags=["live"])

OF = "@"
"""In the id of an event, between a snapshot and the results that it is of."""

StillIn = Callable[[], Awaitable[bool]]
"""Whether the login or key behind a connection still holds."""


@router.websocket("/ws")
async def live(websocket: WebSocket) -> None:
    """The protocol streamjoin.v1; docs/asyncapi.json describes it."""
    service = service_of(context_of(websocket))
    offered = websocket.scope.get("subprotocols", [])
    # A browser that is refused before the websocket is accepted learns nothing of why.
    await websocket.accept(frames.SUBPROTOCOL if frames.SUBPROTOCOL in offered else None)
    if frames.SUBPROTOCOL not in offered:
        await _close(websocket, frames.BAD_FRAME, f"offer the subprotocol {frames.SUBPROTOCOL}")
        return
    actor = await actor_of_websocket(websocket)
    if actor is None:
        websocket.scope["state"][PROBLEM] = unauthenticated()
        await _close(websocket, frames.NOT_AUTHENTICATED, "log in, or send an API key")
        return
    name, state = _name(actor), websocket.scope["state"]
    state[ACTOR] = actor
    try:
        service.hub.enter(name)
    except Problem as problem:
        state[PROBLEM] = problem
        await _close(websocket, frames.TOO_MANY, problem.detail)
        return

    async def is_still_in() -> bool:
        return await actor_of_websocket(websocket) is not None

    try:
        await Connection(websocket, service, VERSION, is_still_in, actor.id, state[NOTE]).serve()
    finally:
        service.hub.leave(name)


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    with suppress(TimeoutError, RuntimeError):
        async with asyncio.timeout(CLOSE_S):
            await websocket.close(code, reason)


def _name(actor: Actor) -> str:
    return actor.id or actor.name


@router.get(
    "/jobs/{id}/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}},
                     "description": "Events `schema`, `next`, `progress`, `error` and `complete`, as the frames of "
                                    "the websocket; their ids are a snapshot's and its results', to resume with."}},
)  # fmt: skip
@free
async def stream_results(
    context: InContext,
    actor: Viewer,
    request: Request,
    id: Annotated[str, Path(max_length=JOB_MAX)],
    where: str | None = None,
    select: Annotated[str | None, Query(description="Columns, separated by commas.")] = None,
    from_: Annotated[str, Query(alias="from", description='"now", "oldest", or a snapshot id.')] = "now",
    backpressure: str = "drop",
    max_rate: float | None = None,
    last_event_id: Annotated[str | None, Header(description="Resume after this event.")] = None,
) -> StreamingResponse:
    """Follow a job's results: each snapshot as soon as it is committed."""
    service = service_of(context)
    snapshot, _, results = (last_event_id or "").partition(OF)
    asked: dict[str, Any] = {
        "job": id, "where": where, "from": snapshot or from_, "results": results or None,
        "backpressure": backpressure, "max_rate": max_rate,
        "select": None if select is None else [name.strip() for name in select.split(",") if name.strip()],
    }  # fmt: skip
    try:
        subscription = frames.Subscription.model_validate(asked)
    except ValidationError as wrong:
        raise RequestValidationError(wrong.errors()) from None
    hub, name, wake = service.hub, _name(actor), asyncio.Event()
    hub.enter(name)
    try:
        follower = await hub.follow(subscription, wake.set, actor.id)
    except BaseException:
        hub.leave(name)
        raise

    async def is_still_in() -> bool:
        return await identify(context, request) is not None

    return _Events(hub, name, follower, wake, context.ending, is_still_in, context.settings.root_path)


class _Events(StreamingResponse):
    """The events of one follower, who leaves with the response, however it ends."""

    def __init__(self, hub: Hub, name: str, follower: Follower, wake: asyncio.Event, ending: Ending,
                 is_still_in: StillIn, root: str) -> None:  # fmt: skip
        super().__init__(
            _events(follower, wake, hub.limits, ending, is_still_in, root),
            media_type="text/event-stream",
            headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
        )
        self._leave = (hub, name, follower)
        self._wake, self._ending = wake.set, ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        hub, name, follower = self._leave
        self._ending.wake.add(self._wake)
        try:
            with suppress(TimeoutError):
                await super().__call__(scope, receive, patient(send, hub.limits.send_s))
        finally:
            self._ending.wake.discard(self._wake)
            hub.close_follower(follower)
            hub.leave(name)
            if follower.problem is not None:  # the guard looks for it there
                scope["state"][PROBLEM] = follower.problem


async def _events(
    follower: Follower, wake: asyncio.Event, limits: Limits, ending: Ending, is_still_in: StillIn, root: str
) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    heartbeat_s = limits.heartbeat_s
    heard_s = loop.time()
    login = _Login(is_still_in, limits.recheck_s)
    has_schema = False
    yield "retry: 2000\n\n"
    while not ending.has_begun:  # whoever listens comes again, and goes on after the last event
        wake.clear()
        now_s = loop.time()
        if not await login.holds():
            yield _event("error", to_json(unauthenticated().document(root=root)))
            return  # who comes again without a login is told so
        if follower.schema is not None and not has_schema:
            has_schema = True
            yield _event("schema", follower.schema.model_dump_json())
        elif (taken := follower.take(now_s)) is not None:
            payload, dropped, gap = taken
            last = len(payload.parts) - 1
            for place, rows in enumerate(payload.parts):
                if not await login.holds():  # a client may read each part slowly
                    break
                first = place == 0
                news = news_text(str(payload.id), dropped if first else 0, gap if first else None, place < last,
                                 payload.truncated, rows)  # fmt: skip
                yield _event("next", news, _place(follower, str(payload.id)) if place == last else None)
            else:
                follower.position = payload.id
        elif follower.is_done():
            if follower.problem is not None:
                yield _event("error", to_json(follower.problem.document(root=root)))
            yield _event("complete", to_json({"reason": follower.reason}))
            return
        elif now_s - heard_s >= heartbeat_s:
            heard_s = now_s
            progress = follower.progress(now_us())
            yield ": heartbeat\n" + _event("progress", progress.model_dump_json(), _place(follower, progress.snapshot))
        else:
            ready_s = follower.ready_s(now_s)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(heard_s + heartbeat_s, ready_s or heard_s + heartbeat_s)):
                    await wake.wait()


class _Login:
    """Looks again at times whether a login or key still holds; one that did not once does not again."""

    def __init__(self, is_still_in: StillIn, recheck_s: float) -> None:
        self._is_still_in = is_still_in
        self._recheck_s = recheck_s
        self._checked_s = asyncio.get_running_loop().time()
        self._holds = True

    async def holds(self) -> bool:
        """Whether it did when it was last looked at, no longer than `recheck_s` ago."""
        now_s = asyncio.get_running_loop().time()
        if self._holds and now_s >= self._checked_s + self._recheck_s:
            self._checked_s = now_s
            with suppress(*CATALOG_IS_AWAY):  # a catalog that is away throws nobody out
                self._holds = await self._is_still_in()
        return self._holds


def _place(follower: Follower, snapshot: str | None) -> str | None:
    """The id of the event up to which all of a snapshot was sent."""
    return None if snapshot is None else f"{snapshot}{OF}{follower.feed.place.name}"


def _event(kind: str, data: str, id: str | None = None) -> str:
    return f"event: {kind}\n{f'id: {id}' + chr(10) if id is not None else ''}data: {data}\n\n"
