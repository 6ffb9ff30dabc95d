"""One user takes no more than a share of the space for what people send, and of what runs jobs."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from backend.app import create_app
from backend.catalog import lifecycle
from backend.catalog.migrate import migrate
from backend.catalog.models import Event, Job, Stream, User
from backend.problems import Problem
from backend.settings import Settings
from backend.shares import uploads_space
from backend.space import Space, bytes_in
from backend.uploads import store
from backend.uploads.names import folder_of
from streamjoin.spark.memory import JOB_MIB
from tests.backend.matrix import Person, add_person

PUSH = {"source": "push", "time": "ts", "schema": {"id": "int64", "ts": "timestamp"}}
GENERATED = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = "SELECT ONLINE a.price FROM a, b WHERE a.auction = b.auction WITHIN 1 SECONDS"
ROW = b'{"id": 1, "pad": "%s"}\n' % (b"x" * 280)
"""300 bytes."""
SPACE = (409, "space_share_used_up")
JOBS = (409, "jobs_share_used_up")


def _settings(data: Path, **others: Any) -> Settings:
    """With auth, and little room: 1000 bytes and six slots."""
    given = {
        "auth": "on", "uploads_bytes_max": 2000, "spool_bytes_max": 2000, "job_slots_max": 6,
        "user_job_memory_mib_max": 100_000, **others,
    }  # fmt: skip
    return Settings(data=data, redis_url="redis://127.0.0.1:1/0", **given)


class Platform:
    """An app with two operators, kim and sam, and an admin; both have streams, which jobs may read."""

    def __init__(self, settings: Settings) -> None:
        self.app: FastAPI = create_app(settings)
        self.context = self.app.state.context
        self.people: dict[str, Person] = {
            name: add_person(self.context, name, role)
            for name, role in {"kim": "operator", "sam": "operator", "ada": "admin"}.items()
        }
        self.api = TestClient(self.app, base_url="http://127.0.0.1", raise_server_exceptions=False)

    def ask(self, who: str, method: str, path: str, **sent: Any) -> Any:
        headers = {**self.people[who].headers, **sent.pop("headers", {})}
        return self.api.request(method, f"/api/v1{path}", headers=headers, **sent)

    def upload(self, who: str, name: str, size: int) -> Any:
        return self.ask(who, "POST", f"/uploads?name={name}", content=name[0].encode() * size)

    def push(self, who: str, stream: str, times: int = 1, **sent: Any) -> Any:
        return self.ask(who, "POST", f"/streams/{stream}/rows", content=ROW * times, **sent)

    def stream(self, who: str, name: str, spec: dict[str, Any] = PUSH) -> None:
        assert self.ask(who, "POST", "/streams", json={"name": name, "spec": spec}).status_code == 201

    def job(self, who: str, name: str, *, start: bool = True, **run: Any) -> Any:
        return self.ask(who, "POST", "/jobs", json={"name": name, "query": QUERY, "run": run, "start": start})

    def change(self, who: str, name: str, **run: Any) -> Any:
        version = self.ask(who, "GET", f"/jobs/{name}").json()["version"]
        return self.ask(who, "PATCH", f"/jobs/{name}", json={"run": run}, headers={"If-Match": f'"{version}"'})

    def seen(self, name: str, **values: Any) -> None:
        """What whoever reconciles would write down of a job."""
        with self.context.catalog.begin() as session:
            session.execute(update(Job).where(Job.name == name).values(**values))


def said(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json().get("subcode", "")


@pytest.fixture
def settings(tmp_path: Path, empty_catalog: Path) -> Settings:
    settings = _settings(tmp_path / "data")
    settings.data.mkdir()
    shutil.copy(empty_catalog, settings.data / "catalog.db")
    return settings


@pytest.fixture
def platform(settings: Settings) -> Iterator[Platform]:
    platform = Platform(settings)
    with platform.api:
        yield platform


@pytest.fixture
def with_inputs(platform: Platform) -> Platform:
    for name in ("a", "b"):
        platform.stream("kim", name, GENERATED)
    return platform


def test_attack_one_user_does_not_fill_the_space_for_uploads(platform: Platform) -> None:
    assert platform.upload("kim", "a.csv", 600).status_code == 201
    full = platform.upload("kim", "b.csv", 600)
    assert said(full) == SPACE
    assert full.json()["params"] == {"limit": 1000, "used": 600}
    for told in ("600 bytes", "1,000", "delete uploads", "STREAMJOIN_USER_UPLOADS_BYTES_MAX"):
        assert told in full.json()["detail"]
    assert platform.upload("sam", "c.csv", 900).status_code == 201  # there is room for others
    assert platform.ask("kim", "DELETE", "/uploads/a.csv").status_code == 204
    assert platform.upload("kim", "b.csv", 600).status_code == 201  # and at once again for kim
    refused = select(Event.data["subcode"].as_string()).where(Event.kind == "request.refused")
    with platform.context.catalog.read() as session:
        assert session.scalars(refused).all() == ["space_share_used_up"]


def test_attack_one_user_does_not_fill_the_spool(platform: Platform) -> None:
    for stream in ("clicks", "views"):
        platform.stream("kim", stream)
    platform.stream("sam", "others")
    assert platform.push("kim", "clicks", 2).status_code == 202
    full = platform.push("kim", "views", 2)  # of another stream, which makes no difference
    assert said(full) == SPACE
    assert full.json()["params"]["limit"] == 1000 and full.json()["params"]["used"] >= 600
    for told in ("1,000", "delete streams", "STREAMJOIN_USER_SPOOL_BYTES_MAX"):
        assert told in full.json()["detail"]
    assert platform.push("sam", "others", 3).status_code == 202
    assert platform.ask("kim", "DELETE", "/streams/clicks").status_code == 204
    assert platform.push("kim", "views", 2).status_code == 202


def test_attack_a_stream_that_is_no_push_stream_any_more_still_takes_its_space(platform: Platform) -> None:
    for stream in ("clicks", "views"):
        platform.stream("kim", stream)
    assert platform.push("kim", "clicks", 3).status_code == 202
    changed = platform.ask("kim", "PATCH", "/streams/clicks", json={"spec": GENERATED}, headers={"If-Match": '"1"'})
    assert changed.status_code == 200
    assert said(platform.push("kim", "views")) == SPACE


def test_pushed_rows_count_for_the_owner_of_the_stream_whoever_pushes(platform: Platform) -> None:
    platform.stream("kim", "clicks")
    platform.stream("ada", "admins")
    assert platform.push("ada", "clicks", 3).status_code == 202
    assert said(platform.push("kim", "clicks")) == SPACE
    assert said(platform.push("ada", "clicks")) == SPACE
    assert platform.push("ada", "admins", 3).status_code == 202


def test_the_platforms_limit_is_named_where_it_is_reached_first(platform: Platform) -> None:
    assert platform.upload("kim", "a.csv", 900).status_code == 201
    assert platform.upload("sam", "b.csv", 900).status_code == 201
    assert said(platform.upload("ada", "c.csv", 900)) == (409, "space_used_up")


def test_a_share_is_what_the_platforms_owner_says(settings: Settings) -> None:
    own = Platform(settings.model_copy(update={"user_uploads_bytes_max": 300, "user_spool_bytes_max": 700}))
    with own.api:
        own.stream("kim", "clicks")
        assert said(own.upload("kim", "a.csv", 301)) == SPACE
        assert own.upload("kim", "a.csv", 300).status_code == 201
        assert own.push("kim", "clicks", 2).status_code == 202
        assert said(own.push("kim", "clicks")) == SPACE


@pytest.mark.parametrize("others", [{"disabled": True}, {"role": "viewer"}])
def test_who_is_alone_may_have_all_of_it_until_somebody_comes(with_inputs: Platform, others: dict[str, Any]) -> None:
    platform = with_inputs
    kim = platform.people["kim"].id
    with platform.context.catalog.begin() as session:
        session.execute(update(User).where(User.id != kim).values(**others))
    platform.stream("kim", "clicks")
    assert platform.upload("kim", "a.csv", 1900).status_code == 201
    assert platform.push("kim", "clicks", 5).status_code == 202
    for name in ("first", "second"):
        assert platform.job("kim", name, slots=6).status_code == 201
    add_person(platform.context, "new", "operator")
    assert said(platform.upload("kim", "b.csv", 1)) == SPACE
    assert said(platform.push("kim", "clicks")) == SPACE
    assert said(platform.job("kim", "third", slots=1)) == JOBS


def test_where_nobody_logs_in_there_are_no_shares(settings: Settings) -> None:
    own = Platform(settings)
    with own.api:
        own.stream("kim", "clicks")
        for name in ("a", "b"):
            own.stream("kim", name, GENERATED)
        assert own.job("kim", "runs", slots=6).status_code == 201
        assert own.job("kim", "kims", start=False, slots=6).status_code == 201
        assert said(own.ask("kim", "POST", "/jobs/kims/start")) == JOBS
        settings.auth = "off"
        with TestClient(create_app(settings), base_url="http://127.0.0.1") as api:
            assert api.post("/api/v1/uploads?name=a.csv", content=b"x" * 1900).status_code == 201
            assert api.post("/api/v1/streams/clicks/rows", content=ROW * 6).status_code == 202
            made = {"name": "nobodys", "query": QUERY, "run": {"slots": 6}, "start": True}
            assert api.post("/api/v1/jobs", json=made).status_code == 201
            assert api.post("/api/v1/jobs/kims/start").status_code == 202


def test_what_is_nobodys_has_no_share(platform: Platform) -> None:
    platform.stream("ada", "clicks")
    with platform.context.catalog.begin() as session:
        session.execute(update(Stream).values(owner_id=None))  # as after its owner was removed
    assert platform.push("ada", "clicks", 6).status_code == 202


def test_what_is_there_may_be_sent_again_where_there_is_no_room(platform: Platform) -> None:
    platform.stream("kim", "clicks")
    named = {"params": {"batch_id": "b"}}
    first, again = (platform.push("kim", "clicks", 3, **named) for _ in range(2))
    assert (first.status_code, again.status_code, again.json()["duplicate"]) == (202, 202, True)
    assert said(platform.push("kim", "clicks", 2, **named)) == SPACE
    assert [platform.upload("kim", "a.csv", 600).status_code for _ in range(2)] == [201, 200]
    for size in (1, 599, 601):
        assert said(platform.upload("kim", "a.csv", size)) == (409, "upload_differs")
    assert said(platform.ask("kim", "POST", "/uploads?name=a.csv", content=b"b" * 600)) == (409, "upload_differs")
    assert said(platform.ask("kim", "POST", "/uploads?name=a.csv", content=b"")) == (422, "empty_upload")
    assert platform.upload("sam", "a.csv", 600).status_code == 200
    assert platform.upload("sam", "b.csv", 1000).status_code == 201  # of which a repetition took nothing


def test_a_push_that_was_refused_is_done_under_its_key_once_there_is_room(platform: Platform) -> None:
    for stream in ("clicks", "views"):
        platform.stream("kim", stream)
    assert platform.push("kim", "clicks", 3).status_code == 202
    key = {"headers": {"Idempotency-Key": "k"}}
    assert said(platform.push("kim", "views", 1, **key)) == SPACE
    assert platform.ask("kim", "DELETE", "/streams/clicks").status_code == 204
    assert [platform.push("kim", "views", 3, **key).status_code for _ in range(2)] == [202, 202]


def test_attack_two_that_write_at_once_do_not_share_one_room(tmp_path: Path) -> None:
    looks: list[int] = []

    def look() -> int:
        looks.append(bytes_in(tmp_path))
        return looks[-1]

    space = Space(look, 1000, lambda taken: Problem("conflict.space_used_up", f"{taken} are taken"))
    with space.taking(600):
        with pytest.raises(Problem, match="600 are taken"), space.taking(600):
            (tmp_path / "second").write_bytes(b"x" * 600)
        (tmp_path / "first").write_bytes(b"x" * 600)
    with pytest.raises(Problem, match="600 are taken"), space.taking(600):
        pass
    (tmp_path / "first").unlink()
    with pytest.raises(OSError, match="broken"), space.taking(600):
        raise OSError("broken")
    seen = len(looks)
    with space.taking(1000):  # what failed took nothing
        pass
    assert len(looks) == seen


def test_attack_uploads_that_are_never_finished_take_space_too(platform: Platform) -> None:
    kim, folder = platform.people["kim"].id, folder_of(platform.context.settings)
    one, two, of_sam = (
        store.Draft(folder, uploads_space(platform.context, id), name, id)
        for id, name in ((kim, "a"), (kim, "b"), (platform.people["sam"].id, "c"))
    )
    for draft in (one, two, of_sam):
        draft.begin()
    for _ in range(3):
        one.write(b"x" * 200)
    two.write(b"x" * 400)
    with pytest.raises(Problem, match="take 1,000 bytes"):  # after a look at what there is
        two.write(b"x")
    of_sam.write(b"x" * 1000)
    one.end()
    two.write(b"x" * 600)
    for draft in (two, of_sam):
        draft.end()


def test_attack_one_user_does_not_take_all_that_runs_jobs(with_inputs: Platform) -> None:
    platform = with_inputs
    assert platform.job("kim", "first", slots=4).status_code == 201
    full = platform.job("kim", "second", slots=4)
    assert said(full) == JOBS and full.json()["params"] == {"limit": 6, "used": 4, "asked": 4}
    assert "hint" not in full.json()
    for told in ("stop one of those (it counts until it has ended), ", "STREAMJOIN_USER_JOB_SLOTS_MAX", "have 4"):
        assert told in full.json()["detail"]
    assert platform.ask("kim", "GET", "/jobs/second").status_code == 404  # all of it was refused
    assert platform.job("kim", "second", start=False, slots=4).status_code == 201
    for act in ("start", "restart"):
        assert said(platform.ask("kim", "POST", f"/jobs/second/{act}")) == JOBS
    assert platform.job("sam", "others", slots=6).status_code == 201
    assert platform.job("kim", "small", slots=2).status_code == 201
    with platform.context.catalog.read() as session:
        assert session.scalars(select(Job.wanted).where(Job.name == "second")).one() == lifecycle.STOPPED


def test_attack_one_user_does_not_take_all_memory(settings: Settings) -> None:
    platform = Platform(settings.model_copy(update={"user_job_memory_mib_max": 2000 + 2 * JOB_MIB}))
    with platform.api:
        for name in ("a", "b"):
            platform.stream("kim", name, GENERATED)
        assert platform.job("kim", "first", driver_memory=1000).status_code == 201
        full = platform.job("kim", "second", driver_memory=1001)
        assert said(full) == JOBS and "STREAMJOIN_USER_JOB_MEMORY_MIB_MAX" in full.json()["detail"]
        assert full.json()["hint"] == f"the memory of a job is its driver_memory and {JOB_MIB} MiB beside it"
        assert full.json()["params"] == {"limit": 2000 + 2 * JOB_MIB, "used": 1000 + JOB_MIB, "asked": 1001 + JOB_MIB}
        assert platform.job("kim", "second", driver_memory=1000).status_code == 201


@pytest.mark.parametrize("slots", [{}, {"slots": None}])
def test_attack_slots_of_executors_that_a_job_does_not_name_count_too(
    settings: Settings, slots: dict[str, None]
) -> None:
    cluster = {"spark_master": "spark://there:7077", "spark_shared": True, "spark_executors": "{max: 2, cores: 2}"}
    platform = Platform(settings.model_copy(update=cluster))
    with platform.api:
        for name in ("a", "b"):
            platform.stream("kim", name, GENERATED)
        assert platform.job("kim", "first", **slots).status_code == 201
        full = platform.job("kim", "second", **slots)
        assert said(full) == JOBS and full.json()["params"] == {"limit": 6, "used": 4, "asked": 4}
        assert platform.job("kim", "second", slots=2).status_code == 201


def test_attack_a_job_that_runs_does_not_grow_beyond_the_share(with_inputs: Platform) -> None:
    platform = with_inputs
    for name in ("first", "second"):
        assert platform.job("kim", name, slots=3).status_code == 201
    assert said(platform.change("kim", "second", slots=4)) == JOBS
    rescale = {"json": {"slots": 4}, "headers": {"If-Match": '"1"'}}
    assert said(platform.ask("kim", "POST", "/jobs/second/rescale", **rescale)) == JOBS
    assert platform.change("kim", "first", slots=2).status_code == 200
    assert platform.change("kim", "second", slots=4).status_code == 200


def test_attack_a_job_that_is_being_stopped_counts_until_it_has(with_inputs: Platform) -> None:
    platform = with_inputs
    assert platform.job("kim", "first", slots=4).status_code == 201
    platform.seen("first", observed=lifecycle.RUNNING)
    for path in ("POST /jobs/first/stop", "DELETE /jobs/first"):
        assert platform.ask("kim", *path.split()).status_code == 202
        assert said(platform.job("kim", "second", slots=4)) == JOBS
    platform.seen("first", observed=lifecycle.STOPPED)
    assert platform.job("kim", "second", slots=4).status_code == 201


def test_attack_a_job_that_was_given_up_starts_with_no_change_beyond_the_share(with_inputs: Platform) -> None:
    platform = with_inputs
    assert platform.job("kim", "first", slots=4).status_code == 201
    reason = "its query is wrong" + lifecycle.GIVEN_UP
    platform.seen("first", observed=lifecycle.FAILED, failures=lifecycle.GIVE_UP_FAILURES, reason=reason)
    assert platform.job("kim", "second", slots=4).status_code == 201  # nobody tries the first again
    assert said(platform.change("kim", "first", slots=3)) == JOBS
    assert said(platform.ask("kim", "POST", "/jobs/first/start")) == JOBS
    assert platform.change("kim", "first", slots=2).status_code == 200
    platform.seen("second", observed=lifecycle.FAILED, failures=1, reason="a host died")
    assert said(platform.job("kim", "third", slots=1)) == JOBS  # a job that is tried again counts


def test_jobs_count_for_their_owner_whoever_starts_them(with_inputs: Platform) -> None:
    platform = with_inputs
    for name in ("first", "second"):
        assert platform.job("kim", name, start=False, slots=4).status_code == 201
    assert platform.ask("ada", "POST", "/jobs/first/start").status_code == 202
    assert said(platform.ask("ada", "POST", "/jobs/second/start")) == JOBS
    assert platform.job("ada", "admins", slots=6).status_code == 201


def test_what_runs_goes_on_where_a_share_is_less_by_now(with_inputs: Platform) -> None:
    platform = with_inputs
    for name in ("first", "second"):
        assert platform.job("kim", name, slots=3).status_code == 201
        platform.seen(name, observed=lifecycle.RUNNING)
    platform.context.settings.user_job_slots_max = 1
    platform.context.settings.user_job_memory_mib_max = 1
    for who in ("kim", "ada"):
        assert platform.ask(who, "POST", "/jobs/first/restart").status_code == 202
        assert platform.ask(who, "POST", "/jobs/first/start").status_code == 202
    assert platform.change("kim", "first", slots=2).status_code == 200
    assert said(platform.change("kim", "first", slots=3)) == JOBS
    assert platform.ask("kim", "POST", "/jobs/first/stop").status_code == 202
    assert platform.ask("kim", "POST", "/jobs/first/start").status_code == 202  # it has not stopped yet


def test_an_only_job_may_ask_for_what_any_job_may(with_inputs: Platform) -> None:
    platform = with_inputs
    platform.context.settings.user_job_slots_max = 1
    platform.context.settings.user_job_memory_mib_max = 1
    assert platform.job("kim", "only", slots=5).status_code == 201
    assert platform.change("kim", "only", slots=6).status_code == 200
    assert said(platform.job("kim", "second", slots=1)) == JOBS
    assert platform.job("sam", "unsaid", slots=None).status_code == 201  # null is what the machine has
    platform.context.settings.user_job_slots_max = len(os.sched_getaffinity(0))
    platform.context.settings.user_job_memory_mib_max = 100_000
    assert said(platform.job("sam", "second", slots=1)) == JOBS


def test_attack_jobs_that_start_at_once_keep_to_the_share(tmp_path: Path, url: str) -> None:
    migrate(url)
    platform = Platform(_settings(tmp_path / "data", catalog_url=url))
    with platform.api:
        for name in ("a", "b"):
            platform.stream("kim", name, GENERATED)
        names = [f"job{number}" for number in range(6)]
        for name in names:
            assert platform.job("kim", name, start=False, slots=3).status_code == 201
        together = threading.Barrier(len(names))

        def start(name: str) -> tuple[int, str]:
            together.wait(30)
            return said(platform.ask("kim", "POST", f"/jobs/{name}/start"))

        with ThreadPoolExecutor(len(names)) as threads:
            answers = list(threads.map(start, names))
    assert sorted(answers) == [(202, "")] * 2 + [JOBS] * 4
