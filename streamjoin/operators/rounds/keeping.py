"""What a node stores of all streams in one batch: what it had, without what is dead, and what is new.

What the marks let go in a batch is dropped at the beginning of the next one, as partial results still on their way may
need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from streamjoin.engine.joining import saved
from streamjoin.engine.state import Table, UnitState
from streamjoin.flow.block import Block
from streamjoin.index.chain import Chain
from streamjoin.index.segment import Segment, SegmentInfo
from streamjoin.operators.rounds.expiry import is_dead, others_mark_us
from streamjoin.operators.rounds.meeting import Meeting
from streamjoin.operators.rounds.views import Views, chain_of, views_of

Infos = tuple[SegmentInfo, ...]


class Keeping:
    """A node's stored tuples in one batch.

    Args:
        meeting: the node's work in the round that stores.
    """

    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting
        self.plan = meeting.plan
        self.streams = range(len(self.plan.streams))
        self.views: list[Views] = [views_of(self.plan, stream) for stream in self.streams]
        self._dropped: list[str] = []

    def mark_us(self, stream: int) -> int | None:
        """How far the other streams had come before the batch."""
        return others_mark_us([self.meeting.work.before.clock(number) for number in self.streams], stream)

    def settled(self, stream: int, infos: Sequence[SegmentInfo], period_us: int) -> Chain:
        """What a node has of a stream at the beginning of the batch: dead segments are gone, small ones merged.

        Args:
            period_us: how much event time a segment covers.
        """
        views, work = self.views[stream], self.meeting.work
        segments = [Segment.attach(work.open_segment(info), info, views.layouts) for info in infos]
        chain = chain_of(self.plan, stream, views, period_us, segments)
        mark_us, reach_us = self.mark_us(stream), self.plan.reaches_us[stream]
        gone = chain.expire(lambda info: is_dead(info.ts_max_us, mark_us, reach_us))
        self.meeting.report.expired_rows += sum(segment.info.rows for segment in gone)
        self._dropped += [segment.info.file for segment in gone + chain.merge() if segment.info.file]
        return chain

    def count_late(self, stream: int, ts_us: np.ndarray) -> None:
        """Note how many of these new tuples are behind their stream's mark; of each tuple one node is told."""
        mark_us = self.meeting.work.before.clock(stream).mark_us
        if mark_us is not None:
            self.meeting.report.late[stream] += int(np.count_nonzero(ts_us < mark_us))

    def new(self, stream: int, blocks: Sequence[Block], period_us: int) -> Chain:
        """What came to be stored of a stream, in segments of its own."""
        views = self.views[stream]
        chain = chain_of(self.plan, stream, views, period_us, [])
        for block in blocks:
            if not len(block):
                continue
            name = self.plan.names[stream]
            columns = {(name, column): block.rows.column(column) for column in block.rows.schema.names}
            every = replace(block, queries=views.queries(len(block)))
            chain.store(every, [columns] * len(views.layouts), None)
        return chain

    def saved(self, segments: Sequence[Segment]) -> Infos:
        """Their descriptions, once those are files that were none."""
        return saved(segments, self.meeting.work.save_segment)

    def after(self, kept: Sequence[Sequence[SegmentInfo]], tables: Mapping[str, Table]) -> UnitState:
        """The next state; completes the report.

        Args:
            kept: by stream, what the node answers for.
        """
        report, work = self.meeting.report, self.meeting.work
        report.stored_rows = tuple(sum(info.rows for info in infos) for infos in kept)
        report.stored_bytes = sum(info.bytes for infos in kept for info in infos)
        report.segments = sum(map(len, kept))
        totals = self.meeting.finish()
        return UnitState(
            work.before.version + 1, tables, {}, self.meeting.clocks, totals, tuple(self._dropped),
            self.meeting.elsewhere,
        )  # fmt: skip
