"""A stream's `idle` that is changed while a batch is to be done again: the driver refuses it, and the job says why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_bundles import PAIRS
from test_jobs import context_of
from test_streams import BIDS, registered

from backend.catalog.ids import now_us
from backend.catalog.models import Job
from backend.jobs.joinfile import join_file
from streamjoin.failpoints import FailpointError
from streamjoin.spec.prepare import bind
from tests.conformance.alone import run_alone
from tests.failing import failing_at
from worker import driver, joining, leases


def changed(api: TestClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = api.patch(f"/api/v1/{path}", json=body, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def launched(app: FastAPI, id: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of the job's next driver, which has a checkpoint and no Spark."""
    context = context_of(app)
    with context.catalog.begin() as session:
        generation = session.get_one(Job, id).generation + 1
        leases.take(
            session, id, generation, context.settings.machine, now_us=now_us(), lease_s=600,
            home=leases.home_of(context.settings),
        )  # fmt: skip
    none = SimpleNamespace(streams=SimpleNamespace(addListener=lambda listener: None), stop=lambda: None)
    monkeypatch.setattr(joining, "take_session", lambda *given: none)
    monkeypatch.setattr(driver, "stop_on_signals", lambda stop: None)
    monkeypatch.setattr(driver, "forget_secrets", lambda: None)
    # A driver that cannot renew its lease in time ends its process, which is this one.
    return driver.drive(context.settings.model_copy(update={"lease_s": 600.0}), id, generation)


def test_idle_that_is_changed_at_a_pending_batch_is_refused_with_what_to_start_with(
    api: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    bids = {**BIDS, "rows": 100}
    registered(api, **bids)
    registered(api, "auctions", **{**bids, "kind": "nexmark.auction"})
    made = api.post("/api/v1/jobs", json={"name": "wins", "query": PAIRS, "start": True})
    assert made.status_code == 201, made.text
    id = made.json()["id"]
    with context_of(app).catalog.read() as session:
        file = join_file(context_of(app).settings, session.get_one(Job, id), {})
    with failing_at("batch.after_commit"), pytest.raises(FailpointError):
        run_alone(bind(file))
    changed(api, "streams/bids", {"spec": {**bids, "idle": "90s"}})
    seen = api.post("/api/v1/jobs/wins/diff", json={"refresh_streams": True}).json()
    assert [(one["field"], one["effect"]) for one in seen["changes"]] == [("streams.bids.idle", "keeps_state")]
    changed(api, "jobs/wins", {"refresh_streams": True})
    assert launched(app, id, monkeypatch) == 1
    job = api.get("/api/v1/jobs/wins").json()
    assert (job["observed"], job["phase"], job["reason"]) == (
        "failed", "recovering",
        "streams.bids.idle: batch 0 was begun without it, and is done again at this start; start the job once with "
        "that, and change it afterwards",
    )  # fmt: skip
    events = api.get("/api/v1/jobs/wins/events", params={"kind": "job.failed"}).json()["data"]
    assert job["reason"] in events[0]["message"]
