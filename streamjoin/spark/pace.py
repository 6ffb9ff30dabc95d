"""When Spark begins the next batch of a query, and whether it waits for that."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

_AFTER_A_LOOK = ("Waiting for data to arrive", "Waiting for next trigger")
"""What Spark says of a query that has looked for input, and not of one that begins, looks or does a batch."""


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
