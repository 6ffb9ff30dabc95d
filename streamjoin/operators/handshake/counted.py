"""Count windows in a chain: tuples that meet late are compared by counts that were taken when they came in.

With `opposite`, the number of the other stream's tuples before a tuple, r and s join iff s.rank >= r.opposite - W and
r.rank >= s.opposite - W. One of the two is the window, and the other one holds for whichever of the two came first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from streamjoin.index.columns import routed_columns
from streamjoin.index.layout import IndexLayout, Probes
from streamjoin.index.segment import ProbeCounts, Segment
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.window import CountWindow

OPPOSITE = "__opposite"
"""Engine column: how many tuples of the other stream came before this one, int64."""

_UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True)
class FromRank(CountWindow):
    """The stored tuple is one of the last `rows` before the probing one, or comes after it."""

    def bounds(self, stored: int) -> tuple[int, int]:
        """See `CountWindow`."""
        return (-self.rows, _UNBOUNDED)


@dataclass(frozen=True, slots=True)
class CountedSegment(Segment):
    """A segment that also asks whether the probing tuple is one of the last `rows` before the stored one.

    Args:
        opposite: of the stored tuples, int64.
        ranks: of the probing tuples, int64.
    """

    opposite: np.ndarray
    ranks: np.ndarray
    window_rows: int

    @staticmethod
    def over(segment: Segment, ranks: np.ndarray, window_rows: int) -> CountedSegment:
        """`segment` for probing tuples of these ranks."""
        opposite = segment.rows.column(OPPOSITE).to_numpy()
        return CountedSegment(segment.info, segment.rows, segment.views, opposite, ranks, window_rows)

    def probe(
        self, query: int, probes: Probes, layout: IndexLayout, counts: ProbeCounts
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """See `Segment`."""
        for probing, stored in Segment.probe(self, query, probes, layout, counts):
            keep = self.ranks[probing] >= self.opposite[stored] - self.window_rows
            if keep.any():
                yield probing[keep], stored[keep]


def stored_columns(plan: Pairs, side: int) -> tuple[str, ...]:
    """The columns of a chain's stored tuples, which probe on their way: those that are routed, and the counts."""
    names = routed_columns(plan, side)
    return (*names, OPPOSITE) if isinstance(plan.window, CountWindow) else names


def open_ended(layout: IndexLayout) -> IndexLayout:
    """A layout whose count window lets stored tuples come after the probing ones; others stay as they are."""
    if isinstance(layout.window, CountWindow):
        return replace(layout, window=FromRank(layout.window.rows))
    return layout
