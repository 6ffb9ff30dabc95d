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
from functools import cache

import numpy as np
import pyarrow as pa

from streamjoin.engine.routing import STORE
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import Work
from streamjoin.flow.block import Block
from streamjoin.index.chain import Chain
from streamjoin.index.segment import Segment
from streamjoin.operators.ring.slices import Slices
from streamjoin.operators.ring.state import Infos, NodeState
from streamjoin.operators.rounds.expiry import others_mark_us
from streamjoin.operators.rounds.keeping import Keeping
from streamjoin.operators.rounds.later import LaterRound
from streamjoin.operators.rounds.meeting import SEGMENT_S
from streamjoin.operators.rounds.step import RoundStep
from streamjoin.plan.rounds import RoundPlan

STORED, PURGED = "stored", "purged"
"""Kinds of work: rows that are indexed and written; rows that die or move on, with what it takes to see which."""
STREAM_S = 500e-6
"""What it takes on a slow machine to store rows of a stream, however few."""


class FirstRound(RoundStep):
    """See `Step`.

    Args:
        slices: of the batch.
    """

    def __init__(self, work: Work, plan: RoundPlan, slices: Slices) -> None:
        super().__init__(work, plan, len(plan.streams))
        self.keeping = Keeping(self.meeting)
        self.slices = slices
        self._node = work.unit.number
        self._spent = self.meeting.spent
        self._look = cache(lambda node: NodeState.of(work.look(node)))

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        streams, views = self.keeping.streams, self.keeping.views
        begun, begun_s = self._work.seconds(), self._spent.now_s()
        chains = {stream: self._settled(stream) for stream in streams}
        leaving = {stream: self._leaving(stream, chains[stream]) for stream in streams}
        self._spent.since(begun_s, PURGED)
        self.report.seconds["expire"] += self._work.seconds() - begun
        new = {stream: self._stored(stream) for stream in streams}
        for origin in streams:
            met = self.plan.meets[origin]
            segments = [*chains[met].segments, *(one for to in leaving[met].values() for one in to)]
            # In a batch the streams come one after the other.
            segments += new[met].segments if met < origin else []
            for block in self.meeting.arrived(origin):
                yield from self.meeting.found(origin, block, segments, views[met])
        self._finish(chains, leaving, new)

    def _settled(self, stream: int) -> Chain:
        """What the node keeps of a stream at the beginning of the batch."""
        infos = list(self._look(self._node).settled(stream))
        for other in self._work.numbers:
            if other != self._node:
                sent = self._look(other).sent.get((stream, self._node), ())
                infos += [info.taken_over(other, self._node) for info in sent]
        return self.keeping.settled(stream, infos, self._period_us(stream))

    def _period_us(self, stream: int) -> int:
        """A segment is at most half a slice long, as whole ones move on."""
        half_us = self.slices.width_us(stream, self.plan.reaches_us[stream]) // 2
        return max(min(self.plan.archive_period(stream), half_us), 1)

    def _leaving(self, stream: int, chain: Chain) -> dict[int, list[Segment]]:
        """By node, what has become too old for this one; `chain` keeps the rest."""
        mark_us = self.keeping.mark_us(stream)
        leaving: dict[int, list[Segment]] = {}
        kept: list[Segment] = []
        for segment in chain.segments:
            node = self.slices.goes_to(stream, segment.info.ts_max_us, mark_us, self._node)
            (leaving.setdefault(node, []) if node != self._node else kept).append(segment)
        chain.segments = kept
        return leaving

    def _stored(self, stream: int) -> Chain:
        """What came to be stored, in segments of its own."""
        begun = self._work.seconds()
        blocks = self.meeting.arrived(stream, STORE)
        for block in blocks if stream in self._work.unit.counts else ():
            self.keeping.count_late(stream, block.ts_us)
        mine = [self._mine(stream, block) for block in blocks]
        begun_s = self._spent.now_s()
        chain = self.keeping.new(stream, mine, self._period_us(stream))
        if count := sum(map(len, mine)):
            self._spent.since(begun_s, STORED, count, STREAM_S)
        self.report.seconds["store"] += self._work.seconds() - begun
        return chain

    def _mine(self, stream: int, block: Block) -> Block:
        """The rows that this node stores: every node knows how far the streams have come with the batch."""
        node = self.slices.nodes_of(stream, block.ts_us, others_mark_us(self.meeting.clocks, stream))
        mine = np.nonzero(node == self._node)[0]
        return block if mine.size == len(block) else block.take(mine)

    def _finish(
        self, chains: dict[int, Chain], leaving: dict[int, dict[int, list[Segment]]], new: dict[int, Chain]
    ) -> None:
        begun, saved, spent = self._work.seconds(), self.keeping.saved, self._spent
        begun_s = spent.now_s()
        at_rest = {stream: saved(chain.segments) for stream, chain in chains.items()}
        spent.since(begun_s, PURGED)
        begun_s = spent.now_s()
        stored = {stream: saved(chain.segments) for stream, chain in new.items()}
        spent.since(begun_s, STORED)
        begun_s = spent.now_s()
        sent = {(stream, to): saved(some) for stream, sent in leaving.items() for to, some in sent.items()}
        node = NodeState(at_rest, stored, sent)
        moved = [info for infos in node.sent.values() for info in infos]
        moved_rows = sum(info.rows for info in moved)
        looked_at = sum(map(len, at_rest.values())) + len(moved)
        spent.since(begun_s, PURGED, self.report.expired_rows + moved_rows, looked_at * SEGMENT_S)
        self.report.outbox_rows = tuple(node.sent_on(stream) for stream in chains)
        self.report.forwarded = {
            "blocks": len(moved),
            "tuples": moved_rows,
            "bytes": sum(info.bytes for info in moved),
        }
        self.state = self.keeping.after([node.answered(stream, with_new=True) for stream in chains], node.tables)
        self.report.seconds["expire"] += self._work.seconds() - begun


def later_round(work: Work, plan: RoundPlan) -> LaterRound:
    """A node's work in a later round: it answers from what the first one has left, of new tuples those met before."""

    def answered(state: UnitState, origin: int, met: int) -> Infos:
        return NodeState.of(state).answered(met, with_new=met < origin)

    return LaterRound(work, plan, answered)
