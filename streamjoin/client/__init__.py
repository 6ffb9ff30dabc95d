"""Use the platform from Python: `Client`, or `AsyncClient` on an event loop.

with Client() as platform:
    platform.streams.create("bids", {"source": "generator", "kind": "nexmark.bid", "time": "ts"})
    platform.jobs.start("wins", wait_s=60)
    frame = platform.query("wins", key=4711).to_pandas()
    for news in platform.tail("wins"):
        print(news.snapshot, news.rows)
"""

from streamjoin.client.answer import Answer
from streamjoin.client.calls.phases import WaitedTooLong
from streamjoin.client.client import AsyncClient, Client
from streamjoin.client.errors import (
    AnswerError,
    ChangedMeanwhile,
    Conflict,
    Forbidden,
    Invalid,
    NoAnswer,
    NotFound,
    RateLimited,
    StreamJoinApiError,
    Unauthenticated,
    Unavailable,
)
from streamjoin.client.tailing import Expired, News

__all__ = [
    "Answer",
    "AnswerError",
    "AsyncClient",
    "ChangedMeanwhile",
    "Client",
    "Conflict",
    "Expired",
    "Forbidden",
    "Invalid",
    "News",
    "NoAnswer",
    "NotFound",
    "RateLimited",
    "StreamJoinApiError",
    "Unauthenticated",
    "Unavailable",
    "WaitedTooLong",
]
