"""A unit that keeps views of its groups, and gives the rows of a window when the mark of its input reaches its end.

What comes later for a window that was given is counted and not added. Views are kept in segments by pane; small ones
are merged, so that each is written a few times at most, and what all windows were given of is let go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamjoin.engine.unit import Work
from streamjoin.flow import portions
from streamjoin.flow.block import Block
from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.aggregate.keeping import VIEWS, Keeping, Kept
from streamjoin.operators.aggregate.rows import results_of
from streamjoin.operators.aggregate.views import ROWS, merge
from streamjoin.operators.aggregate.windows import Ending, first_end_us, last_end_us, last_given_us
from streamjoin.plan.aggregate import AggregatePlan, Hopping

_ROWS_AT_ONCE = 1 << 18
"""So many views of windows are merged at a time."""


class AggregateStep(Keeping):
    """See `Step`."""

    def __init__(self, plan: AggregatePlan, work: Work) -> None:
        super().__init__(plan, work)
        assert isinstance(plan.windows, Hopping)
        self.windows = plan.windows

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        begun = self.work.seconds()
        clock = self.clock()
        kept = [self._attached(info) for info in self.state.segments(VIEWS)]
        if (arrived := self._arrived()) is not None:
            kept.append(Kept(arrived))
        self.spent("store", begun)
        begun = self.work.seconds()
        until_us = clock.mark_us
        if clock.ended and kept:
            until_us = int(max(last_end_us(self.windows, one.views.ts_us).max() for one in kept))
        if until_us is not None and (self.given_us is None or until_us > self.given_us):
            yield from self.counted(self._given(kept, until_us))
            begun = self.work.seconds()
            given_us = last_given_us(self.windows, until_us)
            self.given_us = given_us if self.given_us is None else max(given_us, self.given_us)
            kept = self._without_given(kept)
        marks = [mark for mark in (clock.mark_us, self.given_us) if mark is not None]
        # A window that ends later than the mark has its last microsecond at the mark or later.
        self.finish(kept, clock, max(marks, default=None))
        self.spent("expire", begun)

    def _attached(self, info: SegmentInfo) -> Kept:
        views = self.opened(info)
        if self.given_us is not None:
            # Views are in time's order, so those of which every window was given are the first ones.
            live = int(np.searchsorted(last_end_us(self.windows, views.ts_us), self.given_us, side="right"))
            views = views.slice(live, len(views))
        return Kept(views, info)

    def _arrived(self) -> Block | None:
        """The views that came with the batch, without those whose windows have all been given."""
        views = self.brought()
        if views is None or self.given_us is None:
            return views
        late = first_end_us(self.windows, views.ts_us) <= self.given_us
        self.report.late[0] = int(views.rows.column(ROWS).to_numpy()[late].sum())
        needed = np.nonzero(last_end_us(self.windows, views.ts_us) > self.given_us)[0]
        return views.take(needed) if needed.size else None

    def _given(self, kept: list[Kept], until_us: int) -> Iterator[pa.RecordBatch]:
        """The rows of every window that ends now."""
        windows = self.windows
        ended = [one.views for one in kept]
        ended = [views.slice(0, int(np.searchsorted(views.ts_us, last_given_us(windows, until_us)))) for views in ended]
        due = [views for views in ended if len(views)]
        if not due:
            return
        views = merge(self.plan, Block.concat(due))
        numbers = Ending(windows, self.given_us, until_us).numbers(np.unique(views.ts_us))
        begins = np.searchsorted(views.ts_us, numbers * windows.slide_us)
        sizes = np.searchsorted(views.ts_us, numbers * windows.slide_us + windows.size_us) - begins
        upto = portions.bytes_upto(views.rows)
        of_windows = upto[begins + sizes] - upto[begins]
        first = 0
        while first < numbers.size:
            past = first + max(
                min(
                    int(np.searchsorted(np.cumsum(sizes[first:]), _ROWS_AT_ONCE, side="right")),
                    int(np.searchsorted(np.cumsum(of_windows[first:]), portions.BYTES_TOGETHER, side="right")),
                ),
                1,
            )
            some = sizes[first:past]
            starts = np.cumsum(some) - some
            rows = np.repeat(begins[first:past] - starts, some) + np.arange(int(some.sum()), dtype=np.int64)
            found = replace(views.take(rows), ts_us=np.repeat(numbers[first:past] * windows.slide_us, some))
            yield from results_of(self.plan, found if windows.is_tumbling else merge(self.plan, found))
            first = past

    def _without_given(self, kept: list[Kept]) -> list[Kept]:
        """What is needed of segments after windows were given."""
        left = []
        for one in kept:
            needed = np.nonzero(last_end_us(self.windows, one.views.ts_us) > self.given_us)[0]
            if (found := self.needed(one, needed)) is not None:
                left.append(found)
        return left

    def settled(self, views: Block) -> Block:
        """See `Keeping`."""
        return merge(self.plan, views)
