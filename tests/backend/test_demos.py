"""Demos: each is there with one request, whoever has started others, and gives the rows that its query asks for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_jobs import context_of

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
