"""How often somebody may ask: moving windows in Redis, which API processes share, or in memory while it is away.

Requests of the API may pass a moment before they are counted (`backend.auth.ahead`), so each process can let through a
hundredth more than the limit says. Attempts to log in are counted first.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

import redis
import redis.asyncio
from anyio.to_thread import run_sync
from limits import RateLimitItem, RateLimitItemPerMinute, parse_many
from limits.aio.storage import RedisStorage as LoopStorage
from limits.aio.strategies import MovingWindowRateLimiter as LoopLimiter
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis.asyncio.retry import Retry as LoopRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from backend.auth.ahead import AHEAD_S, Ahead, most_ahead
from backend.context import Context
from backend.problems import Problem
from backend.settings import Settings
from streamjoin.errors import InputError

LOGINS_OF_NAME_AND_ADDRESS = RateLimitItemPerMinute(10)
LOGINS_OF_ADDRESS = RateLimitItemPerMinute(60)
LOGINS_OF_NAME = RateLimitItemPerMinute(100)
"""From everywhere: many addresses are cheap, and some proxies let clients choose theirs."""
REDIS_WAIT_S = 0.5
REDIS_PAUSE_S = 5.0
KNOWN_CLIENTS = 1024
_PREFIX = "streamjoin:limits"
_WAITS: dict[str, Any] = {"socket_timeout": REDIS_WAIT_S, "socket_connect_timeout": REDIS_WAIT_S}
_log = logging.getLogger("streamjoin.auth")


class Limits:
    """The limits of one API process.

    Raises:
        InputError: `rate_limit` is none.
    """

    def __init__(self, settings: Settings) -> None:
        try:
            self._of_requests: Sequence[RateLimitItem] = parse_many(settings.rate_limit)
        except ValueError:
            raise InputError(
                f'STREAMJOIN_RATE_LIMIT: "{settings.rate_limit[:50]}" is not a rate; write it as 600/minute'
            ) from None
        self._memory = MovingWindowRateLimiter(MemoryStorage())
        self._redis = _in_redis(settings.redis_url)
        self._redis_url = settings.redis_url
        self._redis_from_s = 0.0
        self._in_loop: _InLoop | None = None

    async def check_request(self, who: str) -> None:
        """Count a request of an actor or an address.

        Raises:
            Problem: there were too many; it says when to come again.
        """
        for item in self._of_requests:
            if not await self._hit(item, "requests", who):
                what = f"the limit is {item.amount} requests in {item.get_expiry()} s"
                raise await run_sync(self._refusal, item, "too_many_requests", what, "requests", who)

    async def close(self) -> None:
        """Give back what this event loop holds; it is made again where it is needed."""
        if self._in_loop is not None:
            await self._in_loop.close()
            self._in_loop = None

    def check_login(self, name: str, address: str) -> None:
        """Count an attempt to log in, before the password is looked at.

        Raises:
            Problem: there were too many; it says when to come again.
        """
        what = "too many attempts to log in"
        # The narrowest first: what one address may not try any more does not count for everybody else's attempts.
        self._take(LOGINS_OF_NAME_AND_ADDRESS, what, "logins", _short(name), address)
        self._take(LOGINS_OF_ADDRESS, what, "logins-of-address", address)
        self._take(LOGINS_OF_NAME, what, "logins-of-name", _short(name))

    def forgive_login(self, name: str, address: str) -> None:
        """The password was right: what was mistyped before does not count any more."""
        self._ask("clear", LOGINS_OF_NAME_AND_ADDRESS, "logins", _short(name), address)

    def _take(self, item: RateLimitItem, what: str, *of: str) -> None:
        if not self._ask("hit", item, *of):
            raise self._refusal(item, "too_many_logins", what, *of)

    def _refusal(self, item: RateLimitItem, subcode: str, what: str, *of: str) -> Problem:
        free_s = self._ask("get_window_stats", item, *of).reset_time - time.time()
        wait_s = min(max(1, math.ceil(free_s)), item.get_expiry())
        return Problem(f"rate_limited.{subcode}", f"{what}; come again in {wait_s} s", params={"wait_s": wait_s},
                       headers={"Retry-After": str(wait_s)})  # fmt: skip

    def _ask(self, method: str, item: RateLimitItem, *of: str, **values: Any) -> Any:
        if time.monotonic() >= self._redis_from_s:
            try:
                return getattr(self._redis, method)(item, *of, **values)
            except (redis.RedisError, OSError) as failure:
                # Not asked for a while: otherwise every request would wait for its time-out.
                self._redis_from_s = time.monotonic() + REDIS_PAUSE_S
                _log.warning(
                    "rate limits are counted by this process alone, as Redis fails: %s", type(failure).__name__
                )
        return getattr(self._memory, method)(item, *of, **values)

    async def _hit(self, item: RateLimitItem, *of: str) -> bool:
        """Every request comes by here, so it takes no thread as long as Redis answers."""
        if time.monotonic() < self._redis_from_s:
            return self._memory.hit(item, *of)
        if self._in_loop is None or self._in_loop.loop is not asyncio.get_running_loop():
            self._in_loop = _InLoop(self._redis_url, self._count)
        return await self._in_loop.hit(item, of)

    async def _count(self, limiter: LoopLimiter, item: RateLimitItem, of: tuple[str, ...], cost: int) -> bool:
        """Count so many requests; False if there is no room for all of them."""
        try:
            return await limiter.hit(item, *of, cost=cost)
        except (redis.RedisError, OSError):
            # It may be the loop that was late, or out of connections; a flood must not get around what is shared.
            return bool(await run_sync(partial(self._ask, "hit", item, *of, cost=cost)))


Count = Callable[[LoopLimiter, RateLimitItem, tuple[str, ...], int], Awaitable[bool]]


class _InLoop:
    """The limiter of one event loop; it counts under the same keys as that of the threads."""

    def __init__(self, url: str, count: Count) -> None:
        self.loop = asyncio.get_running_loop()
        self._pool = redis.asyncio.ConnectionPool.from_url(url, **_WAITS, retry=LoopRetry(NoBackoff(), 0))
        options: dict[str, Any] = {"connection_pool": self._pool}
        # The URL is the pool's; this one only names the kind.
        storage = LoopStorage("async+redis://", implementation="redispy", key_prefix=_PREFIX, **options)
        self._count = partial(count, LoopLimiter(storage))
        self._ahead: dict[tuple[RateLimitItem, tuple[str, ...]], Ahead] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def hit(self, item: RateLimitItem, of: tuple[str, ...]) -> bool:
        """Let a request pass, or not."""
        ahead = self._ahead.get((item, of))
        if ahead is None:
            if not (most := most_ahead(item.amount)):
                return await self._count(item, of, 1)
            ahead = self._ahead[item, of] = Ahead(most, partial(self._count, item, of))
            self.loop.call_later(AHEAD_S, self._over, item, of)
        return ahead.passes() or await ahead.ask()

    async def close(self) -> None:
        """Count what is owed, and give the connections back."""
        await asyncio.gather(*(ahead.end() for ahead in self._ahead.values()), *self._ending)
        await self._pool.disconnect()

    def _over(self, item: RateLimitItem, of: tuple[str, ...]) -> None:
        task = self.loop.create_task(self._end(item, of))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self, item: RateLimitItem, of: tuple[str, ...]) -> None:
        ahead = self._ahead[item, of]
        await ahead.end()
        if ahead.is_settled:
            del self._ahead[item, of]
        else:
            self.loop.call_later(AHEAD_S, self._over, item, of)


def limits_of(context: Context) -> Limits:
    """The app's."""
    found = context.shared.get("limits")
    if found is None:
        found = context.shared.setdefault("limits", Limits(context.settings))
    assert isinstance(found, Limits)
    return found


def address_of(client: Any) -> str:
    """What counts as one client address, from ASGI's `client`: of IPv6 the /64 network, as one host has all of it."""
    return _client_of(str(client[0])) if client else "unknown"


@lru_cache(KNOWN_CLIENTS)
def _client_of(host: str) -> str:
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else str(ip_network((address.packed, 64), strict=False))
    return host


def _in_redis(url: str) -> MovingWindowRateLimiter:
    try:
        # Without retries: the client's own would hold a request for seconds.
        options: dict[str, Any] = {**_WAITS, "retry": Retry(NoBackoff(), 0)}
        return MovingWindowRateLimiter(RedisStorage(url, key_prefix=_PREFIX, **options))
    except ValueError:
        raise InputError(
            "STREAMJOIN_REDIS_URL is not a URL of Redis; write redis://host:port/0, or unix:///path?db=0"
        ) from None


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]
