"""Where a job's states are: a folder, or objects in a store with a cache on each machine."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamjoin.errors import InputError
from streamjoin.state.cache import CACHE_BYTES, Cache, check_private, default_folder
from streamjoin.state.objects import RETRY_S, Objects, opened
from streamjoin.state.uris import without_secrets

if TYPE_CHECKING:
    from pyarrow import fs

Line = tuple[tuple[str, int], ...]
"""Of a stage, oldest first: the name of a generation, and the first version of units that it writes."""


@dataclass(frozen=True, slots=True)
class ObjectRoot:
    """A place of objects, as every task knows it.

    Args:
        uri: any that PyArrow's file systems open; below it is one job's state and nothing else.
        cache: each machine's folder of what it has of stores; None for one among its temporary files.
        cache_bytes: how large that may become.
        retry_s: how long the store may be down before the job fails.
        lines: by stage, which generation wrote a version; none before one has claimed the place.
    """

    uri: str = field(repr=False)  # a password may be in it
    cache: Path | None = None
    cache_bytes: int = CACHE_BYTES
    retry_s: float = RETRY_S
    lines: tuple[Line, ...] = ()

    @property
    def place(self) -> str:
        """How messages call it."""
        return without_secrets(self.uri).rstrip("/")

    def filesystem(self) -> tuple[fs.FileSystem, str]:
        """What it is opened with, and its path there."""
        return opened(self.uri)

    def opened(self) -> tuple[Objects, Cache]:
        """Its objects and their cache, one of each a process."""
        return _opened(replace(self, lines=()))

    def writer(self, stage: int, version: int) -> str | None:
        """The generation whose state of a version counts; None where nobody has written one."""
        line = self.lines[stage] if stage < len(self.lines) else ()
        return next((name for name, first in reversed(line) if first <= version), None)


Root = Path | ObjectRoot


def root_of(state: str, resolve: Callable[[str], Path], cache: str | None, cache_bytes: int | None) -> Root:
    """What `run.state` says: a folder, or a URI of a place of objects.

    Args:
        resolve: makes a path absolute.
    Raises:
        InputError: it is a folder of another host.
    """
    scheme, is_uri, rest = state.partition("://")
    if is_uri and scheme == "file" and not rest.startswith("/"):
        raise InputError(
            f"{without_secrets(state)} names a host before the path; mount its folder, and write the path alone",
            field="run.state",
        )
    if not is_uri or scheme == "file":
        return resolve(rest if is_uri else state)
    return ObjectRoot(state.rstrip("/"), resolve(cache) if cache else None, cache_bytes or CACHE_BYTES)


@functools.lru_cache(maxsize=4)
def _opened(root: ObjectRoot) -> tuple[Objects, Cache]:
    filesystem, path = root.filesystem()
    check_private(folder := root.cache or default_folder())
    name = hashlib.sha256(root.place.encode()).hexdigest()[:16]
    return Objects(filesystem, path, root.place, root.retry_s), Cache(folder, name, root.cache_bytes)
