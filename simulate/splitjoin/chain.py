"""The low-latency handshake join that SplitJoin is compared with: tuples are forwarded at once along a chain of cores.

R enters on the left, S on the right, each tuple visits every core and is stored at one, its home, that a coordinator
chose. The coordinator also sends one expiry message a tuple. Pairs are found at the home of the older tuple: by the
newer one as it passes, or, if the newer one passed before the older one came home, then. Times are only those of the
model: a core can work on several tuples at once, so feed tuples far apart to measure them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simulate.network import Network, Scheduler
from simulate.splitjoin.core import Predicate
from simulate.splitjoin.distribution import Input
from simulate.stream import Stream


@dataclass(frozen=True, slots=True)
class Passing:
    """A tuple on its way.

    Args:
        home: the core that stores it.
        partners_from, partners_to: the numbers of the opposite tuples in its window.
    """

    stream: Stream
    number: int
    value: Any
    home: int
    partners_from: int
    partners_to: int
    arrived_us: int


@dataclass(frozen=True, slots=True)
class Expiry:
    """The coordinator's message that a tuple has left its window. It follows the last tuple that may want it."""

    stream: Stream
    number: int


@dataclass(frozen=True, slots=True)
class Met:
    """A pair, when it was found, and how long after the later of the two had come."""

    pair: tuple[int, int]
    at_us: int
    visiting_us: int


class ChainCore:
    """Forwards first, then compares."""

    def __init__(self, at: int, cores: int, match: Predicate, compare_us: int) -> None:
        self.name = f"core {at}"
        self.found: list[Met] = []
        self.ready_us = 0
        """When it had compared the last tuple."""
        self.stored: dict[Stream, dict[int, Passing]] = {each: {} for each in Stream}
        self._passed: dict[Stream, list[Passing]] = {each: [] for each in Stream}
        self._gone: set[tuple[Stream, int]] = set()
        self._at = at
        self._next = {
            Stream.R: f"core {at + 1}" if at + 1 < cores else None,
            Stream.S: f"core {at - 1}" if at else None,
        }
        self._match = match
        self._compare_us = compare_us

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """See `Actor`."""
        # Expiry of a tuple goes the way of the opposite stream, whose tuples may still want it.
        direction = message.stream if isinstance(message, Passing) else message.stream.opposite
        following = self._next[direction]
        if following is not None:
            network.send(self.name, following, message)
        if isinstance(message, Expiry):
            if self.stored[message.stream].pop(message.number, None) is None:
                self._gone.add((message.stream, message.number))
            return
        self._compare(message, network)

    def wake(self, tag: Any, network: Network) -> None:
        """See `Actor`."""

    def _compare(self, new: Passing, network: Network) -> None:
        at_us = network.now_us
        for partner in self.stored[new.stream.opposite].values():
            if new.partners_from <= partner.number < new.partners_to:
                at_us += self._compare_us
                self._meet(new, partner, at_us)
        self._passed[new.stream].append(new)
        if new.home == self._at:
            for probe in self._passed[new.stream.opposite]:
                if probe.partners_from <= new.number < probe.partners_to:
                    at_us += self._compare_us
                    self._meet(probe, new, at_us)
            if (new.stream, new.number) not in self._gone:
                self.stored[new.stream][new.number] = new
        self.ready_us = at_us

    def _meet(self, new: Passing, partner: Passing, at_us: int) -> None:
        r, s = (new, partner) if new.stream is Stream.R else (partner, new)
        if self._match(r.value, s.value):
            self.found.append(Met((r.number, s.number), at_us, at_us - max(r.arrived_us, s.arrived_us)))


class Coordinator:
    """Gives each tuple its home and its window, sends it to its end of the chain, and says what has expired."""

    name = "coordinator"

    def __init__(self, cores: int, rows: int) -> None:
        self._ends = {Stream.R: "core 0", Stream.S: f"core {cores - 1}"}
        self._cores = cores
        self._rows = rows
        self._seen = dict.fromkeys(Stream, 0)

    def feed(self, inputs: list[Input], network: Network) -> None:
        """Let the tuples come at their times."""
        for each in inputs:
            network.wake_at(self.name, each.arrives_us, each)

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """See `Actor`."""

    def wake(self, tag: Any, network: Network) -> None:
        """See `Actor`."""
        stream, opposite = tag.stream, tag.stream.opposite
        number, partners = self._seen[stream], self._seen[opposite]
        self._seen[stream] += 1
        first = max(0, partners - self._rows)
        home = number % self._cores
        passing = Passing(stream, number, tag.value, home, first, partners, network.now_us)
        network.send(self.name, self._ends[stream], passing)
        if number >= self._rows:
            network.send(self.name, self._ends[opposite], Expiry(stream, number - self._rows))


class Chain:
    """A whole chain, over count windows.

    Args:
        link_us, monitor_us, compare_us: T_CL, T_ML and T_P.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        cores: int,
        rows: int,
        match: Predicate,
        link_us: int = 0,
        monitor_us: int = 0,
        compare_us: int = 0,
    ) -> None:
        def delay_us(sender: str, receiver: str, message: Any) -> int:
            return link_us if sender == Coordinator.name else link_us + monitor_us

        self.network = Network(scheduler, delay_us)
        self.coordinator = Coordinator(cores, rows)
        self.cores = [ChainCore(at, cores, match, compare_us) for at in range(cores)]
        self.network.add(self.coordinator)
        for core in self.cores:
            self.network.add(core)

    def join(self, inputs: list[Input]) -> Chain:
        """Feed it, and run until nothing can happen any more."""
        self.coordinator.feed(inputs, self.network)
        self.network.run()
        return self

    @property
    def found(self) -> list[Met]:
        """All pairs, by the time they were found."""
        return sorted((met for core in self.cores for met in core.found), key=lambda met: met.at_us)
