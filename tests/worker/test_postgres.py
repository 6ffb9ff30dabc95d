"""The same on PostgreSQL, where transactions really run side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from backend.catalog.database import Catalog
from backend.catalog.migrate import migrate
from backend.catalog.models import Report
from backend.settings import Settings
from tests.servers.maven import ServerUnavailable
from tests.servers.postgres import PostgresServer
from worker import leases
from worker.decide import Deed
from worker.leases import LeaseLostError, LeaseRefusedError
from worker.observed import observe
from worker.thin import thin

from .jobs import add_job, change, events_of, job_of, lease_of, reports_of
from .test_reconcile import Desk
from .test_reports import bodies

pytestmark = [pytest.mark.services, pytest.mark.slow]
S = 1_000_000
T0 = 1_700_000_000 * S


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    """In a PostgreSQL of its own."""
    try:
        with PostgresServer() as server:
            migrate(server.url)
            made = Catalog(server.url)
            yield made
            made.close()
    except ServerUnavailable as reason:
        pytest.skip(str(reason))


def test_of_many_takers_at_once_one_gets_it(catalog: Catalog) -> None:
    for _ in range(10):
        job, taken, barrier = add_job(catalog, wanted="running"), [], threading.Barrier(8)

        def compete(name: str, job: str = job, taken: list[str] = taken, at: threading.Barrier = barrier) -> None:
            at.wait()
            try:
                with catalog.begin() as session:
                    leases.take(session, job, 1, name, now_us=T0, lease_s=20)
            except LeaseRefusedError:
                return
            taken.append(name)

        threads = [threading.Thread(target=compete, args=(f"host {number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lease = lease_of(catalog, job)
        assert lease is not None and taken == [lease.host]
        assert events_of(catalog, job) == ["job.starting"]


def test_a_lease_from_its_beginning_to_its_end(catalog: Catalog) -> None:
    job = add_job(catalog, wanted="running")
    with catalog.begin() as session:
        leases.take(session, job, 1, "here", now_us=T0, lease_s=20)
    with catalog.begin() as session:
        leases.enter(session, job, 1, 7, "boot-1")
        assert leases.renew(session, job, 1, now_us=T0 + S, lease_s=20) is False
        observe(session, job, 1, "running", now_us=T0 + S)
        assert leases.ask_to_stop(session, job, 1)
    with catalog.begin() as session:
        assert leases.renew(session, job, 1, now_us=T0 + 2 * S, lease_s=20) is True
        assert leases.end(session, job, 1)
    with pytest.raises(LeaseLostError), catalog.begin() as session:
        leases.renew(session, job, 1, now_us=T0 + 3 * S, lease_s=20)


def test_two_reconcilers_at_once_do_what_one_does(catalog: Catalog, settings: Settings) -> None:
    desks = [Desk(settings, catalog), Desk(settings, catalog)]
    jobs = [add_job(catalog, wanted="running") for _ in range(6)]
    gone = [add_job(catalog, wanted="deleted") for _ in range(6)]
    for job in jobs:
        desks[0].take(job, 1, 2**22 + 1, "boot-1")
        desks[0].see(job, "running")
    threads = [threading.Thread(target=lambda desk=desk: [desk.look(0.05) for _ in range(8)]) for desk in desks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for job in jobs:
        assert (job_of(catalog, job).observed, job_of(catalog, job).failures) == ("failed", 1)
        change(catalog, job, wanted="deleted")
    found = desks[0].look(1)
    assert {found[job] for job in jobs} == {Deed.REMOVE}
    assert not set(gone) & set(found)


def test_reports_are_thinned_by_two_at_once(catalog: Catalog) -> None:
    job = add_job(catalog)
    (body,) = bodies(7, 1, catalog)
    with catalog.begin() as session:
        session.add_all(Report(job_id=job, at_us=T0 - age_s * S, generation=1, body=body) for age_s in range(601, 4000))
    threads = [threading.Thread(target=thin, args=(catalog, T0, 30, 365)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    thin(catalog, T0, 30, 365)
    found = reports_of(catalog, job)
    assert sum(report.body["batches"] for report in found) == 3399 * body["batches"]
    assert len(found) < 400
