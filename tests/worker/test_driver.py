"""The driver itself: real jobs on Spark, in processes of their own."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from backend.catalog.database import Catalog
from backend.catalog.events import FIRST_BATCH
from backend.catalog.models import Event
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from streamjoin.spec.job import recorded
from tests.servers.process import comes_true
from tests.spark.command import JAVA_OPTIONS
from worker import launch, leases, processes
from worker.pool import Pool
from worker.reports import merged
from worker.waiting import WAITS

from .jobs import (
    SPEC,
    WINDOW_S,
    add_job,
    change,
    events_of,
    expected,
    expected_of_three,
    job_of,
    lease_of,
    reports_of,
    results,
    streams,
)
from .platform import Workers, workers

pytestmark = [pytest.mark.spark, pytest.mark.slow]
START_S_MAX = 240.0


@pytest.fixture
def platform(settings: Settings, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Starts drivers as a worker does; no worker runs."""
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", JAVA_OPTIONS)
    with workers(settings.model_copy(update={"lease_s": 20.0, "driver_memory_mib": 512}), catalog, None) as made:
        yield made


def begin(platform: Workers, generation: int = 1, **fields: Any) -> str:
    """A job that is wanted, and its first driver."""
    job = add_job(platform.catalog, wanted="running", **fields)
    assert launch.launch(platform.settings, platform.catalog, job, generation, platform.settings.machine)
    return job


def wait_gone(platform: Workers, job: str) -> None:
    assert comes_true(lambda: processes.members(platform.settings.data, job) == [], 30), platform.tails(job)


@pytest.mark.soak
def test_a_job_of_streams_that_end_is_exact_and_stopped_then(platform: Workers) -> None:
    given = streams(20)
    job = begin(platform, streams=given, spec=replace(SPEC, run={"slots": 2, "until_end": True}))
    platform.wait_observed(job, "stopped", within_s=START_S_MAX)
    wait_gone(platform, job)
    seen, lease = job_of(platform.catalog, job), lease_of(platform.catalog, job)
    assert (seen.wanted, seen.reason) == ("stopped", "reached the end")
    assert lease is not None and lease.ended
    assert events_of(platform.catalog, job) == ["job.starting", "job.running", "job.first_batch", "job.stopped"]
    want = expected(given)
    assert want.total() > 1000
    assert results(platform.settings, seen) == want
    reports = [report.body for report in reports_of(platform.catalog, job)]
    assert sum(report["results"] for report in reports) == want.total() == reports[-1]["totals"]["results"]
    assert sum(report["tuples"]["bid"] for report in reports) == given["bid"]["rows"]
    assert {unit["label"] for unit in reports[-1]["units"]} and len(reports[-1]["units"]) == 4
    assert all(report["seconds"] > 0 for report in reports)
    assert reports[-1]["bounded"] == ["auction", "bid"]


def test_a_job_that_is_wrong_fails_with_the_place_of_the_mistake(platform: Workers) -> None:
    job = begin(platform, spec=replace(SPEC, query=SPEC.query.replace("bid.price", "bid.prize")))
    platform.wait_observed(job, "failed", within_s=START_S_MAX)
    wait_gone(platform, job)
    seen = job_of(platform.catalog, job)
    assert seen.reason is not None and seen.reason.startswith("query, line 1") and "prize" in seen.reason
    assert seen.failures == 1


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_live_job_stops_and_goes_on_exactly_with_a_query_more_and_one_less(platform: Workers) -> None:
    """By what the API writes: a new version of the job, which the next driver runs."""
    given = streams(60)
    cheap = SPEC.query.replace(" WITHIN", " AND bid.price < 1000000 WITHIN")
    job = begin(platform, streams=given)
    platform.wait_observed(job, "running", within_s=START_S_MAX)
    assert comes_true(lambda: results(platform.settings, job_of(platform.catalog, job)).total() > 0, 60)

    def next_version(queries: dict[str, Any], generation: int) -> None:
        (driver,) = platform.drivers()
        if generation == 2:
            os.kill(driver, signal.SIGTERM)
        else:
            ask_to_stop(generation - 1)
        platform.wait_observed(job, "stopped", within_s=60)
        wait_gone(platform, job)
        change(platform.catalog, job, spec=replace(SPEC, queries=queries), version=generation)
        assert launch.launch(platform.settings, platform.catalog, job, generation, platform.settings.machine)
        platform.wait_observed(job, "running", within_s=START_S_MAX)

    def ask_to_stop(generation: int) -> None:
        with platform.catalog.begin() as session:
            assert leases.ask_to_stop(session, job, generation)

    def rows(query: str = "") -> Counter[tuple[int, int, int]]:
        return results(platform.settings, job_of(platform.catalog, job), query)

    before = rows()
    next_version({"cheap": {"query": cheap, "stopped": False}}, 2)
    assert comes_true(lambda: rows("cheap").total() > 0, 90), platform.tails(job)
    next_version({"cheap": {"query": cheap, "stopped": True}}, 3)
    # A batch that was begun is done first, and what the query still waits with is committed.
    checkpoint = platform.settings.job_folder(job) / "checkpoint-0"
    assert comes_true(lambda: [query.name for query in recorded(checkpoint).ended] == ["cheap"], 90)  # type: ignore[union-attr]
    stopped = rows("cheap")
    want = expected(given)
    assert comes_true(lambda: rows() == want, START_S_MAX), platform.tails(job)
    # Cheap ones, of pairs that were found after its start and before its stop.
    found = Counter({row: count for row, count in (want - before).items() if row[1] < 1_000_000})
    assert rows("cheap") == stopped and stopped.total() > 0
    assert not stopped - found and not any(row[1] >= 1_000_000 for row in stopped)
    assert comes_true(lambda: any(one.generation == 3 for one in reports_of(platform.catalog, job)), START_S_MAX)
    ask_to_stop(3)
    platform.wait_observed(job, "stopped", within_s=60)
    wait_gone(platform, job)
    assert rows() == want
    reports = reports_of(platform.catalog, job)
    assert reports[-1].generation == 3
    assert any(report.body["batch_ms"]["max"] for report in reports), reports[-1].body


def test_a_driver_that_lost_its_lease_ends_at_once_and_leaves_nothing(platform: Workers) -> None:
    job = begin(platform, streams=streams(100))
    platform.wait_observed(job, "running", within_s=START_S_MAX)
    with platform.catalog.begin() as session:
        from backend.catalog.models import Lease

        session.get_one(Lease, job).generation = 2
    change(platform.catalog, job, generation=2)
    wait_gone(platform, job)
    log = (platform.settings.job_folder(job) / launch.LOG).read_text()
    assert "ends at once" in log
    assert job_of(platform.catalog, job).observed == "running"  # it is another's to say


@pytest.mark.parametrize("is_ready", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_a_job_in_a_driver_that_waited_is_exact_and_ends_with_it(is_ready: bool, platform: Workers) -> None:
    """With all ready, or while it gets ready."""
    given = streams(5)
    pool = Pool(platform.settings, {**os.environ, **platform.settings.environment()}, steady_s=lambda: 0.0)
    folder = processes.warm_folder(platform.settings.data)
    try:
        pool.look()
        (pid,) = pool.waiting
        assert comes_true(lambda: any(folder.glob(f"*{WAITS}")), START_S_MAX)
        if is_ready:
            assert comes_true(lambda: any(folder.glob("*.ready")), START_S_MAX), pool.log.read_text()
        job = begin(platform, streams=given, spec=replace(SPEC, run={"until_end": True}))
        assert lease_of(platform.catalog, job).pid == pid  # type: ignore[union-attr]
        platform.wait_observed(job, "stopped", within_s=START_S_MAX)
        assert job_of(platform.catalog, job).reason == "reached the end"
        assert comes_true(lambda: processes.started(pid) is None, 30), platform.tails(job)
        assert results(platform.settings, job_of(platform.catalog, job)) == expected(given)
        assert (platform.settings.job_folder(job) / "checkpoint-0" / "spark.log").exists()
        with platform.catalog.read() as session:
            event = session.query(Event).where(Event.job_id == job, Event.kind == FIRST_BATCH).one()
        assert event.data["warm"] is True
        # A process whose threads are still ending looks ended, and its parent cannot reap it yet.
        assert comes_true(lambda: (pool.look(), not any(folder.glob("*.job")))[1], 30)
    finally:
        pool.end()


@pytest.mark.soak
def test_a_job_of_three_streams_is_exact_and_reports_each_stage(platform: Workers) -> None:
    given = streams(10)
    people = {**given["auction"], "kind": "nexmark.person", "rows": given["auction"]["rows"] // 3}
    query = (
        "SELECT ONLINE auction.id AS auction, bid.price AS price, bid.bidder AS bidder FROM auction "
        f"JOIN bid ON auction.id = bid.auction JOIN person ON bid.bidder = person.id WITHIN {WINDOW_S} SECONDS"
    )
    spec = replace(SPEC, query=query, run={"slots": 2, "until_end": True})
    job = begin(platform, streams={**given, "person": people}, spec=spec)
    platform.wait_observed(job, "stopped", within_s=START_S_MAX)
    wait_gone(platform, job)
    seen = job_of(platform.catalog, job)
    assert seen.reason == "reached the end"
    want = expected_of_three({**given, "person": people})
    assert want.total() > 100
    assert results(platform.settings, seen) == want
    reports = [report.body for report in reports_of(platform.catalog, job)]
    assert sum(report["results"] for report in reports) == want.total()
    whole = merged(reports)
    first, second = whole["stages"]
    assert first["inputs"] == [{"stream": "auction"}, {"stream": "bid"}]
    assert second["inputs"] == [{"stage": 1}, {"stream": "person"}]
    assert (first["results"], second["results"]) == (expected(given).total(), want.total())
    assert sorted(unit["stage"] for unit in whole["units"]) == [1] * 4 + [2] * 4
    assert whole["tuples"]["person"] == people["rows"]


@pytest.mark.soak
def test_a_job_that_counts_one_stream_by_windows_is_exact(platform: Workers) -> None:
    given = {"bid": streams(20)["bid"]}
    query = "SELECT ONLINE auction, COUNT(*) AS n FROM bid GROUP BY auction, TUMBLE(5 SECONDS)"
    spec = replace(SPEC, query=query, operator={"name": "auto"}, run={"slots": 2, "until_end": True})
    job = begin(platform, streams=given, spec=spec)
    platform.wait_observed(job, "stopped", within_s=START_S_MAX)
    wait_gone(platform, job)
    seen = job_of(platform.catalog, job)
    assert seen.reason == "reached the end"
    found = results(platform.settings, seen)
    assert sum(row[1] * times for row, times in found.items()) == given["bid"]["rows"]
    whole = merged([report.body for report in reports_of(platform.catalog, job)])
    assert whole["results"] == found.total() > 100
    (stage,) = whole["stages"]
    assert (stage["stage"], stage["results"], stage["inputs"]) == (1, found.total(), [{"stream": "bid"}])
    assert (stage["kind"], stage["open_rows"]) == (None, 0)
    assert [unit["label"] for unit in whole["units"]] == ["G0", "G1"]
