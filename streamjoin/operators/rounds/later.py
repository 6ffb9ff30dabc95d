"""A node's work in a round after the first: it answers partial results, and keeps nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import pyarrow as pa

from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import Work
from streamjoin.index.segment import Segment, SegmentInfo
from streamjoin.operators.rounds.step import RoundStep
from streamjoin.operators.rounds.views import views_of
from streamjoin.plan.rounds import RoundPlan

Answered = Callable[[UnitState, int, int], Sequence[SegmentInfo]]
"""What the node has after the batch, an origin, the stream that it meets -> what of it partial results meet here."""


class LaterRound(RoundStep):
    """See `Step`; it looks at the tuples that the first round's node of the same number has."""

    def __init__(self, work: Work, plan: RoundPlan, answered: Answered) -> None:
        super().__init__(work, plan, 1)
        self._answered = answered

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        views = [views_of(self.plan, stream) for stream in range(len(self.plan.orders))]

        @cache
        def attached(stream: int, info: SegmentInfo) -> Segment:
            return Segment.attach(self._work.kept().open_segment(info), info, views[stream].layouts)

        for origin in range(len(self.plan.orders)):
            if not (blocks := self.meeting.arrived(origin)):
                continue
            met = self.plan.meets[origin]
            segments = [attached(met, info) for info in self._answered(self._work.kept().state, origin, met)]
            for block in blocks:
                yield from self.meeting.found(origin, block, segments, views[met])
        totals = self.meeting.finish()
        self.state = UnitState(self._work.before.version + 1, clocks=self.meeting.clocks, totals=totals)
