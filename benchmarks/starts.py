"""Seconds of starts, from what people ask for to the first batch that is committed then.

python -m benchmarks.starts                    all of it, three rounds
python -m benchmarks.starts --only jobs        one part: up, jobs, many or idle
python -m benchmarks.starts --against COMMIT   the same for the platform of another commit, from a worktree that is
                                               made for it and removed; what measures is this commit's

up: from `streamjoin up` to the API's first answer and to the first joined row over the websocket, and beside it an
import of the API's libraries. jobs: a start without and with a driver that waits, a restart, a change, and a recovery
from `kill -9` of the driver, detection included. many: eight idle jobs and three busy ones at once, until all run.
idle: processor time and memory of a driver that waits. A batch is committed when Spark's commit log has its entry.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.checkouts import checkout
from benchmarks.footprint import sums_of
from benchmarks.live import BUSY, DEMO, IDLE, answers, start_job, wait_until
from streamjoin.client import Client
from tests.servers.process import ServerProcess, free_ports
from worker import processes
from worker.waiting import WAITS, ready_file

ROUNDS = 3
WAIT_S = 180.0
MANY_S = 600.0
POLL_S = 0.05
RATE = 1_000
IDLE_S = 60
LIBRARIES = "fastapi, sqlalchemy, pyarrow"
PARTS = ("up", "jobs", "many", "idle")
WITHOUT = {"driver_memory": 1000}
"""What no driver waits for."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.starts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--against", metavar="COMMIT")
    options = parser.parse_args()
    parts = (options.only,) if options.only else PARTS
    with checkout(options.against) as code:
        found: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for part in parts:
                with tempfile.TemporaryDirectory() as place:
                    for name, seconds in {"up": up, "jobs": jobs, "many": many, "idle": idle}[part](Path(place), code):
                        print(f"  {name:<38} {seconds:7.2f}", flush=True)
                        found.setdefault(name, []).append(seconds)
    print(f"seconds, medians of {options.rounds}, {options.against or 'this commit'}:")
    for name, times in found.items():
        print(f"  {name:<38} {statistics.median(times):7.2f}")
    return 0


@contextmanager
def platform(place: Path, code: Path) -> Iterator[tuple[ServerProcess, str]]:
    """A platform that has just been started, and its address."""
    port = free_ports(1)[0]
    unset = [word for name in os.environ if name.startswith("STREAMJOIN_") for word in ("-u", name)]
    given = [f"STREAMJOIN_DATA={place / 'data'}", f"STREAMJOIN_PORT={port}", f"PYTHONPATH={code}"]
    command = ["env", "-C", str(code), *unset, *given, sys.executable, "-m", "streamjoin", "up"]
    try:
        with ServerProcess("the platform", command, place / "up.log") as process:
            yield process, f"http://127.0.0.1:{port}"
    finally:
        processes.kill_all(lambda: processes.members(place / "data"))


def up(place: Path, code: Path) -> Iterator[tuple[str, float]]:
    """Until somebody has the first row of a demo, and what the API's libraries take of it."""
    begun_s = time.monotonic()
    subprocess.run([sys.executable, "-c", f"import {LIBRARIES}"], check=True)
    yield f"import {LIBRARIES}", time.monotonic() - begun_s
    begun_s = time.monotonic()
    with platform(place, code) as (_, url):
        wait_until(lambda: answers(url), WAIT_S, "the API does not answer")
        yield "up, until the API answers", time.monotonic() - begun_s
        with Client(url, reach_s=20) as client:
            job = client.call("POST", f"/api/v1/demos/{DEMO}")["id"]
            next(news for news in client.tail(job, after="oldest") if news.rows)
            yield "up, until the first joined row", time.monotonic() - begun_s


def jobs(place: Path, code: Path) -> Iterator[tuple[str, float]]:
    """One job after the other, then one job again and again."""
    with platform(place, code) as (process, url):
        process.wait_for_output("streamjoin is up", WAIT_S)
        with Client(url, reach_s=20) as client:
            watched = Watched(place / "data", client)
            watched.wait_until_ready()
            watched.create("without", WITHOUT)
            yield "start, no driver waits for it", watched.seconds("without", lambda: client.jobs.start("without"))
            client.jobs.stop("without", wait_s=WAIT_S)
            watched.create("job", {})
            watched.wait_until_ready()
            yield "start", watched.seconds("job", lambda: client.jobs.start("job"))
            watched.wait_until_ready()
            yield "restart", watched.seconds("job", lambda: client.jobs.restart("job"))
            watched.wait_until_ready()
            run = {"offsets_per_batch": 50_000}
            yield "change", watched.seconds("job", lambda: client.jobs.change("job", run=run))
            watched.wait_until_ready()
            pid = int(client.call("GET", "/api/v1/jobs/job")["last_run"]["pid"])
            yield "recovery", watched.seconds("job", lambda: os.kill(pid, signal.SIGKILL))


def many(place: Path, code: Path) -> Iterator[tuple[str, float]]:
    """Eleven at once."""
    with platform(place, code) as (process, url):
        process.wait_for_output("streamjoin is up", WAIT_S)
        with Client(url, reach_s=20, deadline_s=60) as client:
            watched = Watched(place / "data", client)
            watched.wait_until_ready()
            names = [*(f"idle {number}" for number in range(IDLE)), *(f"busy {number}" for number in range(BUSY))]
            begun_s = time.monotonic()
            for name in names:
                start_job(client, name)
            wait_until(
                lambda: all(job["observed"] == "running" for job in client.jobs.list()), MANY_S, "some do not run"
            )
            yield f"{len(names)} jobs, until all run", time.monotonic() - begun_s


def idle(place: Path, code: Path) -> Iterator[tuple[str, float]]:
    """What a driver costs that waits; older commits have none."""
    with platform(place, code) as (process, url):
        process.wait_for_output("streamjoin is up", WAIT_S)
        with Client(url, reach_s=20) as client:
            Watched(place / "data", client).wait_until_ready()
        pids = processes.members(place / "data")
        before_s = cpu_s(pids)
        time.sleep(IDLE_S)
        after_s = cpu_s(pids)  # Spark has ended some of them, that had nothing to do
        used_s = sum(after_s[pid] - before_s[pid] for pid in after_s)
        yield f"a driver that waits, CPU s in {IDLE_S} s", used_s
        yield "a driver that waits, MiB", sums_of(set(pids))["pss_bytes"] / 2**20


def cpu_s(pids: Iterable[int]) -> dict[int, float]:
    """Processor time so far of those processes that still run."""
    found = {}
    for pid in pids:
        with suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            found[pid] = times.user + times.system
    return found


class Watched:
    """The jobs of a platform, and what they commit."""

    def __init__(self, data: Path, client: Client) -> None:
        self.data = data
        self.client = client
        self._ids: dict[str, str] = {}

    def create(self, name: str, run: dict[str, Any]) -> None:
        """A job of two live streams of its own."""
        spec = {"source": "generator", "rate": f"{RATE}/s", "begin": "now", "time": "ts"}
        for side in ("r", "s"):
            self.client.streams.create(f"{name}_{side}", {**spec, "kind": f"uniform.{side}"})
        query = f"SELECT ONLINE {name}_r.k FROM {name}_r, {name}_s WHERE {name}_r.k = {name}_s.k WITHIN 1 SECOND"
        self._ids[name] = self.client.jobs.create(name, query, run=run)["id"]

    def seconds(self, name: str, act: Callable[[], Any]) -> float:
        """From an act until the first batch that the next generation commits."""
        generation = self.client.jobs.get(name)["generation"]
        begun_s = time.monotonic()
        act()
        while self.client.jobs.get(name)["generation"] <= generation:
            time.sleep(POLL_S)
            if time.monotonic() - begun_s > WAIT_S:
                raise SystemExit(f"{name} was not started again within {WAIT_S:g} s")
        before = self.last(name)  # the driver before it has stopped
        wait_until(lambda: self.last(name) > before, WAIT_S, f"{name} commits nothing")
        seconds = time.monotonic() - begun_s
        time.sleep(0.5)  # its event may come a moment later
        if start := self.client.jobs.get(name).get("last_start"):
            print(f"    {start['cause']}, warm: {start['warm']}; {start['steps']}", flush=True)
        return seconds

    def last(self, name: str) -> int:
        """The last batch that a job committed; -1 without any."""
        commits = self.data / "jobs" / self._ids[name] / "checkpoint-0" / "offsets" / "commits"
        if not commits.exists():
            return -1
        return max((int(entry.name) for entry in commits.iterdir() if entry.name.isdigit()), default=-1)

    def wait_until_ready(self) -> None:
        """Until a driver has all ready that it waits with, and the machine has got quiet; older commits have none."""
        folder = processes.warm_folder(self.data)
        if folder.exists():
            wait_until(lambda: any(self._is_ready(place) for place in folder.glob(f"*{WAITS}")), WAIT_S, "none waits")
        time.sleep(2)

    def _is_ready(self, place: Path) -> bool:
        return ready_file(self.data, place.name.partition(".")[0]).exists()


if __name__ == "__main__":
    raise SystemExit(main())
