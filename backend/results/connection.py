"""One websocket: frames in, frames out, any number of subscriptions and questions on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.websockets import WebSocket, WebSocketDisconnect

from backend.catalog.ids import now_us
from backend.cells import to_json
from backend.columns import Column, columns_of
from backend.problems import Problem, from_validation, unexpected
from backend.results import frames
from backend.results.follower import Follower
from backend.results.frames import Gap
from backend.results.payload import Payload
from backend.results.question import QueryIn
from backend.results.service import Service
from backend.results.writers import FrameWriter

CLOSE_S = 5.0
RATE_SPAN_S = 10.0

Note = Callable[[Problem], Awaitable[None]]
_log = logging.getLogger("streamjoin.results")


class Closing(Exception):
    """The websocket is to be closed, with one of `frames.CLOSE_CODES`."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass
class _Open:
    """A subscription; `heard_s` is when the client heard of it last."""

    id: str
    follower: Follower
    heard_s: float
    has_schema: bool = False


class Connection:
    """A websocket that was accepted.

    Args:
        is_still_in: whether the login or key behind it still holds.
        note: told of each refusal that is sent, if given.
        actor: whose it is; None where everybody is the same.
    """

    def __init__(
        self, websocket: WebSocket, service: Service, version: str, is_still_in: Callable[[], Awaitable[bool]],
        actor: str | None = None, note: Note | None = None,
    ) -> None:  # fmt: skip
        self._note = note
        self._actor = actor
        self._websocket = websocket
        self._service = service
        self._limits = service.limits
        self._root = str(websocket.scope.get("root_path", ""))
        self._version = version
        self._is_still_in = is_still_in
        self._open: dict[str, _Open] = {}
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._sending = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._frames = 0
        self._frames_since_s = self._loop.time()

    async def serve(self) -> None:
        """Until one of the two ends it."""
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._greet()
            tasks = [self._loop.create_task(act()) for act in (self._receive_all, self._send_all, self._check_all)]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except Closing as closing:
            await self._close(closing.code, closing.reason)
        except WebSocketDisconnect:
            pass
        finally:
            for task in [*tasks, *self._asked.values()]:
                task.cancel()
            for sub in self._open.values():
                self._service.hub.close_follower(sub.follower)
            self._open.clear()

    async def _close(self, code: int, reason: str) -> None:
        with suppress(TimeoutError, RuntimeError, WebSocketDisconnect):
            async with asyncio.timeout(CLOSE_S):
                # A close frame has room for 123 bytes.
                await self._websocket.close(code, reason.encode()[:120].decode(errors="ignore"))

    # In.

    async def _greet(self) -> None:
        limits = self._limits
        try:
            async with asyncio.timeout(limits.init_s):
                first = await self._receive()
        except TimeoutError:
            raise Closing(frames.TOO_LATE, f"no connection_init within {limits.init_s:g} s") from None
        if not isinstance(first, frames.ConnectionInit):
            raise Closing(frames.BAD_FRAME, "the first frame must be connection_init")
        allowed = frames.SocketLimits(**{name: getattr(limits, name) for name in frames.SocketLimits.model_fields})
        greeting = frames.Greeting(server_version=self._version, heartbeat_s=limits.heartbeat_s, limits=allowed)
        await self._send_model(frames.ConnectionAck(payload=greeting))

    async def _receive(self) -> frames.ClientFrame | Problem:
        """The next frame; a Problem for a subscription or question that is wrong in itself.

        Raises:
            Closing: it is no frame.
        """
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        self._count_frame()
        text = message.get("text")
        if text is None:
            raise Closing(frames.BAD_FRAME, "frames are texts, not bytes")
        if len(text) > self._limits.frame_bytes or len(text.encode(errors="replace")) > self._limits.frame_bytes:
            raise Closing(frames.BAD_FRAME, f"a frame has {self._limits.frame_bytes:,} bytes at most")
        try:
            return frames.CLIENT_FRAMES.validate_json(text)
        except ValidationError as wrong:
            errors = wrong.errors(include_input=False, include_url=False)
            where = errors[0]["loc"]
            # Where the frame itself is right, what it asks for may be refused under its id.
            if all(len(error["loc"]) > 1 and error["loc"][1] == "payload" for error in errors):
                problem = from_validation([{**error, "loc": ("body", *error["loc"][1:])} for error in errors])
                if (id := _id_of(text)) is not None and where[0] in ("subscribe", "query"):
                    problem.headers = {"id": id}
                    return problem
            place = ".".join(map(str, where))
            raise Closing(
                frames.BAD_FRAME, f"this is no frame: {place + ': ' if place else ''}{errors[0]['msg']}"
            ) from None

    def _count_frame(self) -> None:
        now_s = self._loop.time()
        if now_s - self._frames_since_s > RATE_SPAN_S:
            self._frames, self._frames_since_s = 0, now_s
        self._frames += 1
        if self._frames > self._limits.frames_a_second * RATE_SPAN_S:
            raise Closing(frames.TOO_MANY, f"more than {self._limits.frames_a_second} frames a second")

    async def _receive_all(self) -> None:
        while True:
            match await self._receive():
                case Problem() as problem:
                    await self._refuse(problem.headers["id"] if problem.headers else "", problem)
                case frames.ConnectionInit():
                    raise Closing(frames.TOO_MANY, "connection_init comes once")
                case frames.Subscribe() as asked:
                    await self._subscribe(asked)
                case frames.Ask() as asked:
                    await self._ask(asked)
                case frames.ClientComplete() as done:
                    await self._complete(done.id)
                case frames.Ping() as ping:
                    await self._send_model(frames.Pong(payload=ping.payload))
                case frames.ClientPong():
                    pass

    def _has_room(self, id: str) -> None:
        if id in self._open or id in self._asked:
            raise Closing(frames.BAD_FRAME, f'there is a subscription "{id[:40]}" already')
        if len(self._open) + len(self._asked) >= self._limits.subscriptions:
            raise Problem(
                "rate_limited.too_many_subscriptions",
                f"a websocket has {self._limits.subscriptions} subscriptions at most",
            )

    async def _subscribe(self, asked: frames.Subscribe) -> None:
        try:
            self._has_room(asked.id)
            follower = await self._service.hub.follow(asked.payload, self._wake.set, self._actor)
        except Problem as problem:
            await self._refuse(asked.id, problem)
            return
        self._open[asked.id] = _Open(asked.id, follower, self._loop.time())
        self._wake.set()

    async def _ask(self, asked: frames.Ask) -> None:
        try:
            self._has_room(asked.id)
            if asked.payload.format != "json":
                raise Problem(
                    "invalid.json_only", "a websocket carries JSON; other formats are for POST /api/v1/queries"
                )
        except Problem as problem:
            await self._refuse(asked.id, problem)
            return
        self._asked[asked.id] = self._loop.create_task(self._answer(asked.id, asked.payload))

    async def _complete(self, id: str) -> None:
        """The client wants no more; an id that has ended already is no mistake, as the two may have crossed."""
        if (sub := self._open.pop(id, None)) is not None:
            self._service.hub.close_follower(sub.follower)
        elif (task := self._asked.pop(id, None)) is not None:
            task.cancel()
        else:
            return
        await self._end(id, "asked")

    # Out.

    async def _send(self, text: str) -> None:
        async with self._sending:
            try:
                async with asyncio.timeout(self._limits.send_s):
                    await self._websocket.send_text(text)
            except TimeoutError:
                raise Closing(frames.TOO_LATE, f"nothing was read for {self._limits.send_s:g} s") from None
            except RuntimeError:  # closed already
                raise WebSocketDisconnect(1006) from None

    async def _send_model(self, frame: BaseModel) -> None:
        await self._send(to_json(frame.model_dump(mode="json")))

    async def _refuse(self, id: str, problem: Problem) -> None:
        await self._send_problem(id, problem)
        await self._end(id, "failed")

    async def _send_problem(self, id: str, problem: Problem) -> None:
        document = problem.document("/api/v1/ws", root=self._root)
        await self._send(to_json({"type": "error", "id": id, "payload": document}))
        if self._note is not None:
            await self._note(problem)

    async def _end(self, id: str, reason: str, end: dict[str, Any] | None = None) -> None:
        payload = {"reason": reason} if end is None else {"reason": reason, "end": end}
        await self._send(to_json({"type": "complete", "id": id, "payload": payload}))

    async def _send_all(self) -> None:
        while True:
            self._wake.clear()
            sent = [await self._send_some(sub) for sub in list(self._open.values())]
            if any(sent):
                continue
            now_s = self._loop.time()
            due_s = [sub.heard_s + self._limits.heartbeat_s for sub in self._open.values()]
            held_s = [sub.follower.ready_s(now_s) for sub in self._open.values()]
            wake_s = min([*due_s, *(at_s for at_s in held_s if at_s is not None)], default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(wake_s):
                    await self._wake.wait()

    async def _check_all(self) -> None:
        """End with the login or key, also while a client that reads slowly is being sent what it asked for before."""
        while True:
            await asyncio.sleep(self._limits.recheck_s)
            with suppress(SQLAlchemyError):  # a catalog that is away throws nobody out
                if not await self._is_still_in():
                    raise Closing(frames.NOT_AUTHENTICATED, "the login or key was ended; log in again")

    def _is_open(self, sub: _Open) -> bool:
        return self._open.get(sub.id) is sub

    async def _send_some(self, sub: _Open) -> bool:
        """What is there for a subscription, a snapshot at a time; whether that was anything.

        While something is sent the client may end it, and begin another under its id.
        """
        if not self._is_open(sub):
            return False
        follower = sub.follower
        now_s = self._loop.time()
        if follower.schema is not None and not sub.has_schema:
            sub.has_schema = True
            await self._send_model(frames.SchemaFrame(id=sub.id, payload=follower.schema))
            return True
        if (taken := follower.take(now_s)) is not None:
            payload, dropped, gap = taken
            for text in next_frames(sub.id, payload, dropped, gap):
                await self._send(text)
                if not self._is_open(sub):
                    return True
            follower.position = payload.id
            return True
        if follower.is_done():
            if follower.problem is not None:
                await self._send_problem(sub.id, follower.problem)
                if not self._is_open(sub):
                    return True
            del self._open[sub.id]
            self._service.hub.close_follower(follower)
            await self._end(sub.id, follower.reason or "closing")
            return True
        if now_s - sub.heard_s >= self._limits.heartbeat_s:
            sub.heard_s = now_s
            await self._send_model(frames.ProgressFrame(id=sub.id, payload=follower.progress(now_us())))
            return True
        return False

    async def _answer(self, id: str, asked: QueryIn) -> None:
        """A one-time question."""
        service = self._service
        running = None
        try:
            writer = FrameWriter()
            running = service.answerer.answer(asked, writer, self._actor)
            begun = False
            while True:
                piece = await service.step(running)
                if not begun:
                    begun = True
                    await self._send_model(frames.SchemaFrame(id=id, payload=_schema(running)))
                if piece:
                    # Texts hold no line feed as JSON, but other letters that `splitlines` takes for ends of lines.
                    rows = f"[{piece.decode().removesuffix(chr(10)).replace(chr(10), ',')}]"
                    await self._send(_next(id, running.about["last_snapshot"], 0, None, False, False, rows))
                if running.end is not None:
                    break
            self._asked.pop(id, None)
            if writer.problem is not None:
                await self._send_problem(id, writer.problem)
            await self._end(id, "failed" if writer.problem else "answered", running.end)
        except Problem as problem:
            self._asked.pop(id, None)
            await self._refuse(id, problem)
        except (Closing, WebSocketDisconnect):
            pass  # who sends next finds the same
        except Exception:
            _log.exception("a question on a websocket failed")
            self._asked.pop(id, None)
            await self._refuse(id, unexpected())
        finally:
            if running is not None:
                service.let_go(running)


def next_frames(id: str, payload: Payload, dropped: int, gap: Gap | None) -> list[str]:
    """The `next` frames of one snapshot; only the first tells what was dropped before it."""
    last = len(payload.parts) - 1
    return [
        _next(
            id, str(payload.id), dropped if place == 0 else 0, gap if place == 0 else None, place < last,
            payload.truncated, part,
        )
        for place, part in enumerate(payload.parts)
    ]  # fmt: skip


def news_text(snapshot: str, dropped: int, gap: Gap | None, more: bool, truncated: bool, rows: str) -> str:
    """The payload of a `next`; its rows are encoded already."""
    head: dict[str, Any] = {"snapshot": snapshot, "dropped": dropped, "more": more, "truncated": truncated}
    if gap is not None:
        head["gap"] = gap.model_dump()
    return f'{to_json(head)[:-1]},"rows":{rows}}}'


def _next(id: str, snapshot: str, dropped: int, gap: Gap | None, more: bool, truncated: bool, rows: str) -> str:
    return f'{{"type":"next","id":{to_json(id)},"payload":{news_text(snapshot, dropped, gap, more, truncated, rows)}}}'


def _schema(running: Any) -> frames.Schema:
    about = running.about
    key = None if about["key"] is None else Column(name=about["key"]["name"] or "key", type=about["key"]["type"])
    return frames.Schema(
        job=about["job"], job_name=about["job_name"],
        columns=columns_of(running.schema), key=key, groups=about["groups"],
        snapshot=about["last_snapshot"], results=about["results"],
    )  # fmt: skip


class _Named(BaseModel):
    id: frames.Id


def _id_of(text: str) -> str | None:
    try:
        return _Named.model_validate_json(text).id
    except ValidationError:
        return None
