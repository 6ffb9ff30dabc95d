"""Ids that say what they name and sort by when they were made."""

from __future__ import annotations

import os
import random
import time

from ulid import ULID

_random = random.Random()
os.register_at_fork(after_in_child=_random.seed)


def new_id(prefix: str) -> str:
    """Such as `job_01JD...`: the prefix, and a ULID in lower case. No secret: it is told from others, not guarded.

    Each request has one, and the system's own randomness would take longer than all the rest of it.
    """
    number = time.time_ns() // 1_000_000 << 80 | _random.getrandbits(80)
    return f"{prefix}_{str(ULID(number.to_bytes(16, 'big'))).lower()}"


def now_us() -> int:
    """The time, in microseconds since 1970."""
    return time.time_ns() // 1_000
