"""How long people wait for the whole platform, and how much memory many jobs need.

python -m benchmarks.live            from `streamjoin up` to the first joined row over the websocket; five starts
python -m benchmarks.live --cold     the same, with nothing of it in the page cache (Linux, as root)
python -m benchmarks.live --many     eight idle jobs and three busy ones at once: do all run, and in how much memory

It prints what it measured; docs/deployment.md has the figures of one machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.footprint import sums_of
from streamjoin.client import Client
from tests.servers.process import ServerProcess, comes_true, free_ports
from worker import processes

STARTS = 5
DEMO = "band"
IDLE, BUSY = 8, 3
BUSY_RATE = 5_000
WAIT_S = 180.0
MANY_S = 900.0
WATCHED_S = 60.0
PAUSE_S = 15.0
"""The kernel stops a process while it counts its pages; every second of it cost all jobs their leases."""


def main() -> int:
    """Measure and print; exit status 1 where something did not come."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cold", action="store_true", help="empty the page cache before each start")
    parser.add_argument("--many", action="store_true", help="eleven jobs instead of one")
    parser.add_argument("--starts", type=int, default=STARTS)
    options = parser.parse_args()
    if options.many:
        return many()
    rounds = [first_row(options.cold) for _ in range(options.starts)]
    for what in rounds[0]:
        print(f"{what:<12} {statistics.median(one[what] for one in rounds):6.1f} s, the median of {len(rounds)}")
    return 0


@contextmanager
def platform(folder: Path) -> Iterator[tuple[ServerProcess, str]]:
    """A platform that has just been started, and its address."""
    port = free_ports(1)[0]
    others = [word for name in os.environ if name.startswith("STREAMJOIN_") for word in ("-u", name)]
    settings = [f"STREAMJOIN_DATA={folder / 'data'}", f"STREAMJOIN_PORT={port}"]
    command = ["env", *others, *settings, sys.executable, "-m", "streamjoin", "up"]
    try:
        with ServerProcess("the platform", command, folder / "up.log") as process:
            yield process, f"http://127.0.0.1:{port}"
    finally:
        processes.kill_all(lambda: processes.members(folder / "data"))


def first_row(cold: bool) -> dict[str, float]:
    """Seconds until the API answers, until all is up, and until a websocket client has the first row of a demo."""
    with tempfile.TemporaryDirectory() as place:
        if cold:
            empty_page_cache()
        begun_s = time.monotonic()
        with platform(Path(place)) as (process, url):
            wait_until(lambda: answers(url), WAIT_S, "the API does not answer")
            api_s = time.monotonic() - begun_s
            with Client(url, reach_s=20) as client:
                job = client.call("POST", f"/api/v1/demos/{DEMO}")["id"]
                news = next(news for news in client.tail(job, after="oldest") if news.rows)
                assert news.rows
                row_s = time.monotonic() - begun_s
            up_s = next(float(line.split()[4]) for line in process.output().splitlines() if "is up after" in line)
    print(f"API {api_s:.1f} s, up {up_s:.1f} s, first row {row_s:.1f} s", flush=True)
    return {"API answers": api_s, "all is up": up_s, "first row": row_s}


def empty_page_cache() -> None:
    """Forget all file pages that were read before."""
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3")


def wait_until(condition: Callable[[], bool], deadline_s: float, otherwise: str) -> None:
    """Look until it holds; the program ends where it does not in time."""
    if not comes_true(condition, deadline_s):
        raise SystemExit(f"{otherwise} after {deadline_s:.0f} s")


def answers(url: str) -> bool:
    """Whether the API says that it is ready."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def many() -> int:
    """Eight jobs without input and three with it, and what all processes of the platform need together."""
    with tempfile.TemporaryDirectory() as place, platform(Path(place)) as (process, url):
        process.wait_for_output("streamjoin is up", WAIT_S)
        with Client(url, reach_s=20, deadline_s=60) as client:
            names = [*(f"idle {number}" for number in range(IDLE)), *(f"busy {number}" for number in range(BUSY))]
            for name in names:
                start_job(client, name)
            begun_s = time.monotonic()
            wait_until(
                lambda: all(client.jobs.get(name)["observed"] == "running" for name in names),
                MANY_S,
                "not all jobs run",
            )
            print(f"{len(names)} jobs run {time.monotonic() - begun_s:.0f} s after the last was started", flush=True)
            peak, ends_s = 0, time.monotonic() + WATCHED_S
            while time.monotonic() < ends_s:
                peak = max(peak, footprint(Path(place) / "data", process.pid))
                time.sleep(PAUSE_S)
            states = {name: client.jobs.get(name)["observed"] for name in names}
            rows = {name: results_of(client, name) for name in names[IDLE:]}
        print(f"states: {sorted(set(states.values()))}; results of the busy ones: {list(rows.values())}")
        print(f"all processes together: {peak / 2**30:.1f} GiB of {psutil.virtual_memory().total / 2**30:.0f} GiB")
        return 0 if set(states.values()) == {"running"} and all(rows.values()) else 1


def start_job(client: Client, name: str) -> None:
    """Register two streams of a job's own, and start it."""
    busy = name.startswith("busy")
    key = name.replace(" ", "_")
    spec: dict[str, Any] = (
        {"source": "generator", "kind": "uniform.r", "rate": f"{BUSY_RATE}/s", "begin": "now", "time": "ts"}
        if busy
        else {"source": "push", "schema": {"k": "int64", "ts": "timestamp"}, "time": "ts"}
    )
    for side in ("r", "s"):
        client.streams.create(f"{key}_{side}", spec)
    query = f"SELECT ONLINE {key}_r.k, {key}_r.ts FROM {key}_r, {key}_s WHERE {key}_r.k = {key}_s.k WITHIN 1 SECOND"
    client.jobs.create(name, query)
    client.jobs.start(name)


def results_of(client: Client, job: str) -> int:
    """Results of the last five minutes."""
    return sum(point["figures"].get("results", 0) for point in client.jobs.metrics(job)["points"])


def footprint(data: Path, parent: int) -> int:
    """Bytes of all processes of a platform; pages that several share count once."""
    known = {*processes.members(data), parent, *(child.pid for child in psutil.Process(parent).children(True))}
    return sums_of(known)["pss_bytes"]


if __name__ == "__main__":
    raise SystemExit(main())
