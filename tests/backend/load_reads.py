"""Read requests at a steady rate: `python -m tests.backend.load_reads` prints how long they took.

The platform is a whole one, with as many API processes as are asked for. Half of the requests ask for a key, a quarter
for a short time range, the rest for the list of snapshots. They leave when they are due, answered or not, so a server
that falls behind shows as delay, and not as a lower rate.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil

from backend.catalog.database import Catalog
from backend.catalog.migrate import migrate
from tests.backend.live_server import live_settings
from tests.backend.results_job import KEYS, SPAN_US, Committer, add_job
from tests.servers.process import ServerProcess

CONNECTIONS = 32
SNAPSHOTS = 100
ROWS = 500


class Connection:
    """One kept connection. A client library would take as much time as the server does, on the same machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str) -> int:
        """The status of the answer, once all of it is read."""
        while True:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = self._streams
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                break
            except (asyncio.IncompleteReadError, ConnectionError):  # it was kept for too long
                writer.close()
                self._streams = None
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        if b"content-length" in fields:
            await reader.readexactly(int(fields[b"content-length"]))
        else:
            while size := int(await reader.readuntil(b"\r\n"), 16):
                await reader.readexactly(size + 2)
            await reader.readexactly(2)
        return int(head[9:12])


def path_of(job: str, number: int) -> str:
    """What is asked."""
    base, second = f"/api/v1/jobs/{job}", number * 7919 % SNAPSHOTS
    match number % 4:
        case 0 | 1:
            return f"{base}/results?key={number % KEYS}&limit=20"
        case 2:
            return f"{base}/results?from={second * SPAN_US}&to={second * SPAN_US + 20_000}"
        case _:
            return f"{base}/snapshots?limit=20"


async def load(port: int, apis: list[psutil.Process], job: str, rate: float, seconds: float) -> dict[str, float]:
    """Delays from when each request was due, how they were answered, and what they cost the API's processes."""
    took_ms: list[float] = []
    left_late_ms: list[float] = []
    statuses: Counter[int] = Counter()
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(Connection(port))

    async def one(number: int, due_s: float) -> None:
        left_late_ms.append((time.monotonic() - due_s) * 1e3)
        connection = await free.get()
        statuses[await connection.get(path_of(job, number))] += 1
        free.put_nowait(connection)
        took_ms.append((time.monotonic() - due_s) * 1e3)

    for start in range(0, 4 * CONNECTIONS, CONNECTIONS):  # connections are made, and readers opened
        await asyncio.gather(*(one(number, time.monotonic()) for number in range(start, start + CONNECTIONS)))
    took_ms.clear()
    left_late_ms.clear()
    statuses.clear()
    gc.collect()
    gc.disable()  # what the asking process stops for would count as the platform's delay
    before_s = cpu_s(apis)
    begun_s = time.monotonic()
    tasks = []
    for number in range(int(rate * seconds)):
        due_s = begun_s + number / rate
        if (wait_s := due_s - time.monotonic()) > 0:
            await asyncio.sleep(wait_s)
        tasks.append(asyncio.create_task(one(number, due_s)))
    await asyncio.gather(*tasks)
    lasted_s, spent_s = time.monotonic() - begun_s, cpu_s(apis) - before_s
    gc.enable()
    return {
        "asked_a_second": rate,
        "answered_a_second": len(took_ms) / lasted_s,
        "p50_ms": float(np.percentile(took_ms, 50)),
        "p95_ms": float(np.percentile(took_ms, 95)),
        "p99_ms": float(np.percentile(took_ms, 99)),
        "max_ms": max(took_ms),
        "left_late_p99_ms": float(np.percentile(left_late_ms, 99)),
        "not_200": sum(count for status, count in statuses.items() if status != 200),
        "busiest_api_share": float(spent_s.max() / spent_s.sum()),
        "api_cpu_ms_each": float(spent_s.sum()) * 1e3 / len(took_ms),
        "rss_mib": sum(process.memory_info().rss for process in apis) / 2**20,
    }


def cpu_s(processes: list[psutil.Process]) -> np.ndarray:
    """Processor time of each process so far."""
    return np.array([times.user + times.system for times in (process.cpu_times() for process in processes)])


def measure(folder: Path, rate: float, seconds: float, processes: int) -> dict[str, float]:
    """The figures."""
    settings = live_settings(folder, api_processes=processes)
    migrate(settings.catalog)
    catalog = Catalog(settings.catalog)
    job = add_job(catalog)
    committer = Committer(settings, job)
    for _ in range(SNAPSHOTS):
        committer.commit(ROWS)
    committer.close()
    catalog.close()
    given = {**settings.environment(), "STREAMJOIN_WARM_DRIVERS": "0"}  # no job is started
    del given["STREAMJOIN_REDIS_URL"]  # it starts one
    command = ["env", *(f"{name}={value}" for name, value in given.items()), sys.executable, "-m", "worker.up"]
    with ServerProcess("the platform", command, folder / "up.log") as up:
        up.wait_for_output("streamjoin is up", 60)
        apis = [child for child in psutil.Process(up.pid).children() if "backend" in child.cmdline()]
        assert len(apis) == processes
        return asyncio.run(load(settings.port, apis, job.id, rate, seconds))


def main(given: list[str] | None = None) -> dict[str, float]:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--processes", type=int, default=2, help="of the API")
    arguments = parser.parse_args(given)
    with tempfile.TemporaryDirectory(prefix="streamjoin-load-") as folder:
        found = measure(Path(folder), arguments.rate, arguments.seconds, arguments.processes)
    for name, value in found.items():
        print(f"{name:20} {value:12,.2f}")
    return found


if __name__ == "__main__":
    main()
