"""One sliced join of the ring (PSP, figures 3 and 5). What it does follows from its input queue alone.

A row moves from node to node as it ages, behind no row that is younger and ahead of the row that purged it. A partial
result makes one full round, and the node that made it answers it last. With interleaved processing (PSP-I) rows that
were purged stay until no input in flight needs them, and each input sees the state as it was when its row came by:
rows up to its StateStart, and inside the slice up to its StateEnd.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from simulate.network import Network
from simulate.ring.messages import Build, Done, Found, Input, Inter, Message, Parts, Probe, Query, Row

HEAD = 0
SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Broken:
    """Rules that are left out, to see what they are for.

    Args:
        probe_first: a row is sent on before the rows that it purged.
        skips_birth: a partial result is dropped where it was made, unanswered.
        no_null_end: a cycle is over when the head has no match.
        purges_at_once: rows are deleted although inputs in flight need them.
        no_start: an input sees rows that came after it.
        ends_early: what was kept for an input goes with the last END but one.
    """

    probe_first: bool = False
    skips_birth: bool = False
    no_null_end: bool = False
    purges_at_once: bool = False
    no_start: bool = False
    ends_early: bool = False


@dataclass(slots=True)
class Seen:
    """The state as an input sees it.

    Args:
        probing: its time.
        starts: by stream, the order of the newest row that was there; -1 for none.
    """

    probing: int
    starts: tuple[int, ...]


@dataclass(slots=True)
class Node:
    """A sliced join.

    Args:
        number: from 0, which is the head.
        nodes: N.
        ends: by stream, up to which age it keeps rows; 0 where it keeps none.
        is_tail: by stream, whether rows are dropped behind it.
        interleaved: several inputs may be in flight.
        found: when it had results.
        sent_on: rows that were purged and are still there, by stream and order.
    """

    number: int
    nodes: int
    query: Query
    ends: tuple[int, ...]
    is_tail: tuple[bool, ...]
    interleaved: bool
    broken: Broken = field(default_factory=Broken)
    results: list[Parts] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    state: list[list[Row]] = field(default_factory=list)
    seen: dict[int, Seen] = field(default_factory=dict)
    sent_on: set[tuple[int, int]] = field(default_factory=set)
    kept_twice_max: int = 0
    ended: Counter[int] = field(default_factory=Counter)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"node {self.number}"
        self.state = [[] for _ in self.query.windows]

    @property
    def stored(self) -> int:
        """How many rows it has."""
        return sum(map(len, self.state))

    def receive(self, sender: str, message: Message, network: Network) -> None:
        """Act on the next message of the queue."""
        match message:
            case Input(row):
                self._insert(row, network)
                self._probe(row, network)
            case Build(row):
                self._insert(row, network)  # 1-1
            case Probe(row):
                self._probe(row, network)
            case Inter():
                self._inter(message, network)

    def wake(self, tag: object, network: Network) -> None:
        """Nodes have no timers."""

    def _send(self, message: Message, network: Network) -> None:
        network.send(self.name, f"node {(self.number + 1) % self.nodes}", message)

    def _insert(self, row: Row, network: Network) -> None:
        self.state[row.stream].append(row)
        network.work(inserts=1)

    def _probe(self, row: Row, network: Network) -> None:
        if self.broken.probe_first:
            self._pass_on(row, network)
        self._purge(row, network)  # 2-1
        if not self.broken.probe_first:
            self._pass_on(row, network)  # 2-2
        alone = tuple(row if stream == row.stream else None for stream in range(len(self.query.windows)))
        begun = Inter(alone, row, 0, self.number)
        self._answer(begun, network, end=self.number == HEAD)  # 2-3, 2-4

    def _pass_on(self, row: Row, network: Network) -> None:
        if self.number + 1 < self.nodes:
            self._send(Probe(row), network)

    def _purge(self, row: Row, network: Network) -> None:
        for stream in range(len(self.state)):
            for old, goes_on in self._leaving(stream, row.ts):
                self.sent_on.add((stream, old.order))
                network.work(purges=1)
                if goes_on:
                    self._send(Build(old), network)
        if self.interleaved:
            starts = tuple(max((one.order for one in rows), default=-1) for rows in self.state)
            self.seen[row.order] = Seen(row.ts, starts)
        self._delete()

    def _leaving(self, stream: int, ts: int) -> Iterator[tuple[Row, bool]]:
        """Rows of a stream that are too old at a time, the oldest first, and whether they go to the next node."""
        for old in self.state[stream]:
            if ts - old.ts >= self.ends[stream] and (stream, old.order) not in self.sent_on:
                yield old, not self.is_tail[stream]

    def _delete(self) -> None:
        """2-1-4: rows that were purged and that no input in flight needs."""
        if not self.sent_on:
            return
        for stream, rows in enumerate(self.state):
            kept = []
            for row in rows:
                needed = any(self._sees(seen, row) for seen in self.seen.values())
                if (stream, row.order) not in self.sent_on or (needed and not self.broken.purges_at_once):
                    kept.append(row)
                else:
                    self.sent_on.discard((stream, row.order))
            self.state[stream] = kept
        self.kept_twice_max = max(self.kept_twice_max, len(self.sent_on))

    def _sees(self, seen: Seen, row: Row) -> bool:
        is_there = self.broken.no_start or row.order <= seen.starts[row.stream]
        return is_there and seen.probing - row.ts < self.ends[row.stream]

    def _inter(self, message: Inter, network: Network) -> None:
        is_home = message.birth == self.number
        if not is_home:
            self._send(message, network)  # 3-1
        is_last_end = message.end and message.round == self.query.rounds
        if not (message.null and message.round == self.query.rounds) and not (is_home and self.broken.skips_birth):
            self._answer(message, network, end=message.end and is_home and self.number == HEAD)  # 3-2, 3-3
        elif is_home and self.broken.skips_birth and message.end and not is_last_end:
            self._end(message.origin, message.round + 1, network)
        if message.end and (is_last_end or (self.broken.ends_early and message.round == self.query.rounds - 1)):
            self.seen.pop(message.origin.order, None)
            self._delete()
        if is_last_end and is_home:
            network.send(self.name, SOURCE, Done(message.origin.order))
        self.ended[message.origin.order] += message.end and is_home

    def _end(self, origin: Row, round_number: int, network: Network) -> None:
        if self.broken.no_null_end:
            network.send(self.name, SOURCE, Done(origin.order))
            return
        nothing = (None,) * len(self.query.windows)
        self._send(Inter(nothing, origin, round_number, self.number, end=True, null=True), network)

    def _answer(self, message: Inter, network: Network, *, end: bool) -> None:
        """What a partial result, or a row, makes with the next stream; with `end` the last of it is the next END."""
        found = [] if message.null else self._matches(message, network)
        if message.round + 1 == self.query.rounds:
            if found:
                self.found.append(Found(message.origin.order, network.now_us, len(found)))
            self.results += found
            found = []
        made = [Inter(parts, message.origin, message.round + 1, self.number) for parts in found]
        if end and made:
            made[-1] = replace(made[-1], end=True)
        for one in made:
            self._send(one, network)
        if end and not made:
            self._end(message.origin, message.round + 1, network)

    def _matches(self, message: Inter, network: Network) -> list[Parts]:
        origin = message.origin
        stream = self.query.orders[origin.stream][message.round]
        seen = self.seen.get(origin.order)
        rows = self.state[stream]
        if seen is not None:
            rows = [row for row in rows if self._sees(seen, row)]
        network.work(probes=1, comparisons=len(rows))
        found = []
        parts = list(message.parts)
        for row in rows:
            parts[stream] = row
            if self.query.holds(parts, stream):
                found.append(tuple(parts))
        return found
