"""A feed whose store cannot be read from the beginning: who follows it is told, and it goes on once that is over."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from backend.results import feed as feeds
from backend.results.feed import Feed
from backend.results.follower import Follower
from backend.results.frames import Subscription
from backend.results.limits import Limits
from backend.results.payload import Held
from backend.results.places import Place
from backend.results.readers import Readers
from backend.results.turns import Turns
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import StoreError

PLACE = Place("job_1", "matches", StoreSpec("sqlite", (("path", "/nowhere/results.db"),)), "matches.0")


class Broken:
    """Readers of a store that fails until it is `repaired`."""

    def __init__(self, failure: Exception, at_take: bool) -> None:
        self.failure: Exception | None = failure
        self.at_take = at_take
        self.taken = self.given = 0

    def take(self, _: Place) -> object:
        if self.failure is not None and self.at_take:
            raise self.failure
        self.taken += 1
        return self

    def give(self, _: object) -> None:
        self.given += 1

    def look(self) -> float:
        if self.failure is not None:
            raise self.failure
        return 0.01


async def followed(broken: Broken) -> Follower:
    feed = Feed(PLACE, cast(Readers, broken), Limits(), Held(), asyncio.get_running_loop())
    with ThreadPoolExecutor(1) as pool:
        feed.start()
        told = asyncio.Event()
        follower = Follower(feed, Subscription(job="matches"), told.set, Turns(pool, 1))
        await asyncio.wait_for(told.wait(), 10)
        assert feed._thread.is_alive()
        broken.failure = None
        ends_s = time.monotonic() + 10
        while feed.trouble is not None:
            assert time.monotonic() < ends_s
            await asyncio.sleep(0.01)
        feed.stop()
        await asyncio.to_thread(feed._thread.join, 10)
        return follower


@pytest.mark.parametrize(
    ("failure", "code"), [(StoreError("/a/path"), "unavailable"), (ZeroDivisionError("/a/path"), "internal")]
)
@pytest.mark.parametrize("at_take", [True, False])
def test_followers_are_told_of_a_trouble_and_the_feed_outlives_it(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, code: str, at_take: bool
) -> None:
    broken = Broken(failure, at_take)
    monkeypatch.setattr(feeds, "TROUBLE_S", (0.1, 0.1))
    monkeypatch.setattr(Feed, "_look", lambda _, opened: cast(Any, opened).look())
    follower = asyncio.run(followed(broken))
    assert follower.reason == "failed" and follower.problem is not None
    assert follower.problem.code == code and "path" not in follower.problem.detail
    assert broken.taken == broken.given == 1
