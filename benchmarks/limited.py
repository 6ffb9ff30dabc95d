"""A memory cgroup: the kernel holds all processes in it, and the file pages they touch, below one limit.

Version 1 and 2 differ in the names of their files only. The group is made inside a folder that the caller names,
because taking processes out of the group they were started in is for the owner of the machine to decide:

    version 1    --cgroup /sys/fs/cgroup/memory
    version 2    --cgroup /sys/fs/cgroup          (its cgroup.subtree_control must list memory)
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

REMOVE_S_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Cgroup:
    """A group that processes can be put into."""

    folder: Path
    version: int

    @property
    def processes(self) -> Path:
        """Writing a process id here moves that process in."""
        return self.folder / "cgroup.procs"

    def anonymous_bytes(self) -> int:
        """Memory of its processes that no file backs."""
        name = "total_rss" if self.version == 1 else "anon"
        lines = (self.folder / "memory.stat").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.split()[0] == name)

    def figures(self) -> dict[str, int | str]:
        """The peak, in bytes, and how often the limit was met or broken."""
        names = (
            {"peak_bytes": "memory.max_usage_in_bytes", "limit_met": "memory.failcnt", "oom": "memory.oom_control"}
            if self.version == 1
            else {"peak_bytes": "memory.peak", "events": "memory.events"}
        )
        found: dict[str, int | str] = {"version": self.version}
        for name, file in names.items():
            with suppress(OSError):
                text = (self.folder / file).read_text().strip()
                found[name] = int(text) if text.isdigit() else " ".join(text.split())
        return found


@contextmanager
def limited(parent: Path, limit_bytes: int) -> Iterator[Cgroup]:
    """A group below `parent` whose processes have `limit_bytes` of memory and no swap; removed afterwards.

    Raises:
        OSError: `parent` is no memory cgroup, or may not be written to.
    """
    version = 1 if (parent / "memory.limit_in_bytes").exists() else 2
    folder = parent / f"streamjoin-benchmark-{os.getpid()}"
    folder.mkdir()
    try:
        if version == 1:
            (folder / "memory.limit_in_bytes").write_text(str(limit_bytes))
            with suppress(OSError):  # Without swap accounting there is no such file.
                (folder / "memory.memsw.limit_in_bytes").write_text(str(limit_bytes))
        else:
            if not (folder / "memory.max").exists():
                raise OSError(f"{parent} does not delegate memory: its cgroup.subtree_control lacks it")
            (folder / "memory.max").write_text(str(limit_bytes))
            with suppress(OSError):
                (folder / "memory.swap.max").write_text("0")
        yield Cgroup(folder, version)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """A killed process leaves its group a moment after its end."""
    deadline_s = time.monotonic() + REMOVE_S_MAX
    while True:
        try:
            folder.rmdir()
            return
        except OSError:
            if time.monotonic() > deadline_s:
                return
            time.sleep(0.1)
