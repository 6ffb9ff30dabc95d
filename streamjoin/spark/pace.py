"""When Spark begins the next batch of a query, and whether it waits for that."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

_AFTER_A_LOOK = ("Waiting for data to arrive", "Waiting for next trigger")
"""What Spark says of a query that has looked for input, and not of one that begins, looks or does a batch."""
BACK_S = 1.0
"""About as long takes a query to start again, so one that would wait for less longer is left alone."""


def is_waiting(query: StreamingQuery) -> bool:
    """Whether a query waits: it has looked for input since it was started, and had nothing to do or has done it.

    One that looks again and again waits between its looks, so who asks a few times hears it.
    """
    return query.status["message"] in _AFTER_A_LOOK


def started(writer: DataStreamWriter, every_us: int, **trigger: bool) -> StreamingQuery:
    """Start a query.

    Args:
        every_us: batches begin at times that are multiples of it. At once begin the first one, one after a batch that
            took longer, and all where it is 0.
        trigger: of Spark's, in place of that.
    """
    pace: dict[str, Any] = dict(trigger) or {"processingTime": f"{-(-every_us // 1000)} milliseconds"}
    return writer.trigger(**pace).start()


class Watch:
    """Notices that the wall clock was set back from the time at which Spark is to begin the next batch.

    Spark waits for a time of the wall clock, so if that is set back by an hour, no batch begins for an hour more.

    Args:
        every_us: see `started`; where it is 0, nothing waits.
    """

    def __init__(self, every_us: int) -> None:
        self._waits = every_us > 0
        self._ahead_s = _ahead_s()
        self._is_back = False

    def waits_too_long(self, query: StreamingQuery) -> bool:
        """Whether a query waits for such a time, and has to be started again; asked a few times a second."""
        before_s, self._ahead_s = self._ahead_s, _ahead_s()
        self._is_back |= self._ahead_s < before_s - BACK_S
        return self._waits and self._is_back and is_waiting(query)


def _ahead_s() -> float:
    """By how much the wall clock is ahead of the steady one."""
    return time.time() - time.monotonic()
