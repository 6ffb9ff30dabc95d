"""Bodies that come too slowly, and everything that must not be mistaken for them."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest
from fastapi import FastAPI

from backend import paced, serve
from backend.paced import PacedBodies
from backend.settings import Settings
from tests.backend.test_heads import CHUNKED, App, World, run, turns

POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n"
LARGE = 200_000
"""More than the server keeps of a body that nobody takes."""


@pytest.fixture(autouse=True)
def waits_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of a second, and as long for each 1,000 bytes."""
    monkeypatch.setattr(paced, "BODY_S_MAX", 0.2)
    monkeypatch.setattr(paced, "BODY_BYTES_A_SECOND_MIN", 5_000)


class Refuses(App):
    """Answers before a body came."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


class Late(App):
    """Takes a body when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.may.wait()
        await super().__call__(scope, receive, send)


def trickled(begun: bytes, part: bytes, app: App) -> World:
    """Sends a part now and then until the connection is closed."""

    async def trickle(world: World) -> None:
        await world.send(begun)
        async with asyncio.timeout(30):
            while not world.transport.is_closed:
                await world.send(part)
                await asyncio.sleep(0.01)

    return run(trickle, app)


@pytest.mark.parametrize("app", [App, Refuses])
@pytest.mark.parametrize(
    ("begun", "part"),
    [
        pytest.param(CHUNKED, b"1\r\na\r\n", id="chunks"),
        pytest.param(POST % LARGE + b"\r\n", b"a", id="a length"),
        pytest.param(POST % LARGE + b"\r\n", b"", id="nothing"),
        pytest.param(CHUNKED + b"1\r\na\r\n0\r\n", b"X: a\r\n", id="trailers"),
    ],
)
def test_attack_who_sends_a_body_slowly_is_not_waited_for(begun: bytes, part: bytes, app: type[App]) -> None:
    assert trickled(begun, part, app()).was_closed


def test_attack_who_asks_whether_to_go_on_and_was_refused_is_not_waited_for() -> None:
    assert trickled(POST % LARGE + b"Expect: 100-continue\r\n\r\n", b"a", Refuses()).was_closed


def test_attack_a_second_body_has_no_time_of_the_first() -> None:
    first = POST % LARGE + b"\r\n" + b"a" * LARGE
    world = trickled(first + POST % LARGE + b"\r\n", b"a", App())
    assert world.app.asked[0] == LARGE and world.transport.written.count(b" 200 ") == 1


def test_who_sends_fast_enough_has_as_long_as_it_takes() -> None:
    async def steady(world: World) -> None:
        await world.send(POST % 10_000 + b"\r\n")
        for _ in range(100):
            await world.send(b"a" * 100)
            await asyncio.sleep(0.01)
        await turns()
        assert not world.transport.is_closed

    assert run(steady).app.asked == [10_000]


def test_who_is_not_read_has_time_until_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paced, "BODY_BYTES_A_SECOND_MIN", 1 << 30)

    async def whole() -> World:
        world = World(Late())
        await world.send(POST % LARGE + b"\r\n" + b"a" * (LARGE - 1))
        assert world.protocol.flow.read_paused
        await asyncio.sleep(0.7)
        world.app.may.set()
        await turns()
        assert not world.transport.is_closed
        await world.send(b"a")
        return world

    assert asyncio.run(whole()).app.asked == [LARGE]


def test_who_waits_to_be_told_to_go_on_has_time() -> None:
    async def whole() -> World:
        world = World(Late())
        await world.send(POST % 3 + b"Expect: 100-continue\r\n\r\n")
        await asyncio.sleep(0.7)
        world.app.may.set()
        await turns()
        await world.send(b"abc")
        return world

    world = asyncio.run(whole())
    assert world.app.asked == [3] and not world.transport.is_closed


def test_a_request_that_came_whole_is_worked_on_for_as_long_as_it_takes() -> None:
    async def whole() -> World:
        world = World(Late())
        await world.send(POST % 3 + b"\r\nab", b"c")
        await asyncio.sleep(0.7)
        world.app.may.set()
        await turns()
        return world

    world = asyncio.run(whole())
    assert world.app.asked == [3] and not world.transport.is_closed


def test_the_api_is_served_so(monkeypatch: pytest.MonkeyPatch, app: FastAPI, settings: Settings) -> None:
    seen = []

    class Server:
        def __init__(self, config: Any, ending: Any) -> None:
            seen.append(config.http)

        def run(self, sockets: Any) -> None:
            pass

    monkeypatch.setattr(serve, "_Server", Server)
    monkeypatch.setattr(serve, "gc", Mock())  # which is this process's
    serve.serve(app, settings)
    assert seen == [PacedBodies]
