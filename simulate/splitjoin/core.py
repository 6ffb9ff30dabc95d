"""The regions of a join core: each stores one stream's sub-window and processes the other stream (Algorithm 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from simulate.network import Network
from simulate.splitjoin.buffers import Node, Step
from simulate.splitjoin.messages import Arrival, Change, Label, Message, Ordering, Precision, Result, Star
from simulate.splitjoin.window import Stored, SubWindow
from simulate.stream import Stream

Predicate = Callable[[Any, Any], bool]
"""Of R's value and S's value."""

EMPTY = -1.0
"""The storage round of the star of a region that has nothing stored."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is to store, as each region works out alone: round robin, in runs of `run` tuples.

    Args:
        position: of the core, from 0.
    """

    position: int
    cores: int
    run: int = 1

    def is_mine(self, rank: int) -> bool:
        """Whether the tuple before which `rank` of its stream came is stored here."""
        return rank // self.run % self.cores == self.position

    def storage_round(self, rank: int) -> int:
        """How often the turn had gone round all cores before."""
        return rank // (self.run * self.cores)


class Region(Node):
    """One half of a join core. For one tuple it either stores or processes, never both.

    Args:
        stores: the right region stores R and processes S, the left one stores S and processes R.
        compare_us: time of one comparison.
    """

    def __init__(
        self,
        name: str,
        core: str,
        output: str,
        stores: Stream,
        turn: Turn,
        window: SubWindow,
        match: Predicate,
        precision: Precision,
        compare_us: int = 0,
        buffer: int | None = None,
    ) -> None:
        super().__init__(name, [core], [output], buffer)
        self.stores = stores
        self.turn = turn
        self.window = window
        self.precision = precision
        self.seen = dict.fromkeys(Stream, 0)
        self.stored = 0
        self.comparisons = 0
        self.results = 0
        self.stars = 0
        self._output = output
        self._match = match
        self._compare_us = compare_us
        self._since_star = 0

    def take(self, port: str, message: Message, network: Network) -> Iterator[Step]:
        """See `Node`."""
        if not isinstance(message, Arrival):
            # A change or the end: nothing of before may stay without its star.
            if self._since_star:
                yield self._star(self.seen[self.stores.opposite] - 1, sum(self.seen.values()) - 1)
            if isinstance(message, Change):
                self.precision = message.precision
            yield [(self._output, message)]
            return
        if message.stream is self.stores:
            self._store(message)
        else:
            yield from self._process(message, network)
        self.seen[message.stream] += 1

    def rank_of(self, tuple_: Arrival) -> int:
        """The count that the turn is worked out from: tuples of the same stream seen before."""
        return self.seen[tuple_.stream]

    def _store(self, tuple_: Arrival) -> None:
        rank = self.rank_of(tuple_)
        self.window.pass_by(tuple_)
        if self.turn.is_mine(rank):
            self.window.store(Stored(rank, tuple_))
            self.stored += 1

    def _process(self, tuple_: Arrival, network: Network) -> Iterator[Step]:
        probe, position, started_us = self.seen[tuple_.stream], sum(self.seen.values()), network.now_us
        found = 0
        sections = self._sections(self.window.live(self.seen[self.stores], tuple_))
        for at, (storage_round, section) in enumerate(sections):
            for stored in section:
                self.comparisons += 1
                yield self._compare_us
                if self._matches(tuple_, stored.tuple):
                    found += 1
                    label = Label(probe, storage_round)
                    result = Result(tuple_, stored.tuple, label, position, started_us, network.now_us)
                    yield [(self._output, result)]
            if self.precision.by_partner:
                yield self._star(probe, position, storage_round, last=at == len(sections) - 1)
        self.results += found
        yield from self._end_of_probe(probe, position, found)

    def _end_of_probe(self, probe: int, position: int, found: int) -> Iterator[Step]:
        """The star rule: at the end of each processed tuple (or every so many), whether it found anything or not."""
        if self.precision.ordering is Ordering.OUTER:
            self._since_star += 1
            if self._since_star == self.precision.tuples_per_star:
                yield self._star(probe, position)

    def _sections(self, live: list[Stored]) -> list[tuple[float, list[Stored]]]:
        """The stored tuples, cut where a star is due if results are ordered by partner.

        Cut by the storage round, which all regions count alike, and not by how many tuples were compared here: the
        oldest tuple that is left may lie in any core.
        """
        if not self.precision.by_partner or not live:
            return [(EMPTY, live)]
        rounds_per_star = -(-self.precision.rows_per_star // self.turn.run)
        groups = groupby(live, key=lambda stored: self.turn.storage_round(stored.rank) // rounds_per_star)
        return [(float(at), list(group)) for at, group in groups]

    def _matches(self, new: Arrival, stored: Arrival) -> bool:
        return self._match(new.value, stored.value) if new.stream is Stream.R else self._match(stored.value, new.value)

    def _star(self, probe: int, position: int, storage_round: float = EMPTY, last: bool = True) -> Step:
        self._since_star = 0
        self.stars += 1
        return [(self._output, Star(self.stores.opposite, Label(probe, storage_round), position, last))]
