"""Nobody holds everything: requests, answers and previews have places in all, and fewer for one actor."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from anyio.to_thread import run_sync
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.api import health
from backend.auth import gate
from backend.auth.gate import AT_ONCE, Gate
from backend.context import Context
from backend.jobs import previews
from backend.middleware import TEXT_BYTES_MAX
from backend.problems import Problem
from backend.results.answers import Running
from backend.results.feed import Feed
from backend.results.limits import Limits
from backend.results.payload import Held
from backend.results.places import Place
from backend.results.readers import Readers
from backend.results.recent import Memory
from backend.results.service import OF_ONE, service_of
from backend.results.slots import Slots
from backend.results.view import View
from backend.settings import Settings
from streamjoin.results.block import key_code
from streamjoin.results.description import Description
from streamjoin.results.question import Question
from streamjoin.results.stores.spec import StoreSpec
from tests.backend.matrix import Person, add_person, new_app
from tests.backend.results_job import SCHEMA
from tests.servers.process import comes_true


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    """With auth, and without Redis."""
    settings = Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="on", rate_limit="100000/minute")
    return new_app(settings)


@pytest.fixture
def context(app: FastAPI) -> Context:
    found = app.state.context
    assert isinstance(found, Context)
    return found


@pytest.fixture
def kim(context: Context) -> Person:
    return add_person(context, "kim", "operator")


@pytest.fixture
def lou(context: Context) -> Person:
    return add_person(context, "lou", "viewer")


@pytest.fixture
def api(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def test_attack_slow_requests_of_one_actor_hold_up_nobody_else(
    app: FastAPI, api: TestClient, kim: Person, lou: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "WAIT_S", 0.5)
    ends, begun = threading.Event(), threading.Semaphore(0)

    @app.get("/api/v1/slow")
    def slow() -> None:
        begun.release()
        ends.wait(60)

    with ThreadPoolExecutor(60) as pool:
        asked = [pool.submit(api.get, "/api/v1/slow", headers=kim.headers) for _ in range(60)]
        for _ in range(AT_ONCE):
            assert begun.acquire(timeout=30)
        begun_s = time.monotonic()
        assert api.get("/api/v1/streams", headers=lou.headers).status_code == 200
        assert time.monotonic() - begun_s < 10
        assert comes_true(lambda: sum(one.done() for one in asked) == 60 - AT_ONCE, 30)
        ends.set()
    answers = [one.result() for one in asked]
    refused = [answer.json() for answer in answers if answer.status_code == 429]
    assert {one["subcode"] for one in refused} == {"too_many_at_once"} and len(refused) == 60 - AT_ONCE
    assert sum(answer.status_code == 200 for answer in answers) == AT_ONCE
    events = api.get("/api/v1/events", headers=lou.headers).json()["data"]
    assert [(one["kind"], one["actor_id"]) for one in events if one["kind"] == "request.refused"] == [
        ("request.refused", kim.id)
    ]
    assert api.get("/api/v1/streams", headers=kim.headers).status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/jobs/results", "/api/v1/jobs/stream", "/api/v1/jobs/queries", "/metrics"])
def test_attack_a_name_that_ends_a_path_and_metrics_need_a_turn_too(
    api: TestClient, context: Context, kim: Person, lou: Person, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(gate, "WAIT_S", 0.1)

    async def all_taken() -> None:
        async with AsyncExitStack() as held:
            for _ in range(AT_ONCE):
                await held.enter_async_context(gate.gate_of(context).turn(kim.id))
            refused = await run_sync(lambda: api.get(path, headers=kim.headers))
            assert (refused.status_code, refused.json().get("subcode")) == (429, "too_many_at_once"), refused.text
            assert (await run_sync(lambda: api.get(path, headers=lou.headers))).status_code in (200, 404)

    asyncio.run(all_taken())
    assert api.get(path, headers=kim.headers).status_code in (200, 404)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/v1/jobs/x/results"), ("GET", "/api/v1/jobs/x/stream"), ("POST", "/api/v1/queries")],
)
def test_answers_that_hold_no_thread_need_no_turn(
    api: TestClient, context: Context, kim: Person, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    monkeypatch.setattr(gate, "WAIT_S", 0.1)

    async def all_taken() -> None:
        async with AsyncExitStack() as held:
            for _ in range(AT_ONCE):
                await held.enter_async_context(gate.gate_of(context).turn(kim.id))
            answer = await run_sync(lambda: api.request(method, path, json={"job": "x"}, headers=kim.headers))
            assert answer.status_code == 404, answer.text

    asyncio.run(all_taken())


def test_metrics_count_for_the_limit_of_requests(tmp_path: Path) -> None:
    app = new_app(Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", rate_limit="3/minute"))
    prometheus = add_person(app.state.context, "prometheus", "viewer")
    with TestClient(app, base_url="http://127.0.0.1") as api:
        statuses = [api.get("/metrics", headers=prometheus.headers).status_code for _ in range(5)]
    assert statuses == [200] * 3 + [429] * 2


def test_a_turn_comes_as_soon_as_another_ends_and_nothing_is_kept_of_it() -> None:
    async def ask() -> int:
        known, most, now = Gate(), 0, 0

        async def one() -> None:
            nonlocal most, now
            async with known.turn("kim"):
                now += 1
                most = max(most, now)
                await asyncio.sleep(0.01)
                now -= 1

        await asyncio.gather(*(one() for _ in range(4 * AT_ONCE)))
        assert not known._turns
        return most

    assert asyncio.run(ask()) == AT_ONCE


def test_attack_one_actor_cannot_have_all_answers() -> None:
    slots = Slots(4, 2)
    slots.take("kim")
    slots.take("kim")
    with pytest.raises(Problem) as refused:
        slots.take("kim")
    assert (refused.value.code, refused.value.subcode) == ("rate_limited", "too_many_answers_of_yours")
    slots.take("lou")
    slots.take("max")
    with pytest.raises(Problem) as full:
        slots.take("lou")
    assert full.value.subcode == "too_many_answers"
    slots.give("kim")
    slots.take("kim")
    assert slots.taken == 4
    nobody = Slots(3, 1)
    for _ in range(3):
        nobody.take(None)  # auth is off, and everybody is the same


def test_attack_questions_that_find_nothing_hold_up_nobody_else(
    api: TestClient, kim: Person, lou: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, begun, step = threading.Event(), threading.Semaphore(0), Running.step

    def slow(running: Running) -> bytes:
        if running.actor == kim.id:
            begun.release()
            ends.wait(60)
        return step(running)

    monkeypatch.setattr(Running, "step", slow)

    def ask(person: Person) -> int:
        return api.post("/api/v1/queries", json={"job": "x"}, headers=person.headers).status_code

    with ThreadPoolExecutor(10) as pool:
        asked = [pool.submit(ask, kim) for _ in range(8)]
        try:
            for _ in range(OF_ONE):
                assert begun.acquire(timeout=30)
            assert pool.submit(ask, lou).result(timeout=10) == 404
            assert not begun.acquire(timeout=0.5)  # kim's others wait for kim's
        finally:
            ends.set()
        assert [one.result(timeout=30) for one in asked] == [404] * 8
    turns = service_of(api.app.state.context).turns  # type: ignore[attr-defined]
    assert comes_true(lambda: not turns._turns, 10)


def test_attack_one_actor_cannot_have_all_questions_that_follow_a_job() -> None:
    place = Place("job_1", "matches", StoreSpec("sqlite", (("path", "nowhere.db"),)), "job_1")
    described = Description(SCHEMA, key_code(pa.int64(), equality=True, buckets=1))

    async def ask() -> None:
        limits = Limits(views=4, views_an_actor=2)
        followed = Feed(place, Readers(Memory(None)), limits, Held(), asyncio.get_running_loop())

        def view(where: str | None) -> View:
            return View(Question(where=where), described)

        mine = [followed.join(view(f"n > {number}"), "kim") for number in range(2)]
        with pytest.raises(Problem, match="2 different questions of yours") as refused:
            followed.join(view("n > 2"), "kim")
        assert refused.value.subcode == "too_many_views"
        assert followed.join(view("n > 1"), "kim") is mine[1]  # one that is there is no other
        for number in range(2):
            followed.join(view(f"n < {number}"), "lou")
        with pytest.raises(Problem, match="4 different questions follow"):
            followed.join(view("n = 1"), "max")
        for actor in ("kim", "lou", "max", None):
            assert followed.join(view(None), actor).key == (None, None)
        followed.leave(mine[0])
        followed.join(view("n = 1"), "kim")

    asyncio.run(ask())


def test_attack_one_actor_cannot_have_all_previews(context: Context) -> None:
    with previews._one_of_few(context, "kim"):
        with pytest.raises(Problem, match="a preview of yours is being made"), previews._one_of_few(context, "kim"):
            pass
        with previews._one_of_few(context, "lou"):
            pass
    with previews._one_of_few(context, "kim"):
        pass


def test_attack_large_texts_are_not_parsed(api: TestClient, kim: Person) -> None:
    for path in ("/api/v1/jobs/validate", "/api/v1/queries", "/api/v1/jobs", "/api/v1/streams"):
        answer = api.post(path, content=b"[" * (TEXT_BYTES_MAX + 1), headers=kim.headers)
        assert (answer.status_code, answer.json()["subcode"]) == (413, "body_too_large"), path
        assert answer.json()["params"] == {"limit": TEXT_BYTES_MAX}
    rows = api.post("/api/v1/streams/none/rows", content=b"x" * (TEXT_BYTES_MAX + 1), headers=kim.headers)
    assert rows.status_code == 404


def test_attack_readiness_is_looked_at_once_a_second(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(health, "_checks", lambda _: looks.append(time.sleep(0.1)) or {"catalog": "ok"})
    monkeypatch.setattr(health, "KEPT_S", 60.0)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: api.get("/readyz"), range(50)))
    assert {answer.status_code for answer in answers} == {200}
    assert len(looks) == 1
