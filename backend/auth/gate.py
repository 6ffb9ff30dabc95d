"""How many requests of one actor are worked on at once: many of them wait in threads, of which a process has 40."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from backend.context import Context
from backend.problems import Problem

AT_ONCE: Final = 16
"""Of one user, or of one address that nobody has logged in from."""
WAIT_S: Final = 10.0
"""The next one waits for its turn, for so long."""
_FREE: Final = "is_free"
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def free(endpoint: Endpoint) -> Endpoint:
    """Mark the function of a route whose requests hold no thread while they last, and have limits of their own.

    The function, not its path: a job may be called as a path ends.
    """
    setattr(endpoint, _FREE, True)
    return endpoint


def is_free(endpoint: Callable[..., Any] | None) -> bool:
    """Whether a route is marked."""
    return getattr(endpoint, _FREE, False)


@dataclass(slots=True)
class _Turns:
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    users: int = 0


class Gate:
    """Of one process; all of it runs in the loop's thread."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turns] = {}

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it in the block.

        Raises:
            Problem: it did not come.
        """
        turns = self._turns.setdefault(who, _Turns())
        turns.users += 1
        try:
            await _wait(turns)
            try:
                yield
            finally:
                turns.places.release()
        finally:
            turns.users -= 1
            if not turns.users:
                del self._turns[who]


async def _wait(turns: _Turns) -> None:
    try:
        async with asyncio.timeout(WAIT_S):
            await turns.places.acquire()
    except TimeoutError:
        raise Problem(
            "rate_limited.too_many_at_once",
            f"{AT_ONCE} requests of yours are being worked on, which is the limit; wait for one to end",
            params={"limit": AT_ONCE}, headers={"Retry-After": "5"},
        ) from None  # fmt: skip


def gate_of(context: Context) -> Gate:
    """The app's."""
    found = context.shared.setdefault("gate", Gate())
    assert isinstance(found, Gate)
    return found
