"""A ring of nodes and the source that feeds its head."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from simulate.network import Faults, Network, Scheduler
from simulate.ring.messages import Done, Input, Parts, Query, Row
from simulate.ring.node import HEAD, SOURCE, Broken, Node


@dataclass(slots=True)
class Source:
    """Gives the head the next row once few enough are in flight.

    Args:
        in_flight: how many may be; 1 is the basic ring.
    """

    rows: deque[Row]
    in_flight: int
    going: int = 0
    name: str = SOURCE
    done: list[int] = field(default_factory=list)

    def receive(self, sender: str, message: Done, network: Network) -> None:
        """A cycle is over."""
        self.done.append(message.order)
        self.going -= 1
        self.wake(None, network)

    def wake(self, tag: object, network: Network) -> None:
        """Send what may be in flight."""
        while self.rows and self.going < self.in_flight:
            self.going += 1
            network.send(self.name, f"node {HEAD}", Input(self.rows.popleft()))


@dataclass(slots=True)
class Played:
    """What a run has left behind."""

    nodes: list[Node]
    source: Source
    network: Network

    @property
    def results(self) -> list[Parts]:
        """All nodes'."""
        return [parts for node in self.nodes for parts in node.results]


def play(
    rows: Sequence[Row],
    query: Query,
    lengths: Sequence[int],
    scheduler: Scheduler,
    *,
    in_flight: int = 1,
    broken: Broken | None = None,
    faults: Faults | None = None,
) -> Played:
    """Run rows through a ring.

    Args:
        rows: in the order of the input.
        lengths: by stream, how many nodes keep it; each has an equal part of its window.
        in_flight: above 1, processing is interleaved (PSP-I).
    """
    count = max(lengths)
    network = Network(scheduler, faults=faults)
    nodes = []
    for number in range(count):
        ends = tuple(
            -(-window * (number + 1) // length) if number < length else 0
            for window, length in zip(query.windows, lengths, strict=True)
        )
        tails = tuple(number >= length - 1 for length in lengths)
        nodes.append(Node(number, count, query, ends, tails, in_flight > 1, broken or Broken()))
    source = Source(deque(rows), in_flight)
    network.play(*nodes, source)
    return Played(nodes, source, network)
