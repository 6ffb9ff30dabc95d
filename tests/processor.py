"""How long the processor works: what other processes do meanwhile is not counted."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def seconds_of(work: Callable[[], object]) -> float:
    """The processor's time for `work`, in this thread, without the collector's: a process of many tests has much."""
    gc.disable()
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        gc.enable()
