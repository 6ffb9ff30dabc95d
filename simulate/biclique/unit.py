"""A unit of R or of S, and the collector of what units find.

Source: BiStream, sections 3.2.1 (store or join), 3.2.3 (in which order), 3.3 (windows) and 3.5 (upstream backup).
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulate.biclique.messages import (
    PROTECTED,
    Copy,
    Identity,
    Message,
    Protections,
    Replay,
    Result,
    Role,
    Safe,
    Signal,
    StreamTuple,
)
from simulate.biclique.order import Inbox, OrderingQueue
from simulate.network import Network
from streamjoin.plan.window import R

COLLECTOR = "collector"


@dataclass(frozen=True, slots=True)
class Window:
    """r and s join if their times differ by `width_us` at most.

    Args:
        delay_us: D of Theorem 1. A tuple must be processed by then after its time, whatever holds it: the network,
            the ordering queue, or clocks that differ.
    """

    width_us: int
    delay_us: int


@dataclass(slots=True)
class UnitState:
    """All that a unit must not lose."""

    queue: OrderingQueue
    inboxes: dict[str, Inbox] = field(default_factory=dict)
    stored: dict[Identity, StreamTuple] = field(default_factory=dict)
    results: int = 0


class Disk:
    """What units have written; all of it is there after their crash."""

    def __init__(self) -> None:
        self._written: dict[str, bytes] = {}

    def write(self, unit: str, state: UnitState) -> None:
        """Replace what the unit wrote before."""
        self._written[unit] = pickle.dumps(state)

    def read(self, unit: str) -> UnitState | None:
        """None if it has written nothing yet."""
        return pickle.loads(self._written[unit]) if unit in self._written else None


class Unit:
    """Stores tuples of one side, and joins those of the other, which it does not keep.

    Args:
        side: R or S.
        dispatchers: who takes part at first.
        match: what the join asks for, of r and s.
        window: full history without.
        disk: where its state goes; None for a unit that never crashes.
        write_every: how many messages it receives between two writes.
    """

    def __init__(
        self,
        name: str,
        side: int,
        dispatchers: Sequence[str],
        match: Callable[[StreamTuple, StreamTuple], bool],
        window: Window | None = None,
        protections: Protections = PROTECTED,
        disk: Disk | None = None,
        write_every: int = 3,
    ) -> None:
        self.name = name
        self.processed: list[Identity] = []
        self.stored_most = 0
        self._side = side
        self._match = match
        self._window = window
        self._protections = protections
        self._disk = disk
        self._write_every = write_every
        self._unwritten = 0
        written = disk.read(name) if disk is not None else None
        self.state = written or UnitState(OrderingQueue(dispatchers, protections))

    def recover(self, network: Network) -> None:
        """On the recovery node: ask for all that came after the last write."""
        for dispatcher in self.state.queue.signals:
            network.send(self.name, dispatcher, Replay(self._inbox(dispatcher).next))

    def receive(self, sender: str, message: Message, network: Network) -> None:
        """A copy or a signal from a dispatcher."""
        if isinstance(message, Copy) and message.role is Role.JOIN and not self._protections.discard_when_processed:
            self._discard(message.tuple)
        for each in self._in_turn(sender, message, network):
            self._accept(sender, each, network)
        for copy in self.state.queue.release():
            self._process(copy, network)
        if self._disk is not None:
            self._write(network, self._disk, at_once=isinstance(message, Signal) and message.last)

    def wake(self, tag: Any, network: Network) -> None:
        """It asks for no timer."""

    def _inbox(self, dispatcher: str) -> Inbox:
        return self.state.inboxes.setdefault(dispatcher, Inbox())

    def _in_turn(self, sender: str, message: Message, network: Network) -> list[Message]:
        if not self._protections.numbered:
            return [message]
        inbox = self._inbox(sender)
        ready = inbox.take(message)
        # A signal that has to wait says that something is missing; asked once a signal, so a lost answer is no end.
        if self._disk is not None and isinstance(message, Signal) and message.number > inbox.next:
            network.send(self.name, sender, Replay(inbox.next))
        return ready

    def _accept(self, sender: str, message: Message, network: Network) -> None:
        if isinstance(message, Signal):
            self.state.queue.signal(sender, message)
        elif self._protections.ordered:
            self.state.queue.put(sender, message)
        else:
            self._process(message, network)

    def _process(self, copy: Copy, network: Network) -> None:
        self.processed.append(copy.tuple.identity)
        if copy.role is Role.STORE:
            self.state.stored[copy.tuple.identity] = copy.tuple
            self.stored_most = max(self.stored_most, len(self.state.stored))
            return
        self._discard(copy.tuple)
        for r, s in self._partners(copy.tuple):
            network.send(self.name, COLLECTOR, Result(self.state.results, r.number, s.number))
            self.state.results += 1

    def _partners(self, probe: StreamTuple) -> Iterator[tuple[StreamTuple, StreamTuple]]:
        """The pairs (r, s) of a probe with what is stored."""
        for stored in self.state.stored.values():
            r, s = (stored, probe) if self._side == R else (probe, stored)
            # Z and time may disagree, so that the later one in Z can be the earlier one in time.
            near = self._window is None or abs(r.time_us - s.time_us) <= self._window.width_us
            if near and self._match(r, s):
                yield r, s

    def _discard(self, probe: StreamTuple) -> None:
        """Theorem 1: what is out of reach of every later probe."""
        if self._window is not None:
            reach = self._window.width_us + self._window.delay_us
            self.state.stored = {
                identity: stored
                for identity, stored in self.state.stored.items()
                if probe.time_us - stored.time_us <= reach
            }

    def _write(self, network: Network, disk: Disk, at_once: bool) -> None:
        self._unwritten += 1
        written = at_once or self._unwritten >= self._write_every
        if written:
            self._unwritten = 0
            disk.write(self.name, self.state)
        if written or not self._protections.safe_when_written:
            for dispatcher, inbox in self.state.inboxes.items():
                network.send(self.name, dispatcher, Safe(inbox.next))


class Collector:
    """Takes each result once: a unit that recovers finds the same results again, under the same numbers."""

    def __init__(self, protections: Protections = PROTECTED) -> None:
        self.name = COLLECTOR
        self.pairs: list[tuple[int, int]] = []
        self.found_us: list[int] = []
        self.repeats = 0
        self._protections = protections
        self._next: Counter[str] = Counter()

    def receive(self, sender: str, message: Result, network: Network) -> None:
        """A result from a unit."""
        if message.number < self._next[sender] and self._protections.numbered_results:
            self.repeats += 1
            return
        self._next[sender] = message.number + 1
        self.pairs.append((message.r, message.s))
        self.found_us.append(network.now_us)

    def wake(self, tag: Any, network: Network) -> None:
        """It asks for no timer."""
