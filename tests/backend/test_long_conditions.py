"""Long conditions on results hold nobody up: they are bound in a process apart, once per answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend import apart
from backend.catalog.models import Job
from backend.results import frames
from backend.results.question import TEXT_MAX
from tests.backend.results_job import Committer, add_job, make_app, settings_in

pytestmark = pytest.mark.slow

LONG = "n > 2" + " AND price < 12345" * ((TEXT_MAX - 5) // 18)
SHORT = "n > 2"
ROWS = 8
EXPECTED = [n for n in (*range(ROWS), *range(1_000_000, 1_000_000 + ROWS)) if n > 2]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    return make_app(settings_in(tmp_path_factory.mktemp("conditions")))


@pytest.fixture(scope="module")
def api(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture(scope="module")
def job(app: FastAPI) -> Job:
    """Two snapshots of eight rows; `n` goes on from 0, and from a million."""
    context = app.state.context
    job = add_job(context.catalog)
    committer = Committer(context.settings, job)
    for _ in range(2):
        committer.commit(ROWS)
    committer.close()
    return job


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of each condition that this process binds; processes apart have lists of their own."""
    monkeypatch.setattr(apart, "SECONDS", 300.0)  # busy machines have time, too
    found: list[int] = []
    module = import_module("streamjoin.query.condition")
    read = module.read_words

    def noted(text: str) -> Any:
        found.append(len(text))
        return read(text)

    monkeypatch.setattr(module, "read_words", noted)
    return found


def post(api: TestClient, job: Job, **asked: Any) -> list[list[Any]]:
    answer = api.post("/api/v1/queries", json={"job": job.id, **asked})
    assert answer.status_code == 200, answer.text
    rows: list[list[Any]] = answer.json()["rows"]
    return rows


def sent(api: TestClient, kind: str, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a websocket gets for one frame, up to the end of the answer."""
    with api.websocket_connect("ws://127.0.0.1/api/v1/ws", subprotocols=[frames.SUBPROTOCOL]) as session:
        session.send_text(json.dumps({"type": "connection_init"}))
        session.send_text(json.dumps({"type": kind, "id": "1", "payload": payload}))
        while (frame := json.loads(session.receive_text()))["type"] != "complete":
            assert frame["type"] != "error", frame
            if frame["type"] == "next":
                yield frame["payload"]


def follow(api: TestClient, job: Job, **asked: Any) -> list[list[Any]]:
    snapshots = sent(api, "subscribe", {"job": job.id, "from": "oldest", **asked})
    return [row for snapshot in islice(snapshots, 2) for row in snapshot["rows"]]


def ask_by_websocket(api: TestClient, job: Job, **asked: Any) -> list[list[Any]]:
    return [row for piece in sent(api, "query", {"job": job.id, **asked}) for row in piece["rows"]]


@pytest.mark.parametrize("ask", [post, follow, ask_by_websocket])
def test_attack_a_long_condition_is_not_bound_by_the_process_that_answers_others(
    api: TestClient, job: Job, bound: list[int], ask: Callable[..., list[list[Any]]]
) -> None:
    assert len(LONG) > TEXT_MAX - 18
    expected = [[n] for n in EXPECTED]
    assert ask(api, job, where=LONG, select=["n"]) == expected and bound == []
    assert ask(api, job, where=SHORT, select=["n"]) == expected and len(bound) == 1


def test_attack_an_aggregate_with_a_long_condition_is_not_bound_there_either(
    api: TestClient, job: Job, bound: list[int]
) -> None:
    assert post(api, job, where=LONG, aggregate="count, max(n)") == [[len(EXPECTED), EXPECTED[-1]]]
    assert bound == []


def test_pages_of_a_long_condition_go_on_where_the_one_before_ended(
    api: TestClient, job: Job, bound: list[int]
) -> None:
    found, cursor = [], None
    while True:
        asked = {"job": job.id, "where": LONG, "select": ["n"], "limit": 5, "cursor": cursor}
        answer = api.post("/api/v1/queries", json=asked).json()
        found += [row[0] for row in answer["rows"]]
        if (cursor := answer["cursor"]) is None:
            break
    assert found == EXPECTED and bound == []
    asked = {"job": job.id, "where": LONG.replace("n > 2", "n > 3"), "select": ["n"], "limit": 5}
    first = api.post("/api/v1/queries", json={**asked, "where": LONG}).json()["cursor"]
    other = api.post("/api/v1/queries", json={**asked, "cursor": first})
    assert other.status_code == 422, other.text  # a cursor is of one question, however its condition was bound


@pytest.mark.parametrize(
    ("where", "told"),
    [(LONG[: TEXT_MAX // 36 * 18 + 5] + " AND prise > 1", "prise"), ("(" * 3000 + "price" + ")" * 3000 + " > 1", "")],
)
def test_a_wrong_one_is_refused_as_a_short_one_is(
    api: TestClient, job: Job, bound: list[int], where: str, told: str
) -> None:
    wrong = api.post("/api/v1/queries", json={"job": job.id, "where": where})
    assert wrong.status_code == 422 and bound == []
    assert wrong.json()["errors"][0]["pointer"] == "/where" and told in wrong.json()["detail"]
