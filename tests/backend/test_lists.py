"""Lists are narrowed, unknown parameters are refused, versions count where they are given, and 304 saves a reply."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import delete, update

from backend.api.filters import PHASES
from backend.catalog import lifecycle
from backend.catalog.lifecycle import GIVEN_UP
from backend.catalog.models import Job
from backend.settings import Settings
from tests.backend.matrix import Person, add_person, new_app

PUSH = {"source": "push", "time": "ts", "schema": {"id": "int64", "ts": "timestamp"}}
GENERATED = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = "SELECT ONLINE a.price FROM a, b WHERE a.auction = b.auction WITHIN 1 SECONDS"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    folder: Path = tmp_path_factory.mktemp("lists")
    return new_app(Settings(data=folder, redis_url="redis://127.0.0.1:1/0", rate_limit="100000/minute"))


@pytest.fixture(scope="module")
def people(app: FastAPI) -> dict[str, Person]:
    return {name: add_person(app.state.context, name, "operator") for name in ("kim", "lou")}


@pytest.fixture(scope="module")
def api(app: FastAPI, people: dict[str, Person]) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1", headers=people["kim"].headers) as client:
        for name in ("a", "b"):
            client.post("/api/v1/streams", json={"name": name, "spec": GENERATED})
        client.post("/api/v1/streams", json={"name": "c", "spec": PUSH}, headers=people["lou"].headers)
        for name in ("one", "two"):
            assert client.post("/api/v1/jobs", json={"name": name, "query": QUERY}).status_code == 201
        client.post("/api/v1/jobs/two/start")
        yield client


def names(api: TestClient, what: str, **given: Any) -> list[str]:
    answer = api.get(f"/api/v1/{what}", params=given)
    assert answer.status_code == 200, answer.text
    return sorted(item["name"] for item in answer.json()["data"])


def test_jobs_by_phase_owner_and_time(api: TestClient, people: dict[str, Person]) -> None:
    assert names(api, "jobs", phase="stopped") == ["one"]
    assert names(api, "jobs", phase="starting", owner="me") == ["two"]
    assert names(api, "jobs", owner=people["lou"].id) == []
    assert names(api, "jobs", since="2026-01-01") == ["one", "two"] and names(api, "jobs", since="2999-01-01") == []
    wrong = api.get("/api/v1/jobs", params={"phase": "gone"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "phase")


@pytest.mark.parametrize("path", ["events", "jobs/two/events"])
def test_events_name_their_next_page(api: TestClient, path: str) -> None:
    for kind in ({}, {"kind": "job.created"}):
        url, seen, whole = f"/api/v1/{path}", [], api.get(f"/api/v1/{path}", params={"limit": 200, **kind}).json()
        assert not whole["has_more"]
        answer = api.get(url, params={"limit": 1, **kind})
        seen += answer.json()["data"]
        while "link" in answer.headers:
            assert answer.json()["has_more"]
            answer = api.get(answer.headers["link"].partition(">")[0].removeprefix("<"))
            seen += answer.json()["data"]
        assert (seen, answer.json()["has_more"]) == (whole["data"], False)
        assert len(seen) > 1 or kind


def test_a_job_that_was_given_up_has_failed_and_recovers_no_more(api: TestClient, app: FastAPI) -> None:
    failed = {"wanted": "running", "observed": "failed", "failures": 5}
    for reason, phase in ((None, "recovering"), ("Java ended", "recovering"), (f"no column{GIVEN_UP}", "failed")):
        with app.state.context.catalog.begin() as session:
            session.execute(update(Job).where(Job.name == "one").values(**failed, reason=reason))
        found = api.get("/api/v1/jobs/one").json()
        assert (found["phase"], found["reason"]) == (phase, reason)
        for asked in ("recovering", "failed"):
            assert ("one" in names(api, "jobs", phase=asked)) == (asked == phase)
        assert f'streamjoin_jobs{{phase="{phase}"}} 1.0' in api.get("/metrics").text
    assert api.post("/api/v1/jobs/one/start").json()["phase"] == "recovering"  # and is tried again
    with app.state.context.catalog.begin() as session:
        session.execute(update(Job).where(Job.name == "one").values(wanted="stopped", observed="stopped"))


def test_every_phase_is_a_filter_and_finds_what_is_in_it(api: TestClient, app: FastAPI) -> None:
    seen = set()
    for wanted in lifecycle.WANTED:
        for observed in lifecycle.OBSERVED:
            with app.state.context.catalog.begin() as session:
                session.execute(update(Job).where(Job.name == "one").values(wanted=wanted, observed=observed))
            phase = lifecycle.phase(wanted, observed, given_up=False)
            seen.add(phase)
            assert "one" in names(api, "jobs", phase=phase)
            assert not any("one" in names(api, "jobs", phase=other) for other in PHASES if other != phase)
    assert seen == set(PHASES)
    with app.state.context.catalog.begin() as session:
        session.execute(update(Job).where(Job.name == "one").values(wanted="stopped", observed="stopped"))


def test_streams_by_source_and_owner(api: TestClient, people: dict[str, Person]) -> None:
    assert names(api, "streams", source="generator") == ["a", "b"]
    assert (names(api, "streams", source="push"), names(api, "streams", source="jsonl")) == (["c"], [])
    assert names(api, "streams", owner=people["lou"].id) == ["c"]


def test_pages_keep_what_they_were_narrowed_to(api: TestClient) -> None:
    first = api.get("/api/v1/streams", params={"source": "generator", "limit": 1})
    link = first.headers["link"].partition(">")[0].removeprefix("<")
    assert [item["name"] for item in api.get(link).json()["data"]] == ["a"] != [first.json()["data"][0]["name"]]


def test_events_by_kind_and_time(api: TestClient) -> None:
    for path in ("events", "jobs/one/events"):
        found = api.get(f"/api/v1/{path}", params={"kind": "job.created"}).json()["data"]
        assert {event["kind"] for event in found} == {"job.created"}
        assert api.get(f"/api/v1/{path}", params={"since": "2999-01-01"}).json()["data"] == []


@pytest.mark.parametrize(
    "path", ["jobs?phse=running", "streams?foo=1", "jobs/one/results?limt=1", "jobs/one/snapshots?x=1", "files?dir=/"]
)
def test_a_parameter_that_no_route_knows_is_refused(api: TestClient, path: str) -> None:
    answer = api.get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["subcode"]) == (422, "unknown_parameter")
    assert path.partition("?")[2].partition("=")[0] in answer.json()["detail"]
    assert api.get("/livez?x=1").status_code == 422


@pytest.mark.parametrize("action", ["start", "stop", "restart", "rescale"])
def test_what_is_done_to_a_job_may_say_which_version_it_saw(api: TestClient, action: str) -> None:
    body = {"json": {"slots": 1}} if action == "rescale" else {}
    late = api.post(f"/api/v1/jobs/one/{action}", headers={"If-Match": '"99"'}, **body)
    assert (late.status_code, late.json()["subcode"]) == (412, "version_differs")
    tag = api.get("/api/v1/jobs/one").headers["etag"]
    assert api.post(f"/api/v1/jobs/one/{action}", headers={"If-Match": tag}, **body).status_code == 202
    assert api.post(f"/api/v1/jobs/one/{action}", **body).status_code == 202


@pytest.mark.parametrize("what", ["streams/spare", "jobs/spare"])
def test_what_was_changed_meanwhile_is_not_removed(api: TestClient, what: str) -> None:
    kind = what.partition("/")[0]
    body = {"spec": GENERATED} if kind == "streams" else {"query": QUERY}
    assert api.post(f"/api/v1/{kind}", json={"name": "spare", **body}).status_code == 201
    assert api.delete(f"/api/v1/{what}", headers={"If-Match": '"99"'}).json()["subcode"] == "version_differs"
    assert api.get(f"/api/v1/{what}").json().get("wanted", "stopped") == "stopped"
    assert api.delete(f"/api/v1/{what}", headers={"If-Match": '"1"'}).status_code in (202, 204)


@pytest.mark.parametrize("path", ["streams/a", "streams", "operators", "events"])
def test_who_has_a_reply_already_is_told_so(api: TestClient, path: str) -> None:
    url = f"/api/v1/{path}"
    first = api.get(url, headers={"If-None-Match": '"none"'})
    again = api.get(url, headers={"If-None-Match": f'"x", {first.headers["etag"]}'})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again.headers["etag"] == first.headers["etag"] and "x-request-id" in again.headers
    if path == "streams/a":
        assert api.patch(url, json={"spec": GENERATED}, headers={"If-Match": first.headers["etag"]}).status_code == 200
        assert api.get(url, headers={"If-None-Match": first.headers["etag"]}).status_code == 200


@pytest.mark.parametrize("what", ["streams", "relations", "jobs"])
def test_a_tag_is_of_one_resource_and_not_of_the_next_of_its_name(api: TestClient, app: FastAPI, what: str) -> None:
    url = f"/api/v1/{what}/again"
    bodies = {"streams": {"spec": GENERATED}, "relations": {"spec": {"source": "csv", "path": "upload:r.csv"}},
              "jobs": {"query": QUERY}}  # fmt: skip
    assert api.post("/api/v1/uploads?name=r.csv", content=b"id\n1\n").status_code in (200, 201)
    tags = []
    for _ in range(2):
        made = api.post(f"/api/v1/{what}", json={"name": "again", **bodies[what]})
        assert made.status_code == 201, made.text
        tags.append(api.get(url).headers["etag"])
        assert made.headers["etag"] == tags[-1]
        if len(tags) == 2:
            break
        assert api.delete(url).status_code in (202, 204)
        with app.state.context.catalog.begin() as session:
            session.execute(delete(Job).where(Job.name == "again"))  # as if it had ended
    assert api.get(url, headers={"If-None-Match": tags[0]}).status_code == 200
    for answer in (
        api.patch(url, json={}, headers={"If-Match": tags[0]}),
        api.delete(url, headers={"If-Match": tags[0]}),
    ):
        assert (answer.status_code, answer.json()["subcode"]) == (412, "version_differs"), answer.text
        assert answer.headers["etag"] == tags[1]
    assert api.patch(url, json={}, headers={"If-Match": tags[1]}).status_code == 200
    assert api.delete(url).status_code in (202, 204)
    with app.state.context.catalog.begin() as session:
        session.execute(delete(Job).where(Job.name == "again"))


def test_a_job_is_told_whole_since_it_does_more_than_its_version_says(api: TestClient) -> None:
    tag = api.get("/api/v1/jobs/two").headers["etag"]
    assert api.get("/api/v1/jobs/two", headers={"If-None-Match": tag}).status_code == 200
