"""The guard in front of a real server: websockets of browsers, and many logins at once."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import psutil
import pytest
import websockets

from backend.app import create_app
from backend.catalog.migrate import migrate
from backend.settings import Settings
from tests.backend.matrix import PASSWORD, Person, add_person
from tests.servers.postgres import PostgresServer
from tests.servers.process import ServerProcess, comes_true, free_ports

pytestmark = pytest.mark.services
START_S_MAX = 60.0


class Api(ServerProcess):
    """One run of the API on a port of its own."""

    def __init__(self, folder: Path, catalog_url: str | None = None) -> None:
        (self.port,) = free_ports(1)
        settings = Settings(data=folder / "data", redis_url="redis://127.0.0.1:1/0", port=self.port,
                            catalog_url=catalog_url, rate_limit="100000/minute")  # fmt: skip
        migrate(settings.catalog)
        context = create_app(settings).state.context
        self.people = {role: add_person(context, f"the-{role}", role) for role in ("viewer", "admin")}
        self.people["other"] = add_person(context, "the-other", "admin")
        context.catalog.close()
        variables = [f"{name}={value}" for name, value in settings.environment().items()]
        program = [sys.executable, "-m", "backend"]
        super().__init__("the API", ["env", *variables, f"PYTHONPATH={os.getcwd()}", *program], folder / "api.log")
        self.url = f"http://127.0.0.1:{self.port}"
        self.wait_until(self._answers, "does not answer", START_S_MAX)

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/livez", timeout=1).status_code == 200
        except httpx2.HTTPError:
            return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """With a viewer and two admins."""
    with Api(tmp_path_factory.mktemp("api")) as api:
        yield api


def log_in(api: Api, person: Person, password: str = PASSWORD) -> httpx2.Response:
    body = {"name": person.name, "password": password}
    return httpx2.post(f"{api.url}/api/v1/sessions", json=body, timeout=60)


def test_foreign_pages_are_refused_before_a_websocket_opens(server: Api) -> None:
    url = f"ws://127.0.0.1:{server.port}/api/v1/ws"
    cookie = log_in(server, server.people["viewer"]).headers["set-cookie"].partition(";")[0]

    async def status_of(origin: str) -> int:
        try:
            async with websockets.connect(url, origin=websockets.Origin(origin), additional_headers={"Cookie": cookie}):
                return 101
        except websockets.InvalidStatus as refused:
            return refused.response.status_code

    for origin in ("http://evil.example", "null", f"http://localhost:{server.port}", "http://127.0.0.1:1"):
        assert asyncio.run(status_of(origin)) == 403


def test_no_log_has_a_key_a_cookie_or_a_password(server: Api) -> None:
    viewer = server.people["viewer"]
    cookie = log_in(server, viewer).headers["set-cookie"].partition(";")[0]
    httpx2.get(f"{server.url}/api/v1/users/me", headers={"Cookie": cookie})
    httpx2.get(f"{server.url}/api/v1/users/me", headers=viewer.headers)
    log_in(server, viewer, "a canary that was mistyped")
    assert comes_true(lambda: "refused to log in the-viewer" in server.output(), 10)
    for hidden in (viewer.key, cookie.partition("=")[2], PASSWORD, "canary"):
        assert hidden not in server.output()


@pytest.mark.alone
def test_many_guesses_at_once_are_refused_and_hold_nobody_up(tmp_path: Path) -> None:
    with Api(tmp_path) as server:
        guess_at_once(server)


def resident_mib(server: Api) -> float:
    return float(psutil.Process(server.pid).memory_info().rss / 2**20)


def settled_mib(server: Api) -> float:
    """Its memory once it has loaded what it loads in the background as it starts."""
    seen = [resident_mib(server)]
    for _ in range(120):
        time.sleep(0.5)
        seen.append(resident_mib(server))
        if len(seen) > 8 and max(seen[-8:]) - min(seen[-8:]) < 2:
            break
    return seen[-1]


def guess_at_once(server: Api) -> None:
    before_mib = settled_mib(server)
    with ThreadPoolExecutor(50) as pool:
        guesses = [pool.submit(log_in, server, server.people["other"], f"guess {i}") for i in range(200)]
        waits = []
        while not all(guess.done() for guess in guesses):
            begun_s = time.monotonic()
            assert httpx2.get(f"{server.url}/livez", timeout=30).status_code == 200
            waits.append(time.monotonic() - begun_s)
        statuses = [guess.result().status_code for guess in guesses]
    assert statuses.count(401) == 10
    assert statuses.count(429) == 190, set(statuses)
    assert max(waits) < 30
    # Each hash takes 19 MiB while it runs; they do not all run together.
    assert resident_mib(server) - before_mib < 200
    assert httpx2.get(f"{server.url}/api/v1/users/me", headers=server.people["other"].headers).status_code == 200


def test_two_admins_do_not_remove_each_other_in_postgresql(tmp_path: Path) -> None:
    with PostgresServer() as postgres, Api(tmp_path, postgres.url) as api:
        one, other = api.people["admin"], api.people["other"]

        def give(who: Person, whom: Person, role: str) -> int:
            path = f"{api.url}/api/v1/users/{whom.id}"
            return httpx2.patch(path, json={"role": role}, headers=who.headers, timeout=30).status_code

        for _ in range(10):
            with ThreadPoolExecutor(2) as pool:
                answers = list(pool.map(give, (one, other), (other, one), ("viewer", "viewer")))
            # The slower one is either no admin any more, or would be the last.
            assert sorted(answers) in ([200, 403], [200, 409])
            left, lost = (one, other) if answers[0] == 200 else (other, one)
            assert give(left, lost, "admin") == 200


def test_names_that_postgresql_cannot_even_look_for_are_refused(tmp_path: Path) -> None:
    with PostgresServer() as postgres, Api(tmp_path, postgres.url) as api:
        viewer, admin = api.people["viewer"], api.people["admin"]
        for path in (
            "users/%00",
            "users?starting_after=%00",
            "users/%ef%bf%bd",
            "users/%ff",
            "api-keys?starting_after=%ff",
        ):
            status = httpx2.get(f"{api.url}/api/v1/{path}", headers=admin.headers).status_code
            assert 200 <= status < 500, path
        assert httpx2.delete(f"{api.url}/api/v1/api-keys/%00", headers=viewer.headers).status_code == 400
        asked = httpx2.post(f"{api.url}/api/v1/queries", json={"job": "no\0job"}, headers=viewer.headers)
        assert (asked.status_code, asked.json()["subcode"]) == (404, "unknown_name")
        assert log_in(api, Person("", "no\0body", "", "")).status_code == 401
        for cookie, status in (("%00", 401), ("%00; streamjoin_session=\x7f", 400)):  # the latter is no header at all
            given = {"Cookie": f"streamjoin_session={cookie}"}
            assert httpx2.get(f"{api.url}/api/v1/users/me", headers=given).status_code == status
