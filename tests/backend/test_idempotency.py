"""The same POST under the same key is done once."""

from __future__ import annotations

import threading

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from backend.catalog.models import Idempotency
from backend.context import Context
from backend.idempotency import GIVEN_UP_US, KEPT_US

BODY = {"name": "bids", "spec": {"source": "generator", "kind": "nexmark.bid", "time": "ts"}}
URL = "/api/v1/streams"


def key(value: str) -> dict[str, str]:
    return {"Idempotency-Key": value}


def rows(app: FastAPI) -> list[Idempotency]:
    context = app.state.context
    assert isinstance(context, Context)
    with context.catalog.read() as session:
        return list(session.scalars(select(Idempotency)))


def aged(app: FastAPI, by_us: int, **also: object) -> None:
    """As if the requests had come earlier."""
    with app.state.context.catalog.begin() as session:
        session.execute(update(Idempotency).values(created_at_us=Idempotency.created_at_us - by_us, **also))


def test_a_repetition_gets_the_first_reply(api: TestClient) -> None:
    first = api.post(URL, json=BODY, headers=key("a"))
    again = api.post(URL, json=BODY, headers=key("a"))
    assert first.status_code == again.status_code == 201
    assert first.json() == again.json()
    assert [again.headers[name] for name in ("location", "etag", "idempotency-replayed")] == [
        first.headers["location"], first.headers["etag"], "true",
    ]  # fmt: skip
    assert "idempotency-replayed" not in first.headers
    assert api.post(URL, json=BODY, headers=key("b")).status_code == 409


def test_a_mistake_is_answered_the_same_too(api: TestClient) -> None:
    wrong = {**BODY, "name": "no name"}
    assert [api.post(URL, json=wrong, headers=key("a")).status_code for _ in range(2)] == [422, 422]


def test_another_request_under_the_key_is_refused(api: TestClient) -> None:
    api.post(URL, json=BODY, headers=key("a"))
    other = api.post(URL, json={**BODY, "name": "more"}, headers=key("a"))
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


@pytest.mark.parametrize("value", ["", "two words", "x" * 201])
def test_what_is_no_key_is_refused(api: TestClient, value: str) -> None:
    assert api.post(URL, json=BODY, headers=key(value)).json()["code"] == "bad_request"


def test_a_request_that_is_worked_on_is_not_done_twice(api: TestClient, app: FastAPI) -> None:
    api.post(URL, json=BODY, headers=key("a"))
    aged(app, 0, status=None)
    answer = api.post(URL, json=BODY, headers=key("a"))
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (409, "still_running", "1")


def test_a_request_whose_process_died_is_tried_again(api: TestClient, app: FastAPI) -> None:
    api.post(URL, json=BODY, headers=key("a"))
    aged(app, GIVEN_UP_US + 1, status=None)
    answer = api.post(URL, json=BODY, headers=key("a"))
    assert answer.json()["code"] == "conflict"  # it was tried: the stream is there since the first time


def test_replies_are_forgotten_after_a_day(api: TestClient, app: FastAPI) -> None:
    api.post(URL, json=BODY, headers=key("a"))
    aged(app, KEPT_US + 1)
    assert api.post(URL, json=BODY, headers=key("a")).json()["code"] == "conflict"
    assert len(rows(app)) == 1


def test_a_failure_of_ours_leaves_nothing_behind(api: TestClient, app: FastAPI) -> None:
    @app.post("/api/v1/broken")
    def broken() -> None:
        raise RuntimeError("a bug")

    answer = api.post("/api/v1/broken", headers=key("a"))
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "a bug" not in answer.text
    assert rows(app) == []


def test_of_many_at_once_one_is_done(api: TestClient) -> None:
    statuses: list[int] = []

    def post() -> None:
        statuses.append(api.post(URL, json=BODY, headers=key("a")).status_code)

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {201, 409}
    assert 201 in statuses
    assert len(api.get(URL).json()["data"]) == 1
