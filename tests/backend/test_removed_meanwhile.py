"""A job and the removal of what it reads, at the same moment: one of the two is refused, on either kind of catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.api import jobs, registered
from backend.app import create_app
from backend.catalog.events import record
from backend.catalog.migrate import migrate
from backend.settings import Settings

SPEC = {"source": "generator", "kind": "zipf.r", "rate": "1/s", "time": "ts"}
QUERY = "SELECT ONLINE a.k FROM clicks a, clicks b WHERE a.k = b.k WITHIN 1 SECONDS"
WHILE_S = 0.5


@pytest.fixture
def api(url: str, tmp_path: Path) -> Iterator[TestClient]:
    """Of a platform with one stream."""
    migrate(url)
    settings = Settings(data=tmp_path, auth="off", redis_url="redis://127.0.0.1:1/0", catalog_url=url)
    with TestClient(create_app(settings), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        assert client.post("/api/v1/streams", json={"name": "clicks", "spec": SPEC}).status_code == 201
        yield client


def beside(act: Callable[[], Any], into: list[Future[Any]], pool: ThreadPoolExecutor) -> Callable[..., None]:
    """Notes an event, and lets somebody else act before the transaction that it is part of ends."""

    def noted(*given: Any, **named: Any) -> None:
        record(*given, **named)
        if not into:
            into.append(pool.submit(act))
            with pytest.raises(NotYetError):  # whoever comes second waits for the first
                into[0].result(WHILE_S)

    return noted


def test_a_stream_stays_for_a_job_that_is_just_being_written_down(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor() as pool:
        removals: list[Future[Any]] = []
        monkeypatch.setattr(jobs, "record", beside(lambda: api.delete("/api/v1/streams/clicks"), removals, pool))
        made = api.post("/api/v1/jobs", json={"name": "j", "query": QUERY})
        assert made.status_code == 201, made.text
        refused = removals[0].result(30)
    assert (refused.status_code, refused.json()["subcode"]) == (409, "in_use"), refused.text
    assert api.get("/api/v1/streams/clicks").status_code == 200


def test_a_job_is_refused_whose_stream_is_just_being_removed(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor() as pool:
        makings: list[Future[Any]] = []
        make = beside(lambda: api.post("/api/v1/jobs", json={"name": "j", "query": QUERY}), makings, pool)
        monkeypatch.setattr(registered, "record", make)
        assert api.delete("/api/v1/streams/clicks").status_code == 204
        refused = makings[0].result(30)
    assert (refused.status_code, refused.json()["subcode"]) == (422, "unknown_stream"), refused.text
    assert api.get("/api/v1/jobs").json()["data"] == []
