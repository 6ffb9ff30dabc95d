"""What is written of a job follows its life cycle, and its last generation only."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from backend.catalog import lifecycle
from backend.catalog.database import Catalog
from backend.catalog.models import Event
from worker.observed import observe

from .jobs import add_job, change, events_of, job_of

T = 1_700_000_000_000_000


def see(catalog: Catalog, job: str, after: str, generation: int = 1, own_fault: bool = False, reason: str = "") -> bool:
    with catalog.begin() as session:
        return observe(session, job, generation, after, now_us=T, reason=reason or None, own_fault=own_fault)


@pytest.mark.parametrize("before", lifecycle.OBSERVED)
@pytest.mark.parametrize("after", lifecycle.OBSERVED)
def test_only_moves_of_the_life_cycle_are_written(catalog: Catalog, before: str, after: str) -> None:
    job = add_job(catalog, observed=before, observed_since_us=1, generation=1)
    assert see(catalog, job, after) == lifecycle.may_follow(before, after)
    seen = job_of(catalog, job)
    moved = before != after and after in lifecycle.MOVES[before]
    assert (seen.observed, seen.observed_since_us) == ((after, T) if moved else (before, 1))
    assert len(events_of(catalog, job)) == moved


def test_an_older_generation_changes_nothing(catalog: Catalog) -> None:
    job = add_job(catalog, observed="running", generation=2)
    assert not see(catalog, job, "failed", generation=1)
    assert job_of(catalog, job).observed == "running"
    assert not see(catalog, "job_nothing", "failed")


def test_a_failure_is_counted_with_its_reason_until_the_job_is_given_up(catalog: Catalog) -> None:
    job = add_job(catalog, observed="stopped", generation=1)
    for count in range(1, lifecycle.GIVE_UP_FAILURES + 1):
        assert see(catalog, job, "starting")
        assert see(catalog, job, "failed", own_fault=True, reason="query: there is no column x")
        seen = job_of(catalog, job)
        assert seen.failures == count
        assert seen.reason is not None and seen.reason.startswith("query: there is no column x")
        assert seen.is_given_up == (count == lifecycle.GIVE_UP_FAILURES)
        change(catalog, job, wanted="running")
        assert job_of(catalog, job).phase == ("failed" if seen.is_given_up else "recovering")
    change(catalog, job, failures=0, reason=None)  # somebody starts it
    assert not job_of(catalog, job).is_given_up
    assert job_of(catalog, job).phase == "recovering"  # until its next generation is on its way


def test_the_event_of_a_failure_says_that_it_failed_and_why(catalog: Catalog) -> None:
    job = add_job(catalog, observed="running", generation=1)
    see(catalog, job, "failed", reason="Java ended")
    with catalog.read() as session:
        messages = session.scalars(select(Event.message).where(Event.job_id == job)).all()
    assert messages == ["generation 1 failed: Java ended"]


def test_a_failure_that_is_not_the_jobs_fault_is_never_given_up(catalog: Catalog) -> None:
    job = add_job(catalog, observed="starting", generation=1, failures=50)
    see(catalog, job, "failed", reason="Java ended")
    assert not job_of(catalog, job).is_given_up


def test_a_start_that_takes_long_tells_how_far_it_is_without_an_event(catalog: Catalog) -> None:
    job = add_job(catalog, observed="stopped", generation=1)
    assert see(catalog, job, "starting")
    for reason in ("1 of 4 units", "2 of 4 units"):
        assert see(catalog, job, "starting", reason=reason)
        assert job_of(catalog, job).reason == reason
    assert see(catalog, job, "starting") and job_of(catalog, job).reason == "2 of 4 units"
    assert len(events_of(catalog, job)) == 1
    assert see(catalog, job, "running") and job_of(catalog, job).reason is None
    # It runs: what a thread of its start says late does not come back.
    assert not see(catalog, job, "starting", reason="3 of 4 units")
    assert job_of(catalog, job).reason is None


def test_running_forgets_why_it_was_not(catalog: Catalog) -> None:
    job = add_job(catalog, observed="starting", generation=1, reason="Java ended", failures=2)
    see(catalog, job, "running")
    seen = job_of(catalog, job)
    assert (seen.reason, seen.failures) == (None, 2)


def test_a_job_that_runs_tells_that_its_executors_are_gone_until_there_are_some_again(catalog: Catalog) -> None:
    job = add_job(catalog, observed="starting", generation=1)
    told = ("tasks run on yarn", "no executor of yarn is left, and batches wait for one")
    for reason in (*told, "there are executors of yarn again"):
        assert see(catalog, job, "running", reason=reason)
        assert job_of(catalog, job).reason == reason
        assert see(catalog, job, "running") and job_of(catalog, job).reason == reason
    assert len(events_of(catalog, job)) == 1
    assert see(catalog, job, "stopping") and job_of(catalog, job).reason is None
    assert not see(catalog, job, "running", reason=told[1]) and job_of(catalog, job).reason is None
