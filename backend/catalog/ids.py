"""Ids that say what they name and sort by when they were made."""

from __future__ import annotations

import time

from ulid import ULID


def new_id(prefix: str) -> str:
    """Such as `job_01JD...`: the prefix, and a ULID in lower case."""
    return f"{prefix}_{str(ULID()).lower()}"


def now_us() -> int:
    """The time, in microseconds since 1970."""
    return time.time_ns() // 1_000
