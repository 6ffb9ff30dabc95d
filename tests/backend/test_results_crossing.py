"""A client's word that crosses the end of a subscription, while another frame waits to be sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.websockets import WebSocket

from backend.problems import Problem
from backend.results import frames
from backend.results.connection import Connection
from backend.results.limits import Limits
from backend.results.service import Service


class Ended:
    """A follower of a job that was deleted."""

    schema = None
    reason = "deleted"

    def __init__(self, problem: Problem | None = None) -> None:
        self.problem = problem

    def take(self, _: float) -> None:
        return None

    def ready_s(self, _: float) -> None:
        return None

    def is_done(self) -> bool:
        return True


class Going(Ended):
    """One of a job that goes on."""

    def is_done(self) -> bool:
        return False


class Slow:
    """A client's end of a websocket; what it does `meanwhile` comes before its first frame is through."""

    def __init__(self) -> None:
        self.scope: dict[str, Any] = {}
        self.sent: list[tuple[str, str | None]] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def send_text(self, text: str) -> None:
        frame = json.loads(text)
        self.sent.append((frame["id"], frame["payload"].get("reason")))
        if (act := self.meanwhile) is not None:
            self.meanwhile = None
            # It answers in a task of its own, whose frames go out after this one.
            self.acting = asyncio.ensure_future(act())
            await asyncio.sleep(0.01)


class Hub:
    """Gives followers out in order, and remembers whose are closed."""

    def __init__(self, followers: list[Ended]) -> None:
        self.followers = followers
        self.closed: list[Ended] = []

    async def follow(self, *_: Any) -> Ended:
        return self.followers.pop(0)

    def close_follower(self, follower: Ended) -> None:
        assert follower not in self.closed
        self.closed.append(follower)


async def crossed(followers: list[Ended], ended: str, again: bool) -> tuple[Slow, Hub, Connection]:
    """Subscriptions A and B; the client ends one, and may ask again under its id, while the first frame is sent."""
    client, hub = Slow(), Hub(list(followers))
    service = cast(Service, SimpleNamespace(hub=hub, limits=Limits()))
    connection = Connection(cast(WebSocket, client), service, "1", _always)
    for id in ("A", "B"):
        await connection._subscribe(subscribe(id))

    async def act() -> None:
        done = connection._complete(ended)
        if not again:
            await done
            return
        ending = asyncio.ensure_future(done)
        await asyncio.sleep(0)
        await connection._subscribe(subscribe(ended))
        await ending

    client.meanwhile = act
    sending = asyncio.ensure_future(connection._send_all())
    await asyncio.sleep(0.1)
    failed = sending.exception() if sending.done() else None
    sending.cancel()
    await client.acting
    assert failed is None
    return client, hub, connection


async def _always() -> bool:
    return True


def subscribe(id: str) -> frames.Subscribe:
    return frames.Subscribe.model_validate({"type": "subscribe", "id": id, "payload": {"job": "matches"}})


def test_one_that_the_client_ended_meanwhile_is_not_ended_twice() -> None:
    followers = [Ended(), Ended()]
    client, hub, connection = asyncio.run(crossed(followers, "B", again=False))
    assert client.sent == [("A", "deleted"), ("B", "asked")]
    assert len(hub.closed) == 2 and not connection._open


@pytest.mark.parametrize(
    ("problem", "ended"), [(None, "B"), (Problem("conflict.expired", "they are no longer kept"), "A")]
)
def test_another_one_that_began_under_its_id_goes_on(problem: Problem | None, ended: str) -> None:
    followers = [Ended(problem), Ended(), Going()]
    client, hub, connection = asyncio.run(crossed(followers, ended, again=True))
    assert [cast(Ended, sub.follower) for sub in connection._open.values()] == followers[2:]
    assert set(hub.closed) == set(followers[:2])
    assert [reason for id, reason in client.sent if id == ended and reason is not None] == ["asked"]
