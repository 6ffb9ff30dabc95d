"""Another number of units, over the API: what an operator keeps by unit may not be dealt out anew, and that is said."""

from __future__ import annotations

import json
import sqlite3
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_bundles import PAIRS, created, used
from test_jobs import context_of
from test_streams import auction_house
from test_three_streams import QUERY as THREE

from backend.catalog.models import Job
from backend.jobs.joinfile import join_file
from streamjoin.operators import registry
from streamjoin.sources import asked
from streamjoin.spark.identity import check_continues
from streamjoin.spec.job import IDENTITY_FILE
from streamjoin.spec.prepare import bind

AS_OF = (
    "SELECT ONLINE auctions.id, bids.price FROM bids ASOF JOIN auctions ON bids.auction = auctions.id "
    "AND auctions.ts <= bids.ts"
)
WITH_TABLE = "SELECT ONLINE bids.price, customers.name FROM bids, customers WHERE bids.bidder = customers.id"
CASES = [
    ("splitjoin", PAIRS, "cores", True),
    ("handshake", PAIRS, "workers", True),
    ("ring", THREE, "nodes", True),
    ("aligned", THREE, "nodes", False),
    ("coordinated", THREE, "nodes", False),
    ("asof", AS_OF, "units", False),
    ("lookup", WITH_TABLE, "units", True),
    ("ssbj", WITH_TABLE, "units", False),
    ("meshjoin", WITH_TABLE, "units", False),
]
"""The operator, its query, what counts its units, and whether what it has stored stays."""


@pytest.fixture(autouse=True)
def inputs(api: TestClient, tmp_path: Path) -> None:
    auction_house(api)
    folder = tmp_path / "customers"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "name": ["Ada", "Bob"]}), folder / "1.parquet")
    spec = {"source": "parquet", "path": str(folder)}
    assert api.post("/api/v1/relations", json={"name": "customers", "spec": spec}).status_code == 201


def test_every_operator_whose_units_can_be_counted_has_its_case() -> None:
    counted = {
        (kind.name, name)
        for kind in registry.KINDS
        for name, field in kind.settings.model_fields.items()
        if name in ("units", "nodes", "cores", "workers") and not kind.is_sparks
    }
    assert counted == {(operator, knob) for operator, _, knob, _ in CASES}


@pytest.mark.parametrize(
    ("operator", "query", "knob", "stays"),
    [
        *(pytest.param({"name": name}, *case, id=name) for name, *case in CASES),
        *(pytest.param({}, *case, id=f"auto for {name}") for name, *case in CASES if name in ("asof", "lookup")),
        pytest.param({"name": "ring", "adaptive": True}, THREE, "nodes", False, id="ring that adapts"),
    ],
)
def test_another_number_of_units_keeps_what_can_be_kept(
    api: TestClient, app: FastAPI, operator: dict[str, Any], query: str, knob: str, stays: bool
) -> None:
    id = created(api, query=query, operator={**operator, knob: 2})["id"]
    used(api, app, id)
    change = {"operator": {**operator, knob: 3}}
    seen = api.post("/api/v1/jobs/wins/diff", json=change)
    assert seen.status_code == 200, seen.text
    assert [one["field"] for one in seen.json()["changes"]] == [f"operator.{knob}"]
    assert seen.json()["starts_anew"] is not stays
    if "adaptive" in operator:  # its nodes would stay, but for what is stored
        assert seen.json()["changes"][0]["reason"] == "the checkpoint began with 2 nodes, and this says 3"
    done = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'})
    assert done.status_code == (200 if stays else 409), done.text
    if not stays:
        assert done.json()["subcode"] == "starts_anew"
        agreed = api.patch("/api/v1/jobs/wins", json={**change, "start_anew": True}, headers={"If-Match": '"1"'})
        assert agreed.status_code == 200, agreed.text
    with context_of(app).catalog.read() as session:
        job = session.get_one(Job, id)
        assert job.incarnation == (0 if stays else 1)
        check_continues(bind(join_file(context_of(app).settings, job, {})).job())  # as its driver does


@pytest.mark.parametrize(("operator", "query"), [pytest.param(name, query, id=name) for name, query, *_ in CASES])
def test_other_slots_keep_the_state_of_every_operator_whose_units_nobody_counts(
    api: TestClient, app: FastAPI, operator: str, query: str
) -> None:
    used(api, app, created(api, query=query, operator={"name": operator}, run={"slots": 2})["id"])
    change = {"run": {"slots": 3}}
    (seen,) = api.post("/api/v1/jobs/wins/diff", json=change).json()["changes"]
    assert (seen["effect"], seen["reason"]) == ("keeps_state", None)
    assert api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'}).status_code == 200


def test_a_knob_without_a_name_changes_no_operator(api: TestClient, app: FastAPI) -> None:
    """`auto` is what a job is created with, and what it means where a change of `operator` names none."""
    used(api, app, created(api, query=WITH_TABLE)["id"])
    (seen,) = api.post("/api/v1/jobs/wins/diff", json={"operator": {"units": 3}}).json()["changes"]
    assert (seen["field"], seen["effect"]) == ("operator.units", "keeps_state")
    named = api.post("/api/v1/jobs/wins/diff", json={"operator": {"name": "ssbj"}}).json()
    assert named["starts_anew"] and [one["field"] for one in named["changes"]] == ["operator.name"]


def test_a_job_of_several_queries_whose_units_are_changed_begins_anew(api: TestClient, app: FastAPI) -> None:
    beside = {"dear": {"query": PAIRS.replace("SELECT ONLINE", "SELECT ONLINE bids.bidder,")}}
    operator = {"name": "biclique", "adaptive": True, "r_units": 2}
    used(api, app, created(api, query=PAIRS, queries=beside, operator=operator)["id"])
    limits = {"operator": {**operator, "max_units": 9}}
    assert api.post("/api/v1/jobs/wins/diff", json=limits).json()["starts_anew"] is False
    units = {"operator": {**operator, "r_units": 3}}
    assert api.post("/api/v1/jobs/wins/diff", json=units).json()["starts_anew"] is True


def test_attack_a_job_that_has_run_has_no_database_asked_by_the_process_that_answers_others(
    api: TestClient, app: FastAPI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE t (k INTEGER, said TEXT)")
    spec = {"source": "sql", "url": f"sqlite:///{tmp_path}/x.db", "table": "t"}
    assert api.post("/api/v1/relations", json={"name": "t", "spec": spec}).status_code == 201
    query = "SELECT ONLINE bids.price, t.said FROM bids JOIN t ON bids.bidder = t.k"
    used(api, app, created(api, query=query, operator={"name": "lookup", "units": 2})["id"])

    def refuse(look: Any, *given: Any) -> Any:
        raise AssertionError("a database was asked here")

    monkeypatch.setattr(asked, "_asking", ContextVar("_asking", default=refuse))
    change = {"operator": {"name": "lookup", "units": 3}}
    assert api.post("/api/v1/jobs/wins/diff", json=change).json()["starts_anew"] is False
    assert api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'}).status_code == 200


@pytest.mark.parametrize("name", [["asof"], {"a": 1}, 7])
def test_an_operator_s_name_that_is_none_is_refused(api: TestClient, app: FastAPI, name: Any) -> None:
    used(api, app, created(api)["id"])
    for method, place in (("POST", "/diff"), ("PATCH", "")):
        change = {"operator": {"name": name, "units": 2}}
        answer = api.request(method, f"/api/v1/jobs/wins{place}", json=change, headers={"If-Match": '"1"'})
        assert answer.status_code == 422, answer.text


def test_what_is_stored_by_another_join_begins_anew_whatever_is_changed(api: TestClient, app: FastAPI) -> None:
    id = created(api, query=AS_OF)["id"]
    used(api, app, id)
    path = context_of(app).settings.checkpoint_folder(id, 0) / IDENTITY_FILE
    known = json.loads(path.read_text())
    path.write_text(json.dumps({**known, "operator": "AsOfJoin(count=7)"}))
    assert api.post("/api/v1/jobs/wins/diff", json={}).json()["changes"] == []
    change = {"results": {"retain": "2d"}}
    (seen,) = api.post("/api/v1/jobs/wins/diff", json=change).json()["changes"]
    assert (seen["field"], seen["effect"]) == ("results.retain", "starts_anew")
    assert "the checkpoint began with" in seen["reason"]
    refused = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'})
    assert (refused.status_code, refused.json()["subcode"]) == (409, "starts_anew"), refused.text
    # What cannot be read is its driver's to say.
    for damaged in ("{", "[]", '{"streams": [1]}', "null"):
        path.write_text(damaged)
        assert api.post("/api/v1/jobs/wins/diff", json=change).json()["starts_anew"] is False
    assert api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'}).status_code == 200
