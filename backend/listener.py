"""The address of the API, which several of its processes may share.

Whoever starts the processes claims the address; each of them then listens there by itself, and the kernel spreads
connections evenly. One socket for all would not do: whoever wakes first takes all connections that wait, and a client
that opens thirty at once has them answered by one process.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from typing import Final

SOCKET: Final = "STREAMJOIN_API_SOCKET"
"""Variable with the number of an inherited socket that has the address."""
BACKLOG: Final = 2048
SPREADS: Final = sys.platform == "linux"
"""Elsewhere one of the sockets of an address may get all connections, so there they share one."""
_LOWEST = 50
"""Lower numbers are the shell's, which starts the processes."""


def claim(host: str, port: int) -> socket.socket:
    """Take the address, so that children may listen there; nobody does yet.

    Raises:
        OSError: something else listens there, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Another platform's address could be shared as well as our own, so it has to be free first.
    with socket.create_server((host, port), family=family, backlog=BACKLOG) as free:
        address = free.getsockname()
        if not SPREADS:
            return above_shell(free)
    with _bound(family, address) as made:
        return above_shell(made)


def inherited() -> socket.socket | None:
    """A socket at the address that this process was given; None if it has to find one by itself."""
    given = os.environ.get(SOCKET)
    if given is None:
        return None
    claimed = socket.socket(fileno=int(given))
    if not SPREADS:
        return claimed
    with claimed:
        return _bound(claimed.family, claimed.getsockname())


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def above_shell(made: socket.socket) -> socket.socket:
    """The same socket, by a number that the shell leaves alone."""
    return socket.socket(fileno=fcntl.fcntl(made.fileno(), fcntl.F_DUPFD_CLOEXEC, _LOWEST))
