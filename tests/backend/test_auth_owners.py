"""Routes x roles x owner or not, as the API's description says it: each is asked, of a thing that is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.api.described import OWNER, ROLE
from backend.auth.actor import ROLES, Operator
from backend.settings import Settings
from tests.backend.matrix import Person, add_person, new_app, routes_of

pytestmark = pytest.mark.slow

PUSH = {"source": "push", "time": "ts", "schema": {"id": "int64", "ts": "timestamp"}}
GENERATED = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = "SELECT ONLINE a.price FROM a, b WHERE a.auction = b.auction WITHIN 1 SECONDS"
PEOPLE = ("anonymous", "viewer", "owner", "operator", "admin")
NOT_THERE = {"/api/v1/jobs/{id}/stream"}
"""Answers without an end are asked of a job that is not there; who may not ask is told so first."""


class Platform:
    """With a user of each role, and two operators, one of whom owns all that there is."""

    def __init__(self, folder: Path) -> None:
        settings = Settings(data=folder / "data", redis_url="redis://127.0.0.1:1/0", rate_limit="100000/minute",
                            allowed_paths=(folder,), jobs_max=10_000)  # fmt: skip
        self.app: FastAPI = new_app(settings)
        context = self.app.state.context
        self.people: dict[str, Person] = {role: add_person(context, f"the-{role}", role) for role in ROLES}
        self.people["owner"] = add_person(context, "the-owner", "operator")
        (folder / "table.csv").write_text("id,name\n1,Ada\n")
        self.table = {"source": "csv", "path": str(folder / "table.csv")}
        self.count = 0
        for name in ("a", "b"):
            self.make("streams", {"name": name, "spec": GENERATED})

    def make(self, what: str, body: Any) -> str:
        with TestClient(self.app, base_url="http://127.0.0.1") as api:
            headers = self.people["owner"].headers
            if what == "uploads":
                answer = api.post("/api/v1/uploads", params={"name": body}, content=b"id\n1\n", headers=headers)
            else:
                answer = api.post(f"/api/v1/{what}", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        found: str = answer.json()["name" if what == "uploads" else "id"]
        return found

    def body(self, path: str) -> Any:
        """What is sent; it must be right where that is looked at before who owns the thing."""
        return {"/api/v1/jobs/{id}/rescale": {"slots": 1}, "/api/v1/relations/{id}": {"spec": self.table}}.get(path, {})

    def thing(self, path: str) -> str:
        """What stands for the parameter of a path: something of the owner's, made anew."""
        self.count += 1
        name = f"n{self.count}"
        kinds: dict[str, Callable[[], str]] = {
            "streams": lambda: self.make("streams", {"name": name, "spec": PUSH}),
            "relations": lambda: self.make("relations", {"name": name, "spec": self.table}),
            "jobs": lambda: self.make("jobs", {"name": name, "query": QUERY}),
            "saved-queries": lambda: self.make("saved-queries", {"name": name, "question": {"job": "x"}}),
            "uploads": lambda: self.make("uploads", f"{name}.csv"),
            "api-keys": lambda: self.make("api-keys", {"name": name}),
            "demos": lambda: "auctions",
            "users": lambda: self.people["viewer"].id,
        }
        return "0" if path in NOT_THERE else kinds.get(path.split("/")[3], lambda: "0")()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Platform:
    return Platform(tmp_path_factory.mktemp("owners"))


def cases(document: dict[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """Method, path, who asks, and whether they may."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for who in PEOPLE:
                role = "operator" if who == "owner" else who
                needed = operation[ROLE]
                may = needed is None or (role in ROLES and ROLES.index(role) >= ROLES.index(needed))
                yield method.upper(), path, who, may and not (operation[OWNER] and who == "operator")


def test_everybody_may_what_the_description_says_and_nothing_else(platform: Platform) -> None:
    document = platform.app.openapi()
    wrong, asked = [], 0
    with TestClient(platform.app, base_url="http://127.0.0.1", raise_server_exceptions=False) as api:
        for method, path, who, may in cases(document):
            if path == "/api/v1/users/{id}" and method == "DELETE" and may:
                continue  # would take away who asks next; tests/backend/test_auth_users.py
            filled = re.sub(r"{[^}]*}", platform.thing(path), path) if "{" in path else path
            headers = {"If-Match": "*", **(platform.people[who].headers if who in platform.people else {})}
            body: dict[str, Any] = {} if method == "GET" else {"json": platform.body(path)}
            answer = api.request(method, filled, headers=headers, **body)
            asked += 1
            if path == "/api/v1/api-keys/{id}" and who in ("viewer", "operator"):
                assert answer.status_code == 404  # of others' keys not even whether they exist
                continue
            if may == (answer.status_code in (401, 403)):
                wrong.append((method, path, who, answer.status_code))
    assert wrong == []
    assert asked > 5 * 50


def test_the_description_has_every_route(platform: Platform) -> None:
    document = platform.app.openapi()
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    hidden = set(routes_of(platform.app)) - described
    assert {path for _, path in hidden if path.startswith("/api/")} <= {"/api/v1/openapi.json"}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert ROLE in operation and OWNER in operation, (method, path)


def test_what_only_owners_may_is_found_where_the_mark_is_missing(platform: Platform) -> None:
    """The mark is no more than a word: who is refused says what is true."""
    owned = {
        (method.upper(), path) for path, item in platform.app.openapi()["paths"].items()
        for method, operation in item.items() if operation[OWNER]
    }  # fmt: skip
    assert ("DELETE", "/api/v1/jobs/{id}") in owned and ("POST", "/api/v1/streams/{id}/rows") in owned
    assert ("GET", "/api/v1/jobs/{id}/logs") in owned and ("GET", "/api/v1/jobs/{id}") not in owned
    assert _changing(platform.app) <= owned


def test_an_action_that_nobody_has_decided_on_is_found(platform: Platform, tmp_path: Path) -> None:
    app = new_app(Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0"))

    @app.post("/api/v1/relations/{id}/forget")
    def forget(id: str, actor: Operator) -> None:
        """Done to a thing that somebody owns."""

    assert _changing(app) - _changing(platform.app) == {("POST", "/api/v1/relations/{id}/forget")}


def _changing(app: FastAPI) -> set[tuple[str, str]]:
    """What operators do to a thing that has a name."""
    return {
        (method.upper(), path) for path, item in app.openapi()["paths"].items() for method, operation in item.items()
        if "{" in path and method != "get" and operation[ROLE] == "operator"
    }  # fmt: skip


@pytest.mark.parametrize("who", PEOPLE)
def test_the_websocket_is_for_everybody_who_is_logged_in(platform: Platform, who: str) -> None:
    headers = platform.people[who].headers if who in platform.people else {}
    with (
        TestClient(platform.app, base_url="http://127.0.0.1") as api,
        api.websocket_connect("ws://127.0.0.1/api/v1/ws", subprotocols=["streamjoin.v1"], headers=headers) as socket,
    ):
        if who == "anonymous":
            assert socket.receive()["code"] == 4401
        else:
            socket.send_json({"type": "connection_init"})
            assert socket.receive_json()["type"] == "connection_ack"
