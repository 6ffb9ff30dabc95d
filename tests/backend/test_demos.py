"""Demos: each is there with one request, whoever has started others, and gives the rows that its query asks for."""

from __future__ import annotations

import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from time import sleep
from typing import Any

import duckdb
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import delete
from test_jobs import context_of

from backend.api import demos
from backend.app import create_app
from backend.catalog.lifecycle import DELETED
from backend.catalog.models import Job as CatalogJob
from backend.demos import DEMOS
from backend.jobs.joinfile import join_file
from backend.settings import Settings
from streamjoin.engine.loop import Brought, Loop
from streamjoin.generate import generator
from streamjoin.relations.versions import Tables
from streamjoin.spec.job import Job
from streamjoin.spec.prepare import Bound, bind
from streamjoin.spec.relations import read_relations
from streamjoin.state.store import StateStore
from tests.backend.matrix import add_person

SECONDS = 15
BATCHES = 3


def start(api: TestClient, name: str) -> dict[str, Any]:
    answer = api.post(f"/api/v1/demos/{name}")
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def bound(app: FastAPI, settings: Settings, id: str) -> Bound:
    """A demo's job as its driver has it."""
    with context_of(app).catalog.read() as session:
        job = session.get(CatalogJob, id)
    assert job is not None
    return bind(join_file(settings, job, {}))


def stream_rows(entry: dict[str, Any]) -> Any:
    """What a stream of a demo brings in the first seconds."""
    made = generator(entry["kind"])
    rate = float(entry["rate"].removesuffix("/s"))
    return made.rows(0, int(SECONDS * rate * made.share), seed=1, rate=rate)


def joined(job: Job, folder: Path, width: int) -> Counter[Any]:
    """The results of the first seconds, batch by batch in this process; behind their columns are those of the store."""
    versions = {name: version.number for name, version in read_relations(job).items()}
    tables = Tables(job.tables)
    loop = Loop(job.plan, job.operators, lambda stage: StateStore(folder, stage, sync=False), job.slots, tables=tables)
    streams = [stream_rows(DEMO_STREAMS[one.name]).select(one.columns.names) for one in job.plan.streams]
    found: Counter[Any] = Counter()
    for number in range(BATCHES):
        sizes = [-(-rows.num_rows // BATCHES) for rows in streams]
        pieces = [[rows.slice(number * size, size)] for rows, size in zip(streams, sizes, strict=True)]
        brought = Brought(pieces, 1_000_000 * number, versions=versions)
        for _, part in loop.batch(brought):
            found.update(zip(*(column.to_pylist() for column in part.columns[:width]), strict=True))
        loop.commit(brought)
    return found


def oracle(question: str) -> Counter[Any]:
    """DuckDB's answer over the same rows."""
    with duckdb.connect() as connection:
        for name, entry in DEMO_STREAMS.items():
            connection.register(name, stream_rows(entry))
        return Counter(connection.execute(question).fetchall())


def uploads(api: TestClient) -> list[str]:
    return [upload["name"] for upload in api.get("/api/v1/uploads").json()["data"]]


def names(api: TestClient, what: str) -> set[str]:
    return {one["name"] for one in api.get(f"/api/v1/{what}").json()["data"]}


def gone(app: FastAPI) -> None:
    """As if the jobs that are being deleted had ended."""
    with context_of(app).catalog.begin() as session:
        session.execute(delete(CatalogJob).where(CatalogJob.wanted == DELETED))


DEMO_STREAMS = {name: spec for demo in DEMOS.values() for name, spec in demo.streams.items()}


def test_one_is_started_with_one_request_and_again_with_another(api: TestClient) -> None:
    first = start(api, "band")
    assert first["wanted"] == "running"
    assert start(api, "band")["id"] == first["id"]
    shown = {demo["name"]: demo["job_id"] for demo in api.get("/api/v1/demos").json()}
    assert shown == {name: first["id"] if name == "band" else None for name in DEMOS}
    assert api.post("/api/v1/demos/nothing").status_code == 404


def test_all_are_right_beside_one_another_and_streams_of_one_name_are_one_stream(api: TestClient) -> None:
    assert len({start(api, name)["id"] for name in DEMOS}) == len(DEMOS)
    for demo in DEMOS.values():
        for name, spec in demo.streams.items():
            assert DEMO_STREAMS[name] == spec


def test_persons_auctions_and_bids_meet_in_two_stages(
    app: FastAPI, api: TestClient, settings: Settings, tmp_path: Path
) -> None:
    job = bound(app, settings, start(api, "sellers")["id"]).job(tmp_path / "checkpoint")
    assert len(job.operators) == 2
    expected = oracle(
        "SELECT p.name, p.city, a.id, a.item, b.price, b.ts FROM demo_persons p, demo_auctions a, demo_bids b "
        "WHERE a.seller = p.id AND b.auction = a.id AND b.price >= a.reserve "
        "AND greatest(p.ts, a.ts, b.ts) - least(p.ts, a.ts, b.ts) <= INTERVAL 10 SECONDS"
    )
    assert expected.total() > 1000
    assert joined(job, tmp_path / "state", 6) == expected


def test_bids_find_their_bidders_in_a_file_and_those_who_are_not_there_are_null(
    app: FastAPI, api: TestClient, settings: Settings, tmp_path: Path
) -> None:
    found = bound(app, settings, start(api, "bidders")["id"])
    assert found.operator == "lookup"
    file = settings.data / "uploads" / "demo-bidders.parquet"
    expected = oracle(
        "SELECT b.auction, b.price, b.bidder, p.name, p.city, b.ts "
        f"FROM demo_bids b LEFT JOIN '{file}' p ON b.bidder = p.id WHERE b.price >= 10000000"
    )
    assert joined(found.job(tmp_path / "checkpoint"), tmp_path / "state", 6) == expected
    unknown = sum(count for row, count in expected.items() if row[3] is None)
    assert 0.05 < unknown / expected.total() < 0.5


def test_who_starts_one_at_the_same_moment_has_the_same_job(api: TestClient) -> None:
    with ThreadPoolExecutor(8) as threads:
        started = list(threads.map(partial(start, api), ["bidders", "sellers", "auctions", "bidders"] * 4))
    assert len({job["id"] for job in started}) == 3
    assert uploads(api) == ["demo-bidders.parquet"]


def test_the_file_is_written_once_and_one_that_is_there_is_taken_as_it_is(
    app: FastAPI, api: TestClient, settings: Settings
) -> None:
    first = start(api, "bidders")
    file = settings.data / "uploads" / "demo-bidders.parquet"
    written = file.stat()
    assert start(api, "bidders")["id"] == first["id"]
    assert api.delete("/api/v1/jobs/demo bidders").status_code == 202
    assert api.delete("/api/v1/relations/demo_bidders").status_code == 204
    gone(app)
    assert start(api, "bidders")["id"] != first["id"]
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


def test_starting_one_whose_job_is_being_deleted_brings_nothing_back(api: TestClient) -> None:
    start(api, "bidders")
    assert api.delete("/api/v1/demos/bidders").status_code == 204
    before = names(api, "streams")
    answer = api.post("/api/v1/demos/bidders")
    assert (answer.status_code, answer.json()["subcode"]) == (409, "being_deleted")
    assert (names(api, "relations"), names(api, "streams"), uploads(api)) == (set(), before, [])


def test_removing_one_leaves_nothing_of_it_but_what_others_use(app: FastAPI, api: TestClient) -> None:
    before = names(api, "streams")
    for name in ("bidders", "sellers"):
        start(api, name)
    assert api.delete("/api/v1/demos/bidders").status_code == 204
    assert api.get("/api/v1/jobs/demo bidders").json()["wanted"] == "deleted"
    assert api.delete("/api/v1/demos/bidders").status_code == 204, "again changes nothing"
    assert (names(api, "relations"), uploads(api)) == (set(), [])
    assert names(api, "streams") == {"demo_persons", "demo_auctions", "demo_bids"} | before
    assert api.delete("/api/v1/demos/sellers").status_code == 204
    assert names(api, "streams") == before
    gone(app)
    assert {start(api, name)["wanted"] for name in DEMOS} == {"running"}
    for name in DEMOS:
        assert api.delete(f"/api/v1/demos/{name}").status_code == 204
    assert (names(api, "relations"), names(api, "streams"), uploads(api)) == (set(), before, [])
    assert api.delete("/api/v1/demos/nothing").status_code == 404


def test_attack_a_file_of_ones_own_under_the_name_of_a_demos_stays(api: TestClient) -> None:
    sent = api.post("/api/v1/uploads", params={"name": "demo-bidders.parquet"}, content=b"years of work")
    assert sent.status_code == 201
    assert api.delete("/api/v1/demos/bidders").status_code == 204
    assert uploads(api) == ["demo-bidders.parquet"]
    assert api.delete("/api/v1/uploads/demo-bidders.parquet").status_code == 204


class Making:
    """Bytes of a demo's file, which are made as often, and as many at once, as it says."""

    def __init__(self) -> None:
        self.times = self.at_once = self.most_at_once = 0
        self._lock = Lock()

    def __call__(self) -> bytes:
        with self._lock:
            self.times += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        sleep(0.05)
        with self._lock:
            self.at_once -= 1
        return b"made"


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> Making:
    made = Making()
    monkeypatch.setitem(DEMOS, "bidders", replace(DEMOS["bidders"], files={"demo-bidders.parquet": made}))
    return made


def test_attack_removing_a_demo_again_and_again_makes_its_file_once(api: TestClient, making: Making) -> None:
    def remove(_: int) -> int:
        return api.delete("/api/v1/demos/bidders").status_code

    sent = {"url": "/api/v1/uploads", "params": {"name": "demo-bidders.parquet"}}
    for content in (b"x", b"mine", b"made"):  # of another size, of the same, and the same
        assert api.post(**sent, content=content).status_code == 201
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(remove, range(8))) == {204}
        assert uploads(api) == ([] if content == b"made" else ["demo-bidders.parquet"])
        api.delete("/api/v1/uploads/demo-bidders.parquet")
    assert making.times == 1


def test_attack_starting_a_demo_many_times_at_once_makes_one_file_at_a_time(api: TestClient, making: Making) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(api.post, ["/api/v1/demos/bidders"] * 8))
    assert uploads(api) == ["demo-bidders.parquet"]
    assert (making.times, making.most_at_once) == (1, 1)


def test_attack_whose_file_it_is_is_asked_before_it_is_made(app: FastAPI, api: TestClient, making: Making) -> None:
    context_of(app).settings.auth = "on"
    one, other = (add_person(context_of(app), name, "operator").headers for name in ("one", "other"))
    sent = api.post("/api/v1/uploads", params={"name": "demo-bidders.parquet"}, content=b"made", headers=one)
    assert sent.status_code == 201
    assert api.delete("/api/v1/demos/bidders", headers=other).status_code == 204
    assert making.times == 0
    api.headers.update(one)
    assert uploads(api) == ["demo-bidders.parquet"]


def test_what_was_changed_or_is_anothers_stays(settings: Settings, empty_catalog: Path) -> None:
    settings.data.mkdir(parents=True)
    shutil.copy(empty_catalog, settings.data / "catalog.db")
    app = create_app(settings.model_copy(update={"auth": "on", "allowed_paths": ()}))
    one, other = (add_person(context_of(app), name, "operator").headers for name in ("one", "other"))
    with TestClient(app, base_url="http://127.0.0.1") as api:
        made = api.post("/api/v1/demos/bidders", headers=one)
        assert made.status_code == 202, made.text
        owners = {demo["name"]: demo["owner_id"] for demo in api.get("/api/v1/demos", headers=other).json()}
        assert owners == {name: made.json()["owner_id"] if name == "bidders" else None for name in DEMOS}
        assert api.post("/api/v1/demos/bidders", headers=other).json()["subcode"] == "not_owner"
        assert api.delete("/api/v1/demos/bidders", headers=other).json()["subcode"] == "not_owner"
        assert api.delete("/api/v1/jobs/demo bidders", headers=one).status_code == 202
        gone(app)
        assert api.post("/api/v1/demos/bidders", headers=other).status_code == 202
        assert api.delete("/api/v1/demos/bidders", headers=other).status_code == 204
        gone(app)
        api.headers.update(one)
        assert (names(api, "streams"), names(api, "relations")) == ({"demo_bids"}, {"demo_bidders"})
        slower = {**DEMO_STREAMS["demo_bids"], "rate": "100/s"}
        changed = api.patch("/api/v1/streams/demo_bids", json={"spec": slower}, headers={"If-Match": "*"})
        assert changed.status_code == 200, changed.text
        assert api.delete("/api/v1/demos/bidders").status_code == 204
        assert (names(api, "streams"), names(api, "relations"), uploads(api)) == ({"demo_bids"}, set(), [])


def test_a_demo_that_is_removed_while_it_starts_says_so(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    create = demos.create_job

    def late(*arguments: Any) -> Any:
        assert api.delete("/api/v1/demos/auctions").status_code == 204
        return create(*arguments)

    monkeypatch.setattr(demos, "create_job", late)
    answer = api.post("/api/v1/demos/auctions")
    assert (answer.status_code, answer.json()["subcode"]) == (409, "demo_removed")
    monkeypatch.undo()
    start(api, "auctions")
