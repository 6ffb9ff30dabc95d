"""By which sockets Java and its Python workers talk: those in a folder that this user alone can open.

Over TCP, as usual, a task of a stage with a large plan waits 40 ms before it begins: Java has sent the first part of
the plan and holds back the next until the worker confirms it, which the kernel puts off. Such sockets do neither.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import os
import secrets
import shutil
from pathlib import Path

from streamjoin.private import is_private, own_temporary

PATH_BYTES_MAX = 103
"""Of a socket's path; in Linux it is four more."""
_SOCKET_BYTES = len("/.") + 36 + len(".sock")
_TRIES = 5


def socket_settings() -> dict[str, str]:
    """Spark's settings for a session on this machine; none where there cannot be such a folder, and then it is TCP."""
    folder = _folder()
    if folder is None:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(folder)}


@functools.cache
def _folder() -> Path | None:
    """A folder of this process, which goes with it."""
    place = own_temporary("sockets")
    try:
        if not is_private(place):
            return None
        place.chmod(0o700)  # it may have been made with another umask
        sweep(place)
        for _ in range(_TRIES):
            folder = place / secrets.token_hex(4)
            if len(os.fsencode(folder)) + _SOCKET_BYTES > PATH_BYTES_MAX:
                return None
            folder.mkdir(mode=0o700)
            if _hold(folder) is not None and folder.exists():  # nobody has swept it meanwhile
                atexit.register(shutil.rmtree, folder, ignore_errors=True)
                return folder
    except OSError:
        pass
    return None


def sweep(place: Path) -> None:
    """Remove folders of processes that were killed."""
    for folder in place.iterdir():
        with contextlib.suppress(OSError):
            if (held := _hold(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)


def _hold(folder: Path) -> int | None:
    """Hold a folder for as long as this process lives; None if another process does, or has removed it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
