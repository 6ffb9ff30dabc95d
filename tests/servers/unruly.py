"""An HTTP proxy on the loopback interface in front of an S3 server, for stores that are busy, cut off or lie.

with Unruly(s3.port) as proxy:
    proxy.faults = [(GET, "flip"), (PUT, "late")]    # the next requests of these kinds, in this order
"""

from __future__ import annotations

import http.client
import http.server
import threading
from types import TracebackType
from typing import Literal, Self

Fault = Literal["busy", "cut", "late", "short", "flip"]
"""503; the connection ends at once, or once the request is done; half of the content; another content."""


class Unruly:
    """Hands requests on; `faults` are done once each, and `met` counts those that were."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.faults: list[tuple[str, Fault]] = []
        self.met = 0
        self.lock = threading.Lock()

    def __enter__(self) -> Self:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()

    def fault(self, method: str) -> Fault | None:
        """What becomes of a request; HEAD is never disturbed, as its answer has no content."""
        with self.lock:
            for place, (of, fault) in enumerate(self.faults):
                if of == method:
                    self.met += 1
                    del self.faults[place]
                    return fault
        return None


def _handler(proxy: Unruly) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            fault = proxy.fault(self.command)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if fault == "cut":
                self.close_connection = True
                return
            if fault == "busy":
                self.answer(503, {}, b"<Error><Code>SlowDown</Code><Message>busy</Message></Error>")
                return
            server = http.client.HTTPConnection("127.0.0.1", proxy.target_port, timeout=60)
            headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
            server.request(self.command, self.path, body, headers)
            response = server.getresponse()
            content = response.read()
            server.close()
            if fault == "late":
                self.close_connection = True
                return
            found = dict(response.getheaders())
            if fault == "short":
                found["Content-Length"] = str(len(content))
                self.answer(response.status, found, content[: len(content) // 2])
                self.close_connection = True
                return
            if fault == "flip":
                middle = len(content) // 2
                content = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
            if self.command != "HEAD":
                found["Content-Length"] = str(len(content))
            self.answer(response.status, found, content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward  # noqa: N815 (the names of the base class)

        def answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                if name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
