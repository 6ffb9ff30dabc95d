"""When Spark begins the next batch of a query."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter


def started(writer: DataStreamWriter, every_us: int, **trigger: bool) -> StreamingQuery:
    """Start a query.

    Args:
        every_us: batches begin at times that are multiples of it. At once begin the first one, one after a batch that
            took longer, and all where it is 0.
        trigger: of Spark's, in place of that.
    """
    pace: dict[str, Any] = dict(trigger) or {"processingTime": f"{-(-every_us // 1000)} milliseconds"}
    return writer.trigger(**pace).start()
