"""Continuous questions against a real server: reconnects without gap or repetition, slow readers, kills, memory."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pyarrow as pa
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from backend.catalog.database import Catalog
from backend.catalog.migrate import migrate
from backend.catalog.models import Job
from backend.results.frames import BAD_FRAME, SUBPROTOCOL
from backend.settings import Settings
from streamjoin.results.snapshot import SnapshotId
from tests.backend.live_server import LiveServer, live_settings
from tests.backend.results_job import Committer, add_job, rows
from tests.servers.process import comes_true, free_ports
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.services

LIMITS = {"heartbeat_s": 0.5, "linger_s": 1.0, "sockets_an_actor": 4000, "queue_snapshots": 10_000}
WAIT_S = 150


@contextlib.asynccontextmanager
async def subscribed(server: LiveServer, job: Job, **payload: Any) -> AsyncIterator[ClientConnection]:
    """A websocket with one subscription."""
    async with connect(
        f"ws://127.0.0.1:{server.port}/api/v1/ws", subprotocols=[SUBPROTOCOL], compression=None,  # type: ignore[list-item]
        max_size=1 << 24,
    ) as socket:  # fmt: skip
        await socket.send(json.dumps({"type": "connection_init"}))
        await socket.send(json.dumps({"type": "subscribe", "id": "1", "payload": {"job": job.id, **payload}}))
        assert json.loads(await socket.recv())["type"] == "connection_ack"
        yield socket


async def news_of(socket: ClientConnection) -> AsyncIterator[dict[str, Any]]:
    """The payloads of `next`, until the connection ends."""
    async for text in socket:
        frame = json.loads(text)
        assert frame["type"] in ("schema", "next", "progress"), frame
        if frame["type"] == "next":
            yield frame["payload"]


class Writer:
    """Commits in a thread until it is stopped."""

    def __init__(self, committer: Committer, pause_s: float, rows: int = 10) -> None:
        self.committer = committer
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(pause_s, rows))
        self._thread.start()

    def _run(self, pause_s: float, rows: int) -> None:
        while not self._stop.wait(pause_s):
            self.committer.commit(rows)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


class World:
    """A server, a job, and who commits its results."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.settings: Settings = live_settings(folder, **settings)
        migrate(self.settings.catalog)
        self.catalog = Catalog(self.settings.catalog)
        self.job = add_job(self.catalog)
        self.committer = Committer(self.settings, self.job, memory="redis_url" in settings)
        self.committer.commit()

    def server(self, **limits: Any) -> LiveServer:
        return LiveServer(self.settings, self.folder / "api.log", {**LIMITS, **limits})

    def close(self) -> None:
        self.committer.close()
        self.catalog.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


async def collect(
    server: LiveServer, world: World, seen: list[tuple[str, list[int]]], until: int, cut_after: int | None = None
) -> None:
    """Read on from what was seen last; leave after some snapshots, or once so many are seen."""
    begin = {"from": seen[-1][0] if seen else "oldest"}
    async with subscribed(server, world.job, **begin) as socket:
        got = 0
        async for news in news_of(socket):
            assert news["dropped"] == 0 and not news["more"]
            seen.append((news["snapshot"], [row[0] for row in news["rows"]]))
            got += 1
            if len(seen) >= until or got == cut_after:
                return


def memory_reads(server: LiveServer) -> int:
    """How often the followers looked into the memory."""
    return sum(int(job["memory_reads"]) for job in server.figures()["jobs"])


def check_whole(seen: list[tuple[str, list[int]]], numbers: list[int]) -> None:
    ids = [SnapshotId.parse(id) for id, _ in seen]
    assert ids == sorted(set(ids))
    got = Counter(n for _, rows in seen for n in rows)
    assert got == Counter(numbers[: len(seen) * 10])


@pytest.mark.soak
def test_reconnecting_clients_see_every_snapshot_once_while_a_writer_commits(world: World) -> None:
    with world.server() as server:
        writer = Writer(world.committer, 0.01)
        seen: list[tuple[str, list[int]]] = []

        async def client() -> None:
            async with asyncio.timeout(WAIT_S):
                for cut_after in (1, 2, 3, 5, 1, 8, 13, 2):
                    await collect(server, world, seen, 120, cut_after)
                    await asyncio.sleep(0.03)
                await collect(server, world, seen, 120)

        asyncio.run(client())
        writer.stop()
    check_whole(seen, world.committer.numbers)


def kill_after(server: LiveServer, seen: list[Any], count: int) -> None:
    """Once the client has seen so much."""
    comes_true(lambda: len(seen) > count, WAIT_S)
    server.kill()


@pytest.mark.slow
def test_a_killed_server_costs_a_reconnect_and_nothing_else(world: World) -> None:
    writer = Writer(world.committer, 0.05)
    seen: list[tuple[str, list[int]]] = []

    async def client(server: LiveServer, until: int) -> None:
        with contextlib.suppress(ConnectionClosed):
            async with asyncio.timeout(WAIT_S):
                await collect(server, world, seen, until)

    for _ in range(2):
        with world.server() as server:
            before = len(seen)
            killer = threading.Thread(target=kill_after, args=(server, seen, before + 5))
            killer.start()
            asyncio.run(client(server, 10**9))
            killer.join()
        assert len(seen) > before
    writer.stop()
    with world.server() as server:
        asyncio.run(client(server, len(world.committer.numbers) // 10))
    check_whole(seen, world.committer.numbers)


@pytest.mark.soak
@pytest.mark.slow
def test_any_process_goes_on_with_what_another_began_and_was_killed_over(world: World) -> None:
    """A tail and the pages of an answer, each time at another of three processes, one of which dies in the middle."""

    def another() -> LiveServer:
        return LiveServer(
            world.settings.model_copy(update={"port": free_ports(1)[0]}), world.folder / "api.log", LIMITS
        )

    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(another()) for _ in range(3)]
        writer = Writer(world.committer, 0.05)
        seen: list[tuple[str, list[int]]] = []

        async def follow(server: LiveServer, until: int, cut_after: int | None = None) -> None:
            with contextlib.suppress(ConnectionClosed):
                async with asyncio.timeout(WAIT_S):
                    await collect(server, world, seen, until, cut_after)

        for cut_after in (1, 3, 2):
            for server in servers:
                asyncio.run(follow(server, 10**9, cut_after))
        before = len(seen)
        killer = threading.Thread(target=kill_after, args=(servers[0], seen, before + 5))
        killer.start()
        asyncio.run(follow(servers[0], 10**9))
        killer.join()
        asyncio.run(follow(servers[1], len(seen) + 5))
        writer.stop()
        world.committer.commit()  # so that there is something left for the third one
        asyncio.run(follow(servers[2], len(world.committer.numbers) // 10))
        check_whole(seen, world.committer.numbers)

        given: list[int] = []
        page: dict[str, Any] = {}
        for number in itertools.count():
            asked = {"job": world.job.id, "limit": 7, "cursor": page.get("cursor")}
            answer = httpx2.post(f"{servers[1 + number % 2].url}/api/v1/queries", json=asked, timeout=WAIT_S)
            page = answer.raise_for_status().json()
            given += [row[0] for row in page["rows"]]
            if page["cursor"] is None:
                break
        assert given == world.committer.numbers


def test_a_slow_reader_misses_whole_snapshots_and_delays_nobody(world: World) -> None:
    count, commits = 100, 150
    text = "x" * 2000

    def commit() -> None:
        content = rows(world.committer.commits, count, time.time_ns() // 1000)
        world.committer.commit(content=content.set_column(2, "name", pa.array([text] * count)))

    with world.server(send_s=600, queue_snapshots=8) as server:

        async def client() -> tuple[list[dict[str, Any]], list[float], list[int]]:
            slow: list[dict[str, Any]] = []
            late_ms: list[float] = []
            missed: list[int] = []
            async with (
                asyncio.timeout(WAIT_S * 2),
                subscribed(server, world.job) as behind,
                subscribed(server, world.job, select=["n", "sent_us"]) as ahead,
            ):
                assert json.loads(await behind.recv())["type"] == "schema"
                assert json.loads(await ahead.recv())["type"] == "schema"
                behind.transport.pause_reading()
                news = news_of(ahead)
                for _ in range(commits):
                    await asyncio.to_thread(commit)
                    one = await anext(news)
                    late_ms.append(time.time() * 1e3 - one["rows"][0][1] / 1e3)
                    missed.append(one["dropped"])
                figures = await asyncio.to_thread(server.figures)
                assert figures["held_bytes"] < 64 << 20
                behind.transport.resume_reading()
                newest = str(world.committer.sink.ledger.head.state.last)
                async for one in news_of(behind):
                    slow.append(one)
                    if one["snapshot"] == newest and not one["more"]:
                        break
            return slow, late_ms, missed

        slow, late_ms, missed = asyncio.run(client())
    assert sum(missed) == 0
    assert sorted(late_ms)[commits // 2] < 1000  # of a machine that does other things, too
    parts: dict[str, int] = {}
    for one in slow:
        parts[one["snapshot"]] = parts.get(one["snapshot"], 0) + len(one["rows"])
    dropped = sum(one["dropped"] for one in slow)
    assert dropped > 0 and set(parts.values()) == {count}  # what comes is whole
    assert len(parts) + dropped == commits
    assert sum(one["gap"]["rows"] for one in slow if one["dropped"]) == dropped * count


def test_wrong_bytes_on_the_wire_never_end_the_server(world: World) -> None:
    with world.server(frame_bytes=4096) as server:

        async def clients() -> None:
            url = f"ws://127.0.0.1:{server.port}/api/v1/ws"
            for text in ("{", "[" * 4000, "x" * 5000, b"\x00\xff"):
                async with connect(url, subprotocols=[SUBPROTOCOL]) as socket:  # type: ignore[list-item]
                    await socket.send(text)
                    with pytest.raises(ConnectionClosed):
                        await socket.recv()
                    assert socket.close_code == BAD_FRAME
            async with connect(url, subprotocols=[SUBPROTOCOL]) as socket:  # type: ignore[list-item]
                with contextlib.suppress(ConnectionClosed):
                    await socket.send("x" * (8 << 20))
                with pytest.raises(ConnectionClosed):
                    await socket.recv()
            with pytest.raises(InvalidStatus):
                async with connect(url, origin="http://evil.example", subprotocols=[SUBPROTOCOL]):  # type: ignore[arg-type, list-item]
                    pass

        asyncio.run(clients())
        handshake = (
            f"GET /api/v1/ws HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
        ).encode()
        for rubbish in (b"\xff" * 100, b"\x81\x05\xff\xff\xff\xff\xff", b"\x81\xfe\xff\xff", b"", b"\x83\x80\0\0\0\0"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
                raw.sendall(handshake)
                assert b"101" in raw.recv(4096)
                raw.sendall(rubbish)
        assert server.is_running()
        assert httpx2.get(f"{server.url}/livez").status_code == 200
        assert "Traceback" not in server.output()


def test_leaving_in_the_middle_of_an_answer_stops_the_reading(world: World) -> None:
    for _ in range(150):
        world.committer.commit(2000)
    with world.server() as server:
        url = f"{server.url}/api/v1/jobs/{world.job.id}/results"
        with httpx2.stream("GET", url, params={"format": "ndjson"}, timeout=WAIT_S) as answer:
            assert next(answer.iter_lines())
        whole = httpx2.get(url, params={"aggregate": "count"}, timeout=WAIT_S).json()
        assert whole["rows"] == [[150 * 2000 + 10]]
        process = psutil.Process(server.pid)
        assert comes_true(lambda: process.cpu_percent(0.5) < 40, WAIT_S)
        # Its slot is free again: as many as there are can be asked one after the other.
        for _ in range(70):
            with httpx2.stream("GET", url, params={"format": "ndjson"}, timeout=WAIT_S) as answer:
                assert answer.status_code == 200


def test_events_reach_a_reader_as_they_come(world: World) -> None:
    with world.server() as server:
        url = f"{server.url}/api/v1/jobs/{world.job.id}/stream"
        with httpx2.stream("GET", url, params={"select": "n"}, timeout=WAIT_S) as answer:
            lines = answer.iter_lines()
            while not next(lines).startswith("event: schema"):
                pass
            id = world.committer.commit()
            while (line := next(lines)) != f"id: {id}@{world.job.id}":
                assert not line.startswith("id: ") or line == f"id: 1.0@{world.job.id}"
            news = json.loads(next(lines).removeprefix("data: "))
            assert sorted(row[0] for row in news["rows"]) == world.committer.numbers[-10:]
        for place in (f"1.0@{world.job.id}", "1.0"):
            with httpx2.stream("GET", url, headers={"Last-Event-ID": place}, timeout=WAIT_S) as answer:
                assert any(line == f"id: {id}@{world.job.id}" for line in answer.iter_lines() if line.startswith("id"))


# With a memory of recent results that the driver and the API share.


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


def test_the_tail_reads_memory_only_and_goes_on_while_the_store_is_unreadable(
    tmp_path: Path, redis: RedisServer
) -> None:
    world = World(tmp_path, redis_url=redis.url)
    path = Path(dict(world.committer.sink.spec.settings)["path"])
    with world.server() as server:

        async def client() -> None:
            got: list[str] = []
            async with asyncio.timeout(WAIT_S), subscribed(server, world.job) as socket:
                assert json.loads(await socket.recv())["type"] == "schema"
                hidden = path.with_name("hidden")
                following = news_of(socket)
                while not memory_reads(server):  # a machine that stood still has let the memory end before
                    world.committer.commit()
                    await anext(following)
                path.rename(hidden)  # the driver has it open; whoever opens it anew finds nothing
                sent = [world.committer.commit() for _ in range(20)]
                async for news in following:
                    got.append(news["snapshot"])
                    if news["snapshot"] == sent[-1]:
                        break
                assert got == sent
                # One who comes now finds the memory enough, too.
                async with subscribed(server, world.job, **{"from": sent[5]}) as late:
                    async for news in news_of(late):
                        assert news["snapshot"] == sent[6]
                        break
                hidden.rename(path)

        asyncio.run(client())
    world.close()


@pytest.mark.soak
def test_without_the_memory_the_tail_goes_on_and_with_it_again(tmp_path: Path, redis: RedisServer) -> None:
    world = World(tmp_path, redis_url=redis.url)
    with world.server() as server:
        writer = Writer(world.committer, 0.02)
        seen: list[tuple[str, list[int]]] = []

        async def client() -> None:
            async with asyncio.timeout(WAIT_S):
                await collect(server, world, seen, 60)
                redis.kill()
                await collect(server, world, seen, 150)
                redis.restart()
                await collect(server, world, seen, len(seen) + 50)
                before = await asyncio.to_thread(memory_reads, server)
                while await asyncio.to_thread(memory_reads, server) <= before:
                    await collect(server, world, seen, len(seen) + 20)

        asyncio.run(client())
        writer.stop()
    check_whole(seen, world.committer.numbers)
    world.close()


@pytest.mark.soak
def test_a_time_range_in_memory_does_not_read_the_store(tmp_path: Path, redis: RedisServer) -> None:
    world = World(tmp_path, redis_url=redis.url)
    for _ in range(5):
        world.committer.commit()
    path = Path(dict(world.committer.sink.spec.settings)["path"])
    with world.server() as server:
        url = f"{server.url}/api/v1/queries"
        path.rename(path.with_name("hidden"))
        recent = httpx2.post(url, json={"job": world.job.id, "from": 2_000_000}, timeout=WAIT_S).json()
        assert sorted(row[0] for row in recent["rows"]) == world.committer.numbers[20:]
        path.with_name("hidden").rename(path)
        both = httpx2.post(url, json={"job": world.job.id, "key": 3}, timeout=WAIT_S).json()
        assert sorted(row[0] for row in both["rows"]) == [n for n in world.committer.numbers if n % 50 == 3]
    world.close()
