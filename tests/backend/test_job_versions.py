"""Earlier versions of a job: entries are kept where they differ, all versions share a limit, and lists load little."""

from __future__ import annotations

import random
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Text, cast, event, func, select, update
from sqlalchemy.orm import Session

from backend.catalog.database import Catalog
from backend.catalog.ids import new_id, now_us
from backend.catalog.jobspec import JobSpec
from backend.catalog.migrate import migrate
from backend.catalog.models import Job, JobRevision
from backend.jobs import service
from backend.jobs.inputs import Inputs

URL = "/api/v1"
QUERY = "SELECT ONLINE a.k FROM a, b WHERE a.k = b.k WITHIN 1 SECONDS"
ANY = {"If-Match": "*"}


def wide(columns: int) -> dict[str, Any]:
    """A spec of so many times 250 bytes."""
    many = {f"c{place:03d}{'x' * 230}": "int64" for place in range(columns)}
    return {"source": "push", "time": "ts", "schema": {"ts": "timestamp", "k": "int64", **many}}


def sizes(app: FastAPI) -> dict[int, int]:
    """Bytes of each earlier version's entries, by version."""
    with app.state.context.catalog.read() as session:
        size = func.length(cast(JobRevision.streams, Text)) + func.length(cast(JobRevision.relations, Text))
        return {row.version: row.size for row in session.execute(select(JobRevision.version, size.label("size")))}


@pytest.fixture
def job(api: TestClient) -> None:
    """A job over two streams with specs of 25 KB."""
    for name in "ab":
        assert api.post(f"{URL}/streams", json={"name": name, "spec": wide(100)}).status_code == 201
    made = api.post(f"{URL}/jobs", json={"name": "j", "query": QUERY})
    assert made.status_code == 201, made.text


def patched(api: TestClient, what: str, body: Any) -> Any:
    answer = api.patch(f"{URL}/{what}", json=body, headers=ANY)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.usefixtures("job")
def test_attack_changes_that_leave_the_entries_copy_none_of_them(app: FastAPI, api: TestClient) -> None:
    for place in range(6):
        patched(api, "jobs/j", {"run": {"slots": 1 + place % 2}})
    assert api.post(f"{URL}/jobs/j/rescale", json={"slots": 3}).status_code == 202
    found = sizes(app)
    assert sorted(found) == [1, 2, 3, 4, 5, 6, 7] and max(found.values()) < 10
    patched(api, "streams/a", {"spec": wide(101)})
    patched(api, "jobs/j", {"refresh_streams": True})
    assert sizes(app)[8] > 40_000  # which the job has no more
    assert [row["run"]["slots"] for row in api.get(f"{URL}/jobs/j/revisions").json()["data"][:3]] == [3, 2, 1]


@pytest.mark.usefixtures("job")
def test_attack_versions_whose_entries_differ_have_so_many_bytes(
    app: FastAPI, api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "REVISIONS_BYTES_MAX", 150_000)
    for place in range(5):
        patched(api, "streams/a", {"spec": wide(101 + place)})
        patched(api, "jobs/j", {"refresh_streams": True})
    assert [version for version, size in sizes(app).items() if size > 40_000] == [4, 5]
    for place in range(3):
        patched(api, "jobs/j", {"run": {"slots": 1 + place % 2}})
    assert sorted(sizes(app)) == [4, 5, 6, 7, 8]
    monkeypatch.setattr(service, "REVISIONS_BYTES_MAX", 1)
    patched(api, "jobs/j", {"run": {"slots": 4}})
    assert sorted(sizes(app)) == [9]  # what can be taken back is the last change, at least
    seen = [row["version"] for row in api.get(f"{URL}/jobs/j/revisions").json()["data"]]
    assert seen == [9]


@pytest.mark.usefixtures("job")
def test_attack_a_list_of_versions_loads_none_of_their_entries(app: FastAPI, api: TestClient) -> None:
    patched(api, "jobs/j", {"run": {"slots": 2}})
    with app.state.context.catalog.begin() as session:  # as an earlier release of the platform kept them
        session.execute(update(JobRevision).values(streams={"a": wide(100), "b": wide(100)}, relations={}))
    asked: list[str] = []
    event.listen(app.state.context.catalog.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    (row,) = api.get(f"{URL}/jobs/j/revisions").json()["data"]
    (question,) = [text for text in asked if "FROM job_revisions" in text]
    assert "job_revisions.spec" in question and "streams" not in question and "relations" not in question
    assert (row["version"], row["query"]) == (1, QUERY)


@pytest.mark.usefixtures("job")
def test_any_kept_version_is_compared_and_taken_back(api: TestClient) -> None:
    for slots in (1, 2, 3):
        patched(api, "jobs/j", {"run": {"slots": slots}})
        patched(api, "streams/b", {"spec": wide(100 + slots)})
        patched(api, "jobs/j", {"refresh_streams": True})
    earlier = api.get(f"{URL}/jobs/j/revisions").json()["data"]
    assert len(earlier) == 6
    sections = ("query", "queries", "operator", "results", "run")
    for row in earlier:
        back = {name: row[name] for name in sections}
        told = api.post(f"{URL}/jobs/j/diff", json=back).json()["changes"]
        assert [one["field"] for one in told] == ([] if row["run"].get("slots") == 3 else ["run.slots"])
    taken = patched(api, "jobs/j", {name: earlier[-1][name] for name in sections})
    assert {name: taken[name] for name in sections} == {name: earlier[-1][name] for name in sections}


def entries_of(session: Session, job: Job, version: int) -> tuple[Any, Any]:
    """As `JobRevision` says where they are."""
    query = select(JobRevision).where(JobRevision.job_id == job.id, JobRevision.version >= version)
    later = [*session.scalars(query.order_by(JobRevision.version)), job]
    streams = next(row.streams for row in later if row.streams is not None)
    return streams, next(row.relations for row in later if row.relations is not None)


@pytest.mark.parametrize("seed", range(2))
def test_the_entries_of_every_kept_version_are_told_whatever_changed(
    url: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(service, "REVISIONS_BYTES_MAX", 1500)
    migrate(url)
    catalog = Catalog(url)
    job_id = new_id("job")
    at_us = now_us()
    with catalog.begin() as session:
        for id in (job_id, "job_other"):  # whose versions are its own
            session.add(Job(id=id, name=id, spec=JobSpec("q"), streams={"a": {"n": 0}}, relations={},
                            version=1, created_at_us=at_us, updated_at_us=at_us))  # fmt: skip
    was: dict[int, tuple[Any, Any]] = {}
    for number in range(1, 40):
        with catalog.begin() as session:
            job = session.get_one(Job, job_id)
            was[job.version] = (job.streams, job.relations)
            streams = {"a": {"n": number}, "b": "ü" * rng.randrange(40)} if rng.random() < 0.3 else job.streams
            relations = rng.choice([{}, {"r": {"n": number}}, job.relations, job.relations])
            service.change(session, job, JobSpec(f"q{number}"), Inputs(streams, relations), anew=False,
                           actor_id=None, kept=rng.choice([8, 12]))  # fmt: skip
            if rng.random() < 0.2:  # as an earlier release of the platform kept it
                row = session.get_one(JobRevision, (job_id, job.version - 1))
                row.streams, row.relations = was[job.version - 1]
        with catalog.read() as session:
            job = session.get_one(Job, job_id)
            kept = session.scalars(select(JobRevision.version).where(JobRevision.job_id == job_id)).all()
            assert sorted(kept) == list(range(job.version - len(kept), job.version)) and 1 <= len(kept) <= 12
            assert {version: entries_of(session, job, version) for version in kept} == {
                version: was[version] for version in kept
            }
            assert session.get_one(JobRevision, (job_id, job.version - 1)).spec.query in ("q", f"q{number - 1}")
    catalog.close()
