"""Jobs over three streams, over the API: checked, explained, previewed, made, changed, and their figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from test_jobs import context_of, has_begun
from test_streams import auction_house

from backend.api import snapshots
from backend.catalog.ids import now_us
from backend.catalog.models import Job, Report
from backend.jobs.joinfile import join_file
from streamjoin.plan.stages import Cascade
from streamjoin.results.snapshot import Snapshot, SnapshotId
from streamjoin.spec.prepare import bind

QUERY = (
    "SELECT ONLINE auctions.id, bids.price, people.name FROM auctions "
    "JOIN bids ON auctions.id = bids.auction JOIN people ON bids.bidder = people.id WITHIN 10 SECONDS"
)


@pytest.fixture(autouse=True)
def streams(api: TestClient) -> None:
    """The streams of `QUERY`."""
    auction_house(api)


def created(api: TestClient, **more: Any) -> dict[str, Any]:
    answer = api.post("/api/v1/jobs", json={"name": "sellers", "query": QUERY, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_query_is_checked_and_explained_stage_by_stage(api: TestClient) -> None:
    found = api.post("/api/v1/jobs/validate", json={"query": QUERY}).json()
    assert found["valid"], found
    assert [column["name"] for column in found["columns"]] == ["id", "price", "name"]
    assert "auctions joins bids, people within 10 s" in found["summary"]
    explained = api.post("/api/v1/jobs/explain", json={"query": QUERY}).json()
    assert [one["inputs"] for one in explained["plan"]["stages"]] == [
        [{"stream": "auctions"}, {"stream": "bids"}], [{"stage": 1}, {"stream": "people"}],
    ]  # fmt: skip
    assert set(explained["plan"]["sampled"]) == {"auctions", "bids", "people"}
    assert "stage 2" in explained["text"]
    ways = explained["plan"]["ways"]
    assert [way["plan"] for way in ways["ways"] if way["runs"]] == ["((auctions, bids), people)"]
    assert {"((auctions, bids), people)", "(auctions, (bids, people))", "((auctions, people), bids)"} <= {
        way["plan"] for way in ways["ways"]
    }
    assert f"advice: {ways['advice']}" in explained["text"]
    assert ways["ring"]["best"] >= 1
    assert {"aligned", "coordinated"} <= {way["operator"].get("name") for way in ways["ways"]}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (QUERY.replace("people.id", "people.idd"), 'no column "people.idd"'),
        (QUERY.replace("ON auctions.id = bids.auction", "ON auctions.id = people.id"), "people, which is joined later"),
        (QUERY.replace(" JOIN people ON", " JOIN nobody ON").replace("people.", "nobody."), "nobody"),
        (QUERY.replace("10 SECONDS", "10 ROWS"), "one span of time"),
    ],
)
def test_a_wrong_query_is_told_where(api: TestClient, query: str, said: str) -> None:
    found = api.post("/api/v1/jobs/validate", json={"query": query}).json()
    assert not found["valid"] and said in found["diagnostics"][0]["detail"], found


def test_a_preview_has_rows_of_all_three(api: TestClient) -> None:
    answer = api.post("/api/v1/jobs/preview", json={"query": QUERY})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [one["name"] for one in found["streams"]] == ["auctions", "bids", "people"]
    (only,) = found["queries"]
    assert len(only["rows"]) == 20 and only["reason"] is None
    assert all(isinstance(name, str) for _, _, name in only["rows"])


def test_a_job_is_made_changed_and_compared_as_any_other(api: TestClient, app: FastAPI) -> None:
    job = created(api)
    assert job["streams"] == ["auctions", "bids", "people"]
    with context_of(app).catalog.read() as session:
        bound = bind(join_file(context_of(app).settings, session.get_one(Job, job["id"]), {}))
    assert isinstance(bound.plan, Cascade) and bound.plan.names == ("auctions", "bids", "people")
    has_begun(app, job["id"])
    url = f"/api/v1/jobs/{job['id']}"
    spaces = api.post(f"{url}/diff", json={"query": QUERY.replace(" JOIN", "\n JOIN")}).json()
    assert not spaces["starts_anew"]
    two = QUERY.replace(", people.name", "").replace(" JOIN people ON bids.bidder = people.id", "")
    fewer = api.post(f"{url}/diff", json={"query": two}).json()
    assert fewer["starts_anew"]
    assert {"query"} < {change["field"].split(".")[0] for change in fewer["changes"]}  # and the stream that goes
    etag = api.get(url).headers["ETag"]
    refused = api.patch(url, json={"query": two}, headers={"If-Match": etag})
    assert refused.status_code == 409 and refused.json()["subcode"] == "starts_anew"
    changed = api.patch(url, json={"query": two, "start_anew": True}, headers={"If-Match": etag})
    assert changed.status_code == 200 and changed.json()["streams"] == ["auctions", "bids"]
    slots = api.post(f"{url}/rescale", json={"slots": 3})
    assert slots.status_code == 202, slots.text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"operator": {"name": "biclique", "ordering": "total"}}, "ordering"),
        ({"operator": {"name": "spark"}}, "two streams"),
    ],
)
def test_what_is_of_two_streams_only_is_refused_with_its_place(
    api: TestClient, more: dict[str, Any], said: str
) -> None:
    answer = api.post("/api/v1/jobs", json={"name": "sellers", "query": QUERY, **more})
    assert answer.status_code == 422 and said in answer.text, answer.text
    assert answer.json()["errors"][0]["pointer"]


@pytest.mark.parametrize(
    ("operator", "pointer", "said"),
    [
        ({"name": "biclique", "tree": [["auctions", "bids"], "bids"]}, "/operator/tree", "bids is in it twice"),
        ({"name": "biclique", "tree": ["auctions", "bids"]}, "/operator/tree", "it lacks people"),
        ({"name": "ring", "orders": {"bids": ["people"]}}, "/operator/orders/bids", "each other stream once"),
        ({"name": "ring", "lengths": {"nobody": 1}}, "/operator/lengths/nobody", "no stream nobody"),
        ({"name": "ring", "lengths": {"bids": 0}}, "/operator/lengths", "for bids: 0 is not a whole number"),
        ({"name": "aligned", "master": "nobody"}, "/operator/master", "no stream nobody"),
    ],
)
def test_a_knob_of_many_streams_that_is_wrong_is_refused_at_its_field(
    api: TestClient, operator: dict[str, Any], pointer: str, said: str
) -> None:
    answer = api.post("/api/v1/jobs", json={"name": "sellers", "query": QUERY, "operator": operator})
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["pointer"] == pointer and said in error["detail"], error


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (QUERY.replace("JOIN people ON", "JOIN bids ON"), 'the same stream "bids"'),
        (QUERY.replace("10 SECONDS", "1 SECONDS FOR auctions, 2 SECONDS FOR nobody"), 'no stream "nobody"'),
        (
            f"SELECT ONLINE s0.id FROM {', '.join(f'auctions AS s{number}' for number in range(10))} WITHIN 1 SECONDS",
            "9 streams at most",
        ),
        (QUERY.replace(" WITHIN 10 SECONDS", ""), "add WITHIN"),
    ],
)
def test_a_ring_of_a_wrong_query_is_not_made(api: TestClient, query: str, said: str) -> None:
    answer = api.post("/api/v1/jobs", json={"name": "sellers", "query": query, "operator": {"name": "ring"}})
    assert answer.status_code == 422, answer.text
    error = answer.json()["errors"][0]
    assert error["pointer"] == ("/operator/name" if said == "add WITHIN" else "/query")
    assert said in error["detail"], error


def test_figures_tell_of_stages_and_reports_of_older_versions_too(api: TestClient, app: FastAPI) -> None:
    job = created(api)
    stages = [{"stage": 1, "results": 5, "inputs": [{"stream": "auctions"}, {"stream": "bids"}]},
              {"stage": 2, "results": 2, "inputs": [{"stage": 1}, {"stream": "people"}]}]  # fmt: skip
    units = [{"unit": 0, "label": "1.R0", "stage": 1, "seconds": {"probe": 0.5}},
             {"unit": 1, "label": "2.R0", "stage": 2}]  # fmt: skip
    bodies: list[dict[str, Any]] = [
        {"results": 9, "units": [{"unit": 0, "label": "R0"}]}, {"results": 2, "stages": stages, "units": units}
    ]  # fmt: skip
    with context_of(app).catalog.begin() as session:
        for age_s, body in zip((2, 1), bodies, strict=True):
            session.add(Report(job_id=job["id"], at_us=now_us() - age_s * 1_000_000, span_s=1, generation=1, body=body))
    old, new = (point["figures"] for point in api.get(f"/api/v1/jobs/{job['id']}/metrics").json()["points"])
    assert (old["results"], old["stages"], old["units"][0]["stage"]) == (9, [], 1)
    assert [(one["stage"], one["results"]) for one in new["stages"]] == [(1, 5), (2, 2)]
    assert [[value for value in read.values() if value] for read in new["stages"][1]["inputs"]] == [[1], ["people"]]
    assert [one["stage"] for one in new["units"]] == [1, 2] and new["units"][0]["seconds"] == {"probe": 0.5}


@pytest.mark.parametrize(("marks_us", "late"), [((9, 8, 7), True), ((9, 8, 4), False), ((9, 8, None), False)])
def test_a_snapshot_is_late_by_the_marks_of_all_its_streams(marks_us: tuple[int | None, ...], late: bool) -> None:
    before = Snapshot.of(SnapshotId(1, 0), 1, [], marks_us, 1, (1, 1))
    after = replace(Snapshot.of(SnapshotId(2, 0), 1, [], (20, 20, 20), 2, (2, 2)), time_min_us=5, time_max_us=6)
    assert snapshots._shape(after, before).late is late
