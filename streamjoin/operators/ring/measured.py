"""What a ring does per second, smoothed over rounds, and what PSP's formulas make of it (sections 5 and 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from streamjoin.operators.costs.psp import Met, StepTimes
from streamjoin.operators.costs.ring_lengths import Load, RingTerms, best_length_of, busy_share, terms_of

Table = tuple[tuple[float, ...], ...]
"""By origin and round."""


def zeros(origins: int) -> Table:
    """Nothing, of as many rounds as that many streams take."""
    return ((0.0,) * (origins - 1),) * origins


def added(one: Table, other: Table) -> Table:
    """The sum, number by number."""
    return _each(one, other, 1.0, 1.0)


def _each(one: Table, other: Table, share: float, other_share: float) -> Table:
    return tuple(
        tuple(share * a + other_share * b for a, b in zip(row, beside, strict=True))
        for row, beside in zip(one, other, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Rates:
    """What happens in a second, by the clock that is logged with batches.

    Args:
        rows: by stream, tuples that come in.
        compared, found: by origin and round, pairs that are compared, and partial results, or results, of them.
    """

    rows: tuple[float, ...]
    compared: Table
    found: Table

    @staticmethod
    def over(seconds: float, rows: Sequence[float], compared: Table, found: Table) -> Rates:
        """Of what was counted in so many seconds."""
        none = zeros(len(rows))
        return Rates(
            tuple(one / seconds for one in rows),
            _each(compared, none, 1 / seconds, 0.0),
            _each(found, none, 1 / seconds, 0.0),
        )

    def smoothed(self, now: Rates, weight: float) -> Rates:
        """The exponential mean, in which the newest round has this weight."""
        rows = tuple(weight * new + (1 - weight) * old for old, new in zip(self.rows, now.rows, strict=True))
        old = 1 - weight
        return Rates(rows, _each(self.compared, now.compared, old, weight), _each(self.found, now.found, old, weight))

    @property
    def met(self) -> tuple[tuple[Met, ...], ...]:
        """By origin, what a tuple meets in each round: pairs that are compared with one partial result, and S of them.

        A round that no partial result has reached has none.
        """
        return tuple(
            tuple(
                Met(pairs / came if came else 0.0, found / pairs if pairs else 0.0)
                for pairs, (came, found) in zip(compared, pairwise((rows, *found_in)), strict=True)
            )
            for rows, compared, found_in in zip(self.rows, self.compared, self.found, strict=True)
        )

    def best(self, times: StepTimes, available: int) -> int:
        """N*."""
        return best_length_of(self.rows, self.met, times, available)

    def terms(
        self, orders: Sequence[Sequence[int]], tuple_bytes: Sequence[float], times: StepTimes, available: int
    ) -> RingTerms:
        """What the formulas say of them.

        Args:
            orders: by origin, the streams that its tuples meet, round by round.
            tuple_bytes: by stream.
        """
        met = self.met
        matching: list[list[float]] = [[] for _ in orders]
        for order, rounds in zip(orders, met, strict=True):
            for stream, one in zip(order, rounds, strict=True):
                matching[stream].append(one.stored * one.selectivity)
        impacts = [sum(found) / len(found) for found in matching]
        return terms_of(Load(self.rows, orders, met, impacts, tuple_bytes), available, times)

    def busy(self, times: StepTimes, nodes: int) -> float:
        """What share of its time each of so many nodes works."""
        return busy_share(self.rows, self.met, times, nodes)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Rates:
        """The inverse of `to_json`, also after a text was made of it."""
        return Rates(tuple(value["rows"]), table_of(value["compared"]), table_of(value["found"]))


def table_of(value: Sequence[Sequence[float]]) -> Table:
    """A table again, after a text was made of it."""
    return tuple(map(tuple, value))
