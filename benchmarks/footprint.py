"""Memory of a tree of processes while it runs: proportional set size, its anonymous and its file-backed part.

Proportional: a page that n processes map counts 1/n in each, so the sum over the tree counts it once. The anonymous
part is what a machine without swap must have; file-backed pages can be dropped and read again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

SAMPLE_INTERVAL_S_MIN = 0.5
PAUSE_TO_SAMPLE_MIN = 40
"""The kernel walks every page of a process for a sample, so a tree of many gigabytes is looked at less often."""
FIELDS = {"Pss": "pss_bytes", "Pss_Anon": "anonymous_bytes", "Pss_File": "file_bytes", "Rss": "rss_bytes"}


@dataclass(slots=True)
class Peak:
    """The largest value of each sum over the tree; the peaks need not be of one moment."""

    pss_bytes: int = 0
    anonymous_bytes: int = 0
    file_bytes: int = 0
    rss_bytes: int = 0
    watched_bytes: int = 0
    samples: int = 0

    def add(self, sums: dict[str, int]) -> None:
        """Take one sample."""
        self.samples += 1
        for name, size in sums.items():
            setattr(self, name, max(getattr(self, name), size))


class Footprint:
    """Context manager: samples the tree below process `pid` until the block is left; then `peak` is final.

    Args:
        watched: a folder; `peak.watched_bytes` is the proportional size of the mapped files below it. Costs a look at
            every mapping of the processes that have any.
    """

    def __init__(self, pid: int, watched: Path | None = None) -> None:
        self.pid = pid
        self.watched = watched
        self.peak = Peak()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="footprint", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def to_json(self) -> dict[str, int]:
        """The peaks, in bytes."""
        return asdict(self.peak)

    def _sample(self) -> None:
        pause_s = SAMPLE_INTERVAL_S_MIN
        while not self._stopped.wait(pause_s):
            begun_s = time.monotonic()
            if sums := tree_sums(self.pid, self.watched):
                self.peak.add(sums)
            pause_s = max(SAMPLE_INTERVAL_S_MIN, PAUSE_TO_SAMPLE_MIN * (time.monotonic() - begun_s))


@contextmanager
def most(size: Callable[[], int], every_s: float) -> Iterator[list[int]]:
    """The largest that `size` gave, looked at again and again, as the one entry of a list once the block is left."""
    found, stopped = [0], threading.Event()

    def look() -> None:
        while not stopped.wait(every_s):
            found[0] = max(found[0], size())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stopped.set()
        thread.join()


def tree_sums(pid: int, watched: Path | None = None) -> dict[str, int]:
    """The sums over a process and its descendants, in bytes; empty when the process is gone."""
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return {}
    return sums_of((process.pid for process in tree), watched)


def sums_of(pids: Iterable[int], watched: Path | None = None) -> dict[str, int]:
    """The sums over some processes, in bytes; those that have ended count nothing."""
    sums = dict.fromkeys((*FIELDS.values(), "watched_bytes"), 0)
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            if watched is not None:
                sums["watched_bytes"] += _mapped_bytes(pid, f"{watched}/")
        except OSError:  # It ended meanwhile.
            continue
        for line in lines:
            name, _, rest = line.partition(":")
            if field := FIELDS.get(name):
                sums[field] += int(rest.split()[0]) * 1024
    return sums


def _mapped_bytes(pid: int, prefix: str) -> int:
    """Proportional size of a process's mapped files whose names begin with `prefix`, in bytes."""
    if prefix not in Path(f"/proc/{pid}/maps").read_text():
        return 0
    total, inside = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):  # The line that begins a mapping: address, rights, ..., file.
            inside = prefix in rest
        elif inside and name == "Pss:":
            total += int(rest.split()[0]) * 1024
    return total
