"""Attacks that need a real server: logins that ended, clients that read nothing, addresses that somebody made up."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, update

from backend.catalog.database import Catalog
from backend.catalog.ids import now_us
from backend.catalog.migrate import migrate
from backend.catalog.models import ApiKey, Event
from backend.context import Context
from tests.backend.live_server import LiveServer, live_settings
from tests.backend.matrix import Person, add_person
from tests.backend.results_job import Committer, add_job
from tests.servers.process import comes_true

pytestmark = pytest.mark.services
WAIT_S = 30.0


class World:
    """A server with auth, a viewer, and a job with results."""

    def __init__(self, folder: Path, limits: dict[str, Any], **settings: Any) -> None:
        self.settings = live_settings(folder, auth="on", **settings)
        migrate(self.settings.catalog)
        self.catalog = Catalog(self.settings.catalog)
        self.viewer: Person = add_person(Context(self.settings, self.catalog), "kim", "viewer")
        self.other: Person = add_person(Context(self.settings, self.catalog), "lou", "viewer")
        self.job = add_job(self.catalog)
        self.committer = Committer(self.settings, self.job)
        self.committer.commit()
        self.server = LiveServer(self.settings, folder / "api.log", limits)

    @property
    def results(self) -> str:
        return f"{self.server.url}/api/v1/jobs/{self.job.id}"

    def events(self, kind: str) -> list[Event]:
        with self.catalog.read() as session:
            return list(session.scalars(select(Event).where(Event.kind == kind)))


@contextmanager
def world(folder: Path, limits: dict[str, Any] | None = None, **settings: Any) -> Iterator[World]:
    made = World(folder, limits or {}, **settings)
    try:
        with made.server:
            yield made
    finally:
        made.committer.close()
        made.catalog.close()


def test_attack_an_event_stream_ends_with_the_key_behind_it(tmp_path: Path) -> None:
    with (
        world(tmp_path, {"recheck_s": 0.3, "heartbeat_s": 0.2}) as here,
        httpx2.stream("GET", f"{here.results}/stream", headers=here.viewer.headers, timeout=WAIT_S) as answer,
    ):
        lines = answer.iter_lines()
        while not next(lines).startswith("event: progress"):
            pass
        time.sleep(1.0)  # several looks at a key that is good
        with here.catalog.begin() as session:
            session.execute(update(ApiKey).where(ApiKey.id == here.viewer.key_id).values(revoked_at_us=now_us()))
        begun_s = time.monotonic()
        rest = list(lines)
        assert time.monotonic() - begun_s < 10
        assert rest[-3] == "event: error"
        assert json.loads(rest[-2].removeprefix("data: "))["subcode"] == "no_login"


def test_attack_who_reads_nothing_holds_no_answer(tmp_path: Path) -> None:
    # Long enough to be seen on a busy machine, and then over.
    with world(tmp_path, {"send_s": 10.0, "answers": 2, "answers_an_actor": 2}) as here:
        for _ in range(60):
            here.committer.commit(5000)
        lazy = []
        for _ in range(2):
            raw = socket.create_connection(("127.0.0.1", here.server.port))
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.sendall(
                f"GET /api/v1/jobs/{here.job.id}/results?format=ndjson HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {here.viewer.key}\r\n\r\n".encode()
            )
            raw.settimeout(WAIT_S)
            assert raw.recv(12) == b"HTTP/1.1 200"  # it has its place; the rest is not read
            lazy.append(raw)

        def status(format: str = "ndjson") -> int:
            url = f"{here.results}/results"
            with httpx2.stream(
                "GET", url, params={"format": format}, headers=here.other.headers, timeout=WAIT_S
            ) as answer:
                return answer.status_code

        assert comes_true(lambda: status() == 429, WAIT_S)
        assert comes_true(lambda: status() == 200, WAIT_S)
        for raw in lazy:
            raw.close()


def test_attack_a_made_up_address_is_believed_from_named_proxies_only(tmp_path: Path) -> None:
    for name, proxies, seen in (("none", (), "127.0.0.1"), ("proxy", ("127.0.0.1",), "203.0.113.7")):
        (tmp_path / name).mkdir()
        with world(tmp_path / name, trusted_proxies=proxies) as here:
            httpx2.post(
                f"{here.server.url}/api/v1/sessions", json={"name": "kim", "password": "wrong password"},
                headers={"X-Forwarded-For": "203.0.113.7", "Origin": here.server.url},
            )  # fmt: skip
            (line,) = here.events("session.refused")
            assert line.data["address"] == seen
