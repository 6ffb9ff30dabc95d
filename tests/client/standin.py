"""A small app that follows the platform's contract and does to its clients whatever a test asks for.

It stands for what the real app only does in trouble: answers that get lost, servers that go away, slow readers.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

COLUMNS = [{"name": "n", "type": "int64"}]


def problem(status: int, code: str, detail: str, headers: dict[str, str] | None = None, **more: Any) -> Response:
    body = {"type": f"/api/v1/problems/{code}", "title": code, "status": status, "detail": detail, "code": code, **more}
    return JSONResponse(body, status, headers, media_type="application/problem+json")


class AnswerIsLost(Exception):
    """Ends a connection in the middle of an answer."""


class Cut(Response):
    """Promises a body, sends a part of it, and breaks off."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
        await send({"type": "http.response.body", "body": b"{", "more_body": True})
        raise AnswerIsLost


@dataclass
class StandIn:
    """What the app does, and what it saw.

    Args:
        faults: before each answer one of them is taken; None answers as usual, and so does a query's that gives None.
        snapshots: of the one job there is.
        cuts: of each websocket one is taken: after how many snapshots it breaks, and how; with .5 between two frames.
        drop_after: of each websocket one is taken: behind which snapshot rows are left out.
        last_word: why nothing comes behind the last snapshot; more may come unless set.
        last_words: of the first websockets, in place of `last_word`.
        errors: what goes before each last word.
        results: what the rows are said to be of.
        in_parts, truncated: snapshots that come in two frames, and those that come only in part.
        refuse: the code that every websocket is closed with.
        page_rows: of one answer to a query at most.
        breaks_off: answers to queries miss their end.
        in_time: so many rows of a snapshot are read before the time of a query is over; None for all.
    """

    faults: list[Callable[[], Response | None] | None] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    cuts: list[tuple[float, Callable[[WebSocket], Any]] | None] = field(default_factory=list)
    drop_after: list[int | None] = field(default_factory=list)
    refuse: int = 0
    page_rows: int = 1000
    breaks_off: bool = False
    in_time: int | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    last_word: str | None = None
    last_words: list[str] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    results: str = "job_1"
    in_parts: set[int] = field(default_factory=set)
    truncated: set[int] = field(default_factory=set)
    seen: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    subscribed: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                WebSocketRoute("/api/v1/ws", self.websocket),
                Route("/api/v1/queries", self.queries, methods=["POST"]),
                Route("/{path:path}", self.anything, methods=["GET", "POST", "PATCH", "DELETE"]),
            ]
        )

    async def anything(self, request: Request) -> Response:
        """Makes what is posted, once for each idempotency key, and has a fault after the work was done."""
        self.seen.append((request.method, request.url.path))
        self.authorizations.append(request.headers.get("authorization"))
        name = "none"
        if request.method == "POST":
            self.bodies.append(await request.body())
            if request.headers.get("content-type") == "application/json":
                name = json.loads(self.bodies[-1] or b"{}").get("name", "none")
            key = request.headers.get("idempotency-key")
            if key is None or key not in self.keys:
                self.made[name] += 1
            if key is not None:
                self.keys[key] = name
        if self.faults and (fault := self.faults.pop(0)) is not None:
            return fault()
        return JSONResponse({"id": "str_1", "name": name, "version": 1})

    async def queries(self, request: Request) -> Response:
        if self.faults and (fault := self.faults.pop(0)) is not None and (reply := fault()) is not None:
            return reply
        asked = await request.json()
        self.asked.append(asked)
        if asked["format"] == "json":
            first, last = (int(asked[name].partition(".")[0]) for name in ("after", "upto"))
            found = [[n * 10 + place] for n in self.snapshots if first < n <= last for place in (0, 1)]
            begin = int(asked.get("cursor") or 0)
            if self.in_time is not None and asked.get("limit", len(found)) > self.in_time:
                some = found[begin : begin + self.in_time]
                return JSONResponse({"rows": some, "cursor": None, "truncated": True, "stopped_by": "time"})
            cursor = str(begin + 1) if begin + 1 < len(found) else None
            return JSONResponse({"rows": found[begin : begin + 1], "cursor": cursor, "truncated": cursor is not None})
        begin = int(asked.get("cursor") or 0)
        cap = min(self.page_rows, asked.get("limit") or self.page_rows)
        rows = self.snapshots[begin : begin + cap]
        more = begin + cap < len(self.snapshots)
        stopped_by = None if not more else "limit" if cap == asked.get("limit") else "rows"
        end = {"cursor": str(begin + cap) if more else None, "stopped_by": stopped_by, "blocks_read": 2}
        out = io.BytesIO()
        batch = pa.record_batch({"n": pa.array(rows, pa.int64())})
        with pa.ipc.new_stream(out, batch.schema) as writer:
            writer.write_batch(batch)
            if not self.breaks_off:
                writer.write_batch(batch.slice(0, 0), custom_metadata={"streamjoin": json.dumps(end)})
        return Response(
            out.getvalue(),
            headers={"Streamjoin-Last-Snapshot": "9.0", "Streamjoin-Results": self.results},
            media_type="application/vnd.apache.arrow.stream",
        )

    async def websocket(self, socket: WebSocket) -> None:
        if self.refuse:
            await socket.accept("streamjoin.v1")
            await socket.close(self.refuse, "no")
            return
        assert socket.scope["subprotocols"] == ["streamjoin.v1"]
        await socket.accept("streamjoin.v1")
        assert (await socket.receive_json())["type"] == "connection_init"
        await socket.send_json({"type": "connection_ack", "payload": {"server_version": "0", "heartbeat_s": 5.0}})
        subscribe = await socket.receive_json()
        asked, id = subscribe["payload"], subscribe["id"]
        self.subscribed.append(asked)
        cut = self.cuts.pop(0) if self.cuts else None
        drop_after = self.drop_after.pop(0) if self.drop_after else None
        last_word = self.last_words.pop(0) if self.last_words else None
        newest = self.snapshots[-1] if self.snapshots else 0
        after = {"now": newest, "oldest": 0}.get(asked["from"])
        if after is None:
            after = int(asked["from"].partition(".")[0])
        schema = {"job": "job_1", "columns": COLUMNS, "snapshot": f"{after}.0" if after else None,
                  "results": self.results}  # fmt: skip
        await socket.send_json({"type": "schema", "id": id, "payload": schema})
        sent = 0
        try:
            while True:
                while newer := [number for number in self.snapshots if number > after]:
                    if cut is not None and sent >= cut[0]:
                        await cut[1](socket)
                        return
                    number = newer[0]
                    gap = None
                    if drop_after is not None and number > drop_after:
                        if asked["backpressure"] == "disconnect":
                            await socket.send_json({"type": "complete", "id": id, "payload": {"reason": "too_slow"}})
                            return
                        gap, drop_after = {"first": f"{number}.0", "last": f"{number}.0", "rows": 2}, None
                        number = newer[1]
                    await self.send_snapshot(socket, id, number, gap, cut if cut and cut[0] == sent + 0.5 else None)
                    after = number
                    sent += 1
                if reason := last_word or self.last_word:
                    if self.errors:
                        await socket.send_json({"type": "error", "id": id, "payload": self.errors.pop(0)})
                    await socket.send_json({"type": "complete", "id": id, "payload": {"reason": reason}})
                    return
                payload = {"snapshot": f"{after}.0", "mark": None, "lag_ms": 1, "phase": "running"}
                await socket.send_json({"type": "progress", "id": id, "payload": payload})
                await asyncio.sleep(0.02)
        except WebSocketDisconnect:
            return

    async def send_snapshot(self, socket: WebSocket, id: str, number: int, gap: Any, cut: Any) -> None:
        """Two rows, in one frame or in two, or one of them where the other has to be asked for."""
        rows = [[number * 10], [number * 10 + 1]]
        dropped = 1 if gap else 0
        payload: dict[str, Any] = {"snapshot": f"{number}.0", "rows": rows, "dropped": dropped, "gap": gap}
        if number in self.truncated:
            payload |= {"rows": rows[:1], "truncated": True}
        if number in self.in_parts:
            first = {**payload, "rows": rows[:1], "more": True}
            await socket.send_json({"type": "next", "id": id, "payload": first})
            if cut is not None:
                await cut[1](socket)
                raise WebSocketDisconnect
            payload |= {"rows": rows[1:], "dropped": 0, "gap": None}
        await socket.send_json({"type": "next", "id": id, "payload": payload})
