"""How much people may send, so that they do not fill the disk that everything is on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from backend.problems import Problem

LOOK_S: Final = 60.0
"""So often it is looked how much there really is: other processes write there, and things are removed."""


class Space:
    """What one process knows of files that people send. Safe for threads.

    Args:
        bytes_in: how much they take on the disk.
        bytes_max: of all of them.
        refusal: the problem to raise when there is no room, given how much the files take.
        within: the space that this one is a part of.
    """

    def __init__(
        self, bytes_in: Callable[[], int], bytes_max: int, refusal: Callable[[int], Problem],
        within: Space | None = None,
    ) -> None:  # fmt: skip
        self.bytes_max = bytes_max
        self._bytes_in = bytes_in
        self._refusal = refusal
        self._within = within
        self._bytes = 0
        self._coming = 0
        self._looked_s: float | None = None
        self._lock = threading.Lock()

    @contextmanager
    def taking(self, size: int) -> Iterator[None]:
        """Write so many bytes in the block. They count from its beginning, and no more if it fails.

        Raises:
            Problem: there is no room for them.
        Cost: every `LOOK_S`, and before it is said that there is no room, a look at each file.
        """
        with self._within.taking(size) if self._within is not None else nullcontext():
            self._take(size)
            try:
                yield
            except BaseException:
                self._done(size, given_back=size)
                raise
            self._done(size)

    def _take(self, size: int) -> None:
        with self._lock:
            now_s = time.monotonic()
            if self._looked_s is None or now_s - self._looked_s >= LOOK_S or self._bytes + size > self.bytes_max:
                # What is being written may not be there yet. Where it is, it counts twice until the next look.
                self._bytes = self._bytes_in() + self._coming
                self._looked_s = time.monotonic()
            if self._bytes + size > self.bytes_max:
                raise self._refusal(self._bytes)
            self._bytes += size
            self._coming += size

    def _done(self, size: int, given_back: int = 0) -> None:
        with self._lock:
            self._coming -= size
            self._bytes -= given_back


def bytes_in(*folders: Path) -> int:
    """What all files in some folders take; a folder that is not there takes nothing.

    Cost: a look at each file.
    """
    found = 0
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                try:
                    found += os.lstat(os.path.join(place, name)).st_size
                except FileNotFoundError:  # it went meanwhile
                    continue
    return found
