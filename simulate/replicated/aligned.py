"""Aligned tuple routing (ATR): one operator spreads tuples, and nodes join what they get, each alone.

The master stream is cut into segments of time, and a segment goes to one node, which keeps a state for each of its
segments. A tuple of another stream goes to every segment that has a time of the master within reach. So the node of a
segment is chosen before the segment begins, as tuples of other streams for it come first. Once no tuple to come is for
a segment, its node drops it: nothing else would tell a node that gets no more tuples.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from simulate.network import Faults, Network, Scheduler
from simulate.ring.messages import Found, Parts, Query, Row

DIFFUSION = "diffusion"


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple, and those segments of its receiver that it is for."""

    row: Row
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drop:
    """A segment is dead."""

    segment: int


@dataclass(frozen=True, slots=True)
class Broken:
    """Rules that are left out, to see what they are for.

    Args:
        no_copies: all streams are cut alike, and nothing goes to the neighbours of its segment.
        wrong_master: rows are copied as if another stream were the master, and that one goes to its segment alone.
        chosen_late: the node of a segment is chosen when its first row of the master comes.
        one_state: the segments of a node share one state.
        drops_too_early: what a row of the master may still meet is dropped by the row's own window.
    """

    no_copies: bool = False
    wrong_master: bool = False
    chosen_late: bool = False
    one_state: bool = False
    drops_too_early: bool = False


@dataclass(slots=True)
class Node:
    """A join of all streams.

    Args:
        state: by segment and stream.
        found: when it had results.
    """

    number: int
    query: Query
    broken: Broken
    state: dict[int, list[list[Row]]] = field(default_factory=dict)
    results: list[Parts] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"node {self.number}"

    @property
    def stored(self) -> int:
        """How many tuples it has, those that several segments share counted for each."""
        return sum(len(rows) for state in self.state.values() for rows in state)

    def receive(self, sender: str, message: Tuple | Drop, network: Network) -> None:
        """Store a row, and find what it is the last part of; or drop a segment."""
        if isinstance(message, Drop):
            if not self.broken.one_state:
                network.work(purges=sum(map(len, self.state.pop(message.segment, ()))))
            return
        for segment in message.segments:
            key = 0 if self.broken.one_state else segment
            state = self.state.setdefault(key, [[] for _ in self.query.windows])
            self._expire(state, message.row, network)
            state[message.row.stream].append(message.row)
            network.work(inserts=1)
            count = len(self.query.windows)
            alone = tuple(message.row if stream == message.row.stream else None for stream in range(count))
            self._extend(state, alone, message.row, 0, network)
        self.state = {key: state for key, state in self.state.items() if any(state)}

    def wake(self, tag: object, network: Network) -> None:
        """Nodes have no timers."""

    def _expire(self, state: list[list[Row]], row: Row, network: Network) -> None:
        windows = self.query.windows
        for stream, rows in enumerate(state):
            window = min(windows) if self.broken.drops_too_early else windows[stream]
            state[stream] = [one for one in rows if row.ts - one.ts < window]
            network.work(purges=len(rows) - len(state[stream]))

    def _extend(self, state: list[list[Row]], parts: Parts, origin: Row, met: int, network: Network) -> None:
        stream = self.query.orders[origin.stream][met]
        network.work(probes=1, comparisons=len(state[stream]))
        found = []
        tried = list(parts)
        for row in state[stream]:
            tried[stream] = row
            if self.query.holds(tried, stream):
                found.append(tuple(tried))
        if met + 1 < self.query.rounds:
            for wider in found:
                self._extend(state, wider, origin, met + 1, network)
        elif found:
            self.results += found
            self.found.append(Found(origin.order, network.now_us, len(found)))


@dataclass(slots=True)
class Diffusion:
    """Cuts streams, and sends each tuple to the nodes of its segments.

    Args:
        length: L.
        paced: a row comes at its time; else all are there from the beginning.
        nodes: of each segment that has been chosen one and is not dead.
        load: tuples sent to each node.
        begun: the segment of the master's first row; none before it can have one.
        looked_up: how often the node of a segment was.
        sizes: how many tuples each segment got.
        table_most: segments in the table, at the moment with the most.
    """

    rows: deque[Row]
    query: Query
    length: int
    master: int
    load: list[int]
    broken: Broken
    paced: bool = False
    nodes: dict[int, int] = field(default_factory=dict)
    begun: int | None = None
    looked_up: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    table_most: int = 0
    name: str = DIFFUSION

    def receive(self, sender: str, message: object, network: Network) -> None:
        """Nobody answers."""

    def wake(self, tag: object, network: Network) -> None:
        """Send the next row, if it is there."""
        if self.paced and self.rows[0].ts > network.now_us:
            network.wake_at(self.name, self.rows[0].ts)
            return
        row = self.rows.popleft()
        self._drop(row, network)
        by_node: dict[int, list[int]] = {}
        segments_of_row = self._segments(row)
        self.looked_up += len(segments_of_row)
        self.sizes.update(segments_of_row)
        for segment in segments_of_row:
            if (node := self._node(segment, row)) is not None:
                by_node.setdefault(node, []).append(segment)
        self.table_most = max(self.table_most, len(self.nodes))
        for node, segments in sorted(by_node.items()):
            self.load[node] += len(segments)
            network.send(self.name, f"node {node}", Tuple(row, tuple(segments)))
        if self.rows:
            network.wake_at(self.name, network.now_us)

    def _drop(self, row: Row, network: Network) -> None:
        """Segments whose last time of the master is out of the reach of this row, and of later ones."""
        for segment, node in list(self.nodes.items()):
            if (segment + 1) * self.length - 1 + self.query.windows[self.master] <= row.ts:
                network.send(self.name, f"node {node}", Drop(segment))
                del self.nodes[segment]

    def _segments(self, row: Row) -> range:
        master = (self.master + 1) % len(self.query.windows) if self.broken.wrong_master else self.master
        own = row.ts // self.length
        if self.begun is None and row.stream == self.master:
            self.begun = own
        if row.stream == master or self.broken.no_copies:
            return range(own, own + 1)
        windows = self.query.windows  # a row is in reach of one that is newer by less
        first = (row.ts - windows[self.master] + 1) // self.length
        if self.broken.wrong_master and row.stream == self.master:
            return range(own, own + 1)
        # Segments that end before the master's first row need no rows; rows come in the order of their times.
        first = max(first, own if self.begun is None else self.begun)
        return range(first, (row.ts + windows[row.stream] - 1) // self.length + 1)

    def _node(self, segment: int, row: Row) -> int | None:
        """The one with the least load, as the segment is first needed; then it stays."""
        if self.broken.chosen_late and row.stream != self.master and segment not in self.nodes:
            return None
        if segment not in self.nodes:
            self.nodes[segment] = min(range(len(self.load)), key=lambda node: (self.load[node], node))
        return self.nodes[segment]


@dataclass(slots=True)
class Played:
    """What a run has left behind."""

    nodes: list[Node]
    diffusion: Diffusion
    network: Network

    @property
    def results(self) -> list[Parts]:
        """All nodes'."""
        return [parts for node in self.nodes for parts in node.results]


def play(
    rows: Sequence[Row],
    query: Query,
    nodes: int,
    length: int,
    master: int,
    scheduler: Scheduler | Network,
    *,
    broken: Broken | None = None,
    faults: Faults | None = None,
    paced: bool = False,
) -> Played:
    """Run rows through ATR.

    Args:
        rows: in the order of the input.
        length: of a segment (L).
        scheduler: or a network, such as `simulate.timed.Timed`.
        paced: rows come at their times, on the network's clock.
    """
    network = scheduler if isinstance(scheduler, Network) else Network(scheduler, faults=faults)
    every = [Node(number, query, broken or Broken()) for number in range(nodes)]
    diffusion = Diffusion(deque(rows), query, length, master, [0] * nodes, broken or Broken(), paced)
    network.play(*every, diffusion)
    return Played(every, diffusion, network)
