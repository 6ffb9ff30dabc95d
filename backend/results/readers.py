"""Where a job's results are, and readers of them that are kept open.

A reader remembers the manifests it has read, so it is worth keeping; it serves one thread at a time, so each job has as
many as it was asked by threads at once. Beside the durable store there may be a memory of recent snapshots, in a Redis
that the drivers fill. It is used where it answers and has the job, and is never needed.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from backend.catalog import models
from backend.catalog.database import Catalog
from backend.jobs.joinfile import result_spec
from backend.jobs.service import find_job
from backend.problems import Problem
from backend.results import at_once
from backend.results.at_once import NotAtOnce
from backend.results.blocks import Blocks, KeepingReader
from backend.settings import Settings
from streamjoin.errors import InputError, StateError
from streamjoin.results.description import Description
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import Snapshot, SnapshotId
from streamjoin.results.stores.redis import RedisStore
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import BlockKey, Store, StoreError, StoreMissingError

KNOWN_S = 0.5
"""So long a job's row is taken for what it was: reads come in bursts, and jobs change by people's hands."""
KNOWN_MAX = 1000
IDLE_MAX = 64
SHOWN_MAX = 1000
RETRY_AFTER_S = 2
AWAY_S = 2.0
"""After the memory did not answer it is left alone for so long."""
ABSENT_S = 0.5
"""So long a job that the memory does not have is taken for absent: the durable store has all that it could get."""
MEMORY_TIMEOUT_S = 0.5

_log = logging.getLogger("streamjoin.results")


class Stopped(Exception):
    """Reading was told to stop: the client left, or time is up."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job's results are.

    Args:
        name: of the results in the store; it changes when the job is made to start anew.
        query: whose they are, if not the job's own query's.
    """

    job_id: str
    job_name: str
    spec: StoreSpec
    name: str
    query: str = ""

    @property
    def key(self) -> tuple[StoreSpec, str]:
        """What tells it apart from all others."""
        return self.spec, self.name


class Places:
    """Finds jobs' results; a job's join file is read once for each of its versions."""

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self._settings = settings
        self._catalog = catalog
        self._specs: OrderedDict[tuple[str, int, str], StoreSpec] = OrderedDict()
        self._found: OrderedDict[str, tuple[float, Place]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, id_or_name: str) -> Place:
        """The results of a job, or as `job:query` those of one of the queries beside its own.

        Raises:
            Problem: there is no such job, or no such query.
        """
        if (known := self.known(id_or_name)) is not None:
            return known
        asked, _, query = id_or_name.partition(":")
        with self._catalog.read() as session:
            job = find_job(session, asked)
        if query not in job.queries:
            others = ", ".join(job.queries[1:]) or "none"
            raise Problem(
                "not_found.no_query", f'job {job.name} has no query "{query[:100]}" beside its own; there are: {others}'
            )
        place = self._of(job, query)
        with self._lock:
            self._found[id_or_name] = time.monotonic(), place
            self._found.move_to_end(id_or_name)
            while len(self._found) > KNOWN_MAX:
                self._found.popitem(last=False)
        return place

    def known(self, id_or_name: str) -> Place | None:
        """The same, if it was found just now; the catalog is not asked."""
        with self._lock:
            found_s, found = self._found.get(id_or_name, (0.0, None))
        return found if found is not None and time.monotonic() - found_s < KNOWN_S else None

    def _of(self, job: models.Job, query: str) -> Place:
        version = (job.id, job.version, job.results_name)
        with self._lock:
            spec = self._specs.get(version)
        if spec is None:
            spec = result_spec(self._settings, job)
            with self._lock:
                self._specs[version] = spec
                while len(self._specs) > KNOWN_MAX:
                    self._specs.popitem(last=False)
        return Place(job.id, job.name, spec, job.results_of(query), query)


@dataclass
class Watch:
    """Tells a thread that reads to stop, and remembers what failed underneath of libraries that hide it.

    Args:
        ends_s: by the monotonic clock.
        expired: it was stopped because time was up.
        in_loop: nothing may be waited for.
        rows_left: so many rows may be given at once.
    """

    ends_s: float | None = None
    stop: bool = False
    expired: bool = False
    failure: Exception | None = None
    in_loop: bool = False
    rows_left: int = at_once.ROWS

    def may_wait(self) -> None:
        """Before something that takes time.

        Raises:
            NotAtOnce: it must not.
        """
        if self.in_loop:
            raise NotAtOnce

    def gives(self, rows: int) -> None:
        """Before rows are written.

        Raises:
            NotAtOnce: they are too many.
        """
        self.rows_left -= rows
        if self.rows_left < 0:
            self.may_wait()

    def check(self) -> None:
        """Between two reads.

        Raises:
            Stopped: no more of them.
        """
        if self.ends_s is not None and time.monotonic() >= self.ends_s:
            self.expired = True
        if self.expired or self.stop:
            raise Stopped


class WatchedStore:
    """A store whose blocks are read only as long as a watch allows, and nothing but the head at once; else as it is."""

    def __init__(self, store: Store, watch: Watch) -> None:
        self._store = store
        self._watch = watch

    def head(self, job: str) -> bytes | None:
        """See `Store`."""
        try:
            return self._store.head(job)
        except StoreError:
            self._watch.may_wait()  # a thread may try again, and says what failed
            raise

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        """See `Store`."""
        self._watch.may_wait()
        return self._store.get_records(job, first, last)

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        """See `Store`."""
        return self._watched(self._store.get_blocks(job, keys))

    def _watched(self, coming: Iterator[tuple[BlockKey, bytes]]) -> Iterator[tuple[BlockKey, bytes]]:
        self._watch.may_wait()  # here, as who has enough in the blocks that are kept asks for none of those that come
        self._watch.check()
        try:
            yield from coming
        except Exception as failure:
            self._watch.failure = failure
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class MemoryStore(WatchedStore):
    """The memory: blocks that it does not give are simply not there, and are read in the durable store."""

    def __init__(self, store: Store, watch: Watch, memory: Memory) -> None:
        super().__init__(store, watch)
        self._memory = memory

    def _watched(self, coming: Iterator[tuple[BlockKey, bytes]]) -> Iterator[tuple[BlockKey, bytes]]:
        self._watch.check()
        try:
            yield from coming
        except StoreError as failure:
            self._memory.is_away(failure)


class Memory:
    """The memory of recent snapshots, if there is one."""

    def __init__(self, store: RedisStore | None) -> None:
        self.store = store
        self._away_until_s = 0.0
        self._absent_until_s: dict[str, float] = {}

    def has(self, name: str) -> bool:
        """Whether it can be asked about these results just now."""
        now_s = time.monotonic()
        if self.store is None or now_s < self._away_until_s or now_s < self._absent_until_s.get(name, 0.0):
            return False
        try:
            if self.store.head(name) is not None:
                return True
        except StoreError as failure:
            self.is_away(failure)
            return False
        if len(self._absent_until_s) >= KNOWN_MAX:
            self._absent_until_s = {}
        self._absent_until_s[name] = now_s + ABSENT_S
        return False

    def is_away(self, failure: StoreError) -> None:
        """Leave it alone for a while."""
        if time.monotonic() >= self._away_until_s:
            _log.warning("the memory of recent results is not used: %s", failure)
        self._away_until_s = time.monotonic() + AWAY_S


@dataclass
class Opened:
    """Readers of one job for one thread at a time.

    Args:
        durable: of the store that lasts.
        recent: of the memory; it may have nothing of the job.
        shown: snapshots, each with the one before it, as the API shows them; `SHOWN_MAX` at most.
    """

    place: Place
    durable: KeepingReader
    recent: Reader | None
    watch: Watch
    memory: Memory
    shown: dict[SnapshotId, tuple[Snapshot, Snapshot | None, str]] = field(default_factory=dict)

    def memory_reader(self) -> Reader | None:
        """Of the memory, if it has the job, and may be asked: at once the durable store has to do, which has it all."""
        if self.recent is None or self.watch.in_loop or not self.memory.has(self.place.name):
            return None
        return self.recent

    def describe(self) -> tuple[Description, bool]:
        """What the results are, and whether the memory said so.

        Raises:
            NoResults: there are none yet.
        """
        if (recent := self.memory_reader()) is not None:
            try:
                return recent.description, True
            except (InputError, StoreError, StateError):
                pass  # it went away meanwhile
        if (
            not self.durable.is_known
            and self.place.spec.kind == "sqlite"
            and not os.path.exists(dict(self.place.spec.settings)["path"])
        ):
            raise NoResults(self.place)
        try:
            return self.durable.description, False
        except (InputError, StoreMissingError):
            raise NoResults(self.place) from None

    def close(self) -> None:
        """Let go of the durable store's connections; the memory's are shared."""
        self.durable.store.close()


class Readers:
    """Opened readers that wait for the next question."""

    def __init__(self, memory: Memory, open_store: Callable[[StoreSpec], Store] = StoreSpec.open) -> None:
        self.memory = memory
        self.blocks = Blocks()
        self._open_store = open_store
        self._idle: OrderedDict[tuple[StoreSpec, str], list[Opened]] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    def take(self, place: Place, watch: Watch | None = None) -> Opened:
        """A reader that is the caller's alone until it is given back.

        Args:
            watch: the caller's; it stops the caller's reads only, whoever has the reader afterwards.
        Raises:
            NotAtOnce: that is what the watch wants, and the reader that was used last has more to read first.
        """
        watch = watch or Watch()
        with self._lock:
            waiting = self._idle.get(place.key)
            found = waiting.pop() if waiting and (not watch.in_loop or _is_ready(waiting[-1])) else None
            if waiting is not None and not waiting:
                del self._idle[place.key]
        if found is None:
            watch.may_wait()
            durable = KeepingReader(self._open_store(place.spec), place.name, blocks=self.blocks)
            found = Opened(place, durable, None, watch, self.memory)
            if self.memory.store is not None:
                found.recent = KeepingReader(self.memory.store, place.name, blocks=self.blocks)
        found.place, found.watch = place, watch
        found.durable.left = at_once.BLOCKS_READ if watch.in_loop else None
        found.durable.store = cast(Store, WatchedStore(_bare(found.durable.store), watch))
        if found.recent is not None:
            found.recent.store = cast(Store, MemoryStore(_bare(found.recent.store), watch, self.memory))
        return found

    def give(self, opened: Opened) -> None:
        """Back, for the next."""
        over: list[Opened] = []
        with self._lock:
            if self._closed:
                over.append(opened)
            else:
                self._idle.setdefault(opened.place.key, []).append(opened)
                self._idle.move_to_end(opened.place.key)
                while sum(map(len, self._idle.values())) > IDLE_MAX:
                    key, oldest = next(iter(self._idle.items()))
                    over.append(oldest.pop())
                    if not oldest:
                        del self._idle[key]
        for each in over:
            each.close()

    @contextmanager
    def lent(self, place: Place, watch: Watch | None = None) -> Iterator[Opened]:
        """For the length of a block; see `take`."""
        opened = self.take(place, watch)
        try:
            yield opened
        finally:
            self.give(opened)

    def close(self) -> None:
        """Close those that wait; those that are out close when they come back."""
        with self._lock:
            self._closed = True
            idle = [opened for waiting in self._idle.values() for opened in waiting]
            self._idle.clear()
        for opened in idle:
            opened.close()


def _is_ready(opened: Opened) -> bool:
    """Whether a reader knows enough of its results to answer at once, if their head has not moved."""
    stored = opened.durable.indexed
    return opened.place.spec.kind in at_once.STORES and stored is not None and stored <= at_once.BLOCKS_STORED


def _bare(store: Store) -> Store:
    return store._store if isinstance(store, WatchedStore) else store


class NoResults(Problem):
    """Of a job that has committed nothing yet, or nothing since it began anew."""

    def __init__(self, place: Place) -> None:
        super().__init__(
            "conflict",
            f'job "{place.job_name}" has no results yet',
            hint="start it, and ask again once its first snapshot is committed; a subscription waits for that",
        )


def store_problem(place: Place, failure: Exception) -> Problem:
    """Of a store that failed; what it said may name folders and hosts, so it goes into the log only."""
    _log.warning("the result store of job %s failed: %s", place.job_id, failure)
    if isinstance(failure, StateError):
        return Problem(
            "internal.results_damaged", f'the results of job "{place.job_name}" are damaged; the log says where'
        )
    return Problem(
        "unavailable.store_away",
        f'the result store ({place.spec.kind}) of job "{place.job_name}" does not answer; ask again in a moment',
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )
