"""Which pairs a window holds, and when a tuple can meet nothing that is still to come.

A tuple's *mark* is a number that never falls along its stream, so that a tuple of the other stream can be told from it
to be past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from simulate.handshake.messages import END, NEVER, StreamTuple
from simulate.stream import Stream


class Window(Protocol):
    """A test on two tuples alone, never on where or when they meet."""

    def holds(self, r: StreamTuple, s: StreamTuple) -> bool:
        """Whether the pair is in the window."""

    def mark(self, item: StreamTuple) -> int:
        """What it tells the other stream of the tuples of its own that come after it."""

    def passed(self, item: StreamTuple, opposite_mark: int) -> bool:
        """Whether no tuple of the other stream that is still to come can be in the window with it."""


@dataclass(frozen=True, slots=True)
class FullHistory:
    """Every pair; tuples leave at the end of the other stream."""

    def holds(self, r: StreamTuple, s: StreamTuple) -> bool:
        """See `Window`."""
        return True

    def mark(self, item: StreamTuple) -> int:
        """See `Window`."""
        return NEVER

    def passed(self, item: StreamTuple, opposite_mark: int) -> bool:
        """See `Window`."""
        return opposite_mark == END


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """-before <= s.time - r.time <= after, us; each stream comes in the order of time."""

    before: int
    after: int

    def holds(self, r: StreamTuple, s: StreamTuple) -> bool:
        """See `Window`."""
        return -self.before <= s.time - r.time <= self.after

    def mark(self, item: StreamTuple) -> int:
        """See `Window`."""
        return item.time

    def passed(self, item: StreamTuple, opposite_mark: int) -> bool:
        """See `Window`."""
        return opposite_mark > item.time + (self.after if item.stream is Stream.R else self.before)


@dataclass(frozen=True, slots=True)
class CountWindow:
    """Each tuple with the last `rows` tuples of the other stream before it, by the counts stamped at the intake."""

    rows: int

    def holds(self, r: StreamTuple, s: StreamTuple) -> bool:
        """See `Window`."""
        if s.number < r.opposite:
            return s.number >= r.opposite - self.rows
        return r.number >= s.opposite - self.rows

    def mark(self, item: StreamTuple) -> int:
        """See `Window`."""
        return item.opposite

    def passed(self, item: StreamTuple, opposite_mark: int) -> bool:
        """See `Window`."""
        return item.number < opposite_mark - self.rows
