"""Launching and ending drivers through a real broker and real workers, while each of them is killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from backend.catalog.database import Catalog
from backend.catalog.events import record
from backend.settings import Settings
from tests.servers.maven import ServerUnavailable
from tests.servers.process import comes_true
from tests.servers.redis import RedisServer
from worker import processes
from worker.app import VISIBLE_S, broker_url, make_app
from worker.queues import queue_of
from worker.reconcile import RESEND_S
from worker.tasks import LAUNCH, STOP

from .jobs import add_job, events_of, job_of, lease_of, want
from .platform import Workers, workers

pytestmark = [pytest.mark.services, pytest.mark.slow]
HOST_QUEUE = queue_of(Settings().machine)


@pytest.fixture(scope="module")
def broker() -> Iterator[RedisServer]:
    """A Redis, for all tests here."""
    try:
        with RedisServer() as started:
            yield started
    except ServerUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def with_broker(settings: Settings, broker: RedisServer) -> Settings:
    """Settings with an empty Redis."""
    if not broker.process.is_running():
        broker.restart()
    redis.Redis.from_url(broker.url).flushall()
    return settings.model_copy(update={"redis_url": broker.url, "lease_s": 20.0})


@pytest.fixture
def platform(with_broker: Settings, catalog: Catalog) -> Iterator[Workers]:
    """Nothing runs yet."""
    with workers(with_broker, catalog) as made:
        yield made


def generations(platform: Workers, job: str) -> list[str]:
    """The generations of a job whose drivers run, one entry a process."""
    mine = set(processes.members(platform.settings.data, job))
    found = []
    for pid in mine.intersection(platform.drivers()):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        mark = next(value for value in variables if value.startswith(f"{processes.MARK}=".encode()))
        found.append(mark.decode().rpartition("/")[2])
    return found


def test_a_launch_that_is_delivered_five_times_starts_one_driver(platform: Workers) -> None:
    job = add_job(platform.catalog, wanted="running")
    worker = platform.worker()
    for _ in range(5):
        platform.send(LAUNCH, job, 1)
    platform.wait_observed(job, "running")
    assert comes_true(lambda: worker.output().count("cannot follow 1") == 4, 10), worker.output()
    assert generations(platform, job) == ["1"]
    lease = lease_of(platform.catalog, job)
    assert lease is not None and [lease.pid] == platform.drivers()
    assert events_of(platform.catalog, job) == ["job.starting", "job.running"]


def test_a_driver_is_asked_to_stop_and_killed_with_its_children(platform: Workers) -> None:
    jobs = [add_job(platform.catalog, wanted="running") for _ in range(2)]
    platform.worker()
    for job in jobs:
        platform.send(LAUNCH, job, 1)
    for job in jobs:
        platform.wait_observed(job, "running")
    platform.send(STOP, jobs[0], 1, False, queue=HOST_QUEUE)
    platform.wait_observed(jobs[0], "stopped")
    platform.send(STOP, jobs[1], 2, True, queue=HOST_QUEUE)  # another generation
    platform.send(STOP, jobs[1], 1, True, queue=HOST_QUEUE)
    platform.wait_observed(jobs[1], "failed")
    platform.send(STOP, jobs[1], 1, True, queue=HOST_QUEUE)
    assert comes_true(lambda: processes.members(platform.settings.data) == [], 30)


def test_drivers_outlive_the_worker_that_started_them(platform: Workers) -> None:
    job = add_job(platform.catalog, wanted="running")
    worker = platform.worker()
    platform.reconciler()
    platform.wait_observed(job, "running")
    (driver,) = platform.drivers()
    worker.kill()
    lease = lease_of(platform.catalog, job)
    assert lease is not None
    seen_us = lease.expires_at_us

    def renewed() -> bool:
        lease = lease_of(platform.catalog, job)
        return lease is not None and lease.expires_at_us > seen_us + 2_000_000

    assert comes_true(renewed, 30)
    assert platform.drivers() == [driver]
    want(platform.catalog, job, "stopped")  # asked through the lease: it needs no worker
    platform.wait_observed(job, "stopped")


@pytest.mark.soak
@pytest.mark.parametrize("by", ["the broker", "the reconciler"])
def test_a_task_that_a_killed_worker_held_is_sent_again(platform: Workers, by: str) -> None:
    job = add_job(platform.catalog, wanted="running")
    worker = platform.worker()
    with sqlite3.connect(platform.settings.data / "catalog.db", isolation_level=None) as lock:
        lock.execute("BEGIN IMMEDIATE")  # the task waits for it
        if by == "the broker":
            platform.send(LAUNCH, job, 1)
        else:
            platform.reconciler()
        assert comes_true(lambda: "received" in worker.output(), 10)
        time.sleep(0.5)  # it takes the task up
        worker.kill()
        lock.execute("ROLLBACK")
    lock.close()
    assert job_of(platform.catalog, job).generation == 0
    platform.worker()
    platform.wait_observed(job, "running", within_s=2 * VISIBLE_S)
    assert generations(platform, job) == ["1"]


def test_two_reconcilers_keep_one_driver_a_job_whoever_is_killed(platform: Workers) -> None:
    jobs = [add_job(platform.catalog, wanted="running") for _ in range(3)]
    for _ in range(2):
        platform.worker()
        platform.reconciler()
    for job in jobs:
        platform.wait_observed(job, "running")
    assert [generations(platform, job) for job in jobs] == [["1"]] * 3
    platform.started[1].kill()  # a reconciler
    for driver in platform.drivers():
        os.kill(driver, signal.SIGKILL)
    for job in jobs:
        platform.wait_observed(job, "running", generation=2)
    assert [generations(platform, job) for job in jobs] == [["2"]] * 3
    for job in jobs:
        want(platform.catalog, job, "deleted")

    def all_gone() -> bool:
        from sqlalchemy import func, select

        from backend.catalog.models import Job

        with platform.catalog.read() as session:
            return session.scalar(select(func.count()).select_from(Job)) == 0

    assert comes_true(all_gone, 20), platform.tails(jobs[0])
    assert platform.drivers() == []


def test_jobs_run_on_while_the_broker_is_away_and_start_when_it_is_back(platform: Workers, broker: RedisServer) -> None:
    first, second = (add_job(platform.catalog, wanted=wanted) for wanted in ("running", "stopped"))
    worker, reconciler = platform.worker(), platform.reconciler()
    platform.wait_observed(first, "running")
    (driver,) = platform.drivers()
    broker.kill()
    want(platform.catalog, second, "running")
    assert comes_true(lambda: "Redis" in (job_of(platform.catalog, second).reason or ""), 20), reconciler.output()
    assert platform.drivers() == [driver]
    assert job_of(platform.catalog, first).observed == "running"
    broker.restart()
    platform.wait_observed(second, "running", within_s=60)
    assert worker.is_running()
    assert driver in platform.drivers()
    lease = lease_of(platform.catalog, first)
    assert lease is not None and lease.generation == 1


def test_messages_that_the_broker_forgot_are_sent_again(platform: Workers, broker: RedisServer) -> None:
    job = add_job(platform.catalog, wanted="running")
    reconciler = platform.reconciler()
    assert comes_true(lambda: "sent streamjoin.launch" in reconciler.output(), 10)
    redis.Redis.from_url(broker.url).flushall()
    platform.worker()
    platform.wait_observed(job, "running", within_s=3 * RESEND_S)


@pytest.mark.soak
def test_a_driver_that_was_frozen_past_its_lease_is_killed_and_replaced(platform: Workers) -> None:
    job = add_job(platform.catalog, wanted="running")
    platform.worker()
    platform.reconciler()
    platform.wait_observed(job, "running")
    (driver,) = platform.drivers()
    os.kill(driver, signal.SIGSTOP)
    platform.wait_observed(job, "running", generation=2, within_s=120)
    assert processes.started(driver) is None
    assert generations(platform, job) == ["2"]


def test_a_worker_that_starts_sweeps_what_a_removed_job_left(platform: Workers) -> None:
    folder = platform.settings.job_folder("job_01jd3xv4e2q8r5t9w1y7z0abcd")
    folder.mkdir(parents=True)
    with platform.catalog.begin() as session:
        record(session, "job.removed", "", data={"job_id": folder.name})
    platform.worker()
    assert comes_true(lambda: not folder.exists(), 30)


def test_a_message_that_is_no_json_is_refused_and_the_worker_goes_on(platform: Workers) -> None:
    from celery import Celery

    job = add_job(platform.catalog, wanted="running")
    worker = platform.worker()
    other = Celery(broker=broker_url(platform.settings.redis_url), set_as_current=False)
    other.conf.update(task_serializer="pickle", accept_content=["pickle"], task_default_queue="streamjoin")
    with other.connection_for_write() as connection:
        other.send_task(LAUNCH, [job, 1], connection=connection)
    other.close()
    assert comes_true(lambda: "ContentDisallowed" in worker.output() or "Refusing" in worker.output(), 10)
    platform.send("streamjoin.nothing")
    platform.send(LAUNCH, job)
    platform.send(LAUNCH, job, 1)
    platform.wait_observed(job, "running")


@pytest.mark.parametrize(("how", "failures"), [("dies", 2), pytest.param("fails", 2, marks=pytest.mark.soak)])
def test_a_driver_that_keeps_failing_is_started_again_ever_more_seldom(
    with_broker: Settings, catalog: Catalog, how: str, failures: int
) -> None:
    job = add_job(catalog, wanted="running")
    with workers(with_broker, catalog, how) as platform:
        platform.worker()
        platform.reconciler()
        assert comes_true(lambda: job_of(catalog, job).failures >= failures, 90), platform.tails(job)
        assert events_of(catalog, job)[:3] == ["job.starting", "job.failed", "job.restarted"]


@pytest.mark.soak
def test_a_driver_that_does_not_listen_is_killed_in_the_end(with_broker: Settings, catalog: Catalog) -> None:
    job = add_job(catalog, wanted="running")
    with workers(with_broker, catalog, "deaf") as platform:
        platform.worker()
        reconciler = platform.reconciler()
        platform.wait_observed(job, "running")
        want(catalog, job, "stopped")
        platform.wait_observed(job, "stopped", within_s=60)
        assert comes_true(lambda: f"sent {STOP} {[job, 1, True]} to {HOST_QUEUE}" in reconciler.output(), 10)
        assert processes.members(with_broker.data) == []


def test_an_app_accepts_nothing_but_json_and_keeps_no_results(settings: Settings) -> None:
    conf = make_app(settings).conf
    assert conf.accept_content == ["json"]
    assert (conf.task_serializer, conf.result_backend, conf.task_ignore_result) == ("json", None, True)
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost) == (True, True)
