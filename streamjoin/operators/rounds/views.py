"""How what a node stores of a stream is found: by one index for each way in which partial results look for it.

Tuples of different origins ask in different rounds, with other parts there. Where they look by the same expressions of
the stored tuple, as in a.k = b.k = c.k, one index serves them all, and the tuples themselves are sorted by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamjoin.index.chain import Chain
from streamjoin.index.columns import kept_columns
from streamjoin.index.layout import IndexLayout, layout_of
from streamjoin.index.segment import Segment
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.window import S


@dataclass(frozen=True, slots=True)
class Views:
    """The indexes over what is stored of a stream.

    Args:
        layouts: one of each index.
        number: by origin, which of them its partial results ask.
    """

    layouts: tuple[IndexLayout, ...]
    number: dict[int, int]

    def queries(self, rows: int) -> np.ndarray | None:
        """Every tuple is in every index; None where there is one, and the tuples are sorted by it."""
        count = len(self.layouts)
        if count == 1:
            return None
        every = (1 << count) - 1
        return np.full(rows, every, np.min_scalar_type(every))


def views_of(plan: RoundPlan, stream: int) -> Views:
    """The indexes over a stream; the fewest that serve all."""
    layouts: dict[object, IndexLayout] = {}
    number: dict[int, int] = {}
    for origin, order in enumerate(plan.orders):
        if origin == stream:
            continue
        layout = layout_of(plan.steps[origin][order.index(stream)], S)
        sorted_by = _stored_part(layout)
        layouts.setdefault(sorted_by, layout)
        number[origin] = list(layouts).index(sorted_by)
    return Views(tuple(layouts.values()), number)


def _stored_part(layout: IndexLayout) -> object:
    """What of a layout says how stored tuples are sorted; the rest is about those that ask."""
    grid = (layout.grid.band.keys[0], layout.grid.width) if layout.grid else None
    return tuple(pair[0] for pair in layout.equal), grid, layout.key.keys[0] if layout.key else None


def chain_of(plan: RoundPlan, stream: int, views: Views, period_us: int, segments: list[Segment]) -> Chain:
    """Stored tuples of a stream, in segments that span so much event time."""
    return Chain(views.layouts, kept_columns(plan, stream), period_us, segments)
