"""The list of machines, as the API and the command line give it."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.catalog.ids import now_us
from backend.catalog.machines import SILENT_S, folder_id
from backend.catalog.models import Lease, Machine
from tests.backend.test_jobs import context_of, created, has_begun
from tests.backend.test_streams import BIDS, registered


def said(app: FastAPI, name: str, ago_s: float = 0.0) -> None:
    at_us = now_us() - round(ago_s * 1e6)
    with context_of(app).catalog.begin() as session:
        session.merge(Machine(name=name, folder="a", seen_at_us=at_us, free_bytes=5))


def test_machines_are_listed_by_name_with_their_jobs(api: TestClient, app: FastAPI) -> None:
    assert api.get("/api/v1/machines").json() == {"data": [], "has_more": False}
    said(app, "here")
    said(app, "gone", SILENT_S + 1)
    found = api.get("/api/v1/machines").json()["data"]
    assert [(one["name"], one["takes_jobs"], one["jobs"], one["free_bytes"]) for one in found] == [
        ("gone", False, 0, 5), ("here", True, 0, 5),
    ]  # fmt: skip
    first = api.get("/api/v1/machines", params={"limit": 1}).json()
    assert first["has_more"]
    rest = api.get("/api/v1/machines", params={"limit": 1, "starting_after": "gone"}).json()
    assert ([one["name"] for one in rest["data"]], rest["has_more"]) == (["here"], False)


def test_only_drivers_that_live_count(api: TestClient, app: FastAPI) -> None:
    said(app, "here")
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    job = created(api)
    has_begun(app, job["id"])
    assert [one["jobs"] for one in api.get("/api/v1/machines").json()["data"]] == [0]  # it has ended
    with context_of(app).catalog.begin() as session:
        lease = session.get_one(Lease, job["id"])
        lease.ended, lease.expires_at_us = False, now_us() + 60_000_000
    assert [one["jobs"] for one in api.get("/api/v1/machines").json()["data"]] == [1]


def test_versions_in_another_data_folder_are_not_shown_as_none(api: TestClient, app: FastAPI, tmp_path: Path) -> None:
    (tmp_path / "customers.csv").write_text("id,name\n1,Ada\n")
    spec = {"source": "csv", "path": str(tmp_path / "customers.csv")}
    assert api.post("/api/v1/relations", json={"name": "customers", "spec": spec}).status_code == 201
    registered(api)
    query = "SELECT ONLINE bids.auction, c.name FROM bids JOIN customers AS c ON bids.bidder = c.id"
    job = api.post("/api/v1/jobs", json={"name": "named", "query": query, "start": True}).json()
    has_begun(app, job["id"])
    with context_of(app).catalog.begin() as session:
        lease = session.get_one(Lease, job["id"])
        lease.host, lease.folder = "b", "of b"
    (known,) = api.get("/api/v1/relations/customers/versions").json()["data"]
    assert known["problem"].startswith(
        "the job is on b, where versions of relations are in a data folder that this API"
    )
    refused = api.post("/api/v1/relations/customers/refresh")
    assert refused.status_code == 409 and "the jobs that join it run on b, where" in refused.json()["detail"]
    with context_of(app).catalog.begin() as session:
        session.get_one(Lease, job["id"]).folder = folder_id(context_of(app).settings.data)
    (known,) = api.get("/api/v1/relations/customers/versions").json()["data"]
    assert known["problem"] is None
    assert api.post("/api/v1/relations/customers/refresh").json() == {"jobs": []}


def test_a_job_that_reads_an_upload_is_refused_beside_a_machine_that_has_it_not(api: TestClient, app: FastAPI) -> None:
    content = b"auction,ts\n1,2026-01-01T00:00:00Z\n"
    assert api.post("/api/v1/uploads", params={"name": "a.csv"}, content=content).status_code == 201
    registered(api)
    registered(api, "auctions", source="csv", path="upload:a.csv", time="ts", delay="2s")
    query = "SELECT ONLINE b.auction FROM bids AS b, auctions AS a WHERE b.auction = a.auction WITHIN 1 SECOND"
    said(app, "b")
    refused = api.post("/api/v1/jobs", json={"name": "one", "query": query})
    assert refused.status_code == 422 and "reads upload:a.csv, in the data folder of" in refused.json()["detail"]
    said(app, "b", SILENT_S + 1)
    assert api.post("/api/v1/jobs", json={"name": "one", "query": query}).status_code == 201
