"""Files that a machine keeps of a store: what it has written or fetched, up to so many bytes, the last used ones.

Processes of a machine share the folder. What one removes another may have mapped: it stays readable for it. A file
appears whole or not at all, but may be older than a crash of the machine, so whoever opens it first looks at it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from streamjoin.durable import temporary_beside
from streamjoin.errors import InputError, StateError
from streamjoin.private import is_private, own_temporary

CACHE_BYTES = 20 << 30
_MAKING_S = 3600
"""A file under another name is one that is made, and after so long one whose maker died."""
_ROOM = 16
"""A cache is looked through whenever a process has added so great a part of it, and then that part is left free."""
_TRIES = 5


def default_folder() -> Path:
    """Where a machine keeps what it has of stores, unless a join file says otherwise."""
    return own_temporary("cache")


def check_private(folder: Path) -> None:
    """Make a default folder: others may write beside it, and know its name before it is there.

    Raises:
        InputError: it is another user's, or others may write to it.
        StateError: it cannot be made.
    """
    if not folder.name.startswith("streamjoin-cache-"):
        return
    try:
        is_ours = is_private(folder)
    except OSError as failure:
        raise StateError(f"{folder} cannot be made ({failure.strerror or failure}); give run.cache a path") from None
    if not is_ours:
        raise InputError(
            f"{folder} is not a folder that this user alone can write to, and what it has would be taken for states; "
            "remove it, or give run.cache a path",
            field="run.cache.path",
        )


class Cache:
    """The files of one store in a machine's folder.

    Args:
        folder: of all stores.
        name: of this one's folder in it.
        size: bytes of all.
    """

    def __init__(self, folder: Path, name: str, size: int = CACHE_BYTES) -> None:
        self.folder = folder
        self.own = folder / name
        self.size = size
        self._added = size  # what others left counts from the start
        self._lock = threading.Lock()

    def path(self, name: str) -> Path:
        """Where an object's file is, if it is there."""
        return self.own / name

    def add(self, name: str, write: Callable[[Path], None]) -> Path:
        """Make a file.

        Args:
            write: makes it, under another name.
        Raises:
            StateError: it cannot be written.
        """
        path = self.path(name)
        temporary = temporary_beside(path)
        try:
            for _ in range(_TRIES - 1):
                # Somebody may be emptying the cache; a folder that goes while it is made is said to exist.
                with contextlib.suppress(FileNotFoundError, FileExistsError):
                    size = _made(temporary, path, write)
                    break
            else:
                size = _made(temporary, path, write)
        except OSError as failure:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise StateError(
                f"{self.folder} cannot keep {path.name} ({failure.strerror or failure}); give run.cache a path with "
                "more room, or a smaller size"
            ) from None
        with self._lock:
            self._added += size
        return path

    def used(self, path: Path) -> None:
        """A file was used just now."""
        with contextlib.suppress(OSError):
            os.utime(path)

    def trim(self) -> int:
        """Where enough was added since the last time, remove the files that were used least of late; how many.

        Cost: nothing mostly; else a look at every file.
        """
        with self._lock:
            if self._added < self.size // _ROOM:
                return 0
            self._added = 0
        found: list[tuple[float, int, str]] = []
        for folder, _, files in os.walk(self.folder):
            for file in files:
                path = os.path.join(folder, file)
                with contextlib.suppress(OSError):
                    info = os.stat(path)
                    if file.startswith(".") and info.st_mtime > time.time() - _MAKING_S:
                        continue
                    found.append((info.st_mtime, info.st_size, path))
        left, removed = sum(size for _, size, _ in found), 0
        wanted = self.size - self.size // _ROOM
        for _, size, path in sorted(found):
            if left <= wanted:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed += 1
            left -= size
        return removed


def _made(temporary: Path, path: Path, write: Callable[[Path], None]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    write(temporary)
    size = temporary.stat().st_size
    os.replace(temporary, path)
    return size
