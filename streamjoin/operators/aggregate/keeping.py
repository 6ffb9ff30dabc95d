"""What units of groups have in common: views in segments that are merged, so that each is written a few times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from streamjoin.engine.clocks import clock_after
from streamjoin.engine.routing import STORE
from streamjoin.engine.state import Table, UnitState
from streamjoin.engine.unit import QueryCounts, UnitReport, Work
from streamjoin.flow import portions
from streamjoin.flow.block import TS, Block
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.segment import SegmentInfo, build
from streamjoin.operators.aggregate.views import merge
from streamjoin.plan.aggregate import AggregatePlan

VIEWS = "views"
GIVEN = "given_us"
"""The end of the latest window that was given, or the latest moment as of which groups were."""
LATE = "late"
LATEST = "latest_us"
"""The latest event time of the input, by which the end of the input knows what is the last to be given."""
FOLDED = ("tuples", "tuple_bytes", "views", "view_bytes")
"""Tuples that were folded and their bytes, and the views that were sent instead and theirs."""


def latest_us(work: Work) -> int | None:
    """The latest event time of the input; the same in all units."""
    told = [punctuation.ts_max_us for punctuation in work.given.punctuations]
    return max((at for at in (*told, work.before.values.get(LATEST)) if at is not None), default=None)


@dataclass(frozen=True, slots=True)
class Kept:
    """Views in time's order; `info` describes their file, and is None of those that are in none."""

    views: Block
    info: SegmentInfo | None = None


class Keeping:
    """A step of a unit of groups, but for what it gives. See `Step`.

    Args:
        given_us: see `GIVEN`; None before anything was given.
        latest_us: see `LATEST`; None of units to which it makes no difference, and before there is any input.
    """

    latest_us: int | None = None

    def __init__(self, plan: AggregatePlan, work: Work) -> None:
        self.plan = plan
        self.work = work
        self.state = work.before
        self.span = range(0)
        self.report = UnitReport(work.unit.number, work.unit.label, late=[0], stored_rows=(0,), outbox_rows=(0,))
        self.given_us: int | None = work.before.values.get(GIVEN)
        self._dropped: list[str] = []

    @property
    def query(self) -> int:
        """See `Step`."""
        return 0

    def counted(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Results on their way out, for the report."""
        for some in self.report.timed(rows, self.work.seconds):
            self.report.results += some.num_rows
            yield some

    def spent(self, what: str, begun: float) -> None:
        """Time since `begun` went into this."""
        self.report.seconds[what] += self.work.seconds() - begun

    def clock(self) -> StreamClock:
        """That of the input, after the batch."""
        given, (stream,) = self.work.given, self.plan.streams
        return clock_after(self.work.before.clocks[0], given.punctuations, stream, given)

    def opened(self, info: SegmentInfo) -> Block:
        """All views of a segment."""
        rows = self.work.open_segment(info)
        names = [name for name in rows.schema.names if name != TS]
        return Block(rows.select(names), rows.column(TS).to_numpy())

    def brought(self) -> Block | None:
        """The views that came with the batch, added up."""
        came = self.work.given.came(0, STORE)
        self.report.count_received(came)
        # Views of one group come from many; what all come to together may be much less.
        merged = [merge(self.plan, block) for block in Block.together([given.block for given in came])]
        return merge(self.plan, Block.concat(merged)) if len(merged) > 1 else next(iter(merged), None)

    def needed(self, one: Kept, needed: np.ndarray) -> Kept | None:
        """What is needed of views; a segment that is mostly not needed is written anew. None if nothing is.

        Args:
            needed: numbers of rows that rise, int64.
        """
        rows = one.info.rows if one.info else len(one.views)
        self.report.expired_rows += len(one.views) - needed.size
        is_mostly_needed = 2 * needed.size >= rows
        if not is_mostly_needed:
            self._dissolved(one)
        if not needed.size:
            return None
        first, past = int(needed[0]), int(needed[-1]) + 1
        views = one.views.slice(first, past) if past - first == needed.size else one.views.take(needed)
        return Kept(views, one.info if is_mostly_needed else None)

    def settled(self, views: Block) -> Block:
        """Views as they are written."""
        return views

    def _dissolved(self, one: Kept) -> None:
        if one.info is not None:
            self._dropped.append(one.info.file)

    def finish(self, kept: list[Kept], clock: StreamClock, output_mark_us: int | None) -> None:
        """The next state and the report; segments of like size become one."""
        stack: list[Kept] = []
        for one in kept:
            stack.append(one if one.info else Kept(self.settled(one.views)))
            while len(stack) > 1 and _fit(stack[-2].views, stack[-1].views):
                last, before = stack.pop(), stack.pop()
                self._dissolved(last)
                self._dissolved(before)
                stack.append(Kept(self.settled(Block.concat([before.views, last.views]))))
        infos = tuple(one.info or self._saved(one.views) for one in stack)
        self.report.marks_us = (clock.mark_us,)
        self.report.output_mark_us = output_mark_us
        self.report.stored_rows = (sum(info.rows for info in infos),)
        self.report.stored_bytes = sum(info.bytes for info in infos)
        self.report.segments = len(infos)
        self.report.queries = [asdict(QueryCounts(self.report.results))]
        if self.work.unit.number == 0:
            self.report.folded = self._folded()
        if self.report.late[0]:
            self.report.folded[LATE] = self.report.late[0]
        known = {GIVEN: self.given_us, LATEST: self.latest_us}
        values = {name: value for name, value in known.items() if value is not None}
        self.state = UnitState(
            self.work.before.version + 1, {VIEWS: Table(0, infos)}, values, (clock, StreamClock()), self._totals(),
            tuple(self._dropped),
        )  # fmt: skip

    def _saved(self, views: Block) -> SegmentInfo:
        rows, info = build(views.rows, views.ts_us, None, {})
        return self.work.save_segment(rows, info)

    def _folded(self) -> dict[str, int]:
        """What was made of how many tuples on the way here; of all units, told by the first one."""
        found: dict[str, int] = {}
        for punctuation in self.work.given.punctuations:
            for name in FOLDED:
                if value := punctuation.counts.get(name, 0):
                    found[name] = found.get(name, 0) + value
        return found

    def _totals(self) -> dict[str, int]:
        gained = {"results": self.report.results, LATE: self.report.late[0], "expired_rows": self.report.expired_rows}
        return self.work.before.totals_after(gained)


def _fit(before: Block, last: Block) -> bool:
    """Whether two segments become one."""
    is_alike = len(before) <= 2 * len(last)
    return is_alike and before.rows.nbytes + last.rows.nbytes <= portions.BYTES_TOGETHER
