"""A process of the API may load before it is known how it is to serve: whoever started it says so later, once.

Imports are most of what people wait for when a platform starts, and they need neither settings nor an address.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import Final

from backend.listener import SOCKET

CHANNEL: Final = "STREAMJOIN_API_CHANNEL"
"""Variable with the number of an inherited socket on which it is said."""


def hand_over(channel: socket.socket, environment: Mapping[str, str], listener: int, log: int) -> None:
    """Say how to serve.

    Args:
        channel: to the process.
        environment: variables as it would have got them.
        listener: the socket of the API's address.
        log: the file that the process writes to from now on.
    Raises:
        OSError: the process has ended.
    """
    # In a file, for a socket takes a limited number of bytes that nobody reads, and then waits.
    with TemporaryFile("w+", encoding="utf-8") as variables:
        json.dump(dict(environment), variables)
        variables.flush()
        socket.send_fds(channel, [b"!"], [listener, log, variables.fileno()])


def take_over() -> None:
    """Wait until it is said, where something is to be said; ends this process where nobody is left to say it."""
    given = os.environ.pop(CHANNEL, None)
    if given is None:
        return
    with socket.socket(fileno=int(given)) as channel:
        said, files, _, _ = socket.recv_fds(channel, 1, 3)
    if not said:
        sys.exit("streamjoin: whoever started this process has ended")
    listener, log, variables = files
    for output in (sys.stdout, sys.stderr):
        output.flush()
        os.dup2(log, output.fileno())
    os.close(log)
    with open(variables, encoding="utf-8") as told:
        told.seek(0)
        os.environ.update(json.load(told))
    os.environ[SOCKET] = str(listener)
