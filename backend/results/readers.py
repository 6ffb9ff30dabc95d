"""Readers of jobs' results that are kept open.

A reader remembers the manifests it has read, so it is worth keeping; it serves one thread at a time, so each job has as
many as it was asked by threads at once.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from backend.results import at_once
from backend.results.blocks import Blocks, KeepingReader
from backend.results.places import Place
from backend.results.recent import Memory, MemoryStore
from backend.results.trouble import NoResults
from backend.results.watch import Watch, WatchedStore
from streamjoin.errors import InputError, StateError
from streamjoin.results.description import Description
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import Snapshot, SnapshotId
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import Store, StoreError, StoreMissingError

IDLE_MAX = 64
SHOWN_MAX = 1000


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
