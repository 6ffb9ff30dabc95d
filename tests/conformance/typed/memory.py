"""A limit on this process's memory, so that a wrong index fails at once and does not take the machine with it."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

ROOM = 3 << 30
"""Bytes that may be mapped on top of what there is; a case needs a few megabytes."""


@contextlib.contextmanager
def limited(room: int = ROOM) -> Iterator[None]:
    """No more than `room` bytes on top; allocations beyond raise MemoryError."""
    with open("/proc/self/statm") as pages:
        mapped = int(pages.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = mapped + room
    if soft != resource.RLIM_INFINITY:
        wanted = min(wanted, soft)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
