"""Limits of requests: in memory, in a Redis that processes share, and while that Redis dies and comes back."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from redis import Redis

from backend.auth import limits as limits_module
from backend.auth.limits import Limits, address_of
from backend.problems import Problem
from backend.settings import Settings
from streamjoin.errors import InputError
from tests.backend.matrix import add_person, new_app
from tests.servers.process import comes_true, free_ports
from tests.servers.redis import RedisServer


def settings_of(redis_url: str = "redis://127.0.0.1:1/0", rate_limit: str = "5/minute") -> Settings:
    return Settings(redis_url=redis_url, rate_limit=rate_limit)


async def ask(limits: Limits, who: str, asked: int) -> int:
    """How many of so many requests were let through."""
    refused: list[Problem] = []
    for _ in range(asked):
        try:
            await limits.check_request(who)
        except Problem as problem:
            refused.append(problem)
    assert {problem.code for problem in refused} <= {"rate_limited"}
    assert all(1 <= int((problem.headers or {})["Retry-After"]) <= 60 for problem in refused)
    return asked - len(refused)


async def ask_at_once(limits: Limits, who: str, asked: int, times: int) -> int:
    """The same, by so many at the same moment."""
    try:
        return sum(await asyncio.gather(*(ask(limits, who, asked) for _ in range(times))))
    finally:
        await limits.close()


def admitted(limits: Limits, who: str, asked: int, times: int = 1) -> int:
    return asyncio.run(ask_at_once(limits, who, asked, times))


def test_everybody_has_their_own_limit() -> None:
    limits = Limits(settings_of())
    assert admitted(limits, "usr_1", 8) == 5
    assert admitted(limits, "usr_2", 8) == 5


def test_a_window_moves_on(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(settings_of(rate_limit="3/minute"))
    assert admitted(limits, "usr_1", 5) == 3
    clock_s = time.time
    monkeypatch.setattr(time, "time", lambda: clock_s() + 61)
    assert admitted(limits, "usr_1", 5) == 3


def test_several_limits_hold_together() -> None:
    limits = Limits(settings_of(rate_limit="4/minute;2/30 second"))
    assert admitted(limits, "usr_1", 5) == 2


@pytest.mark.parametrize("wrong", ["", "lots", "10", "10/fortnight", "-1/minute", "x" * 1000])
def test_a_limit_that_is_none_is_refused_at_the_start(wrong: str) -> None:
    with pytest.raises(InputError, match="STREAMJOIN_RATE_LIMIT"):
        Limits(settings_of(rate_limit=wrong))


def test_a_redis_url_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(InputError, match="STREAMJOIN_REDIS_URL"):
        Limits(settings_of(redis_url="nonsense"))


def test_requests_at_the_same_moment_are_counted_exactly() -> None:
    limits = Limits(settings_of(rate_limit="50/minute"))
    assert admitted(limits, "usr_1", 10, 16) == 50


def test_a_password_is_guessed_no_faster_from_many_addresses() -> None:
    limits = Limits(settings_of())
    taken = 0
    for number in range(200):
        try:
            limits.check_login("ada", f"10.0.0.{number}")
            taken += 1
        except Problem:
            break
    assert taken == 100


def test_many_names_are_tried_no_faster_from_one_address() -> None:
    limits = Limits(settings_of())
    for number in range(60):
        limits.check_login(f"user{number}", "10.0.0.1")
    with pytest.raises(Problem, match="too many attempts"):
        limits.check_login("one more", "10.0.0.1")
    limits.check_login("ada", "10.0.0.2")


def test_one_host_has_one_address_however_many_it_has() -> None:
    assert address_of(("10.0.0.1", 5)) == address_of(("::ffff:10.0.0.1", 6)) == "10.0.0.1"
    assert address_of(("2001:db8::1", 1)) == address_of(("2001:db8::ffff:2", 1)) != address_of(("2001:db8:0:1::1", 1))
    assert address_of(None) == "unknown"
    assert address_of(("testclient", 1)) == "testclient"


def test_without_redis_requests_are_limited_and_do_not_wait(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(settings_of(redis_url=f"redis://127.0.0.1:{free_ports(1)[0]}/0"))
    begun_s = time.monotonic()
    assert admitted(limits, "usr_1", 50) == 5
    assert time.monotonic() - begun_s < 5
    assert (
        len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1
    )  # said once, not 50 times


def test_an_app_refuses_with_a_problem_that_says_when(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, redis_url="redis://127.0.0.1:1/0", rate_limit="3/minute", auth="on")
    app = new_app(settings)
    people = [add_person(app.state.context, name, "viewer") for name in ("ann", "ben")]
    with TestClient(app, base_url="http://127.0.0.1") as api:
        for person in people:
            answers = [api.get("/api/v1/users/me", headers=person.headers) for _ in range(5)]
            assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 2
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert answers[-1].headers["x-request-id"] == answers[-1].json()["request_id"]
        assert api.get("/livez").status_code == api.get("/readyz").status_code == 200


def wait_for_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a busy machine needs: what Redis counted but answered too late would be counted twice."""
    monkeypatch.setattr(limits_module, "_WAITS", {"socket_timeout": 10.0, "socket_connect_timeout": 10.0})


@pytest.mark.services
@pytest.mark.parametrize("by_password", [False, True])
def test_processes_share_what_redis_counts_and_go_on_without_it(
    by_password: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "REDIS_PAUSE_S", 0.3)
    wait_for_redis(monkeypatch)
    with RedisServer(by_password=by_password) as server:
        one, other = Limits(settings_of(server.url)), Limits(settings_of(server.url))
        assert admitted(one, "usr_1", 3) + admitted(other, "usr_1", 5) == 5
        for _ in range(9):
            one.check_login("ada", "10.0.0.1")
        other.check_login("ada", "10.0.0.1")
        with pytest.raises(Problem, match="too many attempts"):
            one.check_login("ada", "10.0.0.1")
        other.forgive_login("ada", "10.0.0.1")
        one.check_login("ada", "10.0.0.1")
        server.kill()
        # Each counts for itself now; nobody fails, and nobody waits for Redis with every request.
        begun_s = time.monotonic()
        assert admitted(one, "usr_2", 8) == 5
        assert admitted(other, "usr_2", 8) == 5
        assert time.monotonic() - begun_s < 5
        server.restart()
        assert comes_true(lambda: time.monotonic() >= max(one._redis_from_s, other._redis_from_s), 5)
        assert admitted(one, "usr_3", 3) + admitted(other, "usr_3", 5) == 5


@pytest.mark.services
def test_a_loop_that_is_late_counts_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(*_: object, **__: object) -> bool:
        raise TimeoutError

    wait_for_redis(monkeypatch)
    with RedisServer() as server:
        one, other = Limits(settings_of(server.url)), Limits(settings_of(server.url))
        assert admitted(one, "usr_1", 2) == 2
        monkeypatch.setattr(limits_module.LoopLimiter, "hit", late)
        assert admitted(one, "usr_1", 2) + admitted(other, "usr_1", 5) == 3


@pytest.mark.services
def test_a_redis_that_hangs_holds_nobody_up() -> None:
    with RedisServer() as server:
        limits = Limits(settings_of(server.url))
        assert admitted(limits, "usr_1", 2) == 2
        os.kill(server.process.pid, signal.SIGSTOP)
        begun_s = time.monotonic()
        assert admitted(limits, "usr_2", 20) == 5
        assert time.monotonic() - begun_s < 10
        os.kill(server.process.pid, signal.SIGCONT)


@pytest.mark.services
@pytest.mark.parametrize(("setting", "value"), [("maxmemory", "1"), ("requirepass", "x")])
def test_a_redis_that_is_full_or_wants_a_password_holds_nobody_up(setting: str, value: str) -> None:
    with RedisServer() as server:
        with Redis.from_url(server.url) as client:
            client.config_set(setting, value)
        assert admitted(Limits(settings_of(server.url)), "usr_1", 20) == 5
