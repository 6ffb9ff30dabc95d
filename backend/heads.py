"""Limits on the size and duration of a request's line and headers, all of which the parser keeps in memory."""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX: Final = 64 << 10
"""Of a request's line and headers together; also of what surrounds a body: trailers and sizes of chunks."""
HEAD_S_MAX: Final = 60.0
"""From the start of a connection, or the first byte of a head, until the head is complete."""
_BESIDE: Final = len(": \r\n")
_TOO_LONG: Final = f"The request line and headers have more than {HEAD_BYTES_MAX:,} bytes."


class BoundedHeads(HttpToolsProtocol):
    """Refuses requests whose head does not end.

    Cost: nothing for each piece of a body, and one look at the headers for each request.
    """

    _open_bytes = 0
    """Received since the last piece with part of a body, the end of a head or the end of a message."""
    _is_too_long = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """asyncio's."""
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's."""
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """asyncio's."""
        self._open_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing() or not self._open_bytes:
            return
        if self._open_bytes > HEAD_BYTES_MAX:
            self.send_400_response(_TOO_LONG)
        elif self._timer is None:
            self._begin()

    def on_headers_complete(self) -> None:
        """The parser's.

        Raises:
            ValueError: the headers are too long, even though they came in one piece.
        """
        if len(self.url) + sum(len(name) + len(value) + _BESIDE for name, value in self.headers) > HEAD_BYTES_MAX:
            self._is_too_long = True
            raise ValueError(_TOO_LONG)
        self._end()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """The parser's."""
        self._end()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The parser's."""
        self._end()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """uvicorn's, which knows no other reason than that the parser gave up."""
        super().send_400_response(_TOO_LONG if self._is_too_long else msg)

    def _begin(self) -> None:
        self._timer = self.loop.call_later(HEAD_S_MAX, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        # While a request is being answered, a stray empty line or a slow body is no reason to close.
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def _end(self) -> None:
        self._open_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
