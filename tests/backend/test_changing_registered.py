"""Changes of streams and relations are checked while others go on writing, and never against an old version."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from backend.api.shapes import TRIES
from backend.auth import hosts, kafka_secrets
from backend.context import Context

URL = "/api/v1"
STREAM = {"source": "kafka", "servers": "127.0.0.1:9", "topic": "t", "format": "json", "time": "ts",
          "schema": {"ts": "timestamp"}}  # fmt: skip
RELATION = {"source": "sql", "url": "postgresql://kim@127.0.0.1:9/shop", "table": "customers"}
ELSEWHERE = {
    "streams": {**STREAM, "servers": "a.example:9,b.example:9"},
    "relations": {**RELATION, "url": "postgresql://kim@a.example:9/shop"},
}


@pytest.fixture
def context(app: FastAPI) -> Context:
    found: Context = app.state.context
    found.settings.allowed_hosts = (hosts.ANY,)
    found.settings.secret_key = SecretStr("k" * 40)
    return found


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens while names of servers are looked up, which nobody answers."""
    happens: list[Callable[[], object]] = []

    def addresses(name: str, *args: Any, **more: Any) -> Any:
        for one in happens:
            one()
        raise OSError("no answer")

    monkeypatch.setattr(hosts.socket, "getaddrinfo", addresses)
    return happens


def registered(api: TestClient, context: Context, what: str) -> str:
    entry = {"streams": STREAM, "relations": RELATION}[what]
    answer = api.post(f"{URL}/{what}", json={"name": "one", "spec": entry})
    assert answer.status_code == 201, answer.text
    return f"{URL}/{what}/one"


def others_write(context: Context) -> None:
    """Fails where a transaction that writes is open at this moment."""
    with closing(sqlite3.connect(str(context.catalog.url.database), timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.rollback()


@pytest.mark.parametrize("what", ["streams", "relations"])
def test_attack_names_that_no_server_answers_hold_up_nobody_who_writes(
    what: str, api: TestClient, context: Context, looked_up: list[Callable[[], object]]
) -> None:
    url, times = registered(api, context, what), 0

    def write() -> None:
        nonlocal times
        others_write(context)
        times += 1

    looked_up.append(write)
    changed = api.patch(url, json={"spec": ELSEWHERE[what]}, headers={"If-Match": "*"})
    assert (changed.status_code, changed.json()["spec"]) == (200, ELSEWHERE[what])
    assert times > 0


def test_attack_secrets_that_name_large_folders_hold_up_nobody_who_writes(
    api: TestClient, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, times = registered(api, context, "streams"), 0

    def check(*_: Any) -> None:
        nonlocal times
        others_write(context)
        times += 1

    monkeypatch.setattr(kafka_secrets, "check_client", check)
    changed = api.patch(url, json={"secrets": {"sasl.password": "p"}}, headers={"If-Match": "*"})
    assert (changed.status_code, changed.json()["has_secrets"], times) == (200, True, 1)


def test_what_is_changed_while_it_is_checked_is_checked_anew(
    api: TestClient, context: Context, looked_up: list[Callable[[], object]]
) -> None:
    url = registered(api, context, "streams")

    def give_secrets() -> None:
        looked_up.clear()
        given = api.patch(url, json={"secrets": {"sasl.password": "p"}}, headers={"If-Match": "*"})
        assert given.status_code == 200, given.text

    looked_up.append(give_secrets)
    # They were given for the former servers meanwhile.
    late = api.patch(url, json={"spec": ELSEWHERE["streams"]}, headers={"If-Match": "*"})
    assert (late.status_code, late.json()["subcode"]) == (422, "secrets_of_other_servers")


def test_a_version_that_was_named_is_the_one_that_is_changed(
    api: TestClient, context: Context, looked_up: list[Callable[[], object]]
) -> None:
    url = registered(api, context, "streams")

    def faster() -> None:
        looked_up.clear()
        assert api.patch(url, json={"secrets": {}}, headers={"If-Match": "*"}).status_code == 200

    for version, status in (('"1"', 412), ("*", 200)):
        looked_up.append(faster)
        changed = api.patch(url, json={"spec": ELSEWHERE["streams"]}, headers={"If-Match": version})
        assert changed.status_code == status, changed.text
    assert changed.json()["version"] == 4


def test_a_change_against_others_that_never_end_gives_up(
    api: TestClient, context: Context, looked_up: list[Callable[[], object]]
) -> None:
    url, tries = registered(api, context, "streams"), 0

    def faster() -> None:
        nonlocal tries
        tries += 1
        assert api.patch(url, json={"secrets": {}}, headers={"If-Match": "*"}).status_code == 200

    looked_up.append(faster)
    spec = {**STREAM, "servers": "a.example:9"}
    changed = api.patch(url, json={"spec": spec}, headers={"If-Match": "*"})
    assert (changed.status_code, changed.json()["subcode"]) == (412, "version_differs")
    assert "again and again" in changed.json()["detail"]
    assert tries == TRIES


def test_a_stream_that_goes_while_it_is_changed_leaves_no_folder(
    api: TestClient, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = registered(api, context, "streams")

    def going(*_: Any) -> None:
        monkeypatch.undo()
        assert api.delete(url).status_code == 204

    monkeypatch.setattr("backend.api.streams._refuse_shown_secrets", going)
    pushed = {"source": "push", "time": "ts", "schema": {"ts": "timestamp"}}
    assert api.patch(url, json={"spec": pushed}, headers={"If-Match": "*"}).status_code == 404
    assert not list(context.settings.data.glob("spool/*"))
