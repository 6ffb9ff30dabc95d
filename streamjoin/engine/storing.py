"""A unit that stores tuples of its sides and answers probes of the opposite ones.

Which tuple of a pair probes is decided by one total order over both streams. Stored tuples of earlier batches come
before all new ones. Inside a batch R's tuples come before S's, so new tuples of S probe new ones of R and not the other
way round; with a count window, where ranks matter, tuples alternate by position, R first. Either way each pair is
found once (BiStream, section 3.2.3: R units join only if T_r <= T_s, S units only if T_s < T_r).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from streamjoin.engine.deciding import Deciding
from streamjoin.engine.joining import Joining
from streamjoin.engine.routing import PROBE, STORE
from streamjoin.engine.stored import stored, tables
from streamjoin.engine.unit import Work
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.chain import Chain
from streamjoin.index.columns import stored_columns
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import Segment, SegmentInfo
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.window import CountWindow, FullHistory, R, TimeWindow


class UnitStep:
    """A unit that stores tuples and answers probes of the opposite ones; see `Step`."""

    def __init__(self, work: Work) -> None:
        self.joining = Joining(work)
        self.report = self.joining.report
        self.state = work.before
        self.span = range(work.before.sequence, work.before.sequence + sum(self.joining.arrived))
        self._work = work
        self._chains = {side: self._attach(side) for side in work.unit.stores}
        self._deciding = _deciding(work, self.joining, self._chains)

    @property
    def query(self) -> int:
        """See `Step`."""
        return self.joining.query

    def _attach(self, side: int) -> Chain:
        plan, work = self.joining.plan, self._work
        layouts = tuple(layout_of(query, side) for query in plan.queries)
        segments = [Segment.attach(work.open_segment(info), info, layouts) for info in stored(work.before, side)]
        return Chain(layouts, stored_columns(plan, side), plan.archive_period, segments)

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        for side, chain in self._chains.items():
            arriving = self.joining.gather(side, STORE)
            probing = self.joining.gather(1 - side, PROBE)
            # R's new tuples come before S's; ranks order them finer, so both must be there to be compared.
            stored_first = side == R or isinstance(self.joining.plan.window, CountWindow)
            if stored_first:
                self._store(chain, side, arriving)
            for block in probing:
                yield from self.joining.probe(chain, side, block, self.joining)
            if not stored_first:
                self._store(chain, side, arriving)
        clocks = self.joining.clocks()
        if self._deciding is not None:
            (counted,) = self.joining.counts
            for rows in self._deciding.results(clocks):
                counted.results += rows.num_rows
                yield rows
        self._finish(clocks)

    def _store(self, chain: Chain, side: int, blocks: Iterable[Block]) -> None:
        for block in blocks:
            numbers = self.joining.numbers(side, block)
            self.joining.store(chain, side, block, numbers)
            if self._deciding is not None:
                self._deciding.stored(side, numbers)

    def _finish(self, clocks: tuple[StreamClock, StreamClock]) -> None:
        begun = self._work.seconds()
        dropped: list[str] = []
        kept: dict[int, tuple[SegmentInfo, ...]] = {}
        for side, chain in self._chains.items():
            # After the probes: the oldest tuple of a batch may still need what its newest one lets go.
            expired = chain.expire(self._expiry(side, clocks))
            self.report.expired_rows += sum(segment.info.rows for segment in expired)
            gone = expired + chain.merge()
            dropped += [segment.info.file for segment in gone if segment.info.file]
            kept[side] = self.joining.saved(chain.segments)
        after = self.joining.after(kept, clocks)
        found = tables(kept)
        if self._deciding is not None:
            more, values, let_go = self._deciding.finish()
            found, after = {**found, **more}, replace(after, values=values)
            dropped += let_go
        self.state = replace(after, tables=found, dropped=tuple(dropped))
        self.report.seconds["expire"] += self._work.seconds() - begun

    def _expiry(self, side: int, clocks: tuple[StreamClock, ...]) -> Callable[[SegmentInfo], bool]:
        if self._deciding is not None and side in self._deciding.home:
            return partial(self._deciding.expired, side)
        return _expiry(self.joining.plan, side, clocks)


def _deciding(work: Work, joining: Joining, chains: Mapping[int, Chain]) -> Deciding | None:
    """What decides on rows, where the join's kind asks for it; it is told of all pairs."""
    (first, *_) = joining.plan.queries
    if not first.kind.decided:
        return None
    deciding = Deciding(work, joining, chains)
    joining.met = deciding.met
    return deciding


def _expiry(plan: Pairs, side: int, clocks: tuple[StreamClock, ...]) -> Callable[[SegmentInfo], bool]:
    """When a segment stored on `side` can be dropped (BiStream, Theorem 1).

    R falls by S's mark and `after`, S by R's mark and `before`: the next opposite tuple inside its allowed delay is at
    the mark or later, so a stored tuple whose reach ends before the mark is met by none.
    """
    match plan.window:
        case TimeWindow() as window:
            mark_us = clocks[1 - side].mark_us
            if mark_us is None:
                return lambda info: False
            oldest_us = mark_us - window.keeps_us(side)
            return lambda info: info.ts_max_us < oldest_us
        case CountWindow(rows):
            first = clocks[side].rows - rows
            return lambda info: info.rank_max < first
        case FullHistory():
            return lambda info: False
