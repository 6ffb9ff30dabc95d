"""A driver ends before anybody else may take its lease, whatever keeps it from renewing."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.models import Lease
from backend.settings import Settings
from tests.servers.process import comes_true
from worker import leases, processes
from worker.keeper import Keeper, end_with_platform
from worker.leases import LeaseLostError

from .jobs import add_job, change, events_of, job_of, lease_of

pytestmark = pytest.mark.slow

LEASE_S = 8.0


class Driver:
    """A keeper in this process; instead of ending it, it notes when and why it would have."""

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self.catalog = catalog
        self.job = add_job(catalog, wanted="running")
        with catalog.begin() as session:
            leases.take(session, self.job, 1, "here", now_us=now_us(), lease_s=LEASE_S, home=leases.home_of(settings))
        self.died: list[tuple[float, str]] = []
        self.stop = threading.Event()
        given = settings.model_copy(update={"lease_s": LEASE_S})
        self.keeper = Keeper(
            given, catalog, self.job, 1, self.stop, lambda why: self.died.append((time.monotonic(), why))
        )

    def lease(self) -> Lease:
        lease = lease_of(self.catalog, self.job)
        assert lease is not None
        return lease


@pytest.fixture
def driver(settings: Settings, catalog: Catalog) -> Iterator[Driver]:
    made = Driver(settings, catalog)
    yield made
    made.keeper.leave("stopped", None)


def test_it_renews_and_says_which_process_it_is(driver: Driver) -> None:
    job = driver.keeper.enter()
    assert (job.id, driver.lease().pid) == (driver.job, os.getpid())
    first_us = driver.lease().expires_at_us
    assert comes_true(lambda: driver.lease().expires_at_us > first_us + LEASE_S * 1e6, 3 * LEASE_S)
    assert driver.died == []


def test_it_passes_on_that_the_job_is_to_stop(driver: Driver) -> None:
    driver.keeper.enter()
    with driver.catalog.begin() as session:
        leases.ask_to_stop(session, driver.job, 1)
    assert driver.stop.wait(30)
    driver.keeper.leave("stopped", "reached the end", at_end=True)
    seen = job_of(driver.catalog, driver.job)
    assert (seen.observed, seen.wanted, seen.reason) == ("stopped", "stopped", "reached the end")
    assert driver.lease().ended and driver.died == []


def test_it_ends_when_the_lease_is_anothers(driver: Driver) -> None:
    driver.keeper.enter()
    with driver.catalog.begin() as session:
        leases.end(session, driver.job, 1)
    change(driver.catalog, driver.job, observed="failed")
    with driver.catalog.begin() as session:
        leases.take(
            session, driver.job, 2, "there", now_us=now_us(), lease_s=LEASE_S,
            home=leases.home_of(driver.keeper.settings),
        )  # fmt: skip
    assert comes_true(lambda: bool(driver.died), 30)
    driver.keeper.observe("running")
    driver.keeper.leave("stopped", "too late")
    assert job_of(driver.catalog, driver.job).observed == "starting"
    assert driver.lease().generation == 2 and not driver.lease().ended


def test_a_look_while_it_gives_its_lease_back_does_not_take_it_for_lost(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stopped well, and would end with an error."""
    looked = threading.Event()

    def seen(look: Callable[..., bool]) -> Callable[..., bool]:
        def looks(*given: Any, **named: Any) -> bool:
            try:
                return look(*given, **named)
            except LeaseLostError:
                looked.set()
                raise

        return looks

    begin = driver.catalog.begin

    @contextmanager
    def begin_slowly() -> Iterator[Session]:
        with begin() as session:
            yield session
        if threading.current_thread() is threading.main_thread():
            assert looked.wait(30)  # the lease is over, and it does not know yet that it was itself
            time.sleep(0.5)

    driver.keeper.enter()
    for name in ("renew", "asked_to_stop"):
        monkeypatch.setattr(leases, name, seen(getattr(leases, name)))
    with monkeypatch.context() as slowly:
        slowly.setattr(driver.catalog, "begin", begin_slowly)
        driver.keeper.leave("stopped", None)
    assert driver.lease().ended
    assert not comes_true(lambda: bool(driver.died), 0.5)


def test_a_lease_that_another_has_ends_it_also_while_it_cannot_give_it_back(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.keeper.enter()
    begin = driver.catalog.begin

    def fails() -> Any:
        raise SQLAlchemyError("it does not answer")

    with monkeypatch.context() as down:
        down.setattr(driver.catalog, "begin", fails)
        leaver = threading.Thread(target=driver.keeper.leave, args=("stopped", None))
        leaver.start()
        with begin() as session:
            leases.end(session, driver.job, 1)
        assert comes_true(lambda: bool(driver.died), 30)
        assert "is over" in driver.died[0][1] and leaver.is_alive()
    leaver.join(30)
    assert not leaver.is_alive()


@pytest.mark.parametrize("commit_s", [0.0, 2.0])
def test_it_ends_before_its_lease_does_when_the_catalog_does_not_answer(
    driver: Driver, commit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = driver.catalog.begin

    @contextmanager
    def begin_slowly() -> Iterator[Session]:
        with begin() as session:
            yield session
        time.sleep(commit_s)

    with monkeypatch.context() as slowly:
        slowly.setattr(driver.catalog, "begin", begin_slowly)
        driver.keeper.enter()
    with closing(sqlite3.connect(driver.catalog.url.database or "", isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        assert comes_true(lambda: bool(driver.died), 2 * LEASE_S)
        # Before the lock goes: whoever waits for it renews the lease then.
        ((expires_at_us,),) = lock.execute("SELECT expires_at_us FROM leases").fetchall()
        lock.execute("ROLLBACK")
    at_s, why = driver.died[0]
    assert "could not be renewed for 6.4 s" in why
    left_s = expires_at_us / 1e6 - (time.time() - (time.monotonic() - at_s))
    assert 0 < left_s < 0.3 * LEASE_S


def test_it_says_again_what_somebody_could_not_see(driver: Driver) -> None:
    driver.keeper.enter()
    driver.keeper.observe("running")
    change(driver.catalog, driver.job, observed="unknown")
    assert comes_true(lambda: job_of(driver.catalog, driver.job).observed == "running", 2 * LEASE_S)
    assert events_of(driver.catalog, driver.job) == ["job.starting", "job.running", "job.running"]


def test_a_second_process_of_a_generation_does_not_begin(driver: Driver) -> None:
    with driver.catalog.begin() as session:
        leases.enter(session, driver.job, 1, 7, "another boot")
    with pytest.raises(LeaseLostError):
        driver.keeper.enter()


def test_it_ends_with_the_process_that_holds_the_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died: list[str] = []
    end_with_platform(died.append)
    assert died == []
    pipe = tmp_path / "pipe"
    monkeypatch.setenv(processes.UP_PIPE, str(pipe))
    end_with_platform(died.append)
    assert died == ["the platform is gone"]
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    end_with_platform(died.append)
    time.sleep(0.1)
    assert len(died) == 1
    os.close(held)
    assert comes_true(lambda: len(died) == 2, 5)
    end_with_platform(died.append)  # it is gone already
    assert comes_true(lambda: len(died) == 3, 5)
