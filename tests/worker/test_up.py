"""The whole platform by one command: parts die and come back, and nothing is left however it ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from backend.auth.first_password import FILE
from backend.catalog.database import Catalog
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from tests.modes import open_to_others
from tests.servers.process import comes_true, free_ports
from tests.spark.command import JAVA_OPTIONS
from worker import processes
from worker.processes import DRIVER_COMMAND
from worker.waiting import WAITS

from .jobs import add_job, change, events_of, expected, job_of, lease_of, reports_of, results, streams, want
from .platform import Workers

pytestmark = pytest.mark.slow
UP_S_MAX = 90.0
END_S_MAX = 80.0
RECOVERED_S_MAX = 30.0
"""From the kill of a driver until the next one runs; most of it is Spark's start."""


class Up:
    """A running `python -m worker.up`.

    Args:
        settings: whose data folder and port it gets.
        variables: more of its environment.
    """

    def __init__(self, settings: Settings, variables: dict[str, str]) -> None:
        self.data = settings.data
        self.log = settings.data.parent / f"up-{time.monotonic_ns()}.log"
        (self.port,) = free_ports(1)
        mine = {"STREAMJOIN_DATA": str(self.data), "STREAMJOIN_PORT": str(self.port), "STREAMJOIN_LEASE_S": "20"}
        rest = {name: value for name, value in os.environ.items() if not name.startswith("STREAMJOIN_")}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "worker.up"], env={**rest, **mine, "STREAMJOIN_RECONCILE_S": "0.5", **variables},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def output(self) -> str:
        return self.log.read_text()

    def wait_until_up(self, text: str = "streamjoin is up") -> None:
        """Until it says so."""
        assert comes_true(lambda: text in self.output() or self.process.poll() is not None, UP_S_MAX), self.output()
        assert text in self.output(), self.output()

    def pid_of(self, module: str) -> int:
        """The process that runs a part, such as `worker.app`; of Celery's the one that started the others."""
        return min(self.parts(module), key=lambda process: process.create_time()).pid

    def parts(self, module: str) -> list[psutil.Process]:
        """The processes that run a part, without the shells that watch over them."""
        found = []
        for process in self.left():
            with contextlib.suppress(psutil.Error):  # one may end while it is looked at
                line, program = process.cmdline(), Path(process.exe()).name
                if (module in line and line[0] != "/bin/sh") or program == module:
                    found.append(process)
        return found

    def left(self) -> list[psutil.Process]:
        """What runs with this data folder, itself included."""
        found = []
        for process in psutil.process_iter():
            try:
                # Redis writes its title over its environment, but works in its folder.
                lines = [process.environ().get("STREAMJOIN_DATA", ""), process.cwd(), *process.cmdline()]
                mine = any(str(self.data) in line for line in lines)
                if mine and process.status() != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def wait_until_answers(self) -> None:
        """Until the API does, after it was killed."""

        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/livez", timeout=2) as answer:
                    return bool(answer.status == 200)
            except OSError:
                return False

        assert comes_true(answers, 60), self.output()

    def end(self, number: int = signal.SIGINT) -> None:
        """End it, and see that nothing is left."""
        self.process.send_signal(number)
        self.process.wait(END_S_MAX)
        assert comes_true(lambda: not self.left(), 15), self.left()

    def close(self) -> None:
        """Whatever is left goes."""
        processes.kill_all(lambda: [process.pid for process in self.left()])
        self.process.wait(END_S_MAX)


@contextmanager
def running(settings: Settings, **variables: str) -> Iterator[Up]:
    """A platform that is up."""
    up = Up(settings, variables)
    try:
        up.wait_until_up()
        yield up
    finally:
        up.close()


STAND_IN = {DRIVER_COMMAND: f"{sys.executable} -m tests.worker.stand_in"}


@pytest.mark.services
def test_every_part_comes_back_and_ctrl_c_ends_all(settings: Settings, catalog: Catalog) -> None:
    job = add_job(catalog, wanted="running")
    # A lease that a machine which stands still for many seconds does not cost: then a job would rightly have failed.
    with running(settings, **STAND_IN, STREAMJOIN_LEASE_S="60") as up:
        look = Workers(settings, catalog)
        assert f"{settings.data} was open to other users" in up.output()
        assert "nobody needs to log in" in up.output()
        assert comes_true(lambda: f"streams may read files in {os.getcwd()} and " in up.output(), 10), up.output()
        assert psutil.Process(up.pid_of("redis-server")).net_connections("inet") == []
        with urllib.request.urlopen(f"http://127.0.0.1:{up.port}/readyz") as answer:
            assert answer.status == 200
        look.wait_observed(job, "running")
        (driver,) = look.drivers()

        second = Up(settings, STAND_IN)
        assert second.process.wait(UP_S_MAX) == 1
        assert f"process {up.process.pid} runs a platform" in second.output()

        before = {part: up.pid_of(part) for part in ("backend", "worker.app", "worker.reconcile", "redis-server")}
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        for part, pid in before.items():
            assert comes_true(lambda part=part, pid=pid: has_come_back(up, part, pid), 30), up.output()
        assert comes_true(lambda: up.output().count("for the 1st time") == 4, 10), up.output()
        up.wait_until_answers()
        assert look.drivers() == [driver]
        lease = lease_of(catalog, job)
        assert lease is not None and lease.generation == 1

        other = add_job(catalog, wanted="running")
        look.wait_observed(other, "running", within_s=60)
        assert open_to_others(settings.data) == []
        up.end(signal.SIGINT)
        assert "everything has ended" in up.output()
        for one in (job, other):
            seen = job_of(catalog, one)
            assert (seen.observed, seen.wanted) == ("stopped", "running"), f"{seen.reason}\n{look.tails(one)}"
        assert up.process.returncode == 0

    with running(settings, **STAND_IN) as up:  # what was wanted goes on
        look.wait_observed(job, "running", generation=2)
        up.end(signal.SIGHUP)


def has_come_back(up: Up, part: str, before: int) -> bool:
    """Whether another process does what a killed one did."""
    try:
        return up.pid_of(part) != before
    except (ValueError, psutil.Error):
        return False


@pytest.mark.soak
@pytest.mark.services
def test_nothing_outlives_a_platform_that_was_killed(settings: Settings, catalog: Catalog) -> None:
    job = add_job(catalog, wanted="running")
    with running(settings, **STAND_IN) as up:
        Workers(settings, catalog).wait_observed(job, "running")
        assert len(up.left()) > 5
        up.process.kill()
        up.process.wait()
        assert comes_true(lambda: not up.left(), 15), up.left()
    with running(settings, **STAND_IN) as up:  # its lock and its lease are no obstacle
        Workers(settings, catalog).wait_observed(job, "running", generation=2)
        up.end(signal.SIGTERM)


@pytest.mark.services
def test_a_port_that_is_taken_and_a_setting_that_is_wrong_are_named(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        up = Up(settings, {"STREAMJOIN_PORT": port})
        assert up.process.wait(UP_S_MAX) == 1
        assert f"something listens on port {port} already" in up.output()
        assert not up.left()  # nor the process that loads meanwhile
    for name, value, said in (
        ("STREAMJOIN_HOST", "0.0.0.0", "STREAMJOIN_SECRET_KEY|auth|password"),
        ("STREAMJOIN_LEASE_S", "soon", "STREAMJOIN_LEASE_S: "),
    ):
        up = Up(settings, {name: value, "STREAMJOIN_AUTH": "off"})
        assert up.process.wait(UP_S_MAX) == 1
        assert any(word in up.output() for word in said.split("|")), up.output()
        assert "Traceback" not in up.output()
        up.close()


@pytest.mark.services
def test_a_part_that_does_not_start_is_shown_with_the_end_of_its_log(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("nonsense://\n")
    up = Up(settings, {"STREAMJOIN_REDIS_URL_FILE": str(tmp_path / "url")})
    assert up.process.wait(UP_S_MAX) == 1
    assert "api ended with" in up.output() and "ends with:" in up.output(), up.output()
    assert "STREAMJOIN_REDIS_URL is not a URL of Redis" in up.output()
    assert comes_true(lambda: not up.left(), 10), up.left()


@pytest.mark.services
def test_a_catalog_that_cannot_be_used_and_an_address_of_another_machine_are_named(settings: Settings) -> None:
    up = Up(settings, {"STREAMJOIN_CATALOG_URL": "postgresql+psycopg://me:secret@127.0.0.1:1/catalog"})
    assert up.process.wait(UP_S_MAX) == 1
    assert "the catalog postgresql+psycopg://me:***@127.0.0.1:1/catalog cannot be used" in up.output()
    assert "secret" not in up.output() and comes_true(lambda: not up.left(), 10)
    up = Up(settings, {"STREAMJOIN_HOST": "192.0.2.1"})
    assert up.process.wait(UP_S_MAX) == 1
    assert "the API cannot listen at 192.0.2.1" in up.output() and "Traceback" not in up.output()


@pytest.mark.soak
@pytest.mark.services
def test_several_api_processes_serve_one_port_and_one_answers_while_another_is_dead(settings: Settings) -> None:
    with running(settings, **STAND_IN, STREAMJOIN_API_PROCESSES="2", STREAMJOIN_AUTH="on") as up:
        file = settings.data / FILE
        assert f"the password is in {file}" in up.output()
        password = file.read_text().strip()
        told = [log for log in [up.log, *(settings.data / "logs").iterdir()] if password in log.read_text()]
        assert not told, "a password was written into a log"
        apis = up.parts("backend")
        assert len(apis) == 2
        apis[0].kill()
        apis[0].wait(10)  # what comes while it dies may still be in its own queue
        for _ in range(20):
            with urllib.request.urlopen(f"http://127.0.0.1:{up.port}/readyz", timeout=10) as answer:
                assert answer.status == 200
        assert comes_true(lambda: "api" in up.output() and "for the 1st time" in up.output(), 10)
        up.end(signal.SIGINT)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_job_goes_on_exactly_while_everything_around_it_is_killed(settings: Settings, catalog: Catalog) -> None:
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
    given = streams(60)
    job = add_job(catalog, streams=given)
    look = Workers(settings, catalog, None)
    more = {"JAVA_TOOL_OPTIONS": JAVA_OPTIONS, "STREAMJOIN_DRIVER_MEMORY_MIB": "512", "STREAMJOIN_LEASE_S": "20"}
    with running(settings, **more) as up:
        want(catalog, job, "running")
        look.wait_observed(job, "running", within_s=120)

        def rows() -> int:
            return results(settings, job_of(catalog, job)).total()

        assert comes_true(lambda: rows() > 0, 60), look.tails(job)
        (driver,) = look.drivers()
        begun_s = time.monotonic()
        os.kill(driver, signal.SIGKILL)
        look.wait_observed(job, "running", generation=2, within_s=120)
        recovered_s = time.monotonic() - begun_s
        (driver,) = look.drivers()
        reached = rows()
        for part in ("worker.app", "redis-server", "backend"):
            os.kill(up.pid_of(part), signal.SIGKILL)
        assert comes_true(lambda: rows() > reached, 60), look.tails(job)
        assert look.drivers() == [driver]
        up.wait_until_answers()
        wanted = expected(given)
        assert comes_true(lambda: rows() >= wanted.total(), 240), look.tails(job)
        assert results(settings, job_of(catalog, job)) == wanted
        want(catalog, job, "stopped")
        look.wait_observed(job, "stopped", within_s=90)
        assert lease_of(catalog, job).generation == 2  # type: ignore[union-attr]
        assert {report.generation for report in reports_of(catalog, job)} == {1, 2}
        assert events_of(catalog, job) == [
            "job.starting", "job.running", "job.first_batch", "job.failed", "job.restarted", "job.running",
            "job.first_batch", "job.stopping", "job.stopped",
        ]  # fmt: skip

        change_and_run_again(catalog, look, job)
        assert open_to_others(settings.data) == []
        # Whatever dies, a driver waits for the next start.
        waits = processes.warm_folder(settings.data)
        assert comes_true(lambda: any(waits.glob(f"*{WAITS}")), 60), look.tails(job)
        up.end(signal.SIGINT)
        assert not list(waits.iterdir())
        assert job_of(catalog, job).observed == "stopped"
        # On a machine that has more to do than it can, it takes so much longer.
        assert recovered_s < RECOVERED_S_MAX * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)), recovered_s


STACK = re.compile(r"Traceback \(most recent call last\)|(^|\\n)(\s|\\t)*at [\w.$/]+\(", re.MULTILINE)
"""Of Python or of Java, also inside of a line of JSON."""


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_ctrl_c_leaves_no_stack_in_any_log(settings: Settings, catalog: Catalog) -> None:
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
    # One that has rows to join for long, and one whose input has ended.
    jobs = [add_job(catalog, streams=streams(seconds), wanted="running") for seconds in (600, 2)]
    look = Workers(settings, catalog, None)
    more = {"JAVA_TOOL_OPTIONS": JAVA_OPTIONS, "STREAMJOIN_DRIVER_MEMORY_MIB": "512"}
    with running(settings, **more) as up:
        for job in jobs:
            look.wait_observed(job, "running", within_s=180)
            results_of = partial(results, settings, job_of(catalog, job))
            assert comes_true(lambda: results_of().total() > 0, 120), look.tails(job)  # noqa: B023
        up.end(signal.SIGINT)
        said = up.output()
    assert [job_of(catalog, job).observed for job in jobs] == ["stopped", "stopped"]
    logs = {str(log): log.read_text(errors="replace") for log in settings.data.rglob("*.log")}
    assert {"api.log", "worker.log", "reconciler.log", "driver.log", "spark.log"} <= {Path(log).name for log in logs}
    for log, text in {**logs, "up": said}.items():
        found = STACK.search(text)
        assert found is None, f"{log}: ...{text[max(found.start() - 2000, 0) :]}"


def change_and_run_again(catalog: Catalog, look: Workers, job: str) -> None:
    """A change of a running job: the driver stops at a batch boundary, and the next runs the new version."""
    want(catalog, job, "running")
    look.wait_observed(job, "running", generation=3, within_s=120)
    change(catalog, job, version=2, restart_version=2, streams=streams(61))
    look.wait_observed(job, "running", generation=4, within_s=120)
    lease = lease_of(catalog, job)
    assert lease is not None and lease.job_version == 2
    assert job_of(catalog, job).failures <= 1
