"""A process may load before it is known what it is to do: it is said later, once, over a socket.

So the API loads before it is known how it is to serve: imports are most of what people wait for when a platform
starts, and they need neither settings nor an address.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from backend.listener import SOCKET

CHANNEL: Final = "STREAMJOIN_API_CHANNEL"
"""Variable with the number of an inherited socket on which it is said."""


def hand_over(channel: socket.socket, environment: Mapping[str, str], *files: int) -> None:
    """Say what to do.

    Args:
        channel: to the process.
        environment: variables as it would have got them.
        files: numbers of open files that it gets, too.
    Raises:
        OSError: the process has ended.
    """
    # In a file, for a socket takes a limited number of bytes that nobody reads, and then waits. In memory, as there are
    # secrets among them, and what was on a disk once stays there after the file is gone.
    with os.fdopen(os.memfd_create("variables"), "w+", encoding="utf-8") as variables:
        json.dump(dict(environment), variables)
        variables.flush()
        socket.send_fds(channel, [b"!"], [variables.fileno(), *files])


def told(channel: socket.socket, files: int) -> tuple[dict[str, str], list[int]] | None:
    """Wait until it is said: the variables, and as many files; None where nobody is left to say it."""
    said, numbers, _, _ = socket.recv_fds(channel, 1, 1 + files)
    if not said:
        return None
    with open(numbers[0], encoding="utf-8") as variables:
        variables.seek(0)
        return json.load(variables), numbers[1:]


def write_to(log: int, outputs: Iterable[int]) -> None:
    """From now on what this process writes goes to an open file."""
    for output in (sys.stdout, sys.stderr):
        output.flush()
    for output in outputs:
        os.dup2(log, output)


def take_over() -> None:
    """Wait until it is said how to serve, where it is to be said; ends this process where nobody is left to say it."""
    given = os.environ.pop(CHANNEL, None)
    if given is None:
        return
    with socket.socket(fileno=int(given)) as channel:
        said = told(channel, 2)
    if said is None:
        sys.exit("streamjoin: whoever started this process has ended")
    environment, (listener, log) = said
    write_to(log, (sys.stdout.fileno(), sys.stderr.fileno()))
    os.close(log)
    os.environ.update(environment)
    os.environ[SOCKET] = str(listener)
