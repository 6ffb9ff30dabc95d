"""A connected session: statements prepared once, and many of them under way at a time."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streamjoin.results.stores.cassandra.driver import (
    ConsistencyLevel,
    FallthroughRetryPolicy,
    NoHostAvailable,
    RetryPolicy,
    is_busy,
)
from streamjoin.results.stores.cassandra.tables import STATEMENTS, TRANSACTIONS

AT_ONCE = 32
_BYTES_AT_ONCE = 1 << 20
_BUSY_PAUSE_S = 0.005
_RECORDS_A_PAGE = 32


@dataclass(frozen=True)
class Link:
    """A connected session, and the statements prepared in it."""

    cluster: Any
    session: Any
    keyspace: str
    process: int
    patience_s: float
    prepared: dict[str, Any] = field(default_factory=dict)

    def statement(self, name: str) -> Any:
        """The prepared statement of a name."""
        if name not in self.prepared:
            text = re.sub(r"(FROM|INTO|UPDATE) (\w+)", rf"\1 {self.keyspace}.\2", STATEMENTS[name], count=1)
            made = self.session.prepare(text)
            made.consistency_level = ConsistencyLevel.LOCAL_QUORUM
            made.serial_consistency_level = ConsistencyLevel.LOCAL_SERIAL
            if name in TRANSACTIONS:
                made.is_idempotent = False
                made.retry_policy = FallthroughRetryPolicy()
            else:
                made.is_idempotent = True
                made.retry_policy = RetryPolicy()
            if name == "head":
                # Sees, and completes, a swap that is under way.
                made.consistency_level = ConsistencyLevel.LOCAL_SERIAL
            if name == "get_records":
                made.fetch_size = _RECORDS_A_PAGE
            self.prepared[name] = made
        return self.prepared[name]

    def one(self, name: str, *values: Any) -> Any:
        """The result set of a statement."""
        return self.session.execute(self.statement(name), values)

    def result(self, future: Any, name: str, values: tuple[Any, ...]) -> Any:
        """What a statement gave that was sent with these values; one that the driver would not queue is sent again."""
        try:
            return future.result()
        except NoHostAvailable as cause:
            if not is_busy(cause):
                raise
            return self.many(name, [values])[0]

    def many(self, name: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The result set of the statement with each row of values, in their order; the first error is raised."""
        statement = self.statement(name)
        results: list[Any] = [None] * len(rows)
        waiting = deque(range(len(rows)))
        sent: deque[tuple[int, Any]] = deque()
        size = 0
        patience_ends_s = time.monotonic() + self.patience_s
        while waiting or sent:
            while waiting and len(sent) < AT_ONCE and (size < _BYTES_AT_ONCE or not sent):
                number = waiting.popleft()
                size += _size(rows[number])
                sent.append((number, self.session.execute_async(statement, rows[number])))
            number, future = sent.popleft()
            size -= _size(rows[number])
            try:
                results[number] = future.result()
            except NoHostAvailable as cause:
                # The driver refuses to queue more while the socket's buffer is full; nothing was sent.
                if not is_busy(cause) or time.monotonic() > patience_ends_s:
                    raise
                waiting.appendleft(number)
                time.sleep(_BUSY_PAUSE_S)
            else:
                patience_ends_s = time.monotonic() + self.patience_s
        return results


def _size(row: tuple[Any, ...]) -> int:
    return sum(len(value) for value in row if isinstance(value, bytes))
