"""Coordinated tuple routing (CTR): segments of all streams on several hosts each, and hops from cover to cover.

One operator, which joins nothing, cuts streams into segments and keeps the routing table. A segment is routed when it
is complete: hop k goes to hosts that together have all live segments of the k-th stream of its order, found by greedy
set cover, and each of these segments is assigned to one host of the hop. Route and assignments travel with it. It is
stored on c hosts: first those of its first hop, which get it anyway, then the ones with the least load.

All hops of a segment end, and all its copies are stored, before the next segment is routed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from simulate.network import Faults, Network, Scheduler
from simulate.ring.messages import Found, Parts, Query, Row
from streamjoin.operators.coordinated.cover import cover

DIFFUSION = "diffusion"
Key = tuple[int, int]
"""A stream, and the number of a segment of it."""


@dataclass(frozen=True, slots=True)
class Store:
    """A copy of a segment's rows."""

    key: Key
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A copy is there."""

    key: Key


@dataclass(frozen=True, slots=True)
class Hop:
    """What hosts of a hop make of a segment, for one host of the next hop.

    Args:
        key: the segment that is routed.
        number: of the hop, from 0.
        route: by hop, which segments each host answers for.
    """

    key: Key
    number: int
    parts: tuple[Parts, ...]
    route: tuple[dict[int, tuple[Key, ...]], ...]

    @property
    def arrivals(self) -> int:
        """How many messages each host of its hop gets: one for each way there through hosts of the hops before."""
        return prod(len(hosts) for hosts in self.route[: self.number])


@dataclass(frozen=True, slots=True)
class Done:
    """A host has nothing more to do for a segment."""

    key: Key


@dataclass(frozen=True, slots=True)
class Drop:
    """A segment is dead."""

    key: Key


Message = Store | Stored | Hop | Done | Drop


@dataclass(frozen=True, slots=True)
class Broken:
    """Rules that are left out, to see what they are for.

    Args:
        table_ahead: a segment is in the table, and the next one is routed, though its copies are still on their way.
        skips_holder: the host with the fewest segments is left out of each hop.
        no_assignment: each host of a hop answers for all that it has.
        interleaves: the next segment is routed while hops of this one are going on.
        drops_at_own_window: segments are dead by the window of the segment that is routed, and not by their own.
    """

    table_ahead: bool = False
    skips_holder: bool = False
    no_assignment: bool = False
    interleaves: bool = False
    drops_at_own_window: bool = False


@dataclass(slots=True)
class Host:
    """Keeps copies of segments, and answers for those that it is assigned.

    Args:
        state: the rows of each segment.
        found: when it had results, of which segment that was routed; their `origin` is their newest row.
        most: how many tuples it had at most.
        answered: how many pairs it compared.
    """

    number: int
    query: Query
    broken: Broken
    state: dict[Key, tuple[Row, ...]] = field(default_factory=dict)
    results: list[Parts] = field(default_factory=list)
    found: list[tuple[Key, Found]] = field(default_factory=list)
    heard: dict[tuple[Key, int], int] = field(default_factory=dict)
    most: int = 0
    answered: int = 0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"host {self.number}"

    @property
    def stored(self) -> int:
        """How many tuples it has."""
        return sum(map(len, self.state.values()))

    def receive(self, sender: str, message: Message, network: Network) -> None:
        """Act on the next message of the queue."""
        match message:
            case Store(key, rows):
                self.state[key] = rows
                network.work(inserts=len(rows))
                self.most = max(self.most, self.stored)
                network.send(self.name, DIFFUSION, Stored(key))
            case Drop(key):
                network.work(purges=len(self.state.pop(key, ())))
            case Hop():
                self._hop(message, network)

    def wake(self, tag: object, network: Network) -> None:
        """Hosts have no timers."""

    def _hop(self, message: Hop, network: Network) -> None:
        found = []
        for parts in message.parts:
            wider = self._matches(message, parts, network)
            found += wider
            if message.number + 1 == self.query.rounds:
                newest = Counter(max(row.order for row in each if row is not None) for each in wider)
                self.found += [
                    (message.key, Found(order, network.now_us, count)) for order, count in newest.items()
                ]  # fmt: skip
        if message.number + 1 < self.query.rounds:
            for host in message.route[message.number + 1]:
                further = replace(message, number=message.number + 1, parts=tuple(found))
                network.send(self.name, f"host {host}", further)
            return
        self.results += found
        place = (message.key, message.number)
        self.heard[place] = self.heard.get(place, 0) + 1
        if self.heard[place] == message.arrivals:
            network.send(self.name, DIFFUSION, Done(message.key))

    def _matches(self, message: Hop, parts: Parts, network: Network) -> list[Parts]:
        origin = message.key[0]
        stream = self.query.orders[origin][message.number]
        mine = message.route[message.number][self.number]
        if self.broken.no_assignment:
            mine = tuple(key for key in self.state if key[0] == stream)
        found = []
        compared = 0
        tried = list(parts)
        for key in mine:
            for row in self.state.get(key, ()):
                self.answered += 1
                tried[stream] = row
                if not self._near(tried):
                    continue
                compared += 1
                if self.query.holds(tried, stream):
                    found.append(tuple(tried))
        network.work(probes=1, comparisons=compared)
        return found

    def _near(self, parts: Sequence[Row | None]) -> bool:
        there = [row for row in parts if row is not None]
        latest = max(row.ts for row in there)
        return all(latest - row.ts < self.query.windows[row.stream] for row in there)


@dataclass(slots=True)
class Diffusion:
    """Cuts streams into segments, routes them, and keeps the routing table.

    Args:
        length: of a segment (L).
        copies: c.
        hosts: the routing table: of each live segment.
        load: tuples that each host has.
        waiting: what must be heard before the next segment is routed.
        covers: how many hosts each hop had.
        weighed: copies of segments that these hosts were chosen from.
        table_most: copies in the table, at the moment with the most.
        paced: a segment is there when its time is over; else all are from the beginning.
        awaited: the time for which there is a timer.
        routed: when each segment was.
    """

    segments: deque[tuple[Key, tuple[Row, ...]]]
    query: Query
    length: int
    copies: int
    load: list[int]
    broken: Broken
    hosts: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    sizes: dict[Key, int] = field(default_factory=dict)
    waiting: int = 0
    covers: list[int] = field(default_factory=list)
    weighed: int = 0
    table_most: int = 0
    paced: bool = False
    awaited: int = -1
    routed: dict[Key, int] = field(default_factory=dict)
    name: str = DIFFUSION

    def receive(self, sender: str, message: Message, network: Network) -> None:
        """A copy is stored, or a host is done."""
        if isinstance(message, Stored) and self.broken.table_ahead:
            return
        self.waiting -= 1
        self.wake(None, network)

    def wake(self, tag: object, network: Network) -> None:
        """Route what may be routed."""
        while self.segments and (self.waiting <= 0 or self.broken.interleaves):
            complete = (self.segments[0][0][1] + 1) * self.length
            if self.paced and complete > network.now_us:
                if self.awaited != complete:  # a timer for each time is enough
                    self.awaited = complete
                    network.wake_at(self.name, complete)
                return
            self._route(*self.segments.popleft(), network)

    def _route(self, key: Key, rows: tuple[Row, ...], network: Network) -> None:
        self.routed[key] = network.now_us
        self._drop(key, network)
        route = tuple(self._hop(stream) for stream in self.query.orders[key[0]])
        self.covers += map(len, route)
        storing = self._storing(route[0])
        # Where a hop has no host, nothing can be found.
        if all(route):
            self.waiting += len(route[-1])
            alone = tuple(
                tuple(row if stream == key[0] else None for stream in range(len(self.query.windows))) for row in rows
            )
            for host in route[0]:
                network.send(self.name, f"host {host}", Hop(key, 0, alone, route))
        if not self.broken.table_ahead:
            self.waiting += len(storing)
        for host in storing:
            self.load[host] += len(rows)
            network.send(self.name, f"host {host}", Store(key, rows))
        self.hosts[key], self.sizes[key] = storing, len(rows)
        self.table_most = max(self.table_most, sum(map(len, self.hosts.values())))

    def _hop(self, stream: int) -> dict[int, tuple[Key, ...]]:
        """By host, which segments of a stream it answers for."""
        items = {key: hosts for key, hosts in self.hosts.items() if key[0] == stream}
        self.weighed += sum(map(len, items.values()))
        found: dict[int, list[Key]] = {}
        for key, host in cover(items, self.load).items():
            found.setdefault(host, []).append(key)
        if self.broken.skips_holder and len(found) > 1:
            del found[min(found, key=lambda host: (len(found[host]), host))]
        return {host: tuple(keys) for host, keys in sorted(found.items())}

    def _storing(self, hop: dict[int, tuple[Key, ...]]) -> tuple[int, ...]:
        """c hosts: those of the first hop with the least load, then the others with the least load."""
        ranked = sorted(range(len(self.load)), key=lambda host: (host not in hop, self.load[host], host))
        return tuple(ranked[: self.copies])

    def _drop(self, key: Key, network: Network) -> None:
        """Segments that no row of this one, or of a later one, can meet."""
        start = key[1] * self.length
        for old, hosts in list(self.hosts.items()):
            window = self.query.windows[key[0] if self.broken.drops_at_own_window else old[0]]
            if (old[1] + 1) * self.length - 1 + window <= start:
                for host in hosts:
                    self.load[host] -= self.sizes[old]
                    network.send(self.name, f"host {host}", Drop(old))
                del self.hosts[old], self.sizes[old]


@dataclass(slots=True)
class Played:
    """What a run has left behind."""

    nodes: list[Host]
    diffusion: Diffusion
    network: Network

    @property
    def results(self) -> list[Parts]:
        """All hosts'."""
        return [parts for host in self.nodes for parts in host.results]

    @property
    def fullest_share(self) -> float:
        """Which share of all that hosts had at most the fullest one had."""
        return max(host.most for host in self.nodes) / (sum(host.most for host in self.nodes) or 1)


def segments_of(rows: Sequence[Row], length: int) -> list[tuple[Key, tuple[Row, ...]]]:
    """The segments of all streams as they are completed: by the time at which they end, then by stream."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault((row.stream, row.ts // length), []).append(row)
    return [(key, tuple(found[key])) for key in sorted(found, key=lambda key: (key[1], key[0]))]


def play(
    rows: Sequence[Row],
    query: Query,
    nodes: int,
    length: int,
    copies: int,
    scheduler: Scheduler | Network,
    *,
    broken: Broken | None = None,
    faults: Faults | None = None,
    paced: bool = False,
) -> Played:
    """Run rows through CTR.

    Args:
        rows: in the order of the input.
        length: of a segment (L).
        copies: c, at most `nodes`.
        scheduler: or a network, such as `simulate.timed.Timed`.
        paced: rows come at their times, on the network's clock.
    """
    network = scheduler if isinstance(scheduler, Network) else Network(scheduler, faults=faults)
    every = [Host(number, query, broken or Broken()) for number in range(nodes)]
    cut = deque(segments_of(rows, length))
    diffusion = Diffusion(cut, query, length, copies, [0] * nodes, broken or Broken(), paced=paced)
    network.play(*every, diffusion)
    return Played(every, diffusion, network)
