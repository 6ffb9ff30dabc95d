"""How long the processor works: what other processes do meanwhile is not counted."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds_of(work: Callable[[], object]) -> float:
    """The processor's time for `work`, in this thread."""
    start = time.thread_time()
    work()
    return time.thread_time() - start
