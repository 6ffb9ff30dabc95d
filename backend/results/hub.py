"""All continuous questions of one process: one feed a job, however many follow it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from backend.catalog import lifecycle, models
from backend.catalog.database import Catalog
from backend.catalog.entries import WITHOUT_ENTRIES
from backend.problems import Problem
from backend.results.feed import Feed
from backend.results.follower import Follower
from backend.results.frames import Subscription
from backend.results.limits import Limits
from backend.results.payload import Held
from backend.results.places import Place, Places
from backend.results.readers import Readers
from backend.results.turns import Turns
from streamjoin.results.stores.spec import StoreSpec

LOOK_S = 1.0
"""How often the catalog is asked what became of the jobs that are followed."""
THREADS = 4
OF_ONE = 2
"""Threads that one actor may have at once, to read history or bind conditions."""

_log = logging.getLogger("streamjoin.results")


class Hub:
    """Feeds and who follows them. All of it runs in the loop's thread.

    Args:
        sockets: websockets and event streams that are open, by whose they are.
        held: the memory that snapshots take which wait for somebody.
    """

    def __init__(self, places: Places, readers: Readers, catalog: Catalog, limits: Limits, pool: Executor) -> None:
        self.limits = limits
        self.held = Held()
        self.sockets: dict[str, int] = {}
        self._places = places
        self._readers = readers
        self._catalog = catalog
        self._pool = pool
        self._history_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="history")
        self._turns = Turns(self._history_pool, OF_ONE)
        self._feeds: dict[tuple[StoreSpec, str], Feed] = {}
        self._looking: asyncio.Task[None] | None = None

    def enter(self, actor: str) -> None:
        """One more socket.

        Raises:
            Problem: there are too many.
        """
        if self.sockets.get(actor, 0) >= self.limits.sockets_an_actor:
            raise Problem(
                "rate_limited.too_many_sockets",
                f"{self.limits.sockets_an_actor} connections of yours are open; close one",
            )
        if sum(self.sockets.values()) >= self.limits.sockets:
            raise Problem(
                "rate_limited.all_sockets_taken",
                f"{self.limits.sockets} connections are open, which is all there may be",
            )
        self.sockets[actor] = self.sockets.get(actor, 0) + 1

    def leave(self, actor: str) -> None:
        """One less."""
        self.sockets[actor] -= 1
        if not self.sockets[actor]:
            del self.sockets[actor]

    async def follow(self, asked: Subscription, wake: Callable[[], None], actor: str | None = None) -> Follower:
        """Begin a subscription; `close_follower` ends it.

        Args:
            actor: whose it is; None where everybody is the same.
        Raises:
            Problem: there is no such job.
        """
        loop = asyncio.get_running_loop()
        place = await loop.run_in_executor(self._pool, self._places.find, asked.job)
        feed = self._feeds.get(place.key)
        if feed is None or feed.is_over:
            feed = self._feeds[place.key] = self._begin(place, loop)
        return Follower(feed, asked, wake, self._turns, actor)

    def _begin(self, place: Place, loop: asyncio.AbstractEventLoop) -> Feed:
        feed = Feed(place, self._readers, self.limits, self.held, loop)
        feed.start()
        if self._looking is None or self._looking.done():
            self._looking = loop.create_task(self._look_at_jobs())
        return feed

    def close_follower(self, follower: Follower) -> None:
        """It is no longer served. Its job is followed a little longer, for who comes right back."""
        follower.close()
        if not follower.feed.followers:
            asyncio.get_running_loop().call_later(self.limits.linger_s, self._end_if_alone, follower.feed)

    def _end_if_alone(self, feed: Feed) -> None:
        if not feed.followers:
            feed.stop()
            self._forget(feed)

    async def _look_at_jobs(self) -> None:
        loop = asyncio.get_running_loop()
        while self._feeds:
            asked = list(self._feeds.values())  # others may begin while the catalog is asked
            try:
                rows = await loop.run_in_executor(self._pool, self._rows, {feed.place.job_id for feed in asked})
            except SQLAlchemyError as failure:
                _log.warning("the catalog does not say what became of jobs: %s", failure)
            else:
                self._tell(asked, rows)
            await asyncio.sleep(LOOK_S)

    def _rows(self, ids: set[str]) -> dict[str, models.Job]:
        with self._catalog.read() as session:
            found = select(models.Job).options(*WITHOUT_ENTRIES).where(models.Job.id.in_(ids))
            return {job.id: job for job in session.scalars(found)}

    def _tell(self, asked: list[Feed], rows: dict[str, models.Job]) -> None:
        for feed in asked:
            job = rows.get(feed.place.job_id)
            if job is None or job.wanted == lifecycle.DELETED:
                feed.end("deleted")
            elif job.results_of(feed.place.query) != feed.place.name:
                feed.end("restarted")
            else:
                feed.phase = job.phase
            if feed.is_over:
                self._forget(feed)

    def _forget(self, feed: Feed) -> None:
        if self._feeds.get(feed.place.key) is feed:
            del self._feeds[feed.place.key]

    def figures(self) -> dict[str, Any]:
        """What the hub holds, for metrics and tests."""
        return {
            "sockets": sum(self.sockets.values()),
            "held_bytes": self.held.bytes,
            "held_snapshots": self.held.count,
            "jobs": [
                {
                    "job": feed.place.job_id, "followers": len(feed.followers), "views": feed.views,
                    "dropped_snapshots": feed.dropped_snapshots, "dropped_rows": feed.dropped_rows,
                    "memory_reads": feed.memory_reads, "durable_reads": feed.durable_reads,
                }
                for feed in self._feeds.values()
            ],
        }  # fmt: skip

    async def close(self) -> None:
        """End all feeds, and tell who follows them."""
        if self._looking is not None:
            self._looking.cancel()
        for feed in self._feeds.values():
            feed.end("closing")
        self._feeds.clear()
        self._history_pool.shutdown(wait=False, cancel_futures=True)
