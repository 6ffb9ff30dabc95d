"""What travels in SplitJoin: tuples down the distribution tree, results and stars down the gathering trees."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from simulate.stream import Stream


class Ordering(StrEnum):
    """How results are ordered; each level includes the ones before it. `TOTAL` is an extension of the paper."""

    NONE = "none"
    OUTER = "outer"
    INNER = "inner"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Precision:
    """The relaxed adjustable punctuation's settings.

    Args:
        tuples_per_star: processed tuples from one star to the next; only for outer order, 1 is strict.
        rows_per_star: comparisons from one star to the next within a processed tuple; only for inner order, 1 is
            strict. It is rounded up to whole runs of storing.
    """

    ordering: Ordering = Ordering.OUTER
    tuples_per_star: int = 1
    rows_per_star: int = 1

    def __post_init__(self) -> None:
        if self.tuples_per_star < 1 or self.rows_per_star < 1:
            raise ValueError("a star's interval is at least 1")
        if self.tuples_per_star > 1 and self.ordering is not Ordering.OUTER:
            raise ValueError(
                f"tuples_per_star relaxes outer order, not {self.ordering}: results inside a group may mix"
            )
        if self.rows_per_star > 1 and self.ordering is not Ordering.INNER:
            raise ValueError(f"rows_per_star relaxes inner order, not {self.ordering}")

    @property
    def by_partner(self) -> bool:
        """Whether one tuple's results are ordered by their stored partners."""
        return self.ordering in (Ordering.INNER, Ordering.TOTAL)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A tuple as the root sends it down.

    Args:
        number: its place in its own stream, position: in both streams' one sequence, both from 0. They identify the
            tuple for whoever looks on; cores count for themselves.
        time_us: its event time; only with time windows.
        arrived_us: when it came to the root.
    """

    stream: Stream
    number: int
    position: int
    value: Any
    time_us: int | None
    arrived_us: int


class Label(NamedTuple):
    """Where a result or a star belongs: to which processed tuple of its stream, and to which storage round."""

    probe: float
    storage_round: float


@dataclass(frozen=True, slots=True)
class Result:
    """A pair.

    Args:
        newer: the processed tuple, older: the stored one.
        position: the newer one's place in the sequence, by the count of the region that found the pair.
        started_us: when that region began with the newer tuple, matched_us: when it found the pair.
    """

    newer: Arrival
    older: Arrival
    label: Label
    position: int
    started_us: int
    matched_us: int

    @property
    def pair(self) -> tuple[int, int]:
        """(R's number, S's number)."""
        first, second = (self.newer, self.older) if self.newer.stream is Stream.R else (self.older, self.newer)
        return first.number, second.number


@dataclass(frozen=True, slots=True)
class Star:
    """The punctuation mark: what belongs to its label, or before it, has been sent.

    Args:
        stream: of the processed tuples that it divides.
        last: it ends a processed tuple (or a group of them), not just a storage round in it.
        flag: set by the Combiner, from the tree that the star came through.
    """

    stream: Stream
    label: Label
    position: int
    last: bool
    flag: Stream | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """From this position on the punctuation follows other settings. It travels the way of the tuples and results."""

    precision: Precision
    position: int


@dataclass(frozen=True, slots=True)
class End:
    """No tuple follows."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The connection broke: the actor at its other end is gone. It comes behind all that was sent before."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The receiver of a bounded buffer has room for one message more."""


Message = Arrival | Result | Star | Change | End | Closed
Barrier = Change | End
