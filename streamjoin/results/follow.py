"""Continuous queries: each snapshot as soon as it is committed, in order, once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from streamjoin.results.question import Question
from streamjoin.results.reader import ExpiredError, Reader
from streamjoin.results.rows import Rows
from streamjoin.results.snapshot import Snapshot, SnapshotId

POLL_S = 0.02
"""How often the head is looked at; with it a snapshot is seen well within 50 ms of its commit."""


@dataclass(frozen=True, slots=True)
class News:
    """One snapshot's rows for one follower.

    Args:
        rows: those that pass the follower's filter, with its columns.
    """

    snapshot: Snapshot
    rows: list[pa.RecordBatch]


def follow(
    reader: Reader,
    *,
    after: SnapshotId | None = None,
    question: Question | None = None,
    stop: threading.Event | None = None,
    poll_s: float = POLL_S,
    wait: Callable[[float], object] = time.sleep,
) -> Iterator[News]:
    """Snapshots after `after` (None: after the newest there is now), each once and in order, until `stop`.

    Args:
        question: its filter and columns; ranges, limit and cursor of it are not for continuous queries.
        wait: called with `poll_s` when there is nothing new. Do not pass `stop.wait`: a signal handler that sets `stop`
            in this thread would deadlock, because `stop.wait` holds the lock that it needs.
    Raises:
        ExpiredError: snapshots after `after` have been removed by retention: there would be a gap.
    """
    stop = stop or threading.Event()
    wanted = Rows(question or Question(), reader.description.schema, reader.description.identity)
    head = reader.refresh()
    last = head.state.last if after is None else after
    if last < head.floor:
        raise ExpiredError(f"snapshots up to {head.floor} have been removed; begin there, or at the oldest there is")
    while not stop.is_set():
        for snapshot in reader.snapshots(after=last):
            found = (wanted.of(batch) for batch in reader.snapshot_rows(snapshot))
            yield News(snapshot, [some for some in found if some.num_rows])
            last = snapshot.id
            if stop.is_set():
                return
        wait(poll_s)
        if last < reader.refresh().floor:
            raise ExpiredError(f"snapshots after {last} have been removed before they were read; begin anew")
