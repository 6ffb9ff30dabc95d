"""Attacks are refused and leave a line for admins; what people did is kept as long as admins say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select

from backend.auth.audit import EVERY_S, KNOWN_MAX, Seldom
from backend.auth.limits import limits_of
from backend.catalog.models import Event
from backend.context import Context
from backend.settings import Settings, read_settings
from streamjoin.errors import InputError
from tests.backend.matrix import PASSWORD, Person, add_person, new_app

PAGE = {"Origin": "http://127.0.0.1"}
PUSH = {"source": "push", "time": "ts", "schema": {"id": "int64", "ts": "timestamp"}}


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    """With auth, and without Redis."""
    return new_app(Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="on"))


@pytest.fixture
def context(app: FastAPI) -> Context:
    found = app.state.context
    assert isinstance(found, Context)
    return found


@pytest.fixture
def api(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1", headers=PAGE, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def people(context: Context) -> dict[str, Person]:
    return {role: add_person(context, f"the-{role}", role) for role in ("viewer", "operator", "admin")}


def lines(context: Context, kind: str = "request.refused") -> list[Event]:
    with context.catalog.read() as session:
        return list(session.scalars(select(Event).where(Event.kind == kind).order_by(Event.id)))


ATTACKS: list[tuple[str, str, str, Any, int, str]] = [
    ("viewer", "POST", "/api/v1/streams", {}, 403, "role_too_low"),
    ("operator", "GET", "/api/v1/users", None, 403, "role_too_low"),
    ("operator", "POST", "/api/v1/api-keys", {"name": "k", "role": "admin"}, 403, "key_role_too_high"),
    ("operator", "GET", "/api/v1/api-keys?all=true", None, 403, "keys_of_others"),
    ("operator", "POST", "/api/v1/streams/test", {"spec": {"source": "csv", "path": "/etc/passwd"}},
     422, "not_allowed"),
    ("operator", "POST", "/api/v1/streams/test",
     {"spec": {"source": "kafka", "servers": "10.0.0.1:1", "topic": "t", "format": "json", "time": "ts",
               "schema": {"ts": "timestamp"}}}, 422, "not_allowed"),
    ("viewer", "PUT", "/api/v1/users/me/password", {"old": "guess", "new": "a longer staple"}, 422, "wrong_password"),
]  # fmt: skip


@pytest.mark.parametrize(("role", "method", "path", "body", "status", "subcode"), ATTACKS)
def test_an_attack_is_refused_and_leaves_a_line(
    api: TestClient, context: Context, people: dict[str, Person], role: str, method: str, path: str, body: Any,
    status: int, subcode: str,
) -> None:  # fmt: skip
    answer = api.request(method, path, json=body, headers=people[role].headers)
    assert (answer.status_code, answer.json()["subcode"]) == (status, subcode)
    (line,) = lines(context)
    assert (line.actor_id, line.severity, line.data["subcode"]) == (people[role].id, "warning", subcode)
    assert line.data["asked"] == f"{method} {path.partition('?')[0]}" and line.data["address"] == "testclient"
    assert line.message.startswith(f"the-{role} was refused {method} ")


def test_attack_keys_that_open_nothing_leave_one_line_however_often_they_come(
    api: TestClient, context: Context, people: dict[str, Person]
) -> None:
    for _ in range(5):
        wrong = api.get("/api/v1/jobs", headers={"Authorization": f"Bearer sj_{'x' * 43}"})
        assert (wrong.status_code, wrong.json()["subcode"]) == (401, "no_login")
    (line,) = lines(context)
    assert (line.actor_id, line.data["times"]) == (None, 1)
    assert api.get("/api/v1/jobs").status_code == 401  # a browser that is not logged in yet attacks nobody
    assert len(lines(context)) == 1


def test_attack_a_foreign_page_leaves_a_line(api: TestClient, context: Context, people: dict[str, Person]) -> None:
    api.post("/api/v1/sessions", json={"name": "the-viewer", "password": PASSWORD})
    answer = api.post("/api/v1/jobs/validate", json={}, headers={"Origin": "http://evil.example"})
    assert (answer.status_code, answer.json()["subcode"]) == (403, "foreign_page")
    assert [line.data["subcode"] for line in lines(context)] == ["foreign_page"]


def test_attack_a_websocket_with_a_wrong_key_leaves_a_line(api: TestClient, context: Context) -> None:
    headers = {"Authorization": f"Bearer sj_{'x' * 43}"}
    with api.websocket_connect("ws://127.0.0.1/api/v1/ws", subprotocols=["streamjoin.v1"], headers=headers) as socket:
        assert socket.receive()["code"] == 4401
    (line,) = lines(context)
    assert line.data["asked"] == "WEBSOCKET /api/v1/ws"


def test_logins_that_fail_and_logouts_leave_lines(api: TestClient, context: Context, people: dict[str, Person]) -> None:
    wrong = {"name": "the-viewer", "password": "wrong password"}
    assert api.post("/api/v1/sessions", json=wrong).json()["subcode"] == "wrong_login"
    assert api.post("/api/v1/sessions", json={**wrong, "name": "my password"}).status_code == 401
    assert api.post("/api/v1/sessions", json={"name": "the-viewer", "password": PASSWORD}).status_code == 201
    assert api.delete("/api/v1/sessions/current").status_code == 204
    refused = lines(context, "session.refused")
    assert [line.message for line in refused] == [
        "somebody failed to log in as the-viewer", "somebody failed to log in as an unknown user",
    ]  # fmt: skip
    assert [line.data["user_id"] for line in refused] == [people["viewer"].id, None]
    assert [line.actor_id for line in lines(context, "session.closed")] == [people["viewer"].id]


def test_pushes_and_saved_questions_leave_lines(api: TestClient, context: Context, people: dict[str, Person]) -> None:
    kim = people["operator"].headers
    assert api.post("/api/v1/streams", json={"name": "clicks", "spec": PUSH}, headers=kim).status_code == 201
    for _ in range(3):
        assert (
            api.post("/api/v1/streams/clicks/rows", content=b'{"id": 1}\n{"id": 2}\n', headers=kim).status_code == 202
        )
    (line,) = lines(context, "rows.pushed")
    assert (line.actor_id, line.data["rows"]) == (people["operator"].id, 2)
    question = {"name": "mine", "question": {"job": "wins"}}
    assert api.post("/api/v1/saved-queries", json=question, headers=kim).status_code == 201
    assert api.delete("/api/v1/saved-queries/mine", headers=kim).status_code == 204
    for kind in ("saved_query.created", "saved_query.deleted"):
        assert [line.actor_id for line in lines(context, kind)] == [people["operator"].id]


def test_where_people_sit_is_for_admins(api: TestClient, context: Context, people: dict[str, Person]) -> None:
    api.post("/api/v1/sessions", json={"name": "the-viewer", "password": PASSWORD})
    api.cookies.clear()
    seen = {}
    for role in ("viewer", "operator", "admin"):
        events = api.get("/api/v1/events", headers=people[role].headers).json()["data"]
        seen[role] = next(event for event in events if event["kind"] == "session.opened")["data"]
    assert seen == {"viewer": {}, "operator": {}, "admin": {"address": "testclient"}}


def test_a_line_says_how_often_it_was_since_the_one_before() -> None:
    now_s = 0.0
    seldom = Seldom(lambda: now_s)
    assert [seldom.due("kim", "x"), seldom.due("kim", "x"), seldom.due("kim", "y"), seldom.due("kim", "x")] == [
        1,
        0,
        1,
        0,
    ]
    now_s = EVERY_S
    assert seldom.due("kim", "x", count=5) == 7
    due = sum(bool(seldom.due(f"address {number}")) for number in range(3 * KNOWN_MAX))
    assert due <= KNOWN_MAX + 1


# ---- logging in --------------------------------------------------------------------------------------------------


def test_attack_one_address_cannot_lock_others_out_of_an_account(api: TestClient, context: Context) -> None:
    add_person(context, "ada", "admin")
    limits = limits_of(context)
    refused = 0
    for _ in range(300):
        try:
            limits.check_login("ada", "10.0.0.66")
        except Exception:
            refused += 1
    assert refused == 290
    answer = api.post("/api/v1/sessions", json={"name": "ada", "password": PASSWORD})
    assert answer.status_code == 201, answer.text


def test_attack_one_name_too_often_leaves_an_address_to_its_others(api: TestClient, context: Context) -> None:
    add_person(context, "bob", "viewer")
    answers = [api.post("/api/v1/sessions", json={"name": "ada", "password": "wrong password"}) for _ in range(70)]
    assert [answer.json()["subcode"] for answer in answers[9:12]] == [
        "wrong_login",
        "too_many_logins",
        "too_many_logins",
    ]
    assert api.post("/api/v1/sessions", json={"name": "bob", "password": PASSWORD}).status_code == 201
    assert [line.data["subcode"] for line in lines(context)] == ["too_many_logins"]


@pytest.mark.parametrize("given", ["proxy", "10.0.0.0/33", "10.0.0.1:80"])
def test_a_proxy_that_is_no_address_is_refused_at_the_start(given: str) -> None:
    with pytest.raises(InputError, match=r"STREAMJOIN_TRUSTED_PROXIES: .* is no address and no network"):
        read_settings(trusted_proxies=given)
    assert read_settings(trusted_proxies="10.0.0.1, fd00::/8").trusted_proxies == ("10.0.0.1", "fd00::/8")
