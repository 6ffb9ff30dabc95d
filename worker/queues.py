"""Where tasks go: to any worker, or to the one of a machine."""

from __future__ import annotations

from typing import Final

QUEUE: Final = "streamjoin"
"""Where launches go while no machine has said that it takes any: the first worker that comes takes them."""


def queue_of(host: str) -> str:
    """The queue of the worker of one machine: launches that are meant for it, and ends of its drivers."""
    return f"host.{host}"
