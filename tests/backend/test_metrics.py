"""What Prometheus reads: the newest reports, phases of jobs, and who follows."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from test_jobs import created
from test_streams import BIDS, registered

from backend.catalog.ids import now_us
from backend.catalog.models import Report
from backend.metrics import FRESH_US

BODY = {
    "totals": {"batches": 3, "tuples": 100, "results": 7, "comparisons": 14, "search_steps": 30},
    "tuples_per_second": 50.0,
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
    stage = {"stage": 1, "plan": 2, "units": {"R": 3, "S": 2}, "draining": {"R": 1, "S": 0}}
    reported(app, job, now_us() - 1_000_000, open_rows=7, adaptive=[{**stage, "loads": {"R 0": 0.5, "S 0": 0.7}}])
    found = read(api)
    name = (job["name"],)
    assert found["streamjoin_join_results_total"] == {name: 7.0}
    assert found["streamjoin_join_comparisons_total"] == {name: 14.0}
    assert found["streamjoin_join_search_steps_total"] == {name: 30.0}
    assert found["streamjoin_state_bytes"] == {name: 4096.0}
    assert found["streamjoin_open_rows"] == {name: 7.0}
    assert "streamjoin_ring_best_nodes" not in found and "streamjoin_ring_step_seconds" not in found
    told = [found[f"streamjoin_units{what}"][name] for what in ("", "_draining", "_load")]
    assert told == [5.0, 1.0, 0.7]
    assert "streamjoin_unmatched_rows" not in found  # an older version did not tell
    assert found["streamjoin_batch_duration_seconds_p95"] == {name: 0.25}
    assert found["streamjoin_lag_seconds"] == {name: 1.5}
    assert found["streamjoin_jobs"][("stopped",)] == 1.0
    assert found["streamjoin_subscriber_sockets"] == {(): 0.0}


def test_a_state_in_a_store_is_counted(api: TestClient, app: FastAPI) -> None:
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    job = created(api)
    traffic = {"served": 5, "fetched": 1, "fetched_bytes": 40, "put": 2, "put_bytes": 80, "retries": 3}
    reported(app, job, now_us() - 1_000_000, totals={**BODY["totals"], "state_traffic": traffic})
    found, name = read(api), (job["name"],)
    told = {what: found[f"streamjoin_state_{what}_total"][name] for what in ("put_bytes", "fetched_bytes", "retries")}
    assert told == {"put_bytes": 80.0, "fetched_bytes": 40.0, "retries": 3.0}
    assert [found[f"streamjoin_state_cache_{what}_total"][name] for what in ("served", "missed")] == [5.0, 1.0]


def test_reconnects_are_counted_and_charts_have_them(api: TestClient, app: FastAPI) -> None:
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    job = created(api)
    reported(app, job, now_us() - 2_000_000)
    assert "streamjoin_reconnects_total" not in read(api)  # an older version did not tell
    reported(app, job, now_us() - 1_000_000, reconnects=1, totals={**BODY["totals"], "reconnects": 4})
    assert read(api)["streamjoin_reconnects_total"] == {(job["name"],): 4.0}
    points = api.get(f"/api/v1/jobs/{job['id']}/metrics").json()["points"]
    assert [point["figures"]["reconnects"] for point in points] == [0, 1]


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


def test_joins_with_relations_tell_rates_memory_and_refreshes_that_failed(api: TestClient, app: FastAPI) -> None:
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    job = created(api)
    reading = {
        "counts": {"tuples": 10}, "holding": {"memory_bytes": 700, "memory_bytes_allowed": 1000}, "units": 2,
        "at_once": 2, "rate_per_s": 90.5, "rows_read_per_tuple": 0.0, "cached_share": None,
        "predicted": {"text": "t", "rate_per_s": 120.0},
    }  # fmt: skip
    relations = {
        "customers": {"version": 3, "refreshes": 2, "refresh_failures": 1, "problem": "gone"},
        "rates": {"version": 1, "refreshes": 0, "refresh_failures": 0, "problem": None},
    }
    reported(app, job, now_us() - 1_000_000, reading=reading, relations=relations)
    found, name = read(api), (job["name"],)
    told = {what: found[f"streamjoin_reading_{what}"] for what in (
        "tuples_per_second", "predicted_tuples_per_second", "rows_per_tuple", "memory_bytes", "memory_allowed_bytes",
    )}  # fmt: skip
    assert told == {what: {name: value} for what, value in zip(told, (90.5, 120.0, 0.0, 700.0, 1000.0), strict=True)}
    assert "streamjoin_reading_cached_share" not in found  # there is no cache
    failures = {(*name, "customers"): 1.0, (*name, "rates"): 0.0}
    assert found["streamjoin_relation_refresh_failures_total"] == failures
    assert found["streamjoin_relation_refreshes_total"] == {(*name, "customers"): 2.0, (*name, "rates"): 0.0}
    point = api.get(f"/api/v1/jobs/{job['id']}/metrics").json()["points"][-1]["figures"]
    assert point["reading"]["predicted"]["rate_per_s"] == 120.0
    assert point["relations"]["customers"]["problem"] == "gone"


def test_a_report_without_a_prediction_has_none_to_show(api: TestClient, app: FastAPI) -> None:
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    reading = {"counts": {}, "holding": {}, "units": 1, "rate_per_s": None, "predicted": None}
    reported(app, created(api), now_us() - 1_000_000, reading=reading)
    assert not [name for name in read(api) if name.startswith("streamjoin_reading")]


def test_a_ring_tells_its_best_number_of_nodes_and_what_its_steps_take(api: TestClient, app: FastAPI) -> None:
    registered(api)
    registered(api, "auctions", **{**BIDS, "kind": "nexmark.auction"})
    job = created(api)
    times = [{"name": "join", "symbol": "T_j", "us": 12.0, "origin": "measured"},
             {"name": "hop", "symbol": "T_n", "us": 1000.0, "origin": "assumed"}]  # fmt: skip
    ring = {"stage": 1, "plan": 0, "units": {"ring": 2}, "draining": {"ring": 0}, "loads": {}}
    told = {**ring, "best": 4, "model": {"best": 4, "times": times}}
    reported(app, job, now_us() - 1_000_000, adaptive=[{**ring, "stage": 2}, told])
    found, name = read(api), job["name"]
    assert found["streamjoin_ring_best_nodes"] == {(name,): 4.0}
    assert found["streamjoin_ring_step_seconds"] == {
        (name, "measured", "join"): pytest.approx(12e-6), (name, "assumed", "hop"): pytest.approx(1e-3),
    }  # fmt: skip
