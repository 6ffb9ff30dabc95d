"""Where tasks go: to any worker, or to the one of a machine."""

from __future__ import annotations

import socket
from typing import Final

QUEUE: Final = "streamjoin"
"""Where launches go: any worker takes them."""


def host_name() -> str:
    """What this machine is called in leases."""
    return socket.gethostname()


def queue_of(host: str) -> str:
    """The queue of the worker of one machine: its drivers can only be ended there."""
    return f"host.{host}"
