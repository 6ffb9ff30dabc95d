"""One question to a feed, and the payloads made for it recently."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from backend.results.conditions import parts_of
from backend.results.limits import Limits
from backend.results.payload import Payload
from streamjoin.results.description import Description
from streamjoin.results.question import Question
from streamjoin.results.rows import Rows
from streamjoin.results.snapshot import SnapshotId


class Following(Protocol):
    """What a feed asks of whoever follows it, in the loop's thread."""

    def offer(self, payload: Payload) -> None:
        """A new snapshot."""

    def finish(self, reason: str) -> None:
        """Nothing more will come."""


class View:
    """One question to a feed: a filter and columns. Payloads that were made lately are kept for who comes back.

    Args:
        question: its `where` and `select`.
    Attributes:
        actor: who asked it first.
        parts: how many parts of its condition are evaluated for each block.
    """

    def __init__(self, question: Question, description: Description) -> None:
        self.key = (question.where, question.select)
        self.rows = Rows(question, description.schema, description.identity)
        self.parts = parts_of(self.rows.where)
        self.followers: set[Following] = set()
        self.users = 0
        self.actor: str | None = None
        self._made: OrderedDict[SnapshotId, Payload] = OrderedDict()
        self._made_bytes = 0
        self._being_made: dict[SnapshotId, asyncio.Future[Payload]] = {}

    def remember(self, payload: Payload, limits: Limits) -> None:
        """Keep it, as long as it is among the last made."""
        if payload.id in self._made:
            return
        self._made[payload.id] = payload
        self._made_bytes += payload.size
        while len(self._made) > limits.queue_snapshots or (
            self._made_bytes > limits.queue_bytes and len(self._made) > 1
        ):
            _, oldest = self._made.popitem(last=False)
            self._made_bytes -= oldest.size

    async def payload(self, id: SnapshotId, make: Callable[[], asyncio.Future[Payload]], limits: Limits) -> Payload:
        """Of a snapshot: kept, or made once for all who wait for it."""
        if (found := self._made.get(id)) is not None:
            return found
        if (being_made := self._being_made.get(id)) is None:
            being_made = self._being_made[id] = make()
            being_made.add_done_callback(lambda done: self._is_made(id, done, limits))
        # One who leaves must not take the others' away.
        return await asyncio.shield(being_made)

    def _is_made(self, id: SnapshotId, done: asyncio.Future[Payload], limits: Limits) -> None:
        del self._being_made[id]
        if not done.cancelled() and done.exception() is None:
            self.remember(done.result(), limits)
