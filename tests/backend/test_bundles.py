"""Queries of several kinds in one job, over the API: they may read more streams than the job's own query."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_jobs import QUERY as PAIRS
from test_jobs import context_of, has_begun
from test_streams import auction_house
from test_three_streams import QUERY as THREE

from backend.catalog.models import Job
from backend.jobs.joinfile import join_file
from streamjoin.errors import QueriesStayError
from streamjoin.plan.stages import Bundle
from streamjoin.spark.checkpoint import opened
from streamjoin.spec.prepare import bind

LEFT = "SELECT ONLINE a.id, b.price FROM auctions AS a LEFT JOIN bids AS b ON a.id = b.auction WITHIN 1 MINUTE"
GROUPS = "SELECT ONLINE state, COUNT(*) AS n FROM people GROUP BY state, TUMBLE(1 MINUTE)"
SEVERAL = {"left": {"query": LEFT}, "three": {"query": THREE}, "groups": {"query": GROUPS}}


@pytest.fixture(autouse=True)
def streams(api: TestClient) -> None:
    auction_house(api)


def created(api: TestClient, **more: Any) -> dict[str, Any]:
    answer = api.post("/api/v1/jobs", json={"name": "wins", "query": PAIRS} | more)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def used(api: TestClient, app: FastAPI, id: str) -> None:
    """As if a driver had run: there is a checkpoint of the job's queries."""
    has_begun(app, id)
    with context_of(app).catalog.read() as session:
        job = bind(join_file(context_of(app).settings, session.get_one(Job, id), {})).job()
    with opened(job):
        pass


def test_a_draft_is_checked_explained_and_tried(api: TestClient) -> None:
    draft = {"query": PAIRS, "queries": SEVERAL}
    found = api.post("/api/v1/jobs/validate", json=draft).json()
    assert found["valid"], found
    assert found["summary"].startswith("main, left, three, groups: 4 queries over auctions, bids and people")
    plan = api.post("/api/v1/jobs/explain", json=draft).json()["plan"]
    assert [part["names"] for part in plan["parts"]] == [["main"], ["left"], ["three"], ["groups"]]
    assert [stage["queries"] for stage in plan["stages"]] == [["main"], ["left"], [], ["three"], ["groups"]]
    shown = api.post("/api/v1/jobs/preview", json=draft).json()
    assert [len(one["columns"]) for one in shown["queries"]] == [2, 2, 3, 2]


@pytest.mark.parametrize(
    ("query", "pointer", "said"),
    [
        (LEFT.replace("bids", "bidz"), "/queries/other/query", 'no stream "bidz"'),
        (LEFT.replace("b.price", "b.prize"), "/queries/other/query", "prize"),
        ("SELECT ONLINE FROM", "/queries/other/query", ""),
        (GROUPS, "/queries/other/query", "reads people, which no other query of the job reads"),
    ],
)
def test_what_is_wrong_is_told_with_the_query(api: TestClient, query: str, pointer: str, said: str) -> None:
    answer = api.post("/api/v1/jobs", json={"name": "wins", "query": PAIRS, "queries": {"other": {"query": query}}})
    place = answer.json()["errors"][0]
    assert (answer.status_code, place["pointer"]) == (422, pointer), answer.text
    assert said in place["detail"]


def test_a_job_reads_the_streams_of_all_its_queries(api: TestClient, app: FastAPI) -> None:
    job = created(api, queries=SEVERAL)
    assert job["streams"] == ["auctions", "bids", "people"]
    with context_of(app).catalog.read() as session:
        bound = bind(join_file(context_of(app).settings, session.get_one(Job, job["id"]), {}))
    assert isinstance(bound.plan, Bundle) and bound.plan.names_of_queries == ("main", "left", "three", "groups")


def test_one_of_another_kind_comes_to_a_job_that_has_not_run(api: TestClient) -> None:
    created(api)
    done = api.patch("/api/v1/jobs/wins", json={"queries": SEVERAL}, headers={"If-Match": '"1"'})
    assert (done.status_code, done.json()["streams"]) == (200, ["auctions", "bids", "people"]), done.text


def test_a_job_of_pairs_that_has_run_begins_anew_with_one_of_another_kind(api: TestClient, app: FastAPI) -> None:
    job = created(api)
    used(api, app, job["id"])
    change = {"queries": {"late": {"query": LEFT}}}
    seen = api.post("/api/v1/jobs/wins/diff", json=change).json()
    assert seen["starts_anew"] and {one["effect"] for one in seen["changes"]} == {"starts_anew"}
    assert "only others of these start" in seen["changes"][0]["reason"]
    draft = api.post("/api/v1/jobs/validate", json={"query": PAIRS, **change}).json()
    assert draft["valid"], "a draft is of no job, and of nothing that one has stored"
    with context_of(app).catalog.read() as session:
        seen_job = session.get_one(Job, job["id"])
        wanted = Job(id=job["id"], spec=seen_job.spec.changed(change), streams=seen_job.streams, relations={},
                     incarnation=0)  # fmt: skip
    with pytest.raises(QueriesStayError, match=r"^queries\.late\.query: the checkpoint is of one query"):
        bind(join_file(context_of(app).settings, wanted, {}))
    refused = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'})
    assert (refused.status_code, "start_anew" in refused.text) == (409, True), refused.text
    agreed = api.patch("/api/v1/jobs/wins", json={**change, "start_anew": True}, headers={"If-Match": '"1"'})
    assert agreed.status_code == 200, agreed.text
    with context_of(app).catalog.read() as session:
        assert session.get_one(Job, job["id"]).incarnation == 1


def test_a_job_begins_anew_with_a_query_that_its_tuples_are_not_routed_for(api: TestClient, app: FastAPI) -> None:
    both = PAIRS.replace("WHERE", "WHERE auctions.seller = bids.bidder AND")
    job = created(api, query=both, operator={"name": "biclique", "routing": "hash"})
    used(api, app, job["id"])
    change = {"queries": {"late": {"query": PAIRS}}}
    seen = api.post("/api/v1/jobs/wins/diff", json=change).json()
    assert seen["starts_anew"] and "routes its tuples by auctions.seller = bids" in seen["changes"][0]["reason"], seen
    refused = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'})
    assert (refused.status_code, refused.json()["subcode"]) == (409, "starts_anew"), refused.text
    agreed = api.patch("/api/v1/jobs/wins", json={**change, "start_anew": True}, headers={"If-Match": '"1"'})
    assert agreed.status_code == 200, agreed.text
    with context_of(app).catalog.read() as session:
        assert session.get_one(Job, job["id"]).incarnation == 1


def test_queries_of_any_kind_start_and_end_in_a_job_that_has_run_with_some(api: TestClient, app: FastAPI) -> None:
    job = created(api, queries={"left": {"query": LEFT}})
    used(api, app, job["id"])
    full = {"queries": {"full": {"query": LEFT.replace("LEFT JOIN", "FULL JOIN")}}}
    ends = {"queries": {"left": {"query": LEFT, "stopped": True}}}
    for change in (full, ends, {"queries": {**full["queries"], **ends["queries"]}}):
        seen = api.post("/api/v1/jobs/wins/diff", json=change).json()
        assert not seen["starts_anew"], seen
        assert {one["reason"] for one in seen["changes"]} == {None}
    longer = {"queries": {"far": {"query": LEFT.replace("1 MINUTE", "1 HOUR")}}}
    seen = api.post("/api/v1/jobs/wins/diff", json=longer).json()
    assert (
        seen["starts_anew"]
        and "this is within 1 h, and tuples of auctions are stored for" in seen["changes"][0]["reason"]
    )
    refused = api.patch("/api/v1/jobs/wins", json=longer, headers={"If-Match": '"1"'})
    assert (refused.status_code, "stored for" in refused.text) == (409, True), refused.text
    for version, change in enumerate((full, ends), 1):
        done = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": f'"{version}"'})
        assert done.status_code == 200, done.text
    with context_of(app).catalog.read() as session:
        assert session.get_one(Job, job["id"]).incarnation == 0


def test_limits_of_a_job_that_has_begun_may_leave_out_what_it_began_with(api: TestClient, app: FastAPI) -> None:
    adaptive = {"name": "biclique", "adaptive": True, "r_units": 2, "s_units": 2}
    job = created(api, operator=adaptive)
    change = {"operator": {**adaptive, "min_units": 3}}
    refused = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'})
    place = refused.json()["errors"][0]
    assert (refused.status_code, place["pointer"]) == (422, "/operator/min_units"), refused.text
    assert "between 3 and 8, and the job begins with 2 and 2" in place["detail"]
    used(api, app, job["id"])
    done = api.patch("/api/v1/jobs/wins", json=change, headers={"If-Match": '"1"'})
    assert (done.status_code, done.json()["operator"]["min_units"]) == (200, 3), done.text
