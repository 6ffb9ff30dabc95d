"""Rates from reports: rows of both streams a second, over a part of a run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any


def rate_after(report: Mapping[str, Any], rows: int) -> float | None:
    """Rows a second from the end of the batch with which `rows` rows were read to the end; None if nothing follows."""
    read = timed_rows = timed_ms = 0
    for count, ms in zip(report["batch_rows"], report["batch_ms"], strict=True):
        if read >= rows:
            timed_rows += count
            timed_ms += ms
        read += count
    return timed_rows / timed_ms * 1000 if timed_ms else None


def ratio(ours: float | None, theirs: float | None) -> float | None:
    """How many times as fast; None where one was not measured."""
    return ours / theirs if ours and theirs else None


def median_ms_after(report: Mapping[str, Any], rows: int) -> float | None:
    """The median duration of the batches after the first `rows` rows."""
    read, chosen = 0, []
    for count, ms in zip(report["batch_rows"], report["batch_ms"], strict=True):
        if read >= rows:
            chosen.append(ms)
        read += count
    return median(chosen)


def median(values: Sequence[float]) -> float | None:
    """None where there is none."""
    return statistics.median(values) if values else None
