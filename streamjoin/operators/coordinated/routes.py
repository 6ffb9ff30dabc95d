"""The routes of one batch of CTR, as they follow from the routing table before it.

The tuples that a batch brings of a stream are what the paper routes together. In hop k they, or what became of them,
go to the hosts that cover the segments of the k-th stream of their order, and one of these answers for each segment.
Segments that the table does not know may be begun in the batch. Which ones nobody knows while tuples are routed, so
they fall into groups by their number, and the hosts of a group are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from streamjoin.operators.coordinated.cover import cover
from streamjoin.operators.coordinated.table import RoutingTable

Item = tuple[str, int]
"""A segment that the table knows, by its number, or a group of those that it does not."""
KNOWN, GROUP = "known", "group"


@dataclass(frozen=True)
class Routes:
    """Where tuples and partial results go in one batch.

    Args:
        table: before the batch.
        copies: on how many hosts a segment is stored (c).
        orders: by origin, the streams that its partial results meet.
    """

    table: RoutingTable
    copies: int
    orders: tuple[tuple[int, ...], ...]

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.table.load)

    @property
    def groups(self) -> int:
        """How many groups of new segments there are, so that each can have hosts of its own."""
        return max(self.nodes // self.copies, 1)

    @cached_property
    def _new(self) -> dict[int, tuple[tuple[int, ...], ...]]:
        """By stream and group, the hosts of new segments: those of the first hop first, then those with the least load.

        Of more hosts than copies those with the least; groups take turns among equals in rank.
        """
        found = {}
        for origin, order in enumerate(self.orders):
            hop = self._by_load(set(cover(self.table.of_stream(order[0]), self.table.load).values()))
            others = self._by_load(set(range(self.nodes)) - set(hop))
            of_groups = []
            for group in range(self.groups):
                first = _in_turn(hop, group, self.copies)
                more = _in_turn(others, group, self.copies - len(first))
                of_groups.append((*first, *more))
            found[origin] = tuple(of_groups)
        return found

    def _by_load(self, hosts: set[int]) -> list[int]:
        return sorted(hosts, key=lambda host: (self.table.load[host], host))

    def group_of(self, segment: int) -> int:
        """The group of a segment that the table does not know."""
        return segment % self.groups

    def hosts_of(self, stream: int, segment: int) -> tuple[int, ...]:
        """Where a segment is stored."""
        known = self.table.hosts.get((stream, segment))
        return known or self._new[stream][self.group_of(segment)]

    @cached_property
    def _hops(self) -> dict[tuple[int, int], dict[Item, int]]:
        return {}

    def hop(self, origin: int, number: int) -> dict[Item, int]:
        """Which host answers for what in a hop of an origin's tuples.

        Args:
            number: of the hop, from 0.
        """
        if (origin, number) not in self._hops:
            met = self.orders[origin][number]
            items: dict[Item, Sequence[int]] = {
                (KNOWN, segment): hosts for segment, hosts in self.table.of_stream(met).items()
            }
            # In a batch the streams come one after the other.
            for group, hosts in enumerate(self._new[met] if met < origin else ()):
                items[GROUP, group] = hosts
            self._hops[origin, number] = cover(items, self.table.load)
        return self._hops[origin, number]

    def hosts_of_hop(self, origin: int, number: int) -> tuple[int, ...]:
        """The hosts of a hop, by rising number."""
        return tuple(sorted(set(self.hop(origin, number).values())))

    def answers(self, host: int, origin: int, number: int, segment: int) -> bool:
        """Whether a host answers for a segment of the stream that a hop meets."""
        met = self.orders[origin][number]
        known = (met, segment) in self.table.hosts
        item = (KNOWN, segment) if known else (GROUP, self.group_of(segment))
        return self.hop(origin, number).get(item) == host


def _in_turn(hosts: Sequence[int], group: int, count: int) -> tuple[int, ...]:
    """So many of some hosts, if there are as many; each group begins behind the one before it."""
    size = min(count, len(hosts))
    return tuple(hosts[(group * size + place) % len(hosts)] for place in range(size))
