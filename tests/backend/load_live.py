"""Many clients that follow one job, some of them slow or dead: `python -m tests.backend.load_live`.

It prints how late healthy clients got their rows, what the server held, and what slow clients missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket as net
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from backend.catalog.database import Catalog
from backend.catalog.migrate import migrate
from backend.results.frames import SUBPROTOCOL
from tests.backend.live_server import LiveServer, live_settings
from tests.backend.results_job import Committer, add_job, rows

CONNECTS_AT_ONCE = 50
RECEIVED_S_MAX = 120.0
LIMITS = {"sockets_an_actor": 100_000, "sockets": 100_000, "send_s": 300, "queue_snapshots": 16}


@dataclass
class Seen:
    """What all clients saw."""

    late_ms: list[float] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    dropped: int = 0
    slow_dropped: int = 0


async def client(port: int, job: str, kind: str, seen: Seen, gate: asyncio.Semaphore, ready: asyncio.Semaphore) -> None:
    """One client: healthy, slow (reads a frame now and then) or dead (reads nothing)."""
    async with gate:
        raw = net.socket()
        if kind != "healthy":  # else the kernel would take a while to fill for them
            raw.setsockopt(net.SOL_SOCKET, net.SO_RCVBUF, 4096)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
        socket: ClientConnection = await connect(
            f"ws://127.0.0.1:{port}/api/v1/ws", sock=raw, subprotocols=[SUBPROTOCOL],  # type: ignore[list-item]
            compression=None, ping_interval=None, max_size=1 << 24, open_timeout=120,
            max_queue=64 if kind == "healthy" else 2,
        )  # fmt: skip
        await socket.send(json.dumps({"type": "connection_init"}))
        await socket.send(json.dumps({"type": "subscribe", "id": "1", "payload": {"job": job}}))
        while json.loads(await socket.recv())["type"] != "schema":
            pass
    ready.release()
    got = 0
    try:
        if kind == "dead":
            socket.transport.pause_reading()
            await asyncio.Event().wait()
        async for text in socket:
            frame = json.loads(text)
            if frame["type"] != "next":
                continue
            news = frame["payload"]
            if kind == "slow":
                seen.slow_dropped += news["dropped"]
                await asyncio.sleep(2)
                continue
            got += 1
            seen.late_ms.append(time.time() * 1e3 - news["rows"][0][3] / 1e3)
            seen.dropped += news["dropped"]
    except ConnectionClosed:
        pass
    finally:
        if kind == "healthy":
            seen.received.append(got)
        with contextlib.suppress(Exception):
            socket.transport.abort()


async def run(server: LiveServer, committer: Committer, job: str, arguments: argparse.Namespace) -> Seen:
    """All clients, while snapshots are committed."""
    seen = Seen()
    gate, ready = asyncio.Semaphore(CONNECTS_AT_ONCE), asyncio.Semaphore(0)
    bad = int(arguments.clients * arguments.bad)
    kinds = ["slow" if n % 2 else "dead" for n in range(bad)] + ["healthy"] * (arguments.clients - bad)
    tasks = [asyncio.create_task(client(server.port, job, kind, seen, gate, ready)) for kind in kinds]
    for _ in tasks:
        await ready.acquire()
    text = pa.array(["x" * arguments.bytes] * arguments.rows)
    for _ in range(arguments.snapshots):
        begun_s = time.monotonic()
        content = rows(committer.commits, arguments.rows, 0).set_column(2, "name", text)
        sent = pa.array(np.full(arguments.rows, time.time_ns() // 1000))
        await asyncio.to_thread(committer.commit, content=content.set_column(3, "sent_us", sent))
        await asyncio.sleep(max(arguments.pause - (time.monotonic() - begun_s), 0))
    whole = kinds.count("healthy") * arguments.snapshots
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(RECEIVED_S_MAX):
            while len(seen.late_ms) + seen.dropped < whole:
                await asyncio.sleep(0.1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return seen


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """The figures."""
    settings = live_settings(folder)
    migrate(settings.catalog)
    catalog = Catalog(settings.catalog)
    job = add_job(catalog)
    committer = Committer(settings, job)
    committer.commit()
    with LiveServer(settings, folder / "api.log", LIMITS) as server:
        process = psutil.Process(server.pid)
        before = process.memory_info().rss
        top = {"rss": 0, "held": 0}

        async def watched() -> Seen:
            running = asyncio.create_task(run(server, committer, job.id, arguments))
            while not running.done():
                top["rss"] = max(top["rss"], process.memory_info().rss)
                held = await asyncio.to_thread(server.figures)
                top["held"] = max(top["held"], held["held_bytes"])
                await asyncio.wait({running}, timeout=1)
            return running.result()

        seen = asyncio.run(watched())
        figures = server.figures()
    committer.close()
    catalog.close()
    late = np.array(seen.late_ms or [np.nan])
    return {
        "clients": arguments.clients,
        "healthy": len(seen.received),
        "snapshots": arguments.snapshots,
        "received_min": min(seen.received, default=0),
        "late_ms_p50": float(np.percentile(late, 50)),
        "late_ms_p95": float(np.percentile(late, 95)),
        "late_ms_p99": float(np.percentile(late, 99)),
        "late_ms_max": float(late.max()),
        "dropped_of_healthy": seen.dropped,
        "dropped_of_slow": sum(job["dropped_snapshots"] for job in figures["jobs"]) - seen.dropped,
        "held_mib_max": top["held"] / 2**20,
        "rss_mib_before": before / 2**20,
        "rss_mib_max": top["rss"] / 2**20,
    }


def main(given: list[str] | None = None) -> dict[str, float]:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--bad", type=float, default=0.05, help="part of the clients that are slow or dead")
    parser.add_argument("--snapshots", type=int, default=60)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between snapshots")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--bytes", type=int, default=500, help="of each row's text")
    arguments = parser.parse_args(given)
    with tempfile.TemporaryDirectory(prefix="streamjoin-load-") as folder:
        found = measure(Path(folder), arguments)
    for name, value in found.items():
        print(f"{name:20} {value:12,.1f}")
    return found


if __name__ == "__main__":
    main()
