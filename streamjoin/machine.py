"""How much memory this machine has, and has left, or this container if that has less."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_TAKEN = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
_STATS = (
    ("/sys/fs/cgroup/memory.stat", "inactive_file"),
    ("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"),
)


def memory_limit_bytes() -> int | None:
    """The container's memory limit; None if it has none."""
    return _number(_LIMITS)


def memory_bytes() -> int:
    """All memory: the machine's, or the container's if that is less."""
    total: int = psutil.virtual_memory().total
    limit = memory_limit_bytes()
    return total if limit is None else min(total, limit)


def free_bytes() -> int:
    """The memory that more processes can use: the machine's, or the container's if that is less.

    What the kernel keeps of files and gives back when somebody needs memory counts as free, in a container, too.
    """
    free: int = psutil.virtual_memory().available
    limit, taken = memory_limit_bytes(), _number(_TAKEN)
    return free if limit is None or taken is None else min(free, limit - max(0, taken - _given_back_bytes()))


def _number(places: Iterable[str]) -> int | None:
    for place in places:
        with suppress(OSError, ValueError):
            return int(Path(place).read_text())
    return None


def _given_back_bytes() -> int:
    for place, name in _STATS:
        with suppress(OSError, ValueError):
            for line in Path(place).read_text().splitlines():
                if line.startswith(f"{name} "):
                    return int(line.split()[1])
    return 0
