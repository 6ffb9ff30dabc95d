"""What one API process has for questions: places, readers, threads, and the hub of continuous queries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from backend.context import Context
from backend.results.answers import Answerer, Running
from backend.results.holding import Holding
from backend.results.hub import Hub
from backend.results.limits import Limits
from backend.results.memory import memory_spec
from backend.results.places import Places
from backend.results.readers import Readers
from backend.results.recent import Memory
from backend.results.slots import Slots
from backend.results.turns import Turns
from streamjoin.results.block import hash_sum
from streamjoin.results.stores.redis import RedisStore

T = TypeVar("T")
THREADS = 4
OF_ONE = 2
"""Threads that questions of one actor have at once. More make none faster: most of the work holds the interpreter."""
_SHARED = "results"


@dataclass(slots=True)
class Service:
    """One app's."""

    limits: Limits
    places: Places
    readers: Readers
    answerer: Answerer
    hub: Hub
    pool: ThreadPoolExecutor
    turns: Turns

    async def run(self, act: Callable[[], T]) -> T:
        """Do something that blocks, in a thread of the questions' own."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, act)

    async def step(self, running: Running) -> bytes:
        """The next piece of an answer, once it is its actor's turn; see `Running.step`."""
        async with self.turns.turn(running.actor) as turn:
            return await turn.run(running.step)

    def let_go(self, running: Running) -> None:
        """End an answer that nobody waits for; its thread ends at the next block."""
        running.abandon()
        with suppress(RuntimeError):  # the process is ending, and its threads with it
            self.pool.submit(running.close)

    async def close(self) -> None:
        """Let go of everything."""
        await self.hub.close()
        await asyncio.to_thread(self.pool.shutdown, cancel_futures=True)
        self.readers.close()


def service_of(context: Context) -> Service:
    """The app's, made at its first use."""
    found = context.shared.get(_SHARED)
    if found is None:
        found = context.shared[_SHARED] = _make(context, context.shared.get("results.limits", Limits()))
    assert isinstance(found, Service)
    return found


def _make(context: Context, limits: Limits) -> Service:
    store = memory_spec(context.settings, reading=True).open()
    assert isinstance(store, RedisStore)
    places = Places(context.settings, context.catalog)
    readers = Readers(Memory(store))
    holding = Holding(limits.held_bytes_an_answer, limits.held_bytes_an_actor, limits.held_bytes)
    answerer = Answerer(places, readers, limits, Slots(limits.answers, limits.answers_an_actor), holding)
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="question")
    pool.submit(_warm_up)
    hub = Hub(places, readers, context.catalog, limits, pool)
    return Service(limits, places, readers, answerer, hub, pool, Turns(pool, OF_ONE))


def _warm_up() -> None:
    """Have what checks blocks compiled before somebody waits for the first one."""
    columns = {"n": pa.array([1]), "price": pa.array([1.0]), "name": pa.array(["x"]), "binary": pa.array([b"x"])}
    hash_sum(pa.RecordBatch.from_pydict(columns))


@asynccontextmanager
async def running(context: Context) -> AsyncIterator[Service]:
    """For as long as the app."""
    service = service_of(context)
    try:
        yield service
    finally:
        await service.close()
        context.shared.pop(_SHARED, None)
