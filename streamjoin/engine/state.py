"""A unit between two batches: tables of segments and plain values, both by name.

The engine writes, reads, moves and removes what tables name, whatever an operator calls it. What the names mean is the
operator's own: a typed view in its folder says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamjoin.counts import add_counts
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.segment import SegmentInfo
from streamjoin.plan.window import R, S

DRAINS = "drains"
"""In the values of a unit that stores nothing new and leaves once it is empty."""
NUMBERS = "numbers"
"""In the values of unit 0, where units come and go: the numbers of those that the next batch has."""


@dataclass(frozen=True, slots=True)
class Table:
    """Segments of one kind, in the operator's order. Each tuple and each file is in one table of a unit.

    Args:
        input: whose tuples they hold; None where they hold something else, such as results that wait.
    """

    input: int | None
    segments: tuple[SegmentInfo, ...]


@dataclass(frozen=True, slots=True)
class UnitState:
    """What a manifest says of a unit.

    Args:
        version: the number of batches it has seen.
        tables: the operator's segments; a table that is not there is empty.
        values: the operator's other state, as JSON has it.
        clocks: how far R and S have come, or every stream that the stage reads; none before its first batch is as good
            as one that has not begun.
        totals: counters since the job began.
        dropped: files that the batch before this version let go.
        elsewhere: how far streams have come that enter at other stages, by number; see `plan.stages.elsewhere`.
        label: what the manifest calls the unit, such as R0; only for people, and empty before it was written.
    """

    version: int
    tables: Mapping[str, Table] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    clocks: tuple[StreamClock, ...] = (StreamClock(), StreamClock())
    totals: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    elsewhere: Mapping[int, StreamClock] = field(default_factory=dict)
    label: str = field(default="", compare=False)

    @property
    def sequence(self) -> int:
        """The sequence number of the next tuple of either stream."""
        return self.clocks[R].rows + self.clocks[S].rows

    def clock(self, side: int) -> StreamClock:
        """How far one of its streams has come."""
        return self.clocks[side] if side < len(self.clocks) else StreamClock()

    def segments(self, name: str) -> tuple[SegmentInfo, ...]:
        """The segments of a table."""
        table = self.tables.get(name)
        return table.segments if table else ()

    def totals_after(self, gained: Mapping[str, int]) -> dict[str, int]:
        """The counters once a batch has gained so much; of those that it says nothing of, none is kept."""
        return {name: self.totals.get(name, 0) + value for name, value in gained.items()}

    def named(self) -> Iterator[SegmentInfo]:
        """Every file that the state names."""
        for table in self.tables.values():
            yield from table.segments

    def tuples(self, *inputs: int) -> Iterator[SegmentInfo]:
        """The segments that hold tuples of these inputs; of all, where none is given."""
        for table in self.tables.values():
            if table.input in inputs or (not inputs and table.input is not None):
                yield from table.segments


Opened = Callable[[UnitState], Iterable[SegmentInfo]]
"""Which of a unit's files are opened."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What became of a unit's tuples and queries, for values that speak of them.

    Args:
        files: of each segment that was written anew, its file before -> its file now; None where nothing is left of it.
        queries: the number of a query before -> its number now; without those that ended.
    """

    files: Mapping[str, str | None]
    queries: Mapping[int, int]


def totals_of(states: Iterable[UnitState]) -> dict[str, int]:
    """Counters of several units together."""
    totals: dict[str, int] = {}
    for state in states:
        add_counts(totals, state.totals)
    return totals
