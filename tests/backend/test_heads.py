"""Request lines and headers that do not end, and everything that must not be mistaken for them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

import pytest
import uvicorn
import websockets
from uvicorn.server import ServerState

from backend import heads
from backend.catalog.migrate import migrate
from backend.heads import HEAD_BYTES_MAX
from backend.paced import PacedBodies
from tests.backend.live_server import LiveServer, live_settings

HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "a header": (HEAD + b"X-A: ", b"a"),
    "a header's name": (HEAD, b"a"),
    "headers": (HEAD, b"X-A: a\r\n"),
    "a path": (b"GET /", b"a"),
    "empty lines": (b"", b"\r\n"),
    "a trailer": (CHUNKED + b"1\r\na\r\n0\r\nX-A: ", b"a"),
    "trailers": (CHUNKED + b"1\r\na\r\n0\r\n", b"X-A: a\r\n"),
    "a chunk's extension": (CHUNKED + b"1;", b"a"),
    "a second request": (HEAD + b"\r\n" + HEAD + b"X-A: ", b"a"),
}
PIECE = 4096


class Transport(asyncio.Transport):
    """Keeps what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class App:
    """Answers with how many bytes a body had."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": str(len((await receive())["text"]))})
            await send({"type": "websocket.close"})
            return
        taken = 0
        while (message := await receive())["type"] == "http.request":
            taken += len(message["body"])
            if not message["more_body"]:
                break
        self.asked.append(taken)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


class World:
    """A connection to an app."""

    def __init__(self, app: Any = None) -> None:
        self.app: Any = app or App()
        self.transport = Transport()
        self.was_closed = False
        self.protocol = protocol_of(self.app)
        self.protocol.connection_made(self.transport)

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            if not self.transport.is_closed:
                self.protocol.data_received(piece)
                await turns()


def protocol_of(app: Any) -> PacedBodies:
    config = uvicorn.Config(app, log_config=None, ws="websockets-sansio", http=PacedBodies)
    config.load()
    return PacedBodies(config, ServerState(), {}, asyncio.get_running_loop())


async def turns() -> None:
    """What is due has been done."""
    for _ in range(20):
        await asyncio.sleep(0)


def run(act: Callable[[World], Awaitable[None]], app: Any = None) -> World:
    """What became of a connection."""

    async def whole() -> World:
        world = World(app)
        await act(world)
        world.was_closed = world.transport.is_closed
        world.protocol.connection_lost(None)
        await turns()
        return world

    return asyncio.run(whole())


@pytest.mark.parametrize("what", ENDLESS)
def test_attack_a_head_without_end_is_refused_at_64_kib(what: str) -> None:
    begin, part = ENDLESS[what]
    sent = 0

    async def attack(world: World) -> None:
        nonlocal sent
        await world.send(begin)
        while not world.transport.is_closed and sent < 4 * HEAD_BYTES_MAX:
            await world.send(part * (PIECE // len(part)))
            sent += PIECE

    world = run(attack)
    assert HEAD_BYTES_MAX - PIECE < sent <= HEAD_BYTES_MAX + PIECE
    refused = world.transport.written.removeprefix(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    assert refused.startswith(b"HTTP/1.1 400 ") and b"more than 65,536 bytes" in refused, refused


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(HEAD + b"X-A: " + b"a" * HEAD_BYTES_MAX, id="a header"),
        pytest.param(HEAD + b"X: \r\n" * (HEAD_BYTES_MAX // 5), id="headers"),
        pytest.param(b"GET /" + b"a" * HEAD_BYTES_MAX, id="a path"),
    ],
)
def test_attack_a_head_that_is_too_long_is_refused_in_one_piece_as_well(head: bytes) -> None:
    end = b"\r\n\r\n" if b"HTTP" in head else b" HTTP/1.1\r\n\r\n"
    world = run(lambda world: world.send(head + end))
    assert world.was_closed and not world.app.asked
    assert world.transport.written.startswith(b"HTTP/1.1 400 ") and b"more than 65,536 bytes" in world.transport.written


def whole(size: int) -> bytes:
    """A request whose line and headers have so many bytes."""
    begin, end = HEAD + b"X-A: ", b"\r\n\r\n"
    return begin + b"a" * (size - len(begin) - len(end)) + end


def pieces(data: bytes, size: int = PIECE) -> list[bytes]:
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def answered(*sent: bytes) -> list[int]:
    """The lengths of the bodies of the requests that were answered, each with 200."""
    world = run(lambda world: world.send(*sent))
    assert world.transport.written.count(b"HTTP/1.1 200 ") == len(world.app.asked)
    assert not world.was_closed
    return world.app.asked


@pytest.mark.parametrize("size", [300, 7000, 1 << 20])
def test_heads_below_the_limit_follow_each_other(size: int) -> None:
    head = whole(HEAD_BYTES_MAX)
    assert answered(*pieces(head * 5, size)) == [0] * 5


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_bodies_do_not_count(size: int) -> None:
    body = b"b" * (1 << 20)
    post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in pieces(body, 50))
    chunked = CHUNKED + chunks + b"0\r\nX-Sum: 1\r\n\r\n"
    assert answered(*pieces((post + body + chunked) * 2, size)) == [len(body)] * 4


def test_who_asks_whether_to_go_on_is_told_so() -> None:
    post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    world = run(lambda world: world.send(post, b"abc"))
    assert world.transport.written.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert world.app.asked == [3]


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    app = App()
    server = await asyncio.get_running_loop().create_server(lambda: protocol_of(app), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def test_a_websocket_is_none_of_this() -> None:
    async def ask() -> str:
        async with served() as port, websockets.connect(f"ws://127.0.0.1:{port}/") as socket:
            await socket.send("a" * (900 << 10))
            return cast(str, await socket.recv())

    assert asyncio.run(ask()) == str(900 << 10)


@pytest.mark.parametrize(
    ("begun", "more"),
    [([], b""), ([b"GET /"], b"a"), ([HEAD + b"\r\n", HEAD + b"X-A: "], b"a"), ([HEAD + b"\r\n", b"\r\n"], b"\r\n")],
)
def test_attack_who_does_not_end_a_head_is_not_waited_for(
    begun: list[bytes], more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "HEAD_S_MAX", 0.2)

    async def trickle(world: World) -> None:
        await world.send(*begun)
        async with asyncio.timeout(30):
            while not world.transport.is_closed:
                if more:
                    await world.send(more)
                await asyncio.sleep(0.01)

    assert b" 400 " not in run(trickle).transport.written


def test_who_is_being_answered_or_sends_a_body_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "HEAD_S_MAX", 0.05)

    async def slow(world: World) -> None:
        for piece in (CHUNKED, b"3\r\n", b"abc\r\n", b"0\r\n", b"X-A: a\r\n"):
            await world.send(piece)
            await asyncio.sleep(0.2)
        assert not world.transport.is_closed
        await world.send(b"\r\n")

    assert run(slow).app.asked == [3]


@pytest.mark.services
def test_attack_a_server_takes_no_more_of_a_header_without_end(tmp_path: Path) -> None:
    settings = live_settings(tmp_path, auth="on")
    migrate(settings.catalog)
    with LiveServer(settings, tmp_path / "api.log") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw, pytest.raises(ConnectionError):
            raw.sendall(HEAD + b"X-A: " + b"a" * (64 << 20))
        with urlopen(f"{server.url}/livez", timeout=30) as answer:
            assert answer.status == 200
