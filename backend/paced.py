"""A limit on how slowly the body of a request comes: whoever sends it holds a connection, and a turn of their own."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from backend.heads import BoundedHeads

BODY_S_MAX: Final = 60.0
"""From the end of a head until the end of its body, and a second more for each `BODY_BYTES_A_SECOND_MIN` of it."""
BODY_BYTES_A_SECOND_MIN: Final = 16 << 10

_log = logging.getLogger("streamjoin.requests")


class PacedBodies(BoundedHeads):
    """Closes the connection where a body comes too slowly.

    Time in which the server itself takes nothing does not count.

    Cost: a timer for each request whose body does not come with its head.
    """

    _in_body = False
    _body_bytes = 0
    _body_begun_s = 0.0
    _pace: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's."""
        self._end_body()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """asyncio's."""
        super().data_received(data)
        if self._in_body and self._pace is None and not self.transport.is_closing():
            self._begin_body()

    def on_headers_complete(self) -> None:
        """The parser's."""
        super().on_headers_complete()
        self._end_body()  # of the request before
        self._in_body = True
        self._body_bytes = 0

    def on_body(self, body: bytes) -> None:
        """The parser's."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The parser's."""
        self._end_body()
        super().on_message_complete()

    def _begin_body(self) -> None:
        self._body_begun_s = self.loop.time()
        self._pace = self.loop.call_later(BODY_S_MAX, self._look)

    def _look(self) -> None:
        """The body has had its time, as far as could be known when the timer was set."""
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._body_bytes = 0
            self._begin_body()
            return
        left_s = self._body_begun_s + BODY_S_MAX + self._body_bytes / BODY_BYTES_A_SECOND_MIN - self.loop.time()
        if left_s > 0:
            self._pace = self.loop.call_later(left_s, self._look)
            return
        self._pace = None
        _log.warning("a body came at less than %d bytes/s; its connection was closed", BODY_BYTES_A_SECOND_MIN)
        self.transport.close()

    def _end_body(self) -> None:
        self._in_body = False
        if self._pace is not None:
            self._pace.cancel()
            self._pace = None
