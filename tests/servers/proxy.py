"""A TCP proxy on the loopback interface that stands for a bad network between a client and a server.

with Proxy(server.port) as proxy:
    client = connect("127.0.0.1", proxy.port)
    proxy.swallow_answers()  # the server does what it is asked, and the client never hears of it
    proxy.restore()
"""

from __future__ import annotations

import re
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from .process import free_ports

CONNECT_S_MAX = 5.0
CHUNK_BYTES = 1 << 16
REQUEST = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.1\r\n")


class Proxy:
    """Carries connections from `port` to `target_port` of 127.0.0.1 inside the `with` block.

    The methods may be called from any thread, and change open connections as well as later ones. The port stays the
    same throughout.

    Args:
        target_port: the server's.
        port: a free one; the proxy finds one unless it is given.
    """

    def __init__(self, target_port: int, port: int | None = None) -> None:
        self.target_port = target_port
        self.port = free_ports(1)[0] if port is None else port
        self._delay_s = 0.0
        self._swallows = False
        self._listener: socket.socket | None = None
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()

    def cut(self) -> None:
        """Drop all connections and refuse new ones, until `restore`."""
        with self._lock:
            listener, self._listener = self._listener, None
            sockets, self._sockets = self._sockets, set()
        if listener is not None:
            _close(listener)
        for one in sockets:
            _close(one)

    def restore(self) -> None:
        """Be a good network again. Connections whose answers were swallowed are dropped: their streams have gaps."""
        swallowed, self._swallows, self._delay_s = self._swallows, False, 0.0
        if swallowed:
            self.cut()
        if self._listener is None:
            self._listen()

    def delay(self, seconds: float) -> None:
        """Hold every answer back for so long, until `restore`."""
        self._delay_s = seconds

    def swallow_answers(self) -> None:
        """Let requests through and drop the answers, those on their way included, until `restore`."""
        self._swallows = True

    def _listen(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port))
        with self._lock:
            self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(listener, client), daemon=True).start()

    def _connect(self, listener: socket.socket, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.target_port), CONNECT_S_MAX)
        except OSError:
            _close(client)
            return
        server.settimeout(None)
        with self._lock:
            alive = self._listener is listener
            if alive:
                self._sockets |= {client, server}
        if not alive:  # cut while it was connecting
            _close(client)
            _close(server)
            return
        with suppress(OSError):  # cut just now
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._carry, args=(client, server, False), daemon=True).start()
        threading.Thread(target=self._carry, args=(server, client, True), daemon=True).start()

    def said(self, data: bytes) -> None:
        """Called with all that clients send, before it is carried; does nothing here."""

    def _carry(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if not answers:
                    self.said(data)
                elif self._delay_s:
                    time.sleep(self._delay_s)
                if not (answers and self._swallows):
                    target.sendall(data)
        with self._lock:
            self._sockets -= {source, target}
        # Either end closes both: none of the protocols here uses half a connection.
        _close(source)
        _close(target)


class Requests(Proxy):
    """A proxy in front of an HTTP server that keeps the method and path of each request in `asked`."""

    def __init__(self, target_port: int) -> None:
        super().__init__(target_port)
        self.asked: list[tuple[str, str]] = []

    def said(self, data: bytes) -> None:
        """A request begins a chunk of its own: clients wait for the answer before they ask again."""
        if found := REQUEST.match(data):
            self.asked.append((found[1].decode(), found[2].decode()))


def _close(one: socket.socket) -> None:
    # Without the shutdown a thread that waits in recv or accept would not wake up.
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
