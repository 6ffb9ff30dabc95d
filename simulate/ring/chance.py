"""Streams whose rows match by chance, as PSP's evaluation has them (section 8.2): selectivity is set, not found.

Whether two rows match follows from their values alone, so that all systems and a nested loop find the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from simulate.ring.messages import Query, Row

VALUES = 1 << 32
_FIRST, _SECOND = 0x9E3779B1, 0x85EBCA6B
"""Odd, so that every value of one row meets all values of the other alike."""


def by_chance(share: float) -> Callable[[Row, Row], bool]:
    """A condition that holds for such a share of pairs; of three rows, two pairs hold independently."""
    limit = round(share * VALUES)

    def holds(one: Row, other: Row) -> bool:
        return (one.value * _FIRST + other.value * _SECOND) % VALUES < limit

    return holds


@dataclass(frozen=True, slots=True)
class Chance:
    """A workload of equal streams, each joined with the next one.

    Args:
        streams: M.
        stored: lambda W, how many rows of a stream are in its window on average.
        matches: p, how many of them match a row or a partial result.
        gap: mean time between two rows, of all streams together.
        seed: of values and of times.
    """

    streams: int
    stored: int
    matches: float
    gap: int
    seed: int = 1

    @property
    def window(self) -> int:
        """W, of each stream."""
        return self.stored * self.streams * self.gap

    @property
    def query(self) -> Query:
        """Rows meet the streams next to their own first."""
        condition = by_chance(self.matches / self.stored)
        conditions = tuple(((one, one + 1), condition) for one in range(self.streams - 1))
        streams = range(self.streams)
        orders = tuple(
            tuple(sorted((one for one in streams if one != origin), key=lambda one: (abs(one - origin), one)))
            for origin in streams
        )
        return Query((self.window,) * self.streams, conditions, orders)

    def rows(self, *, poisson: bool = False, speed: Callable[[float], float] = lambda ts: 1.0) -> Iterator[Row]:
        """Rows without end, the streams in turn, or as they come where times are Poisson's.

        Args:
            speed: time -> how many times as fast rows come as by `gap`.
        """
        chosen = random.Random(self.seed)
        order, ts = 0, 0.0
        while True:
            stream = chosen.randrange(self.streams) if poisson else order % self.streams
            yield Row(stream, round(ts), order, chosen.randrange(VALUES))
            ts += (chosen.expovariate(1 / self.gap) if poisson else self.gap) / speed(ts)
            order += 1
