"""There are only so many streams, relations, jobs, saved queries and uploads, and so many earlier versions of a job."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, func, select

from backend.api import jobs
from backend.api.room import check_room
from backend.auth.actor import Actor
from backend.catalog.database import Catalog
from backend.catalog.ids import new_id, now_us
from backend.catalog.migrate import migrate
from backend.catalog.models import Event, Job, JobRevision, Stream, User
from backend.demos import DEMOS
from backend.problems import Problem
from backend.settings import Settings
from tests.backend.matrix import Person, add_person, new_app

URL = "/api/v1"
GENERATED = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
PUSH = {"source": "push", "time": "ts", "schema": {"id": "int64", "ts": "timestamp"}}
QUERY = "SELECT ONLINE a.price FROM a, b WHERE a.auction = b.auction WITHIN 1 SECONDS"


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    """With auth, and room for few."""
    return new_app(
        Settings(
            data=tmp_path / "data", redis_url="redis://127.0.0.1:1/0", auth="on", allowed_paths=(tmp_path,),
            streams_max=5, user_streams_max=3, relations_max=3, user_relations_max=2, jobs_max=4,
            job_revisions_max=2, saved_queries_max=3, user_saved_queries_max=2, uploads_max=4, user_uploads_max=3,
            rate_limit="100000/minute",
        )
    )  # fmt: skip


@pytest.fixture
def people(app: FastAPI) -> dict[str, Person]:
    roles = {"kim": "operator", "lee": "operator", "ada": "admin"}
    return {name: add_person(app.state.context, name, role) for name, role in roles.items()}


@pytest.fixture
def api(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


class Asking:
    """What one person asks for."""

    def __init__(self, api: TestClient, person: Person) -> None:
        self._api = api
        self._headers = person.headers

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return self._api.request(method, URL + path, json=body, headers={**self._headers, **headers})

    def stream(self, name: str, spec: Any = None, **headers: str) -> Any:
        return self("POST", "/streams", {"name": name, "spec": spec or GENERATED}, **headers)


@pytest.fixture
def kim(api: TestClient, people: dict[str, Person]) -> Asking:
    return Asking(api, people["kim"])


@pytest.fixture
def lee(api: TestClient, people: dict[str, Person]) -> Asking:
    return Asking(api, people["lee"])


@pytest.fixture
def ada(api: TestClient, people: dict[str, Person]) -> Asking:
    return Asking(api, people["ada"])


def refused(answer: Any, subcode: str, limit: int, of: str, setting: str) -> None:
    said = answer.json()
    assert (answer.status_code, said["subcode"]) == (409, subcode), answer.text
    assert said["params"] == {"limit": limit, "of": of} and not said["can_retry"]
    assert said["detail"].endswith(f"delete one that is not needed, or ask the platform's owner to raise {setting}")
    assert f" {limit:,} " in said["detail"]


def test_attack_one_operator_does_not_fill_the_list_of_streams(
    app: FastAPI, kim: Asking, lee: Asking, ada: Asking
) -> None:
    assert [kim.stream(name).status_code for name in "abc"] == [201] * 3
    refused(kim.stream("d"), "too_many_streams", 3, "one", "STREAMJOIN_USER_STREAMS_MAX")
    with app.state.context.catalog.read() as session:
        lines = session.scalars(select(Event).where(Event.kind == "request.refused")).all()
    assert [line.data["subcode"] for line in lines] == ["too_many_streams"]
    assert [lee.stream(name).status_code for name in "de"] == [201] * 2
    for asking in (lee, ada):
        refused(asking.stream("f"), "too_many_streams", 5, "all", "STREAMJOIN_STREAMS_MAX")
    assert kim("DELETE", "/streams/a").status_code == 204  # which frees a place
    assert lee.stream("f").status_code == 201
    refused(kim.stream("a"), "too_many_streams", 5, "all", "STREAMJOIN_STREAMS_MAX")


def test_attack_an_admin_does_not_fill_the_list_of_streams(ada: Asking, lee: Asking) -> None:
    assert [ada.stream(name).status_code for name in "abc"] == [201] * 3
    refused(ada.stream("d"), "too_many_streams", 3, "one", "STREAMJOIN_USER_STREAMS_MAX")
    assert lee.stream("d").status_code == 201


def test_whoever_is_alone_has_all_of_it(app: FastAPI, api: TestClient) -> None:
    kim = Asking(api, add_person(app.state.context, "kim", "operator"))
    add_person(app.state.context, "vi", "viewer")
    assert [kim.stream(name).status_code for name in "abcde"] == [201] * 5
    refused(kim.stream("f"), "too_many_streams", 5, "all", "STREAMJOIN_STREAMS_MAX")


def test_what_there_is_can_be_changed_at_the_limit(kim: Asking) -> None:
    for name in "abc":
        assert kim.stream(name).status_code == 201
    changed = kim("PATCH", "/streams/a", {"spec": {**GENERATED, "delay": "2s"}}, **{"If-Match": '"1"'})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert kim("POST", "/streams/test", {"spec": GENERATED}).status_code == 200
    taken = kim.stream("a")
    assert taken.json()["subcode"] == "name_taken"  # which is what whoever sends it twice has to know


def test_a_refused_creation_is_tried_again_under_its_key(kim: Asking) -> None:
    for name in "abc":
        assert kim.stream(name, **{"Idempotency-Key": name}).status_code == 201
    key = {"Idempotency-Key": "d"}
    assert [kim.stream("d", **key).status_code for _ in range(2)] == [409, 409]
    again = kim.stream("a", **{"Idempotency-Key": "a"})  # an answer that was kept is no new stream
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
    assert kim("DELETE", "/streams/a").status_code == 204
    made = [kim.stream("d", **key) for _ in range(2)]
    assert [answer.status_code for answer in made] == [201, 201]
    assert made[0].json() == made[1].json()


def test_attack_a_refused_push_stream_leaves_no_folder(app: FastAPI, kim: Asking) -> None:
    for name in "abc":
        assert kim.stream(name, PUSH).status_code == 201
    for name in ("a", "d"):
        assert kim.stream(name, PUSH).status_code == 409
    assert len(list((app.state.context.settings.data / "spool").iterdir())) == 3


def test_attack_one_operator_does_not_fill_the_list_of_relations(kim: Asking, lee: Asking, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k\n1\n")
    spec = {"source": "csv", "path": f"{tmp_path}/t.csv"}

    def add(asking: Asking, name: str) -> Any:
        return asking("POST", "/relations", {"name": name, "spec": spec})

    assert [add(kim, name).status_code for name in "ab"] == [201] * 2
    refused(add(kim, "c"), "too_many_relations", 2, "one", "STREAMJOIN_USER_RELATIONS_MAX")
    assert kim.stream("s").status_code == 201  # streams are counted for themselves
    assert add(lee, "c").status_code == 201
    refused(add(lee, "d"), "too_many_relations", 3, "all", "STREAMJOIN_RELATIONS_MAX")


def test_attack_one_operator_does_not_fill_the_list_of_saved_queries(kim: Asking, lee: Asking) -> None:
    def add(asking: Asking, name: str) -> Any:
        return asking("POST", "/saved-queries", {"name": name, "question": {"job": "j"}})

    assert [add(kim, name).status_code for name in "ab"] == [201] * 2
    refused(add(kim, "c"), "too_many_saved_queries", 2, "one", "STREAMJOIN_USER_SAVED_QUERIES_MAX")
    assert add(kim, "a").json()["subcode"] == "name_taken"
    assert add(lee, "c").status_code == 201
    refused(add(lee, "d"), "too_many_saved_queries", 3, "all", "STREAMJOIN_SAVED_QUERIES_MAX")
    assert kim("DELETE", "/saved-queries/a").status_code == 204
    assert add(lee, "d").status_code == 201


def test_attack_one_operator_does_not_fill_the_list_of_uploads_with_tiny_files(
    app: FastAPI, api: TestClient, people: dict[str, Person], kim: Asking
) -> None:
    def add(who: str, name: str, content: str = "id\n1\n") -> Any:
        return api.post(f"{URL}/uploads", params={"name": name}, content=content, headers=people[who].headers)

    names = [f"{name}.csv" for name in "abcde"]
    assert [add("kim", name).status_code for name in names[:3]] == [201] * 3
    refused(add("kim", "d.csv"), "too_many_uploads", 3, "one", "STREAMJOIN_USER_UPLOADS_MAX")
    assert add("kim", "a.csv").status_code == 200  # the same bytes once more are no further upload
    assert add("kim", "a.csv", "other").json()["subcode"] == "upload_differs"
    assert add("lee", "d.csv").status_code == 201
    refused(add("lee", "e.csv"), "too_many_uploads", 4, "all", "STREAMJOIN_UPLOADS_MAX")
    folder = app.state.context.settings.data / "uploads"
    assert sorted(path.name for path in folder.glob("*.csv")) == names[:4]
    assert not list((folder / ".drafts").iterdir())
    assert kim("DELETE", "/uploads/a.csv").status_code == 204
    assert add("lee", "e.csv").status_code == 201


def test_attack_one_operator_has_half_of_the_jobs(
    kim: Asking, lee: Asking, ada: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        assert lee.stream(name).status_code == 201

    def add(asking: Asking, name: str) -> Any:
        return asking("POST", "/jobs", {"name": name, "query": QUERY})

    assert [add(kim, name).status_code for name in ("j1", "j2")] == [201] * 2
    with monkeypatch.context() as patch:
        patch.setattr(jobs.service, "spec_of_new", lambda *given: pytest.fail("bound, and refused only then"))
        refused(add(kim, "j3"), "too_many_jobs", 2, "one", "STREAMJOIN_USER_JOBS_MAX")
    assert [add(ada, name).status_code for name in ("j3", "j4")] == [201] * 2
    refused(add(lee, "j5"), "too_many_jobs", 4, "all", "STREAMJOIN_JOBS_MAX")
    changed = kim("PATCH", "/jobs/j1", {"run": {"slots": 1}}, **{"If-Match": "*"})
    assert changed.status_code == 200, changed.text


def test_attack_jobs_that_are_made_at_once_are_no_more_than_may_be(
    kim: Asking, lee: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        assert lee.stream(name).status_code == 201
    all_have_looked = Barrier(4, timeout=60)
    spec_of_new = jobs.service.spec_of_new

    def late(*given: Any) -> Any:
        all_have_looked.wait()
        return spec_of_new(*given)

    monkeypatch.setattr(jobs.service, "spec_of_new", late)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: kim("POST", "/jobs", {"name": f"j{n}", "query": QUERY}), range(4)))
    assert sorted(answer.status_code for answer in made) == [201, 201, 409, 409]
    assert {answer.json().get("subcode") for answer in made} == {None, "too_many_jobs"}


def test_attack_many_transactions_at_once_register_no_more_than_may_be(url: str) -> None:
    migrate(url)
    catalog = Catalog(url)
    settings = Settings(auth="on", streams_max=100, user_streams_max=3)
    with catalog.begin() as session:
        for id, name in (("usr_1", "kim"), ("usr_2", "lee")):
            session.add(User(id=id, name=name, role="operator", disabled=False, created_at_us=now_us()))
    actor = Actor("usr_1", "kim", "operator")
    begun = Barrier(8, timeout=60)

    def add(number: int) -> bool:
        begun.wait()
        try:
            with catalog.begin() as session:
                check_room(settings, session, Stream, actor, held=True)
                session.add(Stream(id=new_id("str"), name=f"s{number}", owner_id=actor.id, spec={}))
        except Problem:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(add, range(8))) == [False] * 5 + [True] * 3
    with catalog.read() as session:
        assert session.scalar(select(func.count()).select_from(Stream)) == 3
    catalog.close()


def test_a_demo_that_has_no_room_says_so_and_goes_on_later(kim: Asking, lee: Asking) -> None:
    name, demo = next((name, demo) for name, demo in DEMOS.items() if len(demo.streams) == 2)
    assert [kim.stream(other).status_code for other in "ab"] == [201] * 2
    refused(kim("POST", f"/demos/{name}"), "too_many_streams", 3, "one", "STREAMJOIN_USER_STREAMS_MAX")
    assert kim("DELETE", "/streams/a").status_code == 204
    assert kim("POST", f"/demos/{name}").status_code == 202
    there = {stream["name"] for stream in kim("GET", "/streams").json()["data"]}
    assert there == {"b", *demo.streams}


def test_a_demo_whose_file_has_no_room_says_so_and_goes_on_later(
    api: TestClient, people: dict[str, Person], kim: Asking
) -> None:
    name, demo = next((name, demo) for name, demo in DEMOS.items() if demo.files)
    for file in ("a.csv", "b.csv", "c.csv"):
        sent = api.post(f"{URL}/uploads", params={"name": file}, content="id\n1\n", headers=people["kim"].headers)
        assert sent.status_code == 201, sent.text
    refused(kim("POST", f"/demos/{name}"), "too_many_uploads", 3, "one", "STREAMJOIN_USER_UPLOADS_MAX")
    assert kim("DELETE", "/uploads/a.csv").status_code == 204
    assert kim("POST", f"/demos/{name}").status_code == 202
    there = {upload["name"] for upload in kim("GET", "/uploads").json()["data"]}
    assert there == {"b.csv", "c.csv", *demo.files}


def test_attack_changes_without_end_leave_so_many_earlier_versions(app: FastAPI, kim: Asking) -> None:
    for name in "ab":
        assert kim.stream(name).status_code == 201
    for name in ("j", "other"):
        assert kim("POST", "/jobs", {"name": name, "query": QUERY}).status_code == 201
    assert kim("PATCH", "/jobs/other", {"run": {"slots": 1}}, **{"If-Match": "*"}).status_code == 200
    for slots in (1, 2, 3):
        changed = kim("PATCH", "/jobs/j", {"run": {"slots": slots}}, **{"If-Match": "*"})
        assert changed.status_code == 200, changed.text
    assert kim("POST", "/jobs/j/rescale", {"slots": 4}).status_code == 202

    def earlier(job: str) -> list[int]:
        return [row["version"] for row in kim("GET", f"/jobs/{job}/revisions").json()["data"]]

    assert (earlier("j"), earlier("other")) == ([4, 3], [1])  # the newest, and others' are theirs
    assert kim("GET", "/jobs/j").json()["version"] == 5
    with app.state.context.catalog.read() as session:
        assert session.scalar(select(func.count()).select_from(JobRevision)) == 3


def test_attack_streams_that_read_no_upload_are_not_sent_to_whoever_lists_uploads(
    app: FastAPI, api: TestClient, people: dict[str, Person], kim: Asking
) -> None:
    headers = people["kim"].headers
    for name in ("orders-1.csv", "orders-2.csv", "other.csv"):
        sent = api.post(f"{URL}/uploads", params={"name": name}, content=name, headers=headers)
        assert sent.status_code == 201, sent.text
    reading = {"source": "csv", "path": "upload:orders-1.csv", "time": "ts"}
    assert kim.stream("a").status_code == 201
    assert kim.stream("b", {**reading, "path": "upload:orders-*.csv"}).status_code == 201
    assert kim.stream("c", reading).status_code == 201
    at_us = now_us()
    with app.state.context.catalog.begin() as session:
        for name, path in (("j", "upload:orders-2.csv"), ("k", "/data/upload:orders-2.csv")):
            session.add(
                Job(id=new_id("job"), name=name, spec=None, streams={"s": {"path": path}}, relations={},
                    created_at_us=at_us, updated_at_us=at_us)
            )  # fmt: skip
    asked: list[str] = []
    event.listen(app.state.context.catalog.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    loaded: list[Any] = []

    def noted(row: Any, _: Any) -> None:
        loaded.append(row)

    for table in (Stream, Job):
        event.listen(table, "load", noted)
    found = {upload["name"]: upload["read_by"] for upload in kim("GET", "/uploads").json()["data"]}
    assert found == {"orders-1.csv": ["stream b", "stream c"], "orders-2.csv": ["stream b", "job j"], "other.csv": []}
    assert kim("DELETE", "/uploads/orders-2.csv").json()["subcode"] == "in_use"
    assert kim("DELETE", "/uploads/other.csv").status_code == 204
    for table in (Stream, Job):
        event.remove(table, "load", noted)
    assert not loaded
    for table in ("streams", "relations", "jobs"):
        questions = [text for text in asked if f"FROM {table}" in text]
        assert questions and all(" LIKE " in text for text in questions)
