"""What a start took is told from what was written down before it, and kept as an event."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pytest
from sqlalchemy import update

import worker.steps
from backend.catalog import database
from backend.catalog.database import Catalog
from backend.catalog.events import FIRST_BATCH, record
from backend.catalog.ids import now_us
from backend.catalog.models import Event, Lease
from tests.servers.process import comes_true
from worker import leases
from worker.steps import BATCH, LAUNCH, PROCESS, SPARK, STATE, Steps

from .jobs import add_job, change, events_of

S = 1_000_000
BEGUN_US = 1_700_000_000 * S
WRITTEN_S = 0.09


def tell(catalog: Catalog, job: str, kind: str, after_s: float) -> None:
    with catalog.begin() as session:
        record(session, kind, "it happened", job_id=job)
        session.flush()
        newest = session.query(Event).order_by(Event.id.desc()).first()
        assert newest is not None
        newest.at_us = BEGUN_US + round(after_s * S)


def launched(catalog: Catalog, job: str, generation: int, after_s: float) -> Steps:
    """A generation's lease, taken then."""
    change(catalog, job, observed="stopped", generation=generation - 1, wanted="running")
    with catalog.begin() as session:
        lease = leases.take(session, job, generation, "here", now_us=BEGUN_US + round(after_s * S), lease_s=20)
        lease.ended = True
    with catalog.begin() as session:
        began = session.query(Event).where(Event.kind == "job.starting").order_by(Event.id.desc()).first()
        assert began is not None
        # The lease is taken at the time that the transaction began with.
        began.at_us = BEGUN_US + round((after_s + WRITTEN_S) * S)
    return Steps(catalog, job, generation, warm=True)


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("job.started_by_user", "start"),
        ("job.restart_asked", "restart"),
        ("job.changed", "change"),
        ("job.failed", "recovery"),
    ],
)
def test_it_counts_from_what_was_asked_for_or_from_the_failure(catalog: Catalog, kind: str, cause: str) -> None:
    job = add_job(catalog)
    tell(catalog, job, "job.started_by_user", 0)
    first = launched(catalog, job, 1, 0.25)
    assert (first.cause, first.seconds) == ("start", {LAUNCH: 0.25})
    tell(catalog, job, kind, 60)
    tell(catalog, job, "job.stopping", 60.2)
    second = launched(catalog, job, 2, 60.5)
    assert (second.cause, second.seconds) == (cause, {LAUNCH: 0.5})
    # The platform was ended and started: nobody asked.
    third = launched(catalog, job, 3, 7_000)
    assert (third.cause, third.seconds) == ("start", {LAUNCH: 0.0})


def test_the_first_batch_alone_ends_a_start_and_its_event_has_every_step(catalog: Catalog) -> None:
    job = add_job(catalog, wanted="running")
    with catalog.begin() as session:
        leases.take(session, job, 1, "here", now_us=now_us() - 2 * S, lease_s=20)
    steps = Steps(catalog, job, 1, warm=False)
    for step in (PROCESS, SPARK, STATE, BATCH, BATCH, STATE):
        steps.done(step)
    assert comes_true(lambda: FIRST_BATCH in events_of(catalog, job), 10)
    assert events_of(catalog, job) == ["job.starting", FIRST_BATCH]
    with catalog.read() as session:
        event = session.query(Event).where(Event.kind == FIRST_BATCH).one()
    assert list(event.data["steps"]) == [LAUNCH, PROCESS, SPARK, STATE, BATCH]
    assert event.data["seconds"] == pytest.approx(sum(event.data["steps"].values()), abs=0.01)
    assert event.data["steps"][PROCESS] >= 2 > event.data["steps"][BATCH]
    assert event.data | {"steps": 0, "seconds": 0} == {
        "generation": 1, "cause": "start", "warm": False, "steps": 0, "seconds": 0,
    }  # fmt: skip
    assert "first batch" in event.message and "after the start: launch 0.0 s, process 2." in event.message


def test_each_step_that_is_done_is_told_by_the_lease_while_the_job_starts(catalog: Catalog) -> None:
    job = add_job(catalog, wanted="running")

    def tells(steps: list[str]) -> bool:
        with catalog.read() as session:
            return list(session.get_one(Lease, job).steps or ()) == steps

    for generation in (1, 2):
        with catalog.begin() as session:
            leases.take(session, job, generation, "here", now_us=now_us(), lease_s=20)
        assert tells([])  # nothing of the generation before
        steps, done = Steps(catalog, job, generation, warm=False), [LAUNCH]
        assert comes_true(partial(tells, done), 10)
        for step in (PROCESS, SPARK, STATE, BATCH):
            steps.done(step)
            done.append(step)
            assert comes_true(partial(tells, done), 10), step
        with catalog.read() as session:
            event = session.query(Event).where(Event.kind == FIRST_BATCH).order_by(Event.id.desc()).first()
            assert event is not None
            assert session.get_one(Lease, job).steps == event.data["steps"]
        change(catalog, job, observed="stopped")
        with catalog.begin() as session:
            assert leases.end(session, job, generation)


@pytest.fixture
def impatient(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """The same catalog, for somebody who waits for no other writer."""
    monkeypatch.setattr(database, "BUSY_MS", 20)
    monkeypatch.setattr(worker.steps, "AGAIN_S", 0.05)
    found = Catalog(catalog.url.render_as_string(hide_password=False))
    yield found
    found.close()


@pytest.mark.parametrize(("step", "tries"), [(PROCESS, "one"), (BATCH, "many")])
def test_a_catalog_that_others_hold_keeps_the_first_batch_from_nobody(
    catalog: Catalog, impatient: Catalog, caplog: pytest.LogCaptureFixture, step: str, tries: str
) -> None:
    job = add_job(catalog, wanted="running")
    with catalog.begin() as session:
        leases.take(session, job, 1, "here", now_us=now_us(), lease_s=20)
    steps = Steps(impatient, job, 1, warm=False)

    def told() -> bool:
        with catalog.read() as session:
            return bool(session.get_one(Lease, job).steps)

    assert comes_true(told, 10)
    with caplog.at_level("INFO", logger="streamjoin.driver"):
        with catalog.begin() as session:
            session.execute(update(Lease).where(Lease.job_id == job).values(steps=None))  # nobody else writes now
            steps.done(step)
            assert comes_true(lambda: "is not written down" in caplog.text, 10)
            assert ("committed its first batch" in caplog.text) is (step == BATCH), "the log waits for no catalog"
            time.sleep(0.5)
            # The next step brings those before it; the last one has no next.
            assert (caplog.text.count("is not written down") > 1) is (tries == "many")
            assert FIRST_BATCH not in events_of(catalog, job)
        assert step != BATCH or comes_true(lambda: FIRST_BATCH in events_of(catalog, job), 10)
    assert caplog.text.count("committed its first batch") == (step == BATCH)


def test_a_driver_that_lost_its_lease_tells_nothing_of_the_start_of_another(catalog: Catalog) -> None:
    job = add_job(catalog, wanted="running")
    with catalog.begin() as session:
        leases.take(session, job, 1, "here", now_us=now_us(), lease_s=20)
    late = Steps(catalog, job, 1, warm=False)
    change(catalog, job, observed="stopped")
    with catalog.begin() as session:
        assert leases.end(session, job, 1)
        leases.take(session, job, 2, "there", now_us=now_us(), lease_s=20)
    late.done(BATCH)
    assert comes_true(lambda: FIRST_BATCH in events_of(catalog, job), 10)
    with catalog.read() as session:
        assert session.get_one(Lease, job).steps is None
