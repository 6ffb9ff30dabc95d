"""What people send has limits in all, and what a job asks for has limits, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select

from backend.catalog.models import Event
from backend.settings import Settings
from backend.uploads.names import folder_of
from tests.backend.matrix import Person, add_person, new_app

PUSH = {"source": "push", "time": "ts", "schema": {"id": "int64", "ts": "timestamp"}}
GENERATED = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = "SELECT ONLINE a.price FROM a, b WHERE a.auction = b.auction WITHIN 1 SECONDS"


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    """With auth, and little room."""
    settings = Settings(
        data=tmp_path, redis_url="redis://127.0.0.1:1/0", auth="on", uploads_bytes_max=1000, spool_bytes_max=1000,
        job_slots_max=4, driver_memory_mib_max=2048,
    )  # fmt: skip
    return new_app(settings)


@pytest.fixture
def kim(app: FastAPI) -> Person:
    return add_person(app.state.context, "kim", "operator")


@pytest.fixture
def api(app: FastAPI, kim: Person) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1", headers=kim.headers, raise_server_exceptions=False) as client:
        yield client


def refusals(app: FastAPI) -> list[str]:
    with app.state.context.catalog.read() as session:
        rows = session.scalars(select(Event).where(Event.kind == "request.refused"))
        return [row.data["subcode"] for row in rows]


def test_attack_uploads_do_not_fill_the_disk(api: TestClient, app: FastAPI) -> None:
    def upload(name: str, size: int) -> Any:
        return api.post("/api/v1/uploads", params={"name": name}, content=name[0].encode() * size)

    assert upload("a.csv", 600).status_code == 201
    full = upload("b.csv", 600)
    assert (full.status_code, full.json()["subcode"]) == (409, "space_used_up")
    assert "STREAMJOIN_UPLOADS_BYTES_MAX" in full.json()["detail"] and full.json()["params"] == {"limit": 1000}
    assert refusals(app) == ["space_used_up"]
    folder = folder_of(app.state.context.settings)
    assert [path.name for path in folder.rglob("*.csv") if path.parent == folder] == ["a.csv"]
    assert list((folder / ".drafts").iterdir()) == []  # nothing is left of what had no room
    assert api.delete("/api/v1/uploads/a.csv").status_code == 204
    assert upload("b.csv", 600).status_code == 201  # and the room is there again at once


def test_attack_pushed_rows_do_not_fill_the_disk(api: TestClient, app: FastAPI) -> None:
    for name in ("clicks", "views"):
        assert api.post("/api/v1/streams", json={"name": name, "spec": PUSH}).status_code == 201
    row = b'{"id": 1, "pad": "%s"}\n' % (b"x" * 500)
    assert api.post("/api/v1/streams/clicks/rows", content=row).status_code == 202
    full = api.post("/api/v1/streams/views/rows", content=row)
    assert (full.status_code, full.json()["subcode"]) == (409, "space_used_up")
    assert refusals(app) == ["space_used_up"]
    assert api.delete("/api/v1/streams/clicks").status_code == 204
    assert api.post("/api/v1/streams/views/rows", content=row).status_code == 202


@pytest.mark.parametrize(
    ("run", "pointer"), [({"slots": 5}, "/run/slots"), ({"driver_memory": 4096}, "/run/driver_memory")]
)
def test_attack_a_job_asks_for_no_more_than_its_platform_allows(
    api: TestClient, app: FastAPI, run: dict[str, Any], pointer: str
) -> None:
    for name in ("a", "b"):
        assert api.post("/api/v1/streams", json={"name": name, "spec": GENERATED}).status_code == 201
    draft = {"query": QUERY, "run": run}
    created = api.post("/api/v1/jobs", json={"name": "j", **draft})
    assert (created.status_code, created.json()["subcode"]) == (422, "over_limit")
    assert created.json()["errors"][0]["pointer"] == pointer and "STREAMJOIN_" in created.json()["detail"]
    assert refusals(app) == ["over_limit"]
    checked = api.post("/api/v1/jobs/validate", json=draft).json()
    assert (checked["valid"], checked["diagnostics"][0]["pointer"]) == (False, pointer)
    assert api.post("/api/v1/jobs", json={"name": "j", "query": QUERY, "run": {"slots": 4}}).status_code == 201
    changed = api.patch("/api/v1/jobs/j", json={"run": run}, headers={"If-Match": '"1"'})
    assert changed.json()["subcode"] == "over_limit"
    if "slots" in run:
        rescaled = api.post("/api/v1/jobs/j/rescale", json=run, headers={"If-Match": '"1"'})
        assert rescaled.json()["subcode"] == "over_limit"
