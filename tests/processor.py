"""How long the processor works: what other processes do meanwhile is not counted."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def seconds_of(work: Callable[[], object]) -> float:
    """The processor's time for `work`, in this thread, without the collector's: a process of many tests has much."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        if is_collecting:
            gc.enable()
