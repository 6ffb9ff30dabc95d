"""One client's subscription: what waits for it, what it missed, and where it is."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from backend.cells import time_text
from backend.columns import Column, columns_of
from backend.problems import Problem, from_engine, unexpected
from backend.results.conditions import bound_condition
from backend.results.feed import Feed
from backend.results.frames import Gap, Progress, Schema, Subscription
from backend.results.payload import Payload
from backend.results.trouble import store_problem
from backend.results.turns import Turns
from backend.results.view import View
from streamjoin.errors import InputError, StreamJoinError
from streamjoin.plan.join import RESULT_KEY
from streamjoin.plan.schema import type_name
from streamjoin.results.question import Question
from streamjoin.results.reader import ExpiredError
from streamjoin.results.snapshot import FIRST, Snapshot, SnapshotId
from streamjoin.results.stores.store import StoreError

_log = logging.getLogger("streamjoin.results")

T = TypeVar("T")
ROUNDS = 20
"""So often what was committed while history was sent is taken for history too; then the client is simply slow."""
NEAR_S = 1.0
FUTURE_S = 2.0
"""Another process may have shown a snapshot a moment before this one sees it."""
TRIES = 5
ROWS_GONE = 'subscribe from "oldest", or from "now"; there will be a gap'
GROUPS_GONE = 'subscribe from "oldest", which begins with the last value of each group; forget those you have'


class Follower:
    """A subscription. All of it runs in the loop's thread.

    History comes first, at the client's pace and one snapshot at a time; what is committed meanwhile waits in the queue
    behind it. The two never overlap: `Feed.attach` says where the one ends and the other begins.

    Args:
        wake: called when there is something to take.
        turns: in which it has threads.
        actor: whose it is; None where everybody is the same.
        schema: set once it is known; it goes before everything else.
        position: everything up to it was sent, or had no rows for this client.
        reason: why nothing more comes, with `problem` if it failed.
        dropped_snapshots: since the beginning.
    """

    def __init__(
        self, feed: Feed, asked: Subscription, wake: Callable[[], None], turns: Turns, actor: str | None = None
    ) -> None:
        self.feed = feed
        self.asked = asked
        self.wake = wake
        self.schema: Schema | None = None
        self.position: SnapshotId | None = None
        self.reason: str | None = None
        self.problem: Problem | None = None
        self.dropped_snapshots = 0
        self._turns = turns
        self._actor = actor
        self._view: View | None = None
        self._queue: deque[Payload] = deque()
        self._queue_bytes = 0
        self._gap: Gap | None = None
        self._gap_snapshots = 0
        self._newest = FIRST
        self._behind = True
        self._history: Payload | None = None
        self._base: Snapshot | None = None
        self._room = asyncio.Event()
        self._not_before_s = 0.0
        self._was_ready = feed.ready.is_set()
        feed.followers.add(self)
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def waiting(self) -> int:
        """Snapshots in the queue."""
        return len(self._queue)

    def close(self) -> None:
        """Nobody takes any more."""
        self._task.cancel()
        self.feed.followers.discard(self)
        if self._view is not None:
            self._view.followers.discard(self)
            self.feed.leave(self._view)
            self._view = None
        self._queue.clear()
        self._history = None

    def finish(self, reason: str, problem: Problem | None = None) -> None:
        """Nothing more will come."""
        if self.reason is None:
            self.reason, self.problem = reason, problem
            if self._view is not None:
                self._view.followers.discard(self)
            if asyncio.current_task() is not self._task:
                self._task.cancel()
            self.wake()

    def offer(self, payload: Payload) -> None:
        """A new snapshot; if the client is too slow the oldest that wait are dropped, whole and counted."""
        if payload.id <= self._newest or self.reason is not None:
            return
        self._newest = payload.id
        if not payload.parts and not self._queue and not self._behind:
            self.position = payload.id
            return
        self._queue.append(payload)
        self._queue_bytes += payload.size
        limits = self.feed.limits
        while len(self._queue) > limits.queue_snapshots or (
            self._queue_bytes > limits.queue_bytes and len(self._queue) > 1
        ):
            if self._needs_all or self.asked.backpressure == "disconnect":
                self._queue.clear()
                # Whoever wants to be told may go on behind what it has; who wants gaps can have none of groups.
                self.finish("too_slow" if self.asked.backpressure == "disconnect" else "resync")
                return
            self._drop(self._queue.popleft())
        self.wake()

    @property
    def _needs_all(self) -> bool:
        """Whether what was dropped would be missing for good: the last value of a group may be in it."""
        return self.schema is not None and bool(self.schema.groups)

    def _drop(self, payload: Payload) -> None:
        self._queue_bytes -= payload.size
        if not payload.parts:
            return
        first = self._gap.first if self._gap else str(payload.id)
        rows = self._gap.rows if self._gap else 0
        self._gap = Gap(first=first, last=str(payload.id), rows=rows + payload.rows)
        self._gap_snapshots += 1
        self.dropped_snapshots += 1
        self.feed.dropped_snapshots += 1
        self.feed.dropped_rows += payload.rows

    def take(self, now_s: float) -> tuple[Payload, int, Gap | None] | None:
        """What is to be sent next: rows, how many snapshots were dropped before them, and which."""
        if now_s < self._not_before_s:
            return None
        while True:
            dropped, gap = 0, None
            if self._behind:
                if self._history is None:
                    return None
                payload, self._history = self._history, None
                self._room.set()
            elif self._queue:
                payload = self._queue.popleft()
                self._queue_bytes -= payload.size
                if payload.parts:
                    dropped, gap = self._gap_snapshots, self._gap
                    self._gap_snapshots, self._gap = 0, None
            else:
                return None
            if payload.parts:
                break
            self.position = payload.id
        if self.asked.max_rate is not None:
            self._not_before_s = now_s + 1 / self.asked.max_rate
        return payload, dropped, gap

    def ready_s(self, now_s: float) -> float | None:
        """When there may be something to take, if the asked rate is all that holds it back."""
        if self._not_before_s > now_s and (self._history is not None or (self._queue and not self._behind)):
            return self._not_before_s
        return None

    def is_done(self) -> bool:
        """Whether all was taken, and nothing more comes."""
        if self.reason is None:
            return False
        return self.problem is not None or (self._history is None and (self._behind or not self._queue))

    def progress(self, now_us: int) -> Progress:
        """How far it is."""
        feed = self.feed
        lag_ms = None if feed.clock_us is None else max(now_us - feed.clock_us, 0) // 1000
        return Progress(
            snapshot=None if self.position is None else str(self.position),
            mark=time_text(feed.mark_us),
            lag_ms=lag_ms,
            phase=feed.phase,
            waiting=len(self._queue),
        )

    # The task.

    async def _run(self) -> None:
        try:
            await self._wait_until_ready()
            after = await self._begin()
            await self._catch_up(after)
        except Problem as problem:
            self.finish("resync" if problem.subcode == "other_results" else "failed", problem)
        except ExpiredError as gone:
            groups = self.feed.description is not None and self.feed.description.identity
            self.finish("resync", Problem("conflict.expired", str(gone), hint=GROUPS_GONE if groups else ROWS_GONE))
        except InputError as wrong:
            self.finish("failed", from_engine(wrong))
        except StreamJoinError as failure:
            self.finish("failed", store_problem(self.feed.place, failure))
        except RecursionError:
            self.finish(
                "failed", Problem("invalid.nested_too_deeply", "the condition is nested too deeply; write it flatter")
            )
        except Exception:
            # Without a last word the client would wait for ever.
            _log.exception("following job %s for a client failed", self.feed.place.job_id)
            self.finish("failed", unexpected())

    async def _wait_until_ready(self) -> None:
        while not self.feed.ready.is_set():
            if self.feed.trouble is not None:
                raise self.feed.trouble
            try:
                async with asyncio.timeout(0.5):
                    await self.feed.ready.wait()
            except TimeoutError:
                continue

    async def _begin(self) -> SnapshotId:
        """Bind the question; where to go on from."""
        feed, asked = self.feed, self.asked
        after: SnapshotId
        match asked.from_:
            case "now":
                # Who asked before the first snapshot wants that one too.
                assert feed.last is not None
                early = feed.began_empty and not self._was_ready
                after, self._base = await self._in_thread(feed.oldest) if early else (feed.last, None)
            case "oldest":
                after, self._base = await self._in_thread(feed.oldest)
            case text:
                after = SnapshotId.parse(text)
                feed.check_is_of(asked.results)
                await self._wait_for(after)
                await self._in_thread(lambda: feed.check_is_ours(after))
        select = None if asked.select is None else tuple(asked.select)
        description = feed.description
        assert description is not None
        view = feed.view(asked.where, select)
        if view is None:  # reading a long condition takes time that others should not wait for
            bound = await self._in_thread(lambda: bound_condition(self._actor, asked.where, description))
            view = View(Question(where=asked.where, select=select, bound=bound), description)
        self._view = view = feed.join(view, self._actor)
        key, stored = None, description.schema
        if RESULT_KEY in stored.names:
            key = Column(name=description.key_name or "key", type=type_name(stored.field(RESULT_KEY).type))
        # Whoever has no more than the schema has nothing of the base, and begins with it again.
        self.position = None if after == FIRST or self._base is not None else after
        self.schema = Schema(
            job=feed.place.job_id,
            job_name=feed.place.job_name,
            columns=columns_of(view.rows.schema),
            key=key,
            groups=list(description.identity),
            snapshot=None if self.position is None else str(self.position),
            results=feed.place.name,
        )
        self.wake()
        return after

    async def _wait_for(self, id: SnapshotId) -> None:
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + FUTURE_S
        while self.feed.last is None or self.feed.last < id:
            if loop.time() > ends_s:
                raise Problem(
                    "invalid.not_committed", f"snapshot {id} has not been committed; the newest is {self.feed.last}"
                )
            await asyncio.sleep(0.02)

    async def _catch_up(self, after: SnapshotId) -> None:
        feed, view = self.feed, self._view
        assert view is not None
        loop = asyncio.get_running_loop()
        await self._give_base(view)
        for _ in range(ROUNDS):
            upto, begun_s = feed.last, loop.time()
            assert upto is not None
            if after >= upto:
                break
            await self._give(view, after, upto)
            after = upto
            if loop.time() - begun_s < NEAR_S:
                break
        self._newest = feed.attach(view, self)
        if after < self._newest:
            await self._give(view, after, self._newest)
        await self._taken()
        self._behind = False
        self.wake()

    async def _give_base(self, view: View) -> None:
        """Of groups that change, the last values as of the removed snapshots, as a snapshot of its own."""
        base, self._base = self._base, None
        if base is not None:
            self._history = await self._in_thread(lambda: self.feed.make_base(base, view))
            self.wake()
            await self._taken()

    async def _give(self, view: View, after: SnapshotId, upto: SnapshotId) -> None:
        while after < upto:
            found = await self._patiently(lambda after=after: self.feed.snapshots(after, upto))  # type: ignore[misc]
            if not found:
                return
            for snapshot in found:
                payload = await self._payload(view, snapshot)
                await self._taken()
                self._history = payload
                self.wake()
            after = found[-1].id

    async def _taken(self) -> None:
        while self._history is not None:
            self._room.clear()
            await self._room.wait()

    async def _payload(self, view: View, snapshot: Snapshot) -> Payload:
        make = partial(self.feed.make, view, snapshot)
        for left in range(TRIES, 0, -1):
            try:
                # The turn comes first: otherwise others could wait for a payload whose maker has no turn yet.
                async with self._turns.turn(self._actor) as turn:
                    return await view.payload(snapshot.id, partial(turn.run, make), self.feed.limits)
            except StoreError:
                if left == 1:
                    raise
                await asyncio.sleep(1 / left)
        raise AssertionError

    async def _patiently(self, act: Callable[[], list[Snapshot]]) -> list[Snapshot]:
        for left in range(TRIES, 0, -1):
            try:
                return await self._in_thread(act)
            except StoreError:
                if left == 1:
                    raise
                await asyncio.sleep(1 / left)
        raise AssertionError

    async def _in_thread(self, act: Callable[[], T]) -> T:
        async with self._turns.turn(self._actor) as turn:
            return await turn.run(act)
