"""Of any number that want to run a job, one does, and none for longer than it renews."""

from __future__ import annotations

import threading

import pytest

from backend.catalog.database import Catalog
from worker import leases
from worker.leases import LeaseLostError, LeaseRefusedError

from .jobs import add_job, change, events_of, job_of, lease_of

S = 1_000_000
T0 = 1_700_000_000 * S
LEASE_S = 20.0


def take(catalog: Catalog, job_id: str, generation: int = 1, at_us: int = T0, host: str = "here") -> None:
    with catalog.begin() as session:
        leases.take(session, job_id, generation, host, now_us=at_us, lease_s=LEASE_S)


def renew(catalog: Catalog, job_id: str, generation: int, at_us: int) -> bool:
    with catalog.begin() as session:
        return leases.renew(session, job_id, generation, now_us=at_us, lease_s=LEASE_S)


@pytest.fixture
def job(catalog: Catalog) -> str:
    return add_job(catalog, wanted="running", version=3)


def test_a_lease_is_taken_with_a_generation_and_the_job_is_starting(catalog: Catalog, job: str) -> None:
    take(catalog, job)
    lease, seen = lease_of(catalog, job), job_of(catalog, job)
    assert lease is not None
    assert (lease.generation, lease.host, lease.pid, lease.job_version) == (1, "here", None, 3)
    assert (lease.taken_at_us, lease.expires_at_us) == (T0, T0 + 20 * S)
    assert (seen.generation, seen.observed, seen.observed_since_us) == (1, "starting", T0)
    assert events_of(catalog, job) == ["job.starting"]


@pytest.mark.parametrize("generation", [1, 3, 0])
def test_a_generation_is_launched_once_and_in_order(catalog: Catalog, job: str, generation: int) -> None:
    take(catalog, job)
    with catalog.begin() as session:
        leases.end(session, job, 1)
    with pytest.raises(LeaseRefusedError):
        take(catalog, job, generation)
    assert job_of(catalog, job).generation == 1


def test_no_other_generation_begins_while_a_lease_lives(catalog: Catalog, job: str) -> None:
    take(catalog, job)
    change(catalog, job, observed="failed")
    with pytest.raises(LeaseRefusedError, match="generation 1 still holds"):
        take(catalog, job, 2, T0 + 20 * S - 1)
    take(catalog, job, 2, T0 + 20 * S, "there")
    lease = lease_of(catalog, job)
    assert lease is not None and (lease.generation, lease.host) == (2, "there")


def test_a_lease_that_was_given_back_is_free_at_once(catalog: Catalog, job: str) -> None:
    take(catalog, job)
    with catalog.begin() as session:
        assert leases.end(session, job, 1)
        assert not leases.end(session, job, 1)
    change(catalog, job, observed="stopped")
    take(catalog, job, 2, T0 + 1)


@pytest.mark.parametrize("wanted", ["stopped", "deleted"])
def test_a_job_that_is_not_wanted_is_not_launched(catalog: Catalog, wanted: str) -> None:
    job = add_job(catalog, wanted=wanted)
    with pytest.raises(LeaseRefusedError, match="not wanted"):
        take(catalog, job)
    with pytest.raises(LeaseRefusedError, match="no job"):
        take(catalog, "job_nothing")
    assert lease_of(catalog, job) is None


def test_of_two_takers_at_once_one_gets_it(catalog: Catalog) -> None:
    for _ in range(20):
        job = add_job(catalog, wanted="running")
        taken, barrier = [], threading.Barrier(2)

        def compete(name: str, job: str = job, taken: list[str] = taken, at: threading.Barrier = barrier) -> None:
            at.wait()
            try:
                take(catalog, job, host=name)
            except LeaseRefusedError:
                return
            taken.append(name)

        threads = [threading.Thread(target=compete, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lease = lease_of(catalog, job)
        assert lease is not None and taken == [lease.host]
        assert job_of(catalog, job).generation == 1


def test_a_renewal_counts_from_when_it_was_made(catalog: Catalog, job: str) -> None:
    take(catalog, job)
    assert renew(catalog, job, 1, T0 + 5 * S) is False
    lease = lease_of(catalog, job)
    assert lease is not None and lease.expires_at_us == T0 + 25 * S
    assert not leases.expired(lease, T0 + 25 * S - 1)
    assert leases.expired(lease, T0 + 25 * S)


def test_a_lease_that_ran_out_can_be_renewed_while_nobody_took_it(catalog: Catalog, job: str) -> None:
    take(catalog, job)
    renew(catalog, job, 1, T0 + 3600 * S)
    change(catalog, job, observed="failed")
    take(catalog, job, 2, T0 + 3620 * S)
    with pytest.raises(LeaseLostError):
        renew(catalog, job, 1, T0 + 3621 * S)
    assert not renew(catalog, job, 2, T0 + 3621 * S)


def test_a_renewal_tells_that_the_driver_is_to_stop(catalog: Catalog, job: str) -> None:
    take(catalog, job)
    with catalog.begin() as session:
        assert leases.ask_to_stop(session, job, 1)
        assert not leases.ask_to_stop(session, job, 2)
    assert renew(catalog, job, 1, T0 + S) is True
    with catalog.begin() as session:
        leases.end(session, job, 1)
    with pytest.raises(LeaseLostError):
        renew(catalog, job, 1, T0 + 2 * S)


def test_one_process_enters_a_lease(catalog: Catalog, job: str) -> None:
    take(catalog, job)
    with catalog.begin() as session:
        leases.enter(session, job, 1, 100, "boot-7")
    with catalog.begin() as session:
        leases.enter(session, job, 1, 100, "boot-7")  # the launcher said so already
    for pid, since, generation in ((101, "boot-8", 1), (100, "boot-9", 1), (100, "boot-7", 2)):
        with pytest.raises(LeaseLostError), catalog.begin() as session:
            leases.enter(session, job, generation, pid, since)


def test_a_driver_runs_the_version_that_is_there_when_it_enters(catalog: Catalog, job: str) -> None:
    take(catalog, job)
    change(catalog, job, version=4, restart_version=6)
    with catalog.begin() as session:
        assert leases.enter(session, job, 1, 100, "boot-7").version == 4
    lease = lease_of(catalog, job)
    assert lease is not None and lease.job_version == 6


def test_a_lease_that_was_renewed_meanwhile_is_not_freed_by_who_saw_it_expire(catalog: Catalog, job: str) -> None:
    take(catalog, job)
    renew(catalog, job, 1, T0 + 19 * S)
    with catalog.begin() as session:
        assert not leases.end(session, job, 1, expires_at_us=T0 + 20 * S)
        assert leases.end(session, job, 1, expires_at_us=T0 + 39 * S)
