"""Entries may take a MiB per job; lists of jobs, metrics and searches for what uses a stream load none of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, inspect, select

from backend.catalog.database import Catalog
from backend.catalog.entries import names_in
from backend.catalog.ids import now_us
from backend.catalog.jobspec import JobSpec
from backend.catalog.migrate import migrate
from backend.catalog.models import Job
from backend.results.service import service_of
from backend.settings import Settings
from tests.backend.matrix import Person, add_person, new_app

URL = "/api/v1"
PUSH = {"source": "push", "time": "ts", "schema": {"ts": "timestamp", "k": "int64"}}
QUERY = "SELECT ONLINE a.k, r.n FROM a, b, r WHERE a.k = b.k AND a.k = r.k WITHIN 1 SECONDS"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    folder: Path = tmp_path_factory.mktemp("entries")
    (folder / "r.csv").write_text("k,n\n1,2\n")
    settings = Settings(data=folder / "data", redis_url="redis://127.0.0.1:1/0", auth="on", allowed_paths=(folder,),
                        rate_limit="100000/minute")  # fmt: skip
    return new_app(settings)


@pytest.fixture(scope="module")
def kim(app: FastAPI) -> Person:
    add_person(app.state.context, "lee", "operator")
    return add_person(app.state.context, "kim", "operator")


@pytest.fixture(scope="module")
def api(app: FastAPI, kim: Person) -> Iterator[TestClient]:
    """Two jobs over two streams and a relation, and a further stream that none reads."""
    relation = {"name": "r", "spec": {"source": "csv", "path": f"{app.state.context.settings.allowed_paths[0]}/r.csv"}}
    with TestClient(app, base_url="http://127.0.0.1", headers=kim.headers) as client:
        for name in "abc":
            assert client.post(f"{URL}/streams", json={"name": name, "spec": PUSH}).status_code == 201
        made = client.post(f"{URL}/relations", json=relation)
        assert made.status_code == 201, made.text
        for name in ("one", "two"):
            made = client.post(f"{URL}/jobs", json={"name": name, "query": QUERY})
            assert made.status_code == 201, made.text
        yield client


@contextmanager
def loaded(*, streams: int, relations: int) -> Iterator[None]:
    """So many jobs come with their entries in the block."""
    found = {"streams": 0, "relations": 0}
    jobs: list[Any] = []

    def note(job: Job, _: Any) -> None:
        jobs.append(job.id)
        for name in found.keys() - inspect(job).unloaded:
            found[name] += 1

    event.listen(Job, "load", note)
    try:
        yield
    finally:
        event.remove(Job, "load", note)
    assert found == {"streams": streams, "relations": relations}, jobs


def test_attack_a_list_of_jobs_loads_no_entries_and_shows_their_names(api: TestClient) -> None:
    with loaded(streams=0, relations=0):
        listed = api.get(f"{URL}/jobs").json()["data"]
    assert [(job["name"], job["streams"], job["relations"]) for job in listed] == [
        ("two", ["a", "b"], ["r"]), ("one", ["a", "b"], ["r"]),
    ]  # fmt: skip
    assert api.get(f"{URL}/jobs/one").json() == listed[1]


def test_attack_metrics_and_those_who_follow_load_no_entries(app: FastAPI, api: TestClient) -> None:
    ids = {job["id"] for job in api.get(f"{URL}/jobs").json()["data"]}
    with loaded(streams=0, relations=0):
        assert 'streamjoin_jobs{phase="stopped"} 2.0' in api.get("/metrics").text
        rows = service_of(app.state.context).hub._rows(ids)
    assert {(job.phase, job.results_name == id) for id, job in rows.items()} == {("stopped", True)}


def test_attack_removing_a_stream_loads_no_entries(api: TestClient) -> None:
    with loaded(streams=0, relations=0):
        refused = [api.delete(f"{URL}/{what}").json() for what in ("streams/a", "relations/r")]
        assert api.delete(f"{URL}/streams/c").status_code == 204
    assert [(one["subcode"], one["params"]) for one in refused] == [("in_use", {"users": "one, two"})] * 2


def test_attack_starting_a_job_loads_no_entries_of_its_owners_other_jobs(api: TestClient) -> None:
    with loaded(streams=1, relations=1):
        assert api.post(f"{URL}/jobs/one/start").status_code == 202
    with loaded(streams=1, relations=1):
        assert api.post(f"{URL}/jobs/one/stop").status_code == 202


def test_versions_of_a_relation_are_found_by_the_jobs_that_read_it(api: TestClient) -> None:
    with loaded(streams=0, relations=2):
        found = api.get(f"{URL}/relations/r/versions").json()["data"]
    assert [one["job"] for one in found] == ["two", "one"]


def test_names_are_those_of_a_json_object_on_both_databases(url: str) -> None:
    migrate(url)
    catalog = Catalog(url)
    given: list[dict[str, Any]] = [{}, {"a": {"b": 1}, 'q"ü\\.': None, "x y": [1]}]
    with catalog.begin() as session:
        for place, entries in enumerate(given):
            session.add(Job(id=f"job_{place}", name=f"j{place}", spec=JobSpec("q"), streams=entries, relations={},
                            created_at_us=now_us(), updated_at_us=now_us()))  # fmt: skip
    with catalog.read() as session:
        found = session.execute(select(names_in(Job.streams), names_in(Job.relations)).order_by(Job.id)).all()
    assert [(sorted(streams), relations) for streams, relations in found] == [(sorted(one), []) for one in given]
    catalog.close()
