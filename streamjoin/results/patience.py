"""Holding back while a store is down, for a bounded time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from streamjoin.results.stores.store import StoreDownError, StoreUncertainError

T = TypeVar("T")

RETRY_S = 60.0
_PAUSE_S = (0.05, 2.0)


@dataclass(slots=True)
class Patience:
    """Repeats what may be repeated.

    Args:
        retry_s: so long a store may be down before its error is handed on.
        retries: how often something was done again.
        sleep, clock: tests put their own in.
    """

    retry_s: float = RETRY_S
    retries: int = 0
    sleep: Callable[[float], None] = field(default=time.sleep)
    clock: Callable[[], float] = field(default=time.monotonic)

    def steadily(self, act: Callable[[], T]) -> T:
        """Do it, again and again with growing pauses, until the deadline.

        Raises:
            StoreError: it failed for too long, or in a way that trying again does not help.
        """
        ends_s = self.clock() + self.retry_s
        pause_s = _PAUSE_S[0]
        while True:
            try:
                return act()
            except (StoreDownError, StoreUncertainError):
                if self.clock() + pause_s > ends_s:
                    raise
                self.retries += 1
                # Many tasks fail in one moment; they should not all come back in one.
                self.sleep(pause_s * random.uniform(0.5, 1.0))
                pause_s = min(pause_s * 2, _PAUSE_S[1])
