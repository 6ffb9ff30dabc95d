"""How much memory is left on this machine, or in this container if that has less."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_TAKEN = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")


def memory_limit_bytes() -> int | None:
    """The container's memory limit; None if it has none."""
    return _number(_LIMITS)


def free_bytes() -> int:
    """The memory that more processes can use: the machine's, or the container's if that is less."""
    free: int = psutil.virtual_memory().available
    limit, taken = memory_limit_bytes(), _number(_TAKEN)
    return free if limit is None or taken is None else min(free, limit - taken)


def _number(places: Iterable[str]) -> int | None:
    for place in places:
        with suppress(OSError, ValueError):
            return int(Path(place).read_text())
    return None
