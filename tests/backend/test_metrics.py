"""What Prometheus reads: the newest reports, phases of jobs, and who follows."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from test_jobs import created
from test_streams import BIDS, registered

from backend.catalog.ids import now_us
from backend.catalog.models import Report
from backend.metrics import FRESH_US

BODY = {
    "totals": {"batches": 3, "tuples": 100, "results": 7, "comparisons": 14}, "tuples_per_second": 50.0,
    "state_bytes": 4096, "live_tuples": {"a": 1, "b": 2}, "segments": 2, "batch_ms": {"p50": 1, "p95": 250, "max": 300},
    "late": {"a": 0, "b": 1}, "dead_letters": {"a": 0, "b": 0}, "dropped_reports": 0, "lag_ms": {"a": 10, "b": 1500},
}  # fmt: skip


def read(api: TestClient) -> dict[str, dict[tuple[str, ...], float]]:
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        sample.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def reported(app: FastAPI, job: dict[str, Any], at_us: int, **body: Any) -> None:
    with app.state.context.catalog.begin() as session:
        session.add(Report(job_id=job["id"], at_us=at_us, generation=1, body={**BODY, **body}))


def test_the_newest_report_of_each_job_is_shown(api: TestClient, app: FastAPI) -> None:
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    job = created(api)
    reported(app, job, now_us() - 2_000_000, state_bytes=1)
    reported(app, job, now_us() - 1_000_000, open_rows=7)
    found = read(api)
    name = (job["name"],)
    assert found["streamjoin_join_results_total"] == {name: 7.0}
    assert found["streamjoin_join_comparisons_total"] == {name: 14.0}
    assert found["streamjoin_state_bytes"] == {name: 4096.0}
    assert found["streamjoin_open_rows"] == {name: 7.0}
    assert "streamjoin_unmatched_rows" not in found  # an older version did not tell
    assert found["streamjoin_batch_duration_seconds_p95"] == {name: 0.25}
    assert found["streamjoin_lag_seconds"] == {name: 1.5}
    assert found["streamjoin_jobs"][("stopped",)] == 1.0
    assert found["streamjoin_subscriber_sockets"] == {(): 0.0}


def test_what_is_no_longer_so_is_left_out(api: TestClient, app: FastAPI) -> None:
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    reported(app, created(api), now_us() - FRESH_US - 1_000_000)
    found = read(api)
    assert "streamjoin_state_bytes" not in found
    assert found["streamjoin_jobs"][("stopped",)] == 1.0


def test_charts_may_leave_the_units_of_older_reports_out(api: TestClient, app: FastAPI) -> None:
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    job = created(api)
    for age_us in (3_000_000, 2_000_000, 1_000_000):
        reported(app, job, now_us() - age_us, units=[{"unit": 0, "age_us": age_us}])

    def ages(**query: str) -> list[list[int]]:
        points = api.get(f"/api/v1/jobs/{job['id']}/metrics", params=query).json()["points"]
        return [[unit["age_us"] for unit in point["figures"]["units"]] for point in points]

    assert ages() == [[3_000_000], [2_000_000], [1_000_000]]
    assert ages(units="newest") == [[], [], [1_000_000]]
