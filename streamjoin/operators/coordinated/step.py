"""One node's work on one batch, hop by hop.

In the first hop a node lets go what is dead, stores the new tuples of its segments, and answers the new tuples of all
streams; in later ones it answers partial results. It answers for the segments that the hop's cover assigns to it, and
for no other copy that it has. The end of a hop is a barrier, as all nodes look at one state of the batch.

A result is found by the last of its parts in one order over all streams: tuples of earlier batches come before all new
ones, and of these the streams come one after the other, as in FROM.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamjoin.engine.routing import STORE, split
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import Work
from streamjoin.flow.block import Block
from streamjoin.index.chain import Chain
from streamjoin.operators.coordinated.routes import Routes
from streamjoin.operators.coordinated.table import HostState, Infos, Key
from streamjoin.operators.rounds.keeping import Keeping
from streamjoin.operators.rounds.later import LaterRound
from streamjoin.operators.rounds.step import RoundStep
from streamjoin.plan.rounds import RoundPlan

FORWARDED = ("blocks", "tuples", "bytes")


class FirstHop(RoundStep):
    """See `Step`.

    Args:
        routes: of the batch.
        segment_us: how much event time a segment covers (L).
    """

    def __init__(self, work: Work, plan: RoundPlan, routes: Routes, segment_us: int) -> None:
        super().__init__(work, plan, len(plan.streams))
        self.keeping = Keeping(self.meeting)
        self.routes = routes
        self.segment_us = segment_us
        self._host = work.unit.number

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        work = self._work
        begun = work.seconds()
        chains = {
            key: self.keeping.settled(key[0], infos, self.plan.archive_period(key[0]))
            for key, infos in HostState.of(work.before).settled().items()
        }
        expired = work.seconds()
        new = {key: chain for stream in self.keeping.streams for key, chain in self._new(stream)}
        self.report.seconds["expire"] += expired - begun
        self.report.seconds["store"] += work.seconds() - expired
        for origin in self.keeping.streams:
            for block in self.meeting.arrived(origin):
                met = self.plan.meets[origin]
                there = [*chains.items(), *(new.items() if met < origin else ())]
                segments = [one for key, chain in there if self._answers(origin, key) for one in chain.segments]
                yield from self.meeting.found(origin, block, segments, self.keeping.views[met])
        begun = work.seconds()
        saved = self.keeping.saved
        after = HostState(
            {key: saved(chain.segments) for key, chain in chains.items()},
            {key: saved(chain.segments) for key, chain in new.items()},
        )
        kept: list[list[Infos]] = [[] for _ in self.keeping.streams]
        for (stream, _), infos in after.settled().items():
            kept[stream].append(infos)
        self.state = self.keeping.after([[info for infos in of for info in infos] for of in kept], after.tables)
        if not self.plan.is_last:
            # Who gets it counts what a host hands on; that it does tells reports whose stored tuples are to be even.
            self.report.forwarded = dict.fromkeys(FORWARDED, 0)
        self.report.seconds["expire"] += work.seconds() - begun

    def _answers(self, origin: int, key: Key) -> bool:
        return key[0] == self.plan.meets[origin] and self.routes.answers(self._host, origin, self.plan.number, key[1])

    def _new(self, stream: int) -> Iterator[tuple[Key, Chain]]:
        """What came to be stored of a stream, by segment; the first host of each counts its late tuples."""
        parts: dict[int, list[Block]] = {}
        for block in self.meeting.arrived(stream, STORE):
            for segment, rows in split(block.ts_us // self.segment_us):
                part = block.take(rows)
                parts.setdefault(segment, []).append(part)
                if self.routes.hosts_of(stream, segment)[0] == self._host:
                    self.keeping.count_late(stream, part.ts_us)
        for segment, of_segment in parts.items():
            yield (stream, segment), self.keeping.new(stream, of_segment, self.plan.archive_period(stream))


class LaterHop(LaterRound):
    """See `Step`; what comes from the hosts of the hop before is counted as forwarded."""

    def __init__(self, work: Work, plan: RoundPlan, routes: Routes) -> None:
        def answered(state: UnitState, origin: int, met: int) -> Infos:
            found = HostState.of(state)
            parts = [*found.at_rest.items(), *(found.new.items() if met < origin else ())]
            return tuple(
                info
                for (stream, segment), infos in parts
                if stream == met and routes.answers(work.unit.number, origin, plan.number, segment)
                for info in infos
            )

        super().__init__(work, plan, answered)
        blocks = work.given.blocks
        tuples = sum(len(given.block) for given in blocks)
        size = sum(given.block.rows.nbytes + given.block.ts_us.nbytes for given in blocks)
        self.report.forwarded = dict(zip(FORWARDED, (len(blocks), tuples, size), strict=True))


def segments_of(ts_us: np.ndarray, segment_us: int) -> tuple[np.ndarray, np.ndarray]:
    """The segments that tuples lie in, rising, and each tuple's place among them."""
    found, places = np.unique(ts_us // segment_us, return_inverse=True)
    return found, places
