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
    """The head's queue of input: gives it the next row once few enough are in flight.

    Args:
        in_flight: how many may be; 1 is the basic ring.
        paced: a row comes at its time, and not before; else all are there from the beginning.
        awaited: the row for whose time there is a timer.
        read, done: when the head got each row, and when its cycle was over, by its `order`.
    """

    rows: deque[Row]
    in_flight: int
    paced: bool = False
    going: int = 0
    awaited: int = -1
    name: str = SOURCE
    read: dict[int, int] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)

    def receive(self, sender: str, message: Done, network: Network) -> None:
        """A cycle is over."""
        self.done[message.order] = network.now_us
        self.going -= 1
        self.wake(None, network)

    def wake(self, tag: object, network: Network) -> None:
        """Send what may be in flight."""
        while self.rows and self.going < self.in_flight:
            if self.paced and self.rows[0].ts > network.now_us:
                if self.awaited != self.rows[0].order:  # a timer for each row is enough
                    self.awaited = self.rows[0].order
                    network.wake_at(self.name, self.rows[0].ts)
                return
            self.going += 1
            row = self.rows.popleft()
            self.before(row, network)
            self.read[row.order] = network.now_us
            network.send(self.name, f"node {HEAD}", Input(row))

    def before(self, row: Row, network: Network) -> None:
        """Called before the head gets a row."""


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

    @property
    def held_twice_max(self) -> int:
        """How many rows at most were in a node although the next one, or none, has them (PSP-I).

        Nodes need not have had so many at the same time: it is the sum of what each had at most.
        """
        return sum(node.kept_twice_max for node in self.nodes)


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
    network = Network(scheduler, faults=faults)
    nodes = nodes_of(query, lengths, interleaved=in_flight > 1, broken=broken)
    source = Source(deque(rows), in_flight)
    network.play(*nodes, source)
    return Played(nodes, source, network)


def play_on(
    network: Network,
    rows: Sequence[Row],
    query: Query,
    lengths: Sequence[int],
    *,
    stored: Sequence[Row] = (),
    in_flight: int = 1,
    paced: bool = False,
) -> Played:
    """Run rows through a ring on a network such as `simulate.timed.Timed`.

    Args:
        rows: at least one.
        stored: rows that came before, the oldest first, and are in the ring as it begins, where their age says.
        paced: rows come at their times, on the network's clock.
    """
    nodes = nodes_of(query, lengths, interleaved=in_flight > 1)
    put(stored, nodes, rows[0].ts)
    source = Source(deque(rows), in_flight, paced)
    network.play(*nodes, source)
    return Played(nodes, source, network)


def put(stored: Sequence[Row], nodes: Sequence[Node], ts: int) -> None:
    """Rows that came before a time into the nodes of their age; too old ones into none."""
    for row in stored:
        for node in nodes:
            if ts - row.ts < node.ends[row.stream]:
                node.state[row.stream].append(row)
                break


def is_local(sender: str, receiver: str) -> bool:
    """Whether two actors are on one machine: the source stands for the head's own queue, and N may be 1."""
    return SOURCE in (sender, receiver) or sender == receiver


def nodes_of(
    query: Query, lengths: Sequence[int], *, interleaved: bool = False, broken: Broken | None = None
) -> list[Node]:
    """Nodes of a ring, each with an equal part of the window of each stream that it keeps."""
    count = max(lengths)
    nodes = []
    for number in range(count):
        ends = tuple(
            -(-window * (number + 1) // length) if number < length else 0
            for window, length in zip(query.windows, lengths, strict=True)
        )
        tails = tuple(number >= length - 1 for length in lengths)
        nodes.append(Node(number, count, query, ends, tails, interleaved, broken or Broken()))
    return nodes
