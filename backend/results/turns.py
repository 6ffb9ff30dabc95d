"""Steps of answers that one actor has in threads at once: fewer than there are threads.

A question that finds nothing holds its thread for as long as it may take. Whoever asks several such waits for those,
and others do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class _Of:
    places: asyncio.Semaphore
    users: int = 0


class Turns:
    """Of one process; all of it runs in the loop's thread.

    Args:
        of_one: steps of one actor at once.
    """

    def __init__(self, of_one: int) -> None:
        self.of_one = of_one
        self._turns: dict[str | None, _Of] = {}

    @asynccontextmanager
    async def turn(self, actor: str | None) -> AsyncIterator[None]:
        """Wait for a turn, in the order of asking, and have it in the block.

        Args:
            actor: whose; None where everybody is the same.
        """
        turns = self._turns.setdefault(actor, _Of(asyncio.Semaphore(self.of_one)))
        turns.users += 1
        try:
            async with turns.places:
                yield
        finally:
            turns.users -= 1
            if not turns.users:
                del self._turns[actor]
