"""Drivers that wait for jobs: each gets one, fits it, and is nobody's loss when it dies."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import psutil
import pytest

from backend.catalog.database import Catalog
from backend.catalog.jobspec import JobSpec
from backend.settings import Settings
from streamjoin.spark.memory import JOB_MIB
from tests.servers.process import comes_true
from worker import launch, leases, pool, processes, waiting
from worker.platform import Platform
from worker.pool import Pool
from worker.processes import DRIVER_COMMAND
from worker.ready import Warm

from .jobs import SPEC, add_job, job_of, lease_of

START_S = 30.0
WARM = [sys.executable, "-m", "tests.worker.warm_stand_in"]
FITS = replace(SPEC, run={})


class Waiting:
    """A pool that is looked at by the test alone, and clocks and memory that it sets."""

    def __init__(self, settings: Settings, **variables: str) -> None:
        self.settings = settings
        self.ready = "WARM_STAND_IN" not in variables
        self.free_mib = 1e6
        self.now_s = 0.0
        self.idle_share = 1.0
        self.pool = Pool(
            settings, {**os.environ, **settings.environment(), **variables}, WARM,
            lambda: self.free_mib, lambda: self.idle_share, lambda: self.now_s,
        )  # fmt: skip

    def one(self) -> int:
        """Wait until one waits; its process id."""
        assert comes_true(lambda: bool(self.sockets()), START_S), self.pool.log.read_text()
        (pid,) = self.pool.waiting
        if self.ready:
            folder = processes.warm_folder(self.settings.data)
            assert comes_true(lambda: any(folder.glob("*.ready")), START_S), self.pool.log.read_text()
        return pid

    def look_after(self, seconds: float) -> None:
        self.now_s += seconds
        for driver in self.pool._drivers:
            # One whose first thread has ended looks dead, and can be waited for when the others have, too.
            if is_gone(driver.process.pid)():
                driver.process.wait(START_S)
        self.pool.look()

    def sockets(self) -> list[Path]:
        return list(processes.warm_folder(self.settings.data).glob(f"*{waiting.WAITS}"))


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Drivers that are started with a job are stand-ins, too."""
    monkeypatch.setenv(DRIVER_COMMAND, f"{sys.executable} -m tests.worker.stand_in")
    return settings.model_copy(update={"lease_s": 20.0})


@contextmanager
def warm(settings: Settings, **variables: str) -> Iterator[Waiting]:
    """One that waits, or will."""
    made = Waiting(settings, **variables)
    try:
        made.pool.look()
        yield made
    finally:
        made.pool.end()
        processes.kill_all(partial(processes.members, settings.data))


def begin(settings: Settings, catalog: Catalog, spec: JobSpec = FITS) -> str:
    """A job, and its first driver; its id."""
    job = add_job(catalog, wanted="running", spec=spec)
    assert launch.launch(settings, catalog, job, 1, settings.machine)
    assert comes_true(lambda: job_of(catalog, job).observed == "running", START_S), log_of(settings, job)
    return job


def log_of(settings: Settings, job: str) -> str:
    return (settings.job_folder(job) / launch.LOG).read_text()


def pid_of(catalog: Catalog, job: str) -> int | None:
    lease = lease_of(catalog, job)
    return None if lease is None else lease.pid


def is_gone(pid: int) -> Callable[[], bool]:
    return lambda: processes.started(pid) is None


def test_a_job_gets_the_driver_that_waits_and_the_next_job_another_one(settings: Settings, catalog: Catalog) -> None:
    with warm(settings) as waits:
        pid = waits.one()
        assert processes.members(settings.data, "any") == processes.leaders(settings.data) == []
        first = begin(settings, catalog)
        assert pid_of(catalog, first) == pid and processes.leaders(settings.data) == [pid]
        assert len(processes.members(settings.data, first)) == 3  # it, what it started before, and what since
        second = begin(settings, catalog)
        assert pid_of(catalog, second) != pid
        waits.look_after(0)
        assert waits.pool.waiting == [] and not waits.sockets()
        waits.look_after(pool.REFILL_S)
        again = waits.one()
        assert again != pid
        assert pid_of(catalog, begin(settings, catalog)) == again
        assert (pid_of(catalog, first), job_of(catalog, first).observed) == (pid, "running")


def test_a_driver_that_waited_stops_and_is_killed_as_any_other(settings: Settings, catalog: Catalog) -> None:
    with warm(settings) as waits:
        pid = waits.one()
        job = begin(settings, catalog)
        assert launch.stop(settings, catalog, job, 1, settings.machine, force=False) is False
        assert comes_true(lambda: job_of(catalog, job).observed == "stopped", START_S)
        assert comes_true(is_gone(pid), START_S)
        waits.look_after(0)  # what it had started goes, too
        assert processes.members(settings.data) == []
        waits.look_after(pool.REFILL_S)
        waits.one()
        job = begin(settings, catalog)
        assert processes.members(settings.data, job, below=1) == []
        assert launch.stop(settings, catalog, job, 1, settings.machine, force=True)
        assert processes.members(settings.data, job) == []
        assert job_of(catalog, job).observed == "failed"


def test_its_log_is_the_jobs(settings: Settings, catalog: Catalog) -> None:
    with warm(settings) as waits:
        pid = waits.one()
        job = begin(settings, catalog)
        with catalog.begin() as session:
            leases.end(session, job, 1)
        assert comes_true(is_gone(pid), START_S)
        assert "ends at once: the lease of generation 1" in log_of(settings, job)


@pytest.mark.parametrize("run", [{"slots": 3}, {"driver_memory": 600}])
def test_a_job_that_it_does_not_fit_starts_without_it(
    settings: Settings, catalog: Catalog, run: dict[str, Any]
) -> None:
    with warm(settings) as waits:
        pid = waits.one()
        job = begin(settings, catalog, replace(SPEC, run=run))
        assert pid_of(catalog, job) != pid
        assert waits.one() == pid


def test_jars_are_part_of_what_it_fits(settings: Settings) -> None:
    def key(jars: str | None) -> str:
        from backend.jobs.runs import run_of

        return waiting.key_of(run_of(settings.model_copy(update={"spark_jars": jars}), {}))

    assert key("a.jar") != key("b.jar") != key(None) == key(None)
    # It looks itself, too: the job may have been changed since it was given away.
    mine = Warm(settings, "token", lambda: None)
    assert mine.fits(settings, {}) and mine.fits(settings, {"until_end": True})
    assert not mine.fits(settings, {"slots": 3})
    assert not mine.fits(settings.model_copy(update={"spark_master": "spark://there"}), {})


def test_one_that_dies_while_it_waits_is_replaced(settings: Settings, catalog: Catalog) -> None:
    with warm(settings) as waits:
        pid = waits.one()
        os.kill(pid, signal.SIGKILL)
        assert comes_true(is_gone(pid), START_S)
        job = begin(settings, catalog)  # it is still there by its name
        assert pid_of(catalog, job) not in (None, pid)
        waits.look_after(0)
        assert len(processes.members(settings.data)) == 2  # the job's; nothing is left of what the dead one started
        waits.look_after(1)
        assert waits.one() != pid


def test_of_two_jobs_at_once_one_gets_it(settings: Settings, catalog: Catalog) -> None:
    with warm(settings) as waits:
        pid = waits.one()
        jobs: list[str] = []
        threads = [threading.Thread(target=lambda: jobs.append(begin(settings, catalog))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pids = [pid_of(catalog, job) for job in jobs]
        assert pids.count(pid) == 1 and len(set(pids)) == 4


def test_a_job_whose_driver_hangs_when_it_is_told_starts_once_without_it(
    settings: Settings, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "ACK_S", 0.5)
    with warm(settings) as waits:
        pid = waits.one()
        os.kill(pid, signal.SIGSTOP)
        job = begin(settings, catalog)
        assert comes_true(is_gone(pid), START_S)
        assert pid_of(catalog, job) not in (None, pid)
        assert len(processes.members(settings.data, job)) == len(processes.members(settings.data)) == 2


def test_a_driver_whose_taker_dies_before_it_tells_ends(settings: Settings) -> None:
    import socket

    with warm(settings) as waits:
        pid = waits.one()
        (place,) = waits.sockets()
        with socket.socket(socket.AF_UNIX) as channel, waiting.short_path(place) as path:
            channel.connect(path)
        assert comes_true(is_gone(pid), START_S)
        assert processes.members(settings.data) == []


def test_one_that_is_still_getting_ready_takes_a_job(settings: Settings, catalog: Catalog) -> None:
    with warm(settings, WARM_STAND_IN="slow") as waits:
        pid = waits.one()
        assert pid_of(catalog, begin(settings, catalog)) == pid
        waits.look_after(0)
        waits.look_after(pool.REFILL_S)  # it takes longer to start than with all ready
        assert waits.pool.waiting == []
        waits.look_after(pool.REFILL_S_MAX)
        assert waits.pool.waiting not in ([], [pid])


def test_one_that_does_not_fit_after_all_goes_on_as_another_program(settings: Settings, catalog: Catalog) -> None:
    with warm(settings, WARM_STAND_IN="unfit") as waits:
        pid = waits.one()
        job = begin(settings, catalog)
        assert pid_of(catalog, job) == pid and job_of(catalog, job).generation == 1
        command = psutil.Process(pid).cmdline()
        assert command[1:] == ["-m", "tests.worker.stand_in", job, "1"]
        # What it had ready is gone.
        assert len(processes.members(settings.data, job)) == len(processes.members(settings.data)) == 2
        assert Path(f"/proc/{pid}/oom_score_adj").read_text() == Path("/proc/self/oom_score_adj").read_text()
        waits.look_after(0)
        waits.look_after(pool.REFILL_S_MAX)
        assert waits.one() != pid
        assert job_of(catalog, job).observed == "running"


def test_one_that_cannot_get_ready_is_tried_again_ever_more_seldom(settings: Settings) -> None:
    with warm(settings, WARM_STAND_IN="broken") as waits:
        for pause_s in (1, 2, 4):
            (pid,) = waits.pool.waiting
            assert comes_true(is_gone(pid), START_S)
            waits.look_after(0)
            assert waits.pool.waiting == []
            waits.look_after(pause_s - 0.1)
            assert waits.pool.waiting == []
            waits.look_after(0.1)
        assert "there is no Java" in waits.pool.log.read_text()


def test_where_no_process_can_be_started_the_platform_goes_on(settings: Settings, tmp_path: Path) -> None:
    with warm(settings) as waits:
        waits.pool.end()
        waits.pool.command = [str(tmp_path / "missing")]
        waits.look_after(0)
        assert waits.pool.waiting == []
        assert "a driver that waits cannot be started: " in waits.pool.log.read_text()
        waits.pool.command = WARM
        waits.look_after(0.9)
        assert waits.pool.waiting == []
        waits.look_after(0.1)
        waits.one()


def test_one_that_has_just_started_and_is_found_by_nothing_yet_is_ended(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warm(settings) as waits:
        (pid,) = waits.pool.waiting
        with monkeypatch.context() as unseen:
            unseen.setattr(processes, "of_warm", lambda *_: [])
            waits.pool.end()
        assert waits.pool.waiting == [] and processes.started(pid) is None


def test_where_memory_is_short_those_that_wait_go_and_jobs_stay(settings: Settings, catalog: Catalog) -> None:
    with warm(settings) as waits:
        waits.one()
        job = begin(settings, catalog)
        waits.look_after(0)
        waits.look_after(pool.REFILL_S)
        pid = waits.one()
        waits.free_mib = settings.driver_memory_mib + JOB_MIB - 1
        waits.look_after(1)
        assert waits.pool.waiting == [] and not waits.sockets()
        assert processes.started(pid) is None
        assert job_of(catalog, job).observed == "running" and len(processes.members(settings.data, job)) == 3
        waits.look_after(pool.REFILL_S_MAX)
        assert waits.pool.waiting == []
        waits.free_mib = 1e6
        waits.look_after(1)
        waits.one()


def test_the_kernel_ends_those_that_wait_first(settings: Settings, catalog: Catalog) -> None:
    def points(job: str | None) -> set[str]:
        return {Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in processes.members(settings.data, job)}

    mine = Path("/proc/self/oom_score_adj").read_text().strip()
    with warm(settings) as waits:
        waits.one()
        assert comes_true(lambda: len(processes.members(settings.data)) == 2, START_S)
        assert points(None) == {"1000"}
        assert points(begin(settings, catalog)) == {mine}


def test_the_next_one_leaves_the_processor_to_the_job_that_has_just_started(
    settings: Settings, catalog: Catalog
) -> None:
    with warm(settings) as waits:
        waits.one()
        begin(settings, catalog)
        waits.look_after(0)
        waits.idle_share = 0.1
        waits.look_after(pool.REFILL_S)
        assert waits.pool.waiting == []
        waits.look_after(pool.REFILL_S_MAX)
        waits.one()


def test_none_waits_where_none_is_wanted_or_drivers_are_another_program(settings: Settings, tmp_path: Path) -> None:
    none = settings.model_copy(update={"warm_drivers": 0})
    with warm(none) as waits:
        assert waits.pool.waiting == []
    for chosen in (none, settings):  # whose DRIVER_COMMAND is set
        platform = Platform(chosen, tmp_path / "pipe", print)
        platform.wait_for_jobs()
        assert platform.pool is None


def test_none_waits_where_jobs_run_on_a_cluster(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(processes.DRIVER_COMMAND, raising=False)
    looks: list[Settings] = []
    monkeypatch.setattr("worker.platform.Pool", lambda chosen, environment: looks.append(chosen) or MagicMock())
    for chosen in (settings, settings.model_copy(update={"spark_master": "spark://there:7077", "spark_shared": True})):
        Platform(chosen, tmp_path / "pipe", print).wait_for_jobs()
    assert looks == [settings]


def test_all_that_wait_end_with_the_platform_however_it_ends(settings: Settings, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    two = settings.model_copy(update={"warm_drivers": 2})
    with warm(two, **{processes.UP_PIPE: str(pipe)}) as waits:
        waits.look_after(0)
        assert comes_true(lambda: len(waits.sockets()) == 2 and len(processes.members(settings.data)) == 4, START_S)
        os.close(held)
        assert comes_true(lambda: processes.members(settings.data) == [], START_S)
    with warm(two) as waits:
        assert comes_true(lambda: len(waits.sockets()) == 1, START_S)
        waits.pool.end()
        assert processes.members(settings.data) == []
        assert list(processes.warm_folder(settings.data).iterdir()) == []


def test_nothing_is_left_of_drivers_whose_jobs_ended_with_the_platform(settings: Settings, catalog: Catalog) -> None:
    with warm(settings) as waits:
        waits.one()
        begin(settings, catalog)
        waits.look_after(0)
        waits.pool.end()
        assert len(processes.members(settings.data)) == 3
        processes.kill_all(partial(processes.members, settings.data))
        waits.pool.close()
        assert list(processes.warm_folder(settings.data).iterdir()) == []


def test_what_a_killed_platform_left_is_removed_but_no_job(settings: Settings, catalog: Catalog) -> None:
    two = settings.model_copy(update={"warm_drivers": 2})
    with warm(two) as waits:
        waits.look_after(0)
        assert comes_true(lambda: len(waits.sockets()) == 2, START_S)
        job = begin(settings, catalog)
        pid = pid_of(catalog, job)
        Pool(two.model_copy(update={"warm_drivers": 0}), {})
        assert not waits.sockets()
        assert {pid} < set(processes.members(settings.data)) == set(processes.members(settings.data, job))
        assert psutil.Process(pid).is_running()
