"""How much memory a job's processes hold, driver, Java and Python workers."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psutil

JOB_MIB = 700
"""What a job takes beside its Java heap: Python workers and Java's own."""


class MemorySampler:
    """Samples the proportional set size of this process and its descendants until it is stopped.

    Proportional: a page that several workers map counts once, as it does in the machine.
    """

    def __init__(self, every_s: float = 0.5) -> None:
        self.every_s = every_s
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="memory-sampler")

    def __enter__(self) -> MemorySampler:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.peak_bytes = max(self.peak_bytes, tree_bytes(os.getpid()))
            self._stop.wait(self.every_s)


def tree_bytes(root: int) -> int:
    """Proportional set size of a process and its descendants, in bytes."""
    try:
        processes = [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    return sum(_pss_bytes(process.pid) for process in processes)


def _pss_bytes(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # it ended meanwhile
    return 0
