"""The list of machines, as the API and the command line give it."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend.catalog.ids import now_us
from backend.catalog.machines import SILENT_S
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
