"""Ids that say what they name and sort by when they were made."""

from __future__ import annotations

import os
import random
import threading
import time

from ulid import ULID

_random = random.Random()
_lock = threading.Lock()
_last = 0


def _begin_anew() -> None:
    global _lock, _last
    _random.seed()
    _lock, _last = threading.Lock(), 0


os.register_at_fork(after_in_child=_begin_anew)


def new_id(prefix: str) -> str:
    """Such as `job_01JD...`: the prefix, and a ULID in lower case. No secret: it is told from others, not guarded.

    A process makes each higher than the one before, within a millisecond too, and where the clock is set back.
    Each request has one, and the system's own randomness would take longer than all the rest of it.
    """
    global _last
    number = time.time_ns() // 1_000_000 << 80 | _random.getrandbits(80)
    with _lock:
        _last = number = max(number, _last + 1)
    return f"{prefix}_{str(ULID(number.to_bytes(16, 'big'))).lower()}"


def now_us() -> int:
    """The time, in microseconds since 1970."""
    return time.time_ns() // 1_000
