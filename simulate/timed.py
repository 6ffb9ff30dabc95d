"""A network on which messages take time, and actors take time for what they do: one thing after the other.

What something costs is an input, so that a run is the same for ever. A unit of the clock is a nanosecond here. While an
actor acts, the clock is its own: what it has done so far has passed, and what it sends leaves then, so that a row which
is sent on before it is joined is at the next node before that. Messages to an actor that is busy wait, the one that
came first in front.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulate.network import Actor, Earliest, Network

STEPS_MAX = 100_000_000


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What single steps take, in nanoseconds (PSP, table 1, and bytes).

    Args:
        probe: to take up a row or a partial result, whatever is stored.
        comparison: T_j, of a pair.
        insert, purge: T_i and T_p, of a row.
        message, byte: T_s, of a message and of each of its bytes; half of it is its sender's work, half its receiver's.
        hop, link_byte: T_n, under way from one machine to another, in which neither is busy.
    """

    probe: float = 0.0
    comparison: float = 0.0
    insert: float = 0.0
    purge: float = 0.0
    message: float = 0.0
    byte: float = 0.0
    hop: float = 0.0
    link_byte: float = 0.0


class Timed(Network):
    """Actors and channels where everything has its time; the earliest comes first.

    Args:
        costs: what things take.
        size: of a message, in bytes.
        is_local: sender, receiver -> whether both are on one machine: then a message between them takes no time.
        heard: called with (when its receiver begins with it, receiver, message), of each message.

    Attributes:
        busy_ns: by actor, how long it has worked.
    """

    def __init__(
        self,
        costs: UnitCosts,
        size: Callable[[Any], int],
        is_local: Callable[[str, str], bool] = lambda sender, receiver: False,
        heard: Callable[[int, str, Any], None] = lambda at_ns, receiver, message: None,
    ) -> None:
        super().__init__(Earliest(), keep_log=False)
        self.busy_ns: defaultdict[str, int] = defaultdict(int)
        self._costs = costs
        self._size = size
        self._is_local = is_local
        self._heard = heard
        self._due: list[tuple[int, int, str, tuple[str, Any] | None]] = []
        """What comes when, and to whom: (sender, message), or None when it is done with what it did."""
        self._queues: defaultdict[str, deque[tuple[str, Any]]] = defaultdict(deque)
        self._acting: set[str] = set()
        self._last_ready: defaultdict[tuple[str, str], int] = defaultdict(int)

    @property
    def now_ns(self) -> int:
        """The clock: of the actor that acts, if one does."""
        return self.now_us

    def work(self, *, probes: int = 0, comparisons: int = 0, inserts: int = 0, purges: int = 0) -> None:
        """See `Network`."""
        costs = self._costs
        self.now_us += round(
            probes * costs.probe + comparisons * costs.comparison + inserts * costs.insert + purges * costs.purge
        )

    def send(self, sender: str, receiver: str, message: Any) -> None:
        """See `Network`."""
        if self._is_local(sender, receiver):
            under_way = 0
        else:
            size = self._size(message)
            self.now_us += self._half(size)
            under_way = round(self._costs.hop + size * self._costs.link_byte)
        ready = max(self._last_ready[sender, receiver], self.now_us + under_way)
        self._last_ready[sender, receiver] = ready
        heapq.heappush(self._due, (ready, self._next(), receiver, (sender, message)))

    def wake_at(self, name: str, at_us: int, tag: Any = None) -> None:
        """See `Network`; a time is one of this clock. It waits like a message while the actor is busy."""
        heapq.heappush(self._due, (max(at_us, self.now_us), self._next(), name, ("", tag)))

    def run(self, until: Callable[[], bool] | None = None, steps_max: int = STEPS_MAX) -> None:
        """See `Network`; its runs are longer."""
        super().run(until, steps_max)

    def step(self) -> bool:
        """See `Network`."""
        if not self._due:
            return False
        at, _, name, come = heapq.heappop(self._due)
        queue = self._queues[name]
        if come is not None:
            queue.append(come)
            if name in self._acting:
                return True
            self._acting.add(name)
        elif not queue:
            self._acting.remove(name)
            return True
        self.now_us = at
        self.steps += 1
        self._act(self._actors[name], *queue.popleft())
        self.busy_ns[name] += self.now_us - at
        heapq.heappush(self._due, (self.now_us, self._next(), name, None))
        return True

    def _act(self, actor: Actor, sender: str, message: Any) -> None:
        if not sender:
            actor.wake(message, self)
            return
        self._heard(self.now_us, actor.name, message)
        if not self._is_local(sender, actor.name):
            self.now_us += self._half(self._size(message))
        actor.receive(sender, message, self)

    def _half(self, size: int) -> int:
        return round((self._costs.message + size * self._costs.byte) / 2)
