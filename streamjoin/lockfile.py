"""A file that one process holds at a time, with its number in it for whoever comes second."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from streamjoin.errors import InputError


@contextmanager
def locked(path: Path, refusal: Callable[[str], str]) -> Iterator[None]:
    """Hold the file; however the process ends, the next one gets it.

    Args:
        refusal: the message for whoever comes second, given the id of the process that holds it.
    Raises:
        InputError: another process holds it.
    """
    with open(path, "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise InputError(refusal(lock.read().strip())) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield
