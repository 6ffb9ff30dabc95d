"""Changes of a job that runs on a machine with another data folder than the API's, which sees nothing of its state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_bundles import LEFT, PAIRS, created
from test_jobs import context_of
from test_streams import auction_house

from backend.catalog.ids import now_us
from backend.catalog.lifecycle import GIVE_UP_FAILURES
from backend.catalog.models import Job, Lease, Machine
from backend.jobs.joinfile import join_file
from backend.settings import Settings
from streamjoin.spark.checkpoint import opened
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.prepare import bind
from tests.servers.process import comes_true
from worker import launch, leases

LATE = {"queries": {"late": {"query": LEFT}}}
"""A job of pairs has not stored what it asks for."""


@pytest.fixture(autouse=True)
def streams(api: TestClient) -> None:
    auction_house(api)


@pytest.fixture
def there(app: FastAPI, tmp_path: Path) -> Settings:
    """Of the other machine: a data folder of its own, and the same catalog."""
    here = context_of(app).settings
    (tmp_path / "there").mkdir()
    return here.model_copy(
        update={"data": tmp_path / "there", "catalog_url": here.catalog, "worker_name": "there", "lease_s": 600.0}
    )


def ran(app: FastAPI, settings: Settings, id: str, *, to_store: bool = False) -> None:
    """As if a driver of the job's next generation had run on a machine, and had stopped.

    Args:
        to_store: states of jobs are in a store, and no lease is bound to a folder.
    """
    with context_of(app).catalog.begin() as session:
        job = session.get_one(Job, id)
        job.wanted = "running"
        leases.take(
            session, id, job.generation + 1, settings.machine, now_us=now_us(), lease_s=0,
            home=replace(leases.home_of(settings), to_store=to_store),
        )  # fmt: skip
        session.get_one(Lease, id).ended, job.observed = True, "stopped"
    with opened(bind(file_of(app, settings, id)).job()):
        pass


def file_of(app: FastAPI, settings: Settings, id: str) -> JoinFile:
    """The job as a driver of a machine reads it."""
    with context_of(app).catalog.read() as session:
        return join_file(settings, session.get_one(Job, id), {})


def lease_of(app: FastAPI, id: str) -> Lease:
    with context_of(app).catalog.read() as session:
        return session.get_one(Lease, id)


def incarnation_of(app: FastAPI, id: str) -> int:
    with context_of(app).catalog.read() as session:
        return session.get_one(Job, id).incarnation


def changed(api: TestClient, change: dict[str, Any]) -> dict[str, Any]:
    answer = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_who_agrees_with_other_queries_begins_anew_where_nobody_sees_the_state(
    api: TestClient, app: FastAPI, there: Settings
) -> None:
    id = created(api)["id"]
    ran(app, there, id)
    changed(api, {"run": {"slots": 3}, "start_anew": True})
    assert incarnation_of(app, id) == 0, "this keeps any state"
    assert not api.post("/api/v1/jobs/wins/diff", json=LATE).json()["starts_anew"]
    seen = api.post("/api/v1/jobs/wins/diff", json={**LATE, "start_anew": True}).json()
    assert seen["starts_anew"] and seen["changes"][0]["reason"] == (
        "what the job has stored is on there, and cannot be looked at from here"
    )
    changed(api, {**LATE, "start_anew": True})
    assert incarnation_of(app, id) == 1
    assert [query.name for query in bind(file_of(app, there, id)).queries] == ["main", "late"]


@pytest.mark.slow
def test_what_the_api_cannot_compare_its_driver_refuses_and_then_it_may_begin_anew(
    api: TestClient, app: FastAPI, there: Settings
) -> None:
    id = created(api)["id"]
    ran(app, there, id)
    changed(api, LATE)
    with context_of(app).catalog.begin() as session:
        session.get_one(Job, id).failures = GIVE_UP_FAILURES - 1
        generation = session.get_one(Job, id).generation + 1
    assert launch.launch(there, context_of(app).catalog, id, generation, "there")
    assert comes_true(lambda: api.get("/api/v1/jobs/wins").json()["phase"] == "failed", 240)
    reason = api.get("/api/v1/jobs/wins").json()["reason"]
    assert reason.startswith("queries.late.query: the checkpoint is of one query without a name, and beside queries")
    assert "let the job begin anew: with start_anew" in reason
    assert not api.post("/api/v1/jobs/wins/diff", json=LATE).json()["starts_anew"]
    assert api.post("/api/v1/jobs/wins/diff", json={**LATE, "start_anew": True}).json()["starts_anew"]
    assert changed(api, {**LATE, "start_anew": True})["phase"] == "recovering"
    assert incarnation_of(app, id) == 1
    assert [query.name for query in bind(file_of(app, there, id)).queries] == ["main", "late"]


def test_limits_that_leave_out_what_a_job_began_with_are_for_its_driver_to_compare(
    api: TestClient, app: FastAPI, there: Settings
) -> None:
    adaptive = {"name": "biclique", "adaptive": True, "r_units": 2, "s_units": 2}
    ran(app, there, created(api, operator=adaptive)["id"])
    assert changed(api, {"operator": {**adaptive, "min_units": 3}})["operator"]["min_units"] == 3


def test_a_machine_whose_row_is_gone_is_known_by_the_folder_it_ran_in(
    api: TestClient, app: FastAPI, there: Settings
) -> None:
    """Of a job whose state is in a store: the machine has left, or has said nothing for a day."""
    here = context_of(app).settings
    id = created(api)["id"]
    shared = here.model_copy(update={"worker_name": "second"})
    ran(app, shared, id, to_store=True)
    assert lease_of(app, id).folder is None and lease_of(app, id).host == "second"
    assert api.post("/api/v1/jobs/wins/diff", json=LATE).json()["starts_anew"], "its checkpoint is in this folder"
    ran(app, there.model_copy(update={"worker_name": here.machine}), id, to_store=True)
    assert lease_of(app, id).folder is None and lease_of(app, id).host == here.machine
    assert not api.post("/api/v1/jobs/wins/diff", json=LATE).json()["starts_anew"], "only the name is this machine's"


@pytest.mark.parametrize("is_known", [True, False], ids=["a machine that is there", "one that has left"])
def test_an_earlier_checkpoint_of_the_apis_own_folder_counts_no_more(
    is_known: bool, api: TestClient, app: FastAPI, there: Settings
) -> None:
    """A job whose state is in a store was here first, and got another query there."""
    id = created(api)["id"]
    ran(app, context_of(app).settings, id)
    assert api.post("/api/v1/jobs/wins/diff", json=LATE).json()["starts_anew"]
    with context_of(app).catalog.begin() as session:
        lease = session.get_one(Lease, id)
        lease.host, lease.folder, lease.ran_in = "there", None, None  # of a version that did not say where
        if is_known:
            session.add(Machine(name="there", folder="of there", seen_at_us=now_us(), free_bytes=1))
    assert not api.post("/api/v1/jobs/wins/diff", json=LATE).json()["starts_anew"]
    with context_of(app).catalog.begin() as session:
        session.get_one(Lease, id).host = context_of(app).settings.machine
    assert api.post("/api/v1/jobs/wins/diff", json=LATE).json()["starts_anew"], "it is here again"
    assert PAIRS in api.get("/api/v1/jobs/wins").json()["query"]
