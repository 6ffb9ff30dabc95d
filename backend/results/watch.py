"""Reading only as long as somebody waits for it, and without waiting where nothing may be waited for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from backend.results import at_once
from backend.results.at_once import NotAtOnce
from streamjoin.results.stores.store import BlockKey, Store, StoreError


class Stopped(Exception):
    """Reading was told to stop: the client left, or time is up."""


@dataclass
class Watch:
    """Tells a thread that reads to stop, and remembers what failed underneath of libraries that hide it.

    Args:
        ends_s: by the monotonic clock.
        expired: it was stopped because time was up.
        in_loop: nothing may be waited for.
        cells_left: so many cells, rows by columns, may be given at once.
    """

    ends_s: float | None = None
    stop: bool = False
    expired: bool = False
    failure: Exception | None = None
    in_loop: bool = False
    cells_left: int = at_once.CELLS

    def may_wait(self) -> None:
        """Before something that takes time.

        Raises:
            NotAtOnce: it must not.
        """
        if self.in_loop:
            raise NotAtOnce

    def gives(self, cells: int) -> None:
        """Before cells are written.

        Raises:
            NotAtOnce: they are too many.
        """
        self.cells_left -= cells
        if self.cells_left < 0:
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
