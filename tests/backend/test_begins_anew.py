"""A job that was given up may begin anew, once it was told what that drops and whether it could go on instead."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_bundles import created
from test_jobs import context_of
from test_streams import auction_house
from test_two_folders import incarnation_of, ran

from backend.catalog.lifecycle import GIVE_UP_FAILURES, GIVEN_UP
from backend.catalog.models import Job, Report
from backend.results.places import Place
from backend.results.readers import Readers
from streamjoin.results.stores.store import StoreError
from tests.backend.results_job import Committer

ANEW = {"start_anew": True}


@pytest.fixture(autouse=True)
def streams(api: TestClient) -> None:
    auction_house(api)


def given_up(app: FastAPI, id: str, reason: str = "the store did not answer") -> None:
    with context_of(app).catalog.begin() as session:
        job = session.get_one(Job, id)
        job.observed, job.failures, job.reason = "failed", GIVE_UP_FAILURES, f"{reason}{GIVEN_UP}"


def seen(api: TestClient, **change: Any) -> dict[str, Any]:
    answer = api.post("/api/v1/jobs/wins/diff", json={**ANEW, **change})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_job_that_only_its_store_held_up_is_told_to_go_on_and_what_it_would_lose(
    api: TestClient, app: FastAPI
) -> None:
    id = created(api)["id"]
    ran(app, context_of(app).settings, id)
    given_up(app, id)
    with context_of(app).catalog.read() as session:
        committer = Committer(context_of(app).settings, session.get_one(Job, id))
    before_us = time.time_ns() // 1000
    committer.commit(12)
    committer.close()
    found = seen(api)
    assert found["starts_anew"] and found["changes"] == []
    assert found["drops"]["results"] == 12 and found["drops"]["could_go_on"] is True
    assert found["drops"]["state_at"] >= time.strftime("%Y-%m-%dT%H:%M", time.gmtime(before_us / 1e6))
    assert incarnation_of(app, id) == 0, "it is only told"
    # Without the agreement nothing begins anew, and with it the API does what it is asked to.
    for body, incarnation in (({}, 0), (ANEW, 1)):
        assert api.patch("/api/v1/jobs/wins", json=body, headers={"If-Match": "*"}).status_code == 200
        assert incarnation_of(app, id) == incarnation
        given_up(app, id)


def test_where_no_store_says_so_the_drivers_reports_say_from_when_the_state_is(api: TestClient, app: FastAPI) -> None:
    id = created(api)["id"]
    ran(app, context_of(app).settings, id)
    given_up(app, id)
    with context_of(app).catalog.begin() as session:
        session.add(Report(job_id=id, at_us=1_700_000_000_000_000, generation=1, body={}))
    told = {"state_at": "2023-11-14T22:13:20.000Z", "results": 0, "could_go_on": True}
    assert seen(api)["drops"] == told
    # What was told before a job began anew is not of what it would lose now.
    assert api.patch("/api/v1/jobs/wins", json=ANEW, headers={"If-Match": "*"}).status_code == 200
    given_up(app, id)
    assert seen(api)["drops"] == {**told, "state_at": None}


def test_a_store_that_is_away_says_nothing_of_results(
    api: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = created(api)["id"]
    ran(app, context_of(app).settings, id)
    given_up(app, id)

    def away(self: Readers, place: Place, watch: Any = None) -> Any:
        raise StoreError("it does not answer")

    monkeypatch.setattr(Readers, "take", away)
    assert seen(api)["drops"]["results"] is None


def test_results_of_all_queries_of_a_job_are_told(api: TestClient, app: FastAPI) -> None:
    more = "SELECT ONLINE auctions.id FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 2 SECONDS"
    id = created(api, queries={"near": {"query": more}})["id"]
    ran(app, context_of(app).settings, id)
    given_up(app, id)
    with context_of(app).catalog.read() as session:
        job = session.get_one(Job, id)
        for query, rows in (("", 12), ("near", 5)):
            committer = Committer(context_of(app).settings, job, query=query)
            committer.commit(rows)
            committer.close()
    assert seen(api)["drops"]["results"] == 17


def test_a_state_that_nobody_sees_from_here_may_do_or_not(api: TestClient, app: FastAPI, tmp_path: Path) -> None:
    id = created(api)["id"]
    here = context_of(app).settings
    (tmp_path / "there").mkdir()
    there = here.model_copy(update={"data": tmp_path / "there", "catalog_url": here.catalog, "worker_name": "there"})
    ran(app, there, id)
    other = {"query": "SELECT ONLINE auctions.id FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 9 SECONDS"}
    assert seen(api, **other)["drops"]["could_go_on"] is False, "that fits no state of the job's, wherever it is"
    given_up(app, id)
    assert seen(api)["drops"]["could_go_on"] is None


def test_a_change_that_the_state_does_not_fit_says_what_it_drops_and_others_drop_nothing(
    api: TestClient, app: FastAPI
) -> None:
    id = created(api)["id"]
    other = {"query": "SELECT ONLINE auctions.id FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 9 SECONDS"}
    assert seen(api, **other)["drops"] is None, "it has never run"
    ran(app, context_of(app).settings, id)
    assert seen(api, **other)["drops"]["could_go_on"] is False
    kept = seen(api, run={"slots": 3})
    assert (kept["starts_anew"], kept["drops"]) == (False, None)
    assert seen(api)["drops"] is None, "it has not failed"
