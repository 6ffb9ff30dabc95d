"""A follower of results has few of the threads that read history, even if it leaves while one is working."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.testclient import WebSocketTestSession

from backend.catalog.models import Job
from backend.results import follower, frames
from backend.results.conditions import bound_condition
from backend.results.feed import Feed
from backend.results.hub import OF_ONE, THREADS
from backend.results.service import service_of
from backend.results.turns import Turns
from tests.backend.matrix import Person, add_person
from tests.backend.results_job import Committer, add_job, make_app, settings_in
from tests.servers.process import comes_true


class Held:
    """Work that keeps threads busy until `ends` is set."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.ends = threading.Event()

    def work(self) -> None:
        self.begun.release()
        self.ends.wait(60)

    def has_begun(self, count: int) -> bool:
        """Whether this many have begun since the last call, and no other within half a second."""
        return all(self.begun.acquire(timeout=30) for _ in range(count)) and not self.begun.acquire(timeout=0.5)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(make_app(settings_in(tmp_path, auth="on")), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def job(api: TestClient) -> Job:
    context = api.app.state.context  # type: ignore[attr-defined]
    job = add_job(context.catalog)
    committer = Committer(context.settings, job)
    committer.commit(10)
    committer.close()
    return job


@pytest.fixture
def kim(api: TestClient) -> Person:
    return add_person(api.app.state.context, "kim", "viewer")  # type: ignore[attr-defined]


@pytest.fixture
def lou(api: TestClient) -> Person:
    return add_person(api.app.state.context, "lou", "viewer")  # type: ignore[attr-defined]


@contextmanager
def follow(api: TestClient, person: Person, job: Job, *wheres: str | None) -> Iterator[WebSocketTestSession]:
    """A websocket that follows a job from the beginning, once for each condition."""
    url, offered = "ws://127.0.0.1/api/v1/ws", [frames.SUBPROTOCOL]
    with api.websocket_connect(url, subprotocols=offered, headers=person.headers) as session:
        session.send_text(json.dumps({"type": "connection_init"}))
        session.receive_text()
        for number, where in enumerate(wheres):
            payload = {"job": job.id, "from": "oldest", "where": where}
            session.send_text(json.dumps({"type": "subscribe", "id": str(number), "payload": payload}))
        yield session


def first_rows(session: WebSocketTestSession) -> list[list[Any]]:
    while (frame := json.loads(session.receive_text()))["type"] != "next":
        assert frame["type"] in ("schema", "progress"), frame
    rows: list[list[Any]] = frame["payload"]["rows"]
    return rows


@pytest.mark.parametrize("slow", ["condition", "payload"])
def test_attack_what_one_follower_asks_for_holds_up_no_other(
    api: TestClient, job: Job, kim: Person, lou: Person, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    held, make = Held(), Feed.make

    def bound(who: str | None, where: str | None, description: Any) -> Any:
        if slow == "condition" and who == kim.id:
            held.work()
        return bound_condition(who, where, description)

    def made(feed: Feed, view: Any, snapshot: Any) -> Any:
        if slow == "payload" and view.actor == kim.id:
            held.work()
        return make(feed, view, snapshot)

    monkeypatch.setattr(follower, "bound_condition", bound)
    monkeypatch.setattr(Feed, "make", made)
    try:
        for time in range(2):  # who leaves and comes again has no other threads meanwhile
            with follow(api, kim, job, *(f"n > {number}" for number in range(2 * THREADS))):
                assert held.has_begun(OF_ONE if time == 0 else 0)
                with follow(api, lou, job, "n < 7", None) as session:
                    assert sorted(len(first_rows(session)) for _ in range(2)) == [7, 10]
    finally:
        held.ends.set()
    with follow(api, kim, job, "n > 7") as session:
        assert len(first_rows(session)) == 2
    turns = service_of(api.app.state.context).hub._turns  # type: ignore[attr-defined]
    assert comes_true(lambda: not turns._turns, 10)


def test_attack_a_question_that_was_given_up_keeps_its_turn_while_its_thread_works(
    api: TestClient, job: Job, kim: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, service = Held(), service_of(api.app.state.context)  # type: ignore[attr-defined]

    async def ask() -> None:
        async with service.turns.turn(kim.id) as turn:
            await turn.run(held.work)

    async def leave_and_come_again() -> None:
        for time in range(3):
            asked = [asyncio.ensure_future(ask()) for _ in range(5)]
            assert await asyncio.to_thread(held.has_begun, service.turns.of_one if time == 0 else 0)
            for one in asked:
                one.cancel()
            await asyncio.wait(asked)
            assert all(one.cancelled() for one in asked)
        held.ends.set()

    assert api.portal is not None
    try:
        api.portal.call(leave_and_come_again)
    finally:
        held.ends.set()
    assert comes_true(lambda: not service.turns._turns, 10)


def test_turns_of_nobody_are_those_of_one() -> None:
    async def most() -> int:
        with ThreadPoolExecutor(4) as pool:
            turns, now, most = Turns(pool, 2), 0, 0

            def work() -> None:
                nonlocal now, most
                now += 1
                most = max(most, now)
                threading.Event().wait(0.01)
                now -= 1

            async def one() -> None:
                async with turns.turn(None) as turn:
                    await turn.run(work)

            await asyncio.gather(*(one() for _ in range(20)))
            assert not turns._turns
            return most

    assert asyncio.run(most()) == 2


def test_who_leaves_before_a_thread_is_free_leaves_its_work_undone() -> None:
    done: list[str] = []

    async def leave() -> None:
        held = Held()
        with ThreadPoolExecutor(1) as pool:
            turns = Turns(pool, 1)
            pool.submit(held.work)

            async def ask(actor: str) -> None:
                async with turns.turn(actor) as turn:
                    await turn.run(lambda: done.append(actor))

            asked = [asyncio.ensure_future(ask(actor)) for actor in ("kim", "kim", "lou")]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for one in asked[:2]:
                one.cancel()
            await asyncio.wait(asked[:2])
            held.ends.set()
            await asked[2]
            assert not turns._turns

    asyncio.run(leave())
    assert done == ["lou"]
