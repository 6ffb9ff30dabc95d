"""An ASGI app behind a real server, in a thread of the tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tests.servers.process import free_ports

START_S_MAX = 20.0


class Server:
    """Serves an app on a port of 127.0.0.1; may be stopped and started again there."""

    def __init__(self, app: Any) -> None:
        self.app = app
        (self.port,) = free_ports(1)
        self.host = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        config = uvicorn.Config(
            self.app, host="127.0.0.1", port=self.port, log_config=None, access_log=False, ws="websockets-sansio",
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        ends_s = time.monotonic() + START_S_MAX
        while not self.server.started:
            assert self.thread.is_alive() and time.monotonic() < ends_s, "the server did not start"
            time.sleep(0.01)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(START_S_MAX)
        assert not self.thread.is_alive()


@contextmanager
def serve(app: Any) -> Iterator[Server]:
    """A server that runs inside the block."""
    server = Server(app)
    server.start()
    try:
        yield server
    finally:
        server.stop()
