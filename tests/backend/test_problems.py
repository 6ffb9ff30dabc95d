"""Problems: every code and subcode is declared, says whether trying again can help, and is explained below its type."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.app import create_app
from backend.problems import PASSES, TITLES, Problem
from backend.settings import Settings
from backend.subcodes import SUBCODES
from streamjoin.client.errors import from_document

SOURCES = Path(__file__).resolve().parents[2] / "backend"
LITERAL = re.compile(rf'"({"|".join(TITLES)})\.([a-z_]+)"')


def test_every_subcode_that_is_used_is_declared_and_the_other_way_round() -> None:
    texts = [file.read_text() for file in SOURCES.rglob("*.py") if file.name != "subcodes.py"]
    assert {subcode for text in texts for _, subcode in LITERAL.findall(text)} <= SUBCODES.keys()
    named = {name for name in SUBCODES if any(f'"{name}"' in text or f'.{name}"' in text for text in texts)}
    assert named == SUBCODES.keys()
    assert not SUBCODES.keys() & TITLES.keys()
    with pytest.raises(AssertionError):  # also one that is put together
        Problem("conflict.made_up", "why")


@pytest.mark.parametrize("code", sorted(TITLES))
def test_a_problem_says_whether_the_same_request_may_succeed_later(code: str) -> None:
    document = Problem(code, "why").document()
    assert (document["code"], document["subcode"], document["can_retry"]) == (code, code, code in PASSES)


def test_titles_say_it_as_people_do() -> None:
    assert Problem("unauthenticated", "why").document()["title"] == "Not signed in"
    assert Problem("conflict", "why").document()["title"] == "This cannot be done now"


def test_a_refusal_has_what_programs_need(api: TestClient) -> None:
    said = api.get("/api/v1/streams/nothing").json()
    assert (said["code"], said["subcode"], said["can_retry"]) == ("not_found", "unknown_name", False)
    assert said["params"] == {"what": "stream", "name": "nothing"}
    told = from_document(said)
    assert (told.subcode, told.params, told.can_retry) == ("unknown_name", said["params"], False)
    meaning = api.get("/api/v1/problems/unknown_name").json()
    assert meaning == {
        "code": "unknown_name",
        "status": None,
        "title": SUBCODES["unknown_name"].meaning,
        "can_retry": None,
    }
    assert api.get("/api/v1/problems/rate_limited").json()["can_retry"] is True


@pytest.mark.parametrize("asked_below", ["", "/joins"])
def test_what_a_reply_points_to_is_below_the_path_that_clients_know(
    asked_below: str, tmp_path: Path, empty_catalog: Path
) -> None:
    shutil.copy(empty_catalog, tmp_path / "catalog.db")
    settings = Settings(data=tmp_path, auth="off", redis_url="redis://127.0.0.1:1/0", root_path="/joins")
    api = TestClient(create_app(settings), base_url="http://127.0.0.1")
    streams = f"{asked_below}/api/v1/streams"
    spec: dict[str, Any] = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
    for name in ("a", "b"):
        headers = {"Idempotency-Key": name}
        made = [api.post(streams, json={"name": name, "spec": spec}, headers=headers) for _ in range(2)]
        for answer in made:
            assert answer.headers["location"] == f"/joins/api/v1/streams/{answer.json()['id']}"
    assert api.get(f"{streams}?limit=1").headers["link"].startswith("</joins/api/v1/streams?limit=1&starting_after=")
    for problem in (api.get(f"{streams}/none"), api.post(streams, content=b"x" * (5 << 20))):
        assert problem.json()["type"].startswith("/joins/api/v1/problems/")
        assert api.get(problem.json()["type"]).status_code == 200
