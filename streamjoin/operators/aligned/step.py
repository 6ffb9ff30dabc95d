"""One node's work on one batch: it has all that its tuples may meet, so it does all rounds by itself.

A result has one tuple of the master, which is at one node, and so are all tuples that this may meet; so each result is
found once. Tuples that several segments of a node share are stored there once. A result is found by the last of its
parts in one order over all streams: tuples of earlier batches come before all new ones, and of these the streams come
one after the other, as in FROM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from streamjoin.engine.feeding import block_of
from streamjoin.engine.routing import STORE
from streamjoin.engine.state import Table
from streamjoin.engine.unit import Work
from streamjoin.flow.block import Block
from streamjoin.index.chain import Chain
from streamjoin.index.segment import Segment
from streamjoin.intake.selection import select
from streamjoin.operators.aligned.segments import Segments
from streamjoin.operators.rounds.keeping import Keeping
from streamjoin.operators.rounds.step import RoundStep
from streamjoin.plan.rounds import RoundPlan


class AlignedStep(RoundStep):
    """See `Step`.

    Args:
        plan: all rounds at once.
        segments: how the streams are cut.
    """

    def __init__(self, work: Work, plan: RoundPlan, segments: Segments) -> None:
        super().__init__(work, plan, len(plan.streams))
        self.keeping = Keeping(self.meeting)
        self.segments = segments
        self._rounds = plan.each

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        streams, work = self.keeping.streams, self._work
        begun = work.seconds()
        chains = {stream: self._settled(stream) for stream in streams}
        expired = work.seconds()
        new = {stream: self._new(stream) for stream in streams}
        self.report.seconds["expire"] += expired - begun
        self.report.seconds["store"] += work.seconds() - expired
        for origin in streams:
            for block in self.meeting.arrived(origin):
                # In a batch the streams come one after the other.
                there = {
                    stream: [*chains[stream].segments, *(new[stream].segments if stream < origin else [])]
                    for stream in streams
                }
                yield from self._found(origin, 0, block, there)
        begun = work.seconds()
        for stream in streams:
            chains[stream].segments += new[stream].segments
        kept = {stream: self.keeping.saved(chains[stream].segments) for stream in streams}
        tables = {f"{stream}": Table(stream, infos) for stream, infos in kept.items() if infos}
        self.state = self.keeping.after(list(kept.values()), tables)
        self.report.seconds["expire"] += work.seconds() - begun

    def _settled(self, stream: int) -> Chain:
        infos = self._work.before.segments(f"{stream}")
        return self.keeping.settled(stream, infos, self.plan.archive_period(stream))

    def _new(self, stream: int) -> Chain:
        blocks = self.meeting.arrived(stream, STORE)
        for block in blocks:
            mine = self.segments.home(block.ts_us) == self._work.unit.number
            self.keeping.count_late(stream, block.ts_us[np.nonzero(mine)[0]])
        return self.keeping.new(stream, blocks, self.plan.archive_period(stream))

    def _found(
        self, origin: int, number: int, block: Block, there: Mapping[int, list[Segment]]
    ) -> Iterator[pa.RecordBatch]:
        """Results of partial results of an origin that have met so many streams.

        Args:
            there: by stream, what they may meet.
        """
        plan = self._rounds[number]
        met = plan.meets[origin]
        found = self.meeting.found(origin, block, there[met], self.keeping.views[met], plan)
        if plan.is_last:
            yield from found
            return
        further = self._rounds[number + 1]
        for rows in found:
            partials = block_of(further, origin, rows)
            joinable = select(further, origin, rows).joinable
            if not joinable.all():
                partials = partials.take(np.nonzero(joinable)[0])
            if len(partials):
                yield from self._found(origin, number + 1, partials, there)
