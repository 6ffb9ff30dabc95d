"""One node's work on one batch, round by round (PSP, section 4.2, as a rule for batches).

In the first round a node takes in what others sent it, lets go what is dead, sends on what has become too old for its
slice, stores what of the new rows is its own, and answers the new rows of all streams. In later rounds it answers
partial results, from the state that the first has left, and keeps nothing.

A result is found by the last of its parts in one order over all streams: tuples of earlier batches come before all new
ones, and of these the streams come one after the other, as in FROM. So partial results of an origin meet new tuples of
the streams before it, and of no others. Deletion is what PSP-I delays until nobody needs a tuple; here it is decided at
the beginning of the next batch, and what a node sends on it answers for until the batch is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

from streamjoin.engine.joining import saved
from streamjoin.engine.routing import STORE
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import Work
from streamjoin.flow.block import Block
from streamjoin.index.chain import Chain
from streamjoin.index.segment import Segment
from streamjoin.operators.ring.meeting import Meeting
from streamjoin.operators.ring.slices import is_dead, node_of, nodes_of, others_mark_us
from streamjoin.operators.ring.state import Infos, NodeState
from streamjoin.operators.ring.views import Views, chain_of, views_of
from streamjoin.plan.rounds import RoundPlan


class FirstRound:
    """See `Step`.

    Args:
        lengths: by stream, how many nodes keep its tuples.
    """

    def __init__(self, work: Work, plan: RoundPlan, lengths: tuple[int, ...]) -> None:
        self.meeting = Meeting(work, len(plan.streams))
        self.report = self.meeting.report
        self.state = work.before
        self.span = range(0)
        self.plan = plan
        self.lengths = lengths
        self._work = work
        self._node = work.unit.number
        self._views: list[Views] = [views_of(plan, stream) for stream in range(len(plan.streams))]
        self._dropped: list[str] = []
        self._look = cache(lambda node: NodeState.of(work.look(node)))

    @property
    def query(self) -> int:
        """See `Step`."""
        return self.meeting.query

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        streams = range(len(self.plan.streams))
        begun = self._work.seconds()
        chains = {stream: self._settled(stream) for stream in streams}
        leaving = {stream: self._leaving(stream, chains[stream]) for stream in streams}
        self.report.seconds["expire"] += self._work.seconds() - begun
        new = {stream: self._stored(stream) for stream in streams}
        for origin in streams:
            if (block := self.meeting.arrived(origin)) is None:
                continue
            met = self.plan.meets[origin]
            segments = [*chains[met].segments, *(one for to in leaving[met].values() for one in to)]
            # In a batch the streams come one after the other.
            segments += new[met].segments if met < origin else []
            yield from self.meeting.found(origin, block, segments, self._views[met])
        self._finish(chains, leaving, new)

    def _settled(self, stream: int) -> Chain:
        """What the node keeps of a stream at the beginning of the batch."""
        infos = list(self._look(self._node).settled(stream))
        for other in range(self._work.units):
            if other != self._node:
                sent = self._look(other).sent.get((stream, self._node), ())
                infos += [info.taken_over(other, self._node) for info in sent]
        views = self._views[stream]
        segments = [Segment.attach(self._work.open_segment(info), info, views.layouts) for info in infos]
        chain = chain_of(self.plan, stream, views, self.lengths[stream], segments)
        mark_us, reach_us = self._mark_us(stream), self.plan.reaches_us[stream]
        gone = chain.expire(lambda info: is_dead(info.ts_max_us, mark_us, reach_us))
        self.report.expired_rows += sum(segment.info.rows for segment in gone)
        self._let_go(gone + chain.merge())
        return chain

    def _mark_us(self, stream: int) -> int | None:
        clocks = [self._work.before.clock(number) for number in range(len(self.plan.streams))]
        return others_mark_us(clocks, stream)

    def _let_go(self, segments: list[Segment]) -> None:
        self._dropped += [segment.info.file for segment in segments if segment.info.file]

    def _leaving(self, stream: int, chain: Chain) -> dict[int, list[Segment]]:
        """By node, what has become too old for this one; `chain` keeps the rest."""
        mark_us, reach_us, length = self._mark_us(stream), self.plan.reaches_us[stream], self.lengths[stream]
        leaving: dict[int, list[Segment]] = {}
        kept: list[Segment] = []
        for segment in chain.segments:
            node = node_of(segment.info.ts_max_us, mark_us, reach_us, length)
            (leaving.setdefault(node, []) if node > self._node else kept).append(segment)
        chain.segments = kept
        return leaving

    def _stored(self, stream: int) -> Chain:
        """What came to be stored, in segments of its own."""
        begun = self._work.seconds()
        views = self._views[stream]
        chain = chain_of(self.plan, stream, views, self.lengths[stream], [])
        block = self.meeting.arrived(stream, STORE)
        if block is not None:
            mark_us = self._work.before.clock(stream).mark_us
            if stream in self._work.unit.counts and mark_us is not None:
                self.report.late[stream] += int(np.count_nonzero(block.ts_us < mark_us))
            block = self._mine(stream, block)
        if block is not None and len(block):
            name = self.plan.names[stream]
            columns = {(name, column): block.rows.column(column) for column in block.rows.schema.names}
            every = replace(block, queries=views.queries(len(block)))
            chain.store(every, [columns] * len(views.layouts), None)
        self.report.seconds["store"] += self._work.seconds() - begun
        return chain

    def _mine(self, stream: int, block: Block) -> Block:
        """The rows that this node stores: every node knows how far the streams have come with the batch."""
        mark_us, length = others_mark_us(self.meeting.clocks, stream), self.lengths[stream]
        node = nodes_of(block.ts_us, mark_us, self.plan.reaches_us[stream], length)
        mine = np.nonzero(node == self._node)[0]
        return block if mine.size == len(block) else block.take(mine)

    def _finish(
        self, chains: dict[int, Chain], leaving: dict[int, dict[int, list[Segment]]], new: dict[int, Chain]
    ) -> None:
        begun = self._work.seconds()
        node = NodeState(
            {stream: self._saved(chain.segments) for stream, chain in chains.items()},
            {stream: self._saved(chain.segments) for stream, chain in new.items()},
            {(stream, to): self._saved(some) for stream, sent in leaving.items() for to, some in sent.items()},
        )
        every = [node.answered(stream, with_new=True) for stream in chains]
        moved = [info for infos in node.sent.values() for info in infos]
        self.report.stored_rows = tuple(sum(info.rows for info in infos) for infos in every)
        self.report.stored_bytes = sum(info.bytes for infos in every for info in infos)
        self.report.segments = sum(map(len, every))
        self.report.outbox_rows = tuple(node.sent_on(stream) for stream in chains)
        self.report.forwarded = {
            "blocks": len(moved),
            "tuples": sum(info.rows for info in moved),
            "bytes": sum(info.bytes for info in moved),
        }
        totals = self.meeting.finish()
        self.state = UnitState(
            self._work.before.version + 1, node.tables, {}, self.meeting.clocks, totals, tuple(self._dropped),
            self.meeting.elsewhere,
        )  # fmt: skip
        self.report.seconds["expire"] += self._work.seconds() - begun

    def _saved(self, segments: list[Segment]) -> Infos:
        return saved(segments, self._work.save_segment)


class LaterRound:
    """See `Step`; it keeps no tuples, and looks at those that the first round's node of the same number has."""

    def __init__(self, work: Work, plan: RoundPlan) -> None:
        self.meeting = Meeting(work, 1)
        self.report = self.meeting.report
        self.state = work.before
        self.span = range(0)
        self.plan = plan
        self._work = work

    @property
    def query(self) -> int:
        """See `Step`."""
        return self.meeting.query

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        attached = cache(self._attached)
        for origin in range(len(self.plan.orders)):
            if (block := self.meeting.arrived(origin)) is None:
                continue
            met = self.plan.meets[origin]
            segments, views = attached(met, met < origin)
            yield from self.meeting.found(origin, block, segments, views)
        totals = self.meeting.finish()
        self.state = UnitState(self._work.before.version + 1, clocks=self.meeting.clocks, totals=totals)

    def _attached(self, stream: int, with_new: bool) -> tuple[list[Segment], Views]:
        """What the node keeps of a stream."""
        views, kept = views_of(self.plan, stream), self._work.kept()
        infos = NodeState.of(kept.state).answered(stream, with_new=with_new)
        return [Segment.attach(kept.open_segment(info), info, views.layouts) for info in infos], views
