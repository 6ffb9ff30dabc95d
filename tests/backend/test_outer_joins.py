"""Jobs with outer, semi and anti joins, over the API: checked, explained, refused."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from test_streams import BIDS, registered

JOINED = "SELECT ONLINE auctions.id FROM auctions LEFT ANTI JOIN bids ON auctions.id = bids.auction WITHIN 10 SECONDS"
WRONG = [
    (JOINED.replace(" WITHIN 10 SECONDS", ""), "bids ON", "write a span of time, such as WITHIN 1 HOUR"),
    (JOINED.replace(" WITHIN", " WHERE bids.price IS NULL WITHIN"), "bids.price", "read bids in that ON"),
    (JOINED.replace(" ON auctions.id = bids.auction", ""), "JOIN", "JOIN needs a condition"),
]


@pytest.fixture
def streams(api: TestClient) -> None:
    """The streams of the queries."""
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})


@pytest.mark.usefixtures("streams")
def test_a_query_is_checked_and_explained(api: TestClient) -> None:
    found = api.post("/api/v1/jobs/validate", json={"query": JOINED}).json()
    assert found["valid"] and "auctions LEFT ANTI JOIN bids within 10 s" in found["summary"], found
    plan = api.post("/api/v1/jobs/explain", json={"query": JOINED}).json()["plan"]
    assert [stage["kind"] for stage in plan["stages"]] == ["LEFT ANTI"]
    refused = {option["name"]: option["refusal"] for option in plan["operators"]}
    assert refused["biclique"] is None and "choose biclique, matrix or splitjoin" in refused["handshake"]


@pytest.mark.usefixtures("streams")
@pytest.mark.parametrize(("query", "place", "said"), WRONG)
def test_a_wrong_query_is_told_where(api: TestClient, query: str, place: str, said: str) -> None:
    found = api.post("/api/v1/jobs/validate", json={"query": query}).json()
    told = found["diagnostics"][0]
    assert not found["valid"] and said in told["detail"], found
    assert (told["span"]["line"], told["span"]["column"]) == (1, query.index(place) + 1), told
