"""How many threads of a pool one actor may have at once: fewer than there are.

A question that finds nothing holds its thread for as long as it may take. Whoever asks several such waits for those,
and others do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Of:
    places: asyncio.Semaphore
    users: int = 0


class Turn:
    """An actor's turn: the right to do one thing in a thread."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._work: Future[Any] | None = None

    def run(self, act: Callable[[], T]) -> asyncio.Future[T]:
        """Do something that blocks. If the caller is cancelled, the turn lasts until the thread is free again."""
        work = self._work = self._pool.submit(act)
        return asyncio.wrap_future(work)

    def call_when_free(self, act: Callable[[], None]) -> None:
        """Call `act` in the loop's thread: now, or once the thread is free."""
        if self._work is None or self._work.done():
            act()
            return
        loop = asyncio.get_running_loop()

        def tell(_: Future[Any]) -> None:
            with suppress(RuntimeError):  # the loop is closed, because the process is ending
                loop.call_soon_threadsafe(act)

        self._work.add_done_callback(tell)


class Turns:
    """Of one pool; all of it runs in the loop's thread.

    Args:
        of_one: threads of one actor at once.
    """

    def __init__(self, pool: Executor, of_one: int) -> None:
        self.of_one = of_one
        self._pool = pool
        self._turns: dict[str | None, _Of] = {}

    @asynccontextmanager
    async def turn(self, actor: str | None) -> AsyncIterator[Turn]:
        """Wait for a turn, in the order of asking, and have it in the block.

        Args:
            actor: whose; None where everybody is the same.
        """
        turns = self._turns.setdefault(actor, _Of(asyncio.Semaphore(self.of_one)))
        turns.users += 1
        try:
            await turns.places.acquire()
        except BaseException:
            self._leave(actor)
            raise
        turn = Turn(self._pool)
        try:
            yield turn
        finally:
            turn.call_when_free(lambda: self._give_back(actor))

    def _give_back(self, actor: str | None) -> None:
        self._turns[actor].places.release()
        self._leave(actor)

    def _leave(self, actor: str | None) -> None:
        self._turns[actor].users -= 1
        if not self._turns[actor].users:
            del self._turns[actor]
