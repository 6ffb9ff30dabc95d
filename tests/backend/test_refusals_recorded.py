"""Each refusal that backend/subcodes.py marks is provoked, and leaves one line, which repeats nothing that was sent."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, select
from test_changing_groups import Driver

from backend.app import create_app
from backend.auth.audit import meaning_of
from backend.catalog.models import Event
from backend.problems import TITLES, Problem
from backend.settings import Settings
from backend.subcodes import ALWAYS, SUBCODES, WITH_KEY
from tests.backend.matrix import Person, add_person
from tests.backend.provoked import (
    CANARY,
    GENERATED,
    PROVOKE,
    PUSH,
    SLOTS_MAX,
    UPLOAD_BYTES_MAX,
    UPLOADS_BYTES_MAX,
    URL,
    World,
    on_a_websocket,
)

ROOT = Path(__file__).resolve().parents[2]
RECORDED = sorted(name for name, one in SUBCODES.items() if one.recorded in (ALWAYS, WITH_KEY))
ALL_RECORDED = ("forbidden", "rate_limited")
"""Codes whose subcodes are all recorded."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("allowed")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, empty_catalog: Path, folder: Path) -> FastAPI:
    """With auth, without Redis, and with little room."""
    settings = Settings(
        data=tmp_path_factory.mktemp("data"), redis_url="redis://127.0.0.1:1/0", auth="on", allowed_paths=(folder,),
        secret_key="a key of this test and of nobody else", job_slots_max=SLOTS_MAX,
        uploads_bytes_max=UPLOADS_BYTES_MAX, upload_bytes_max=UPLOAD_BYTES_MAX, rate_limit="100000/minute",
    )  # fmt: skip
    shutil.copy(empty_catalog, settings.data / "catalog.db")
    return create_app(settings)


@pytest.fixture(scope="module")
def people(app: FastAPI) -> dict[str, Person]:
    roles = {"viewer": "viewer", "operator": "operator", "other": "operator", "admin": "admin"}
    return {name: add_person(app.state.context, name, role) for name, role in roles.items()}


@pytest.fixture(scope="module")
def api(app: FastAPI, people: dict[str, Person]) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        for name, spec in {"clicks": PUSH, "a": GENERATED, "b": GENERATED}.items():
            body = {"name": name, "spec": spec}
            made = client.post(f"{URL}/streams", json=body, headers=people["operator"].headers)
            assert made.status_code == 201, made.text
        driver = Driver(app.state.context.settings, app, "wins")
        driver.commit(art=1, cars=5)
        yield client


@pytest.fixture
def world(
    app: FastAPI, api: TestClient, people: dict[str, Person], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> World:
    return World(app, api, people, folder, monkeypatch)


def lines(app: FastAPI, subcode: str) -> list[Event]:
    with app.state.context.catalog.read() as session:
        rows = session.scalars(select(Event).where(Event.kind == "request.refused").order_by(Event.id))
        return [row for row in rows if row.data["subcode"] == subcode]


def test_there_is_an_attack_for_each_that_is_recorded() -> None:
    assert sorted(PROVOKE) == RECORDED


@pytest.mark.parametrize("subcode", RECORDED)
def test_attack_leaves_one_line_however_often_it_comes(world: World, subcode: str) -> None:
    assert lines(world.app, subcode) == []
    status, told = PROVOKE[subcode](world)
    assert told == subcode
    (line,) = lines(world.app, subcode)
    assert PROVOKE[subcode](world) == (status, subcode)
    assert [one.id for one in lines(world.app, subcode)] == [line.id]
    assert TITLES[line.data["code"]][0] == status and line.severity == "warning"
    assert line.data.keys() == {"code", "subcode", "asked", "address", "times"}
    assert CANARY not in line.message + json.dumps(line.data)
    assert len(line.message) < 500


def test_all_that_is_forbidden_or_too_many_is_recorded() -> None:
    literal = re.compile(rf'"(?:{"|".join(ALL_RECORDED)})(?:\.([a-z_]+))?"')
    sources = [path for path in (ROOT / "backend").rglob("*.py") if path.name != "problems.py"]
    named = {found for path in sources for found in literal.findall(path.read_text())}
    assert named and named <= set(RECORDED)  # also none that has no subcode
    assert {name for name in SUBCODES if name.startswith("too_many_a")} <= set(RECORDED)  # put together


def test_what_the_docs_call_an_attack_is_recorded_and_the_docs_say_what_is() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    told = [row.split(" | ")[1] for row in text.splitlines() if row.startswith("| ") and row.count(" | ") >= 2]
    refused = [cell for cell in told if re.search(r"\b4\d\d\b", cell)]
    named = {name for cell in refused for name in re.findall(r"`([a-z_]+)`", cell)} & SUBCODES.keys()
    assert len(named) > 12 and named <= set(RECORDED)
    listed = text.partition("## What is recorded")[2].partition("\n## ")[0]
    assert sorted(set(re.findall(r"`([a-z_]+)`", listed)) & SUBCODES.keys()) == RECORDED


def test_a_line_has_the_numbers_and_roles_of_a_refusal_and_none_of_its_names() -> None:
    def meaning(code: str, **params: str | int) -> str:
        return meaning_of(Problem(code, "why", params=params))

    assert meaning("forbidden.role_too_low", needed="admin", has="viewer") == (
        "the role admin is needed, and the actor has viewer"
    )
    assert meaning("too_large.body_too_large", limit=5) == "the body has more than 5 bytes"
    assert CANARY not in meaning("not_found.unknown_name", what="job", name=CANARY)


def test_attack_a_flood_of_large_bodies_asks_the_catalog_nothing(world: World) -> None:
    PROVOKE["body_too_large"](world)
    asked: list[str] = []

    def note(*said: Any) -> None:
        asked.append(said[2])

    engine = world.context.catalog.engine
    event.listen(engine, "before_cursor_execute", note)
    large = {"Content-Length": str(1 << 40)}
    answers = [world.api.post(f"{URL}/queries", headers=large, content=iter([b"x"])) for _ in range(50)]
    assert {answer.json()["subcode"] for answer in answers} == {"body_too_large"}
    event.remove(engine, "before_cursor_execute", note)
    # Something of the platform's own may look at jobs meanwhile.
    assert [one for one in asked if re.search("INSERT|UPDATE|DELETE|api_keys|sessions|users|events", one)] == []


def test_attack_a_body_that_grows_as_it_is_read_leaves_a_line_with_who_sent_it(
    world: World, people: dict[str, Person]
) -> None:
    def grows() -> Iterator[bytes]:
        for _ in range(20):
            yield b"[" * (64 << 10)

    before = len(lines(world.app, "body_too_large"))
    answer = world.api.post(f"{URL}/queries", headers=people["admin"].headers, content=grows())
    assert (answer.status_code, answer.json()["subcode"]) == (413, "body_too_large")
    assert [line.actor_id for line in lines(world.app, "body_too_large")[before:]] == [people["admin"].id]


def test_attack_what_a_websocket_is_told_later_leaves_a_line_at_once(world: World) -> None:
    world.limit(views_an_actor=0)
    assert on_a_websocket(world, "admin") == (429, "too_many_views")
    (line,) = [one for one in lines(world.app, "too_many_views") if one.actor_id == world.people["admin"].id]
    assert line.data["asked"] == "WEBSOCKET /api/v1/ws"


def test_attack_a_nul_in_an_address_does_not_lose_the_line(world: World) -> None:
    """PostgreSQL keeps no text with one, and a foreign page is found before the address is looked at."""
    asked = world.api.post(f"{URL}/jobs/%00%E2%80%AE/stop", headers={"Sec-Fetch-Site": "cross-site"})
    assert asked.json()["subcode"] == "foreign_page"
    world.context.shared.pop("audit")
    world.api.post(f"{URL}/jobs/%00%E2%80%AE/stop", headers={"Sec-Fetch-Site": "cross-site"})
    assert lines(world.app, "foreign_page")[-1].data["asked"] == "POST /api/v1/jobs/\\x00\\u202e/stop"
