"""Peak memory of a run: resident bytes of this process and all its descendants, sampled."""

import threading
from types import TracebackType
from typing import Self

import psutil

SAMPLE_INTERVAL_S = 0.25


class PeakMemory:
    """Context manager; `peak_bytes` is the largest sum seen so far.

    Pages shared by two processes count twice, and a peak shorter than the sample interval can be missed.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="peak-memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        root = psutil.Process()
        while not self._stopped.wait(SAMPLE_INTERVAL_S):
            self.peak_bytes = max(self.peak_bytes, _tree_bytes(root))


def _tree_bytes(root: psutil.Process) -> int:
    total = 0
    for process in (root, *root.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:  # It ended between the listing and the reading.
            continue
    return total
