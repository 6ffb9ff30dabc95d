"""How a unit puts what dispatchers send into the one order that all units share.

Source: BiStream, section 3.2.3: the pairwise FIFO protocol (Definition 3) and the order-consistent one (Definition 2).
Unstated there: equal stamps of two dispatchers. They go by the dispatcher's name, so that every unit orders them alike.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from simulate.biclique.messages import PROTECTED, Copy, Message, Protections, Signal


@dataclass(slots=True)
class Inbox:
    """What one dispatcher sent: only the next number is taken, later ones wait, earlier ones are repeats."""

    next: int = 0
    early: dict[int, Message] = field(default_factory=dict)

    def take(self, message: Message) -> list[Message]:
        """What is in turn now."""
        if message.number >= self.next:
            self.early[message.number] = message
        ready = []
        while self.next in self.early:
            ready.append(self.early.pop(self.next))
            self.next += 1
        return ready


class OrderingQueue:
    """Tuples that wait until no dispatcher can send an earlier one.

    Args:
        dispatchers: who takes part at first; nothing is released before each of them signalled.
    """

    def __init__(self, dispatchers: Sequence[str], protections: Protections = PROTECTED) -> None:
        self.signals: dict[str, int] = {name: -1 for name in dispatchers if name not in protections.unwatched}
        """The latest signal of each dispatcher that takes part."""
        self.deepest = 0
        self._protections = protections
        self._left: set[str] = set()
        self._heap: list[tuple[int, str, int, Copy]] = []
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, dispatcher: str, copy: Copy) -> None:
        """A tuple came."""
        self._arrivals += 1
        by = dispatcher if self._protections.ties_by_name else ""
        heapq.heappush(self._heap, (copy.stamp, by, self._arrivals, copy))
        self.deepest = max(self.deepest, len(self._heap))

    def signal(self, dispatcher: str, signal: Signal) -> None:
        """A signal came."""
        if dispatcher not in self._protections.unwatched:
            self.signals[dispatcher] = signal.stamp
        if signal.last:
            self.signals.pop(dispatcher, None)
            self._left.add(dispatcher)
        for newcomer in signal.newcomers:
            # Its own messages may have come first, its last one too.
            if newcomer not in self._left:
                self.signals.setdefault(newcomer, signal.stamp)

    def lowest(self, dispatcher: str) -> int | None:
        """The lowest number of this dispatcher's tuples that wait; None for none. Ties have to go by name."""
        return min((copy.number for _, by, _, copy in self._heap if by == dispatcher), default=None)

    def release(self) -> Iterator[Copy]:
        """What can be processed now, in order: stamps strictly below the smallest signal."""
        below = min(self.signals.values(), default=None)
        while self._heap:
            stamp = self._heap[0][0]
            if below is not None and (stamp > below or (stamp == below and self._protections.strictly_below)):
                return
            yield heapq.heappop(self._heap)[3]
