"""Jobs with GROUP BY, over the API: checked, explained, previewed and made."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_jobs import context_of
from test_streams import BIDS, registered

from backend.catalog.models import Job
from backend.jobs.joinfile import join_file
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.spec.prepare import bind

JOINED = (
    "SELECT ONLINE auctions.category, WINDOW_START() AS since, COUNT(*) AS n, MAX(bids.price) AS top "
    "FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS "
    "GROUP BY auctions.category, TUMBLE(1 SECOND)"
)
ONE = "SELECT ONLINE auction, COUNT(*) AS n FROM bids GROUP BY auction, HOP(1 SECOND, 5 SECONDS)"


@pytest.fixture(autouse=True)
def streams(api: TestClient) -> None:
    """The streams of the queries."""
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})


def test_a_query_is_checked_and_explained(api: TestClient) -> None:
    found = api.post("/api/v1/jobs/validate", json={"query": JOINED}).json()
    assert found["valid"], found
    assert [column["name"] for column in found["columns"]] == ["category", "since", "n", "top"]
    assert "auctions joins bids within 10 s, by biclique, then groups of windows of 1 s" in found["summary"]
    plan = api.post("/api/v1/jobs/explain", json={"query": JOINED}).json()["plan"]
    assert [(stage["inputs"], stage["groups"]) for stage in plan["stages"]] == [
        ([{"stream": "auctions"}, {"stream": "bids"}], None),
        ([{"stage": 1}], "auctions.category, windows of 1 s"),
    ]
    alone = api.post("/api/v1/jobs/explain", json={"query": ONE}).json()
    assert alone["plan"]["operators"] == [] and alone["plan"]["operator"] == "aggregate"
    assert "groups of bids" in " ".join(alone["text"].split())[:100]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (JOINED.replace("auctions.category, WINDOW", "bids.bidder, WINDOW"), "bids.bidder is neither in GROUP BY"),
        (JOINED.replace("TUMBLE(1 SECOND)", "TUMBLE(0 SECONDS)"), "longer than nothing"),
        (ONE.replace(", HOP(1 SECOND, 5 SECONDS)", " EMIT EVERY 0 SECONDS"), "EMIT EVERY: a span of time is longer"),
    ],
)
def test_a_wrong_query_is_told_where(api: TestClient, query: str, said: str) -> None:
    found = api.post("/api/v1/jobs/validate", json={"query": query}).json()
    assert not found["valid"] and said in found["diagnostics"][0]["detail"], found
    assert found["diagnostics"][0]["span"]["line"] == 1


@pytest.mark.parametrize(
    ("query", "more", "said"),
    [
        (ONE, {"operator": {"name": "matrix"}}, "this query reads one stream and joins nothing"),
        (JOINED, {"operator": {"name": "spark"}}, "is of pairs here, without groups"),
        (JOINED, {"operator": {"name": "auto", "ordering": "total"}}, "groups leave window by window"),
    ],
)
def test_settings_that_groups_do_not_have(api: TestClient, query: str, more: dict[str, object], said: str) -> None:
    found = api.post("/api/v1/jobs/validate", json={"query": query, **more}).json()
    assert not found["valid"] and said in found["diagnostics"][0]["detail"], found


@pytest.mark.parametrize("query", [JOINED, ONE])
def test_a_preview_shows_groups(api: TestClient, query: str) -> None:
    answer = api.post("/api/v1/jobs/preview", json={"query": query})
    assert answer.status_code == 200, answer.text
    (only,) = answer.json()["queries"]
    assert only["rows"] and only["reason"] is None


@pytest.mark.parametrize("query", [JOINED, ONE])
def test_a_job_is_made(api: TestClient, app: FastAPI, query: str) -> None:
    answer = api.post("/api/v1/jobs", json={"name": "counts", "query": query})
    assert answer.status_code == 201, answer.text
    with context_of(app).catalog.read() as session:
        bound = bind(join_file(context_of(app).settings, session.get_one(Job, answer.json()["id"]), {}))
    assert isinstance(bound.query, AggregatePlan) and bound.query.keyed
