"""What was sent in a run of the ring, of ATR or of CTR: messages, tuples and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulate.network import Delivery
from simulate.replicated import aligned
from simulate.replicated.aligned import Tuple
from simulate.replicated.coordinated import Drop, Hop, Store
from simulate.ring.sizes import HEADER_BYTES, rows_in

ENTRY_BYTES = 8
"""Of metadata: a segment's name, or a host's."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What reached nodes, answers to those that spread tuples included.

    Args:
        tuples: rows that were carried; a partial result carries each of its parts.
        entries: of metadata.
    """

    messages: int
    tuples: int
    entries: int

    def bytes(self, tuple_bytes: int) -> int:
        """All of it, where a row has so many bytes."""
        return self.messages * HEADER_BYTES + self.tuples * tuple_bytes + self.entries * ENTRY_BYTES


def bytes_of(message: object, tuple_bytes: int) -> int:
    """Of one message."""
    tuples, entries = _carried(message)
    return HEADER_BYTES + tuples * tuple_bytes + entries * ENTRY_BYTES


def traffic(log: Sequence[Delivery]) -> Traffic:
    """Of a whole run."""
    found = [_carried(one.message) for one in log]
    return Traffic(len(found), sum(tuples for tuples, _ in found), sum(entries for _, entries in found))


def _carried(message: object) -> tuple[int, int]:
    """Rows, and entries of metadata."""
    match message:
        case Tuple(_, segments):
            return 1, len(segments)
        case Store(_, rows):
            return len(rows), 1
        case Hop(_, _, every, route):
            carried = sum(row is not None for parts in every for row in parts)
            return carried, sum(1 + len(keys) for hop in route for keys in hop.values())
        case Drop() | aligned.Drop():
            return 0, 1
        case _:
            return rows_in(message), 0
