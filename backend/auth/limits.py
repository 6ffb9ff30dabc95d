"""How often somebody may ask: moving windows in Redis, which API processes share, or in memory while it is away."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Sequence
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
                f'STREAMJOIN_RATE_LIMIT: "{settings.rate_limit[:50]}" is no rate; write it as 600/minute'
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
                raise await run_sync(self._refusal, item, what, "requests", who)

    async def close(self) -> None:
        """Give back what this event loop holds; it is made again where it is needed."""
        if self._in_loop is not None:
            await self._in_loop.pool.disconnect()
            self._in_loop = None

    def check_login(self, name: str, address: str) -> None:
        """Count an attempt to log in, before the password is looked at.

        Raises:
            Problem: there were too many; it says when to come again.
        """
        what = "too many attempts to log in"
        self._take(LOGINS_OF_ADDRESS, what, "logins-of-address", address)
        self._take(LOGINS_OF_NAME, what, "logins-of-name", _short(name))
        self._take(LOGINS_OF_NAME_AND_ADDRESS, what, "logins", _short(name), address)

    def forgive_login(self, name: str, address: str) -> None:
        """The password was right: what was mistyped before does not count any more."""
        self._ask("clear", LOGINS_OF_NAME_AND_ADDRESS, "logins", _short(name), address)

    def _take(self, item: RateLimitItem, what: str, *of: str) -> None:
        if not self._ask("hit", item, *of):
            raise self._refusal(item, what, *of)

    def _refusal(self, item: RateLimitItem, what: str, *of: str) -> Problem:
        free_s = self._ask("get_window_stats", item, *of).reset_time - time.time()
        wait_s = min(max(1, math.ceil(free_s)), item.get_expiry())
        return Problem("rate_limited", f"{what}; come again in {wait_s} s", headers={"Retry-After": str(wait_s)})

    def _ask(self, method: str, item: RateLimitItem, *of: str) -> Any:
        if time.monotonic() >= self._redis_from_s:
            try:
                return getattr(self._redis, method)(item, *of)
            except (redis.RedisError, OSError) as failure:
                # Not asked for a while: otherwise every request would wait for its time-out.
                self._redis_from_s = time.monotonic() + REDIS_PAUSE_S
                _log.warning(
                    "rate limits are counted by this process alone, as Redis fails: %s", type(failure).__name__
                )
        return getattr(self._memory, method)(item, *of)

    async def _hit(self, item: RateLimitItem, *of: str) -> bool:
        """Every request comes by here, so it takes no thread as long as Redis answers."""
        if time.monotonic() < self._redis_from_s:
            return self._memory.hit(item, *of)
        if self._in_loop is None or self._in_loop.loop is not asyncio.get_running_loop():
            self._in_loop = _InLoop(self._redis_url)
        try:
            return await self._in_loop.limiter.hit(item, *of)
        except (redis.RedisError, OSError):
            # It may be the loop that was late, or out of connections; a flood must not get around what is shared.
            return bool(await run_sync(self._ask, "hit", item, *of))


class _InLoop:
    """The limiter of one event loop; it counts under the same keys as that of the threads."""

    def __init__(self, url: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.pool = redis.asyncio.ConnectionPool.from_url(url, **_WAITS, retry=LoopRetry(NoBackoff(), 0))
        options: dict[str, Any] = {"connection_pool": self.pool}
        # The URL is the pool's; this one only names the kind.
        storage = LoopStorage("async+redis://", implementation="redispy", key_prefix=_PREFIX, **options)
        self.limiter = LoopLimiter(storage)


def limits_of(context: Context) -> Limits:
    """The app's."""
    found = context.shared.get("limits")
    if found is None:
        found = context.shared.setdefault("limits", Limits(context.settings))
    assert isinstance(found, Limits)
    return found


def address_of(client: Any) -> str:
    """What counts as one client address, from ASGI's `client`: of IPv6 the /64 network, as one host has all of it."""
    host = str(client[0]) if client else "unknown"
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
            "STREAMJOIN_REDIS_URL is no URL of Redis; write redis://host:port/0, or unix:///path?db=0"
        ) from None


def _short(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]
