"""Requests that are let through before they are counted, since to count one costs as much as to answer it.

Who was just let through is let through a few times more, for a moment. What passed so is counted with the request that
comes next, or when the moment is over. Where there is no room for it, nothing more passes until there is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

AHEAD = 100
"""This part of a limit may pass before it is counted; of a lower limit nothing may."""
AHEAD_MAX = 100
AHEAD_S = 0.1
"""So long it may not be counted."""


def most_ahead(amount: int) -> int:
    """How many requests may pass before they are counted, with a limit of `amount`."""
    return min(amount // AHEAD, AHEAD_MAX)


class Ahead:
    """One client's requests that one event loop has not counted: never more than `most`, however many ask at once.

    Args:
        count: counts so many requests; False, and none of them counted, if there is no room for all of them.
    """

    def __init__(self, most: int, count: Callable[[int], Awaitable[bool]]) -> None:
        self.most = most
        self._count = count
        self._more = 0
        self._owed = 0
        self._uncounted = 0  # what is owed, and what is being counted
        self._counting = 0

    @property
    def is_settled(self) -> bool:
        """Whether nothing is owed, nor being counted."""
        return not self._uncounted and not self._counting

    def passes(self) -> bool:
        """Whether one request more may pass without being counted first; if so, it is owed."""
        if not self._more:
            return False
        self._more -= 1
        self._owed += 1
        self._uncounted += 1
        return True

    async def ask(self) -> bool:
        """Count a request, and what is owed; False if there is no room for all of it."""
        counted = await self._settle(1)
        self._more = self.most - self._uncounted if counted else 0
        return counted

    async def end(self) -> None:
        """The moment is over: count what is owed, if there is room for it."""
        self._more = 0
        if self._owed:
            await self._settle(0)

    async def _settle(self, new: int) -> bool:
        owed, self._owed, self._more = self._owed, 0, 0
        counted = False
        self._counting += 1
        try:
            counted = await self._count(owed + new)
        finally:
            self._counting -= 1
            if counted:
                self._uncounted -= owed
            else:
                self._owed += owed
        return counted
