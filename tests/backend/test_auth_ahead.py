"""Requests that pass before they are counted: few, for a moment, and all of them counted in the end."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from limits.aio.strategies import MovingWindowRateLimiter

from backend.auth.ahead import AHEAD_S, Ahead, most_ahead
from backend.auth.limits import Limits
from backend.settings import Settings
from tests.backend.matrix import new_app
from tests.backend.test_auth_limits import ask, settings_of, wait_for_redis
from tests.servers.redis import RedisServer


class Shared:
    """A count that several share; it takes a while, and may fail."""

    def __init__(self, room: int, seed: int = 0, failing: float = 0.0) -> None:
        self.room = room
        self.asked = 0
        self.failing = failing
        self._random = random.Random(seed)

    async def count(self, cost: int) -> bool:
        self.asked += 1
        for _ in range(self._random.randrange(3)):
            await asyncio.sleep(0)
        if self._random.random() < self.failing:
            raise TimeoutError
        if cost > self.room:
            return False
        self.room -= cost
        return True


def test_only_a_hundredth_of_a_limit_may_pass_uncounted() -> None:
    assert [most_ahead(amount) for amount in (1, 99, 100, 600, 10_000, 1_000_000)] == [0, 0, 1, 6, 100, 100]


def test_most_requests_pass_without_a_count_and_all_are_counted() -> None:
    async def act() -> None:
        shared = Shared(1000)
        ahead = Ahead(9, shared.count)
        for _ in range(100):
            assert ahead.passes() or await ahead.ask()
        assert shared.asked == 10
        await ahead.end()
        assert ahead.is_settled and shared.room == 900
        assert not ahead.passes()

    asyncio.run(act())


@pytest.mark.parametrize("seed", range(20))
def test_however_many_ask_at_once_only_so_many_pass_above_the_limit(seed: int) -> None:
    async def act() -> None:
        shared = Shared(200, seed, failing=0.05)
        processes = [Ahead(7, shared.count) for _ in range(3)]
        passed = 0

        async def client(number: int) -> None:
            nonlocal passed
            for _ in range(60):
                ahead = processes[number % 3]
                with suppress(TimeoutError):
                    let = ahead.passes() or await ahead.ask()
                    passed += let
                if number % 5 == 0:
                    await asyncio.sleep(0)
                if number == 3:
                    await asyncio.gather(ahead.end(), return_exceptions=True)

        await asyncio.gather(*(client(number) for number in range(30)))
        counted = 200 - shared.room
        assert passed - counted <= 3 * 7 and passed > 180
        # What is owed is made up for before anything else passes, and then the account is even.
        shared.failing, shared.room = 0.0, 1000
        for ahead in processes:
            await ahead.end()
            assert ahead.is_settled
        assert 1000 - shared.room == passed - counted

    asyncio.run(act())


def test_nothing_passes_while_there_is_no_room_for_what_is_owed() -> None:
    async def act() -> None:
        shared = Shared(4)
        ahead = Ahead(6, shared.count)
        assert await ahead.ask()
        assert [ahead.passes() for _ in range(8)] == [True] * 6 + [False] * 2
        assert not await ahead.ask()  # there is room for one, and seven are to be counted
        assert not ahead.passes() and not ahead.is_settled
        await ahead.end()
        assert not ahead.is_settled and shared.room == 3
        shared.room = 7
        assert await ahead.ask()
        assert shared.room == 0 and ahead.is_settled

    asyncio.run(act())


@pytest.mark.services
def test_processes_together_let_through_what_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(url: str) -> None:
        processes = [Limits(settings_of(url, rate_limit="300/minute")) for _ in range(2)]
        let = await asyncio.gather(*(ask(limits, "usr_1", 40) for _ in range(6) for limits in processes))
        assert 300 <= sum(let) <= 300 + 2 * 3
        # A moment later nothing is owed that had room, and another client's few are all counted.
        assert await ask(processes[0], "usr_2", 4) == 4
        begun_s = time.monotonic()
        while processes[0]._in_loop is not None and ("requests", "usr_2") in {
            of for _, of in processes[0]._in_loop._ahead
        }:
            assert time.monotonic() < begun_s + 20
            await asyncio.sleep(0.01)
        item = processes[1]._of_requests[0]
        assert processes[1]._ask("get_window_stats", item, "requests", "usr_2").remaining == 296
        for limits in processes:
            await limits.close()

    wait_for_redis(monkeypatch)
    with RedisServer() as server:
        asyncio.run(act(server.url))


@pytest.mark.services
def test_redis_is_not_asked_for_every_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    hit = MovingWindowRateLimiter.hit

    async def counted(limiter: MovingWindowRateLimiter, item: object, *of: str, cost: int = 1) -> bool:
        asked.append(cost)
        return await hit(limiter, item, *of, cost=cost)  # type: ignore[arg-type]

    wait_for_redis(monkeypatch)
    monkeypatch.setattr(MovingWindowRateLimiter, "hit", counted)
    with RedisServer() as server:
        settings = Settings(data=tmp_path, redis_url=server.url, rate_limit="100000/minute", auth="off")
        with TestClient(new_app(settings), base_url="http://127.0.0.1") as api:
            begun_s = time.monotonic()
            for _ in range(50):
                assert api.get("/api/v1/users/me").status_code in (200, 404)
            took_s = time.monotonic() - begun_s
    assert sum(asked) == 50  # at the end all of them are counted
    # Each moment is counted at most twice: with its first request, and when it ends, for what is owed.
    assert len(asked) <= 2 * took_s / AHEAD_S + 3
