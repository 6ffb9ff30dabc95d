"""One unit of an as-of join in one batch.

A left row waits until the right stream's mark is above its time, or has reached it where the right row must be older:
then all that it may get has come, and it is given once, with what it gets. Right rows are kept as versions of their
key, see `versions.py`. At the end of input the rows that wait are answered with what is there.

    R   left rows that wait, as they came
    S   versions

A row that waits holds the mark of the output at its own time, and so do left rows to come; the right stream does not,
as a result has the time of its left row. Versions are let go by the oldest left row that waits or may come and not by
the mark alone: q@0 is still what t@5 gets when t@40 has moved the left mark to 40.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.engine.emit import ROWS_A_BATCH
from streamjoin.engine.joining import Joining
from streamjoin.engine.routing import STORE
from streamjoin.engine.stored import stored, tables
from streamjoin.engine.unit import Work
from streamjoin.flow.block import TS, Block
from streamjoin.flow.portions import cuts, slices
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.chain import MERGED_BYTES_MAX
from streamjoin.index.columns import routed_columns
from streamjoin.operators.asof.versions import NONE, Found, Sorted, Versions, columns_of_rows, described, looked_up_at
from streamjoin.plan.asof import ENDS
from streamjoin.plan.evaluation import evaluate, filter_mask
from streamjoin.plan.expression import TRUE, columns_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.window import R, S

_NUMBERED, _STATED = "versions", "output_mark_us"
WAITING_ROWS_MAX = 1 << 18
"""Rows that wait are kept together up to so many, as some of them leave with every batch; and up to
`MERGED_BYTES_MAX`."""


class AsOfStep:
    """See `Step`."""

    def __init__(self, work: Work) -> None:
        self.joining = Joining(work)
        self.report = self.joining.report
        self.state = work.before
        self.span = range(work.before.sequence, work.before.sequence + sum(self.joining.arrived))
        (plan,) = work.plan.queries
        assert isinstance(plan, JoinPlan) and plan.asof is not None
        self.plan, self.asof = plan, plan.asof
        self._work = work
        self._names = {side: routed_columns(self.plan, side) for side in (R, S)}
        if self.asof.values:
            self._names[S] += (ENDS,)
        self._waiting = [Sorted(work.open_segment(info), info) for info in stored(work.before, R)]
        opened = [Sorted(work.open_segment(info), info) for info in stored(work.before, S)]
        self._versions = Versions(self.plan, opened)
        self._key = self.plan.result_key if self.plan.keyed else None
        expressions = [*(part for _, part in self.plan.select), *([self._key] if self._key is not None else [])]
        self._selected = frozenset(pair for part in expressions for pair in columns_of(part))
        self._read = self._selected | columns_of(self.plan.filter)
        self._numbered: int = work.before.values.get(_NUMBERED, 0)
        self._dropped: list[str] = []

    @property
    def query(self) -> int:
        """There is one."""
        return 0

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        begun = self._work.seconds()
        for right in self._arrived(S):
            self._versions.add(right, self._names[S], self._numbered)
            self._numbered += len(right)
        for left in self._arrived(R):
            rows = left.rows.select(list(self._names[R]))
            rows = pa.RecordBatch.from_arrays([*rows.columns, pa.array(left.ts_us)], [*rows.schema.names, TS])
            self._waiting.append(described(rows))
        self.report.seconds["store"] += self._work.seconds() - begun
        clocks = self.joining.clocks()
        answers = (batch for rows in self._ready(clocks[S]) for batch in self._answered(rows))
        yield from self.report.timed(answers, self._work.seconds)
        self._finish(clocks)

    def _arrived(self, side: int) -> list[Block]:
        blocks = self.joining.gather(side, STORE)
        mark_us = self._work.before.clocks[side].mark_us
        for block in blocks if mark_us is not None else ():
            self.report.late[side] += int(np.count_nonzero(block.ts_us < mark_us))
        return blocks

    def _ready(self, right: StreamClock) -> Iterator[pa.RecordBatch]:
        """The left rows that need not wait any longer; the others stay."""
        horizon_us = right.mark_us  # all right rows below it have come
        still: list[Sorted] = []
        for waiting in self._waiting:
            times, _ = looked_up_at(self.plan, waiting.rows)
            ready = np.full(waiting.rows.num_rows, right.ended)
            if horizon_us is not None:
                ready |= (times <= horizon_us) if self.asof.older else (times < horizon_us)
            if not ready.any():
                still.append(waiting)
                continue
            if waiting.info.file:
                self._dropped.append(waiting.info.file)
            yield waiting.rows.take(pa.array(np.nonzero(ready)[0]))
            if not ready.all():
                still.append(described(waiting.rows.take(pa.array(np.nonzero(~ready)[0]))))
        self._waiting = still

    def _answered(self, left: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """What left rows give, in parts of bounded size."""
        for first, past in slices(left, ROWS_A_BATCH):
            some = left.slice(first, past - first)
            found = self._versions.latest(some)
            self.joining.counts[0].comparisons += some.num_rows * len(self._versions.segments)
            if not self.asof.keeps:
                some, found = _only(some, found, found.row != NONE)
            # One long text may be what many rows get.
            for start, stop in cuts(self._versions.sizes(found, self._of_right(self._read))):
                yield from self._chosen(some.slice(start, stop - start), found.part(start, stop))

    def _chosen(self, left: pa.RecordBatch, found: Found) -> Iterator[pa.RecordBatch]:
        """The result rows of left rows and of what they get."""
        if self.plan.filter != TRUE:
            columns = self._columns(left, found, columns_of(self.plan.filter))
            keep = filter_mask(self.plan.filter, columns, left.num_rows, self.plan.predicates)
            left, found = _only(left, found, keep)
        if left.num_rows:
            self.joining.counts[0].results += left.num_rows
            yield self._rows(left, found)

    def _rows(self, left: pa.RecordBatch, found: Found) -> pa.RecordBatch:
        plan = self.plan
        columns = self._columns(left, found, self._selected)
        values = [evaluate(part, columns, left.num_rows, plan.predicates) for _, part in plan.select]
        if plan.timed:
            values.append(left.column(TS))
        if self._key is not None:
            values.append(evaluate(self._key, columns, left.num_rows, plan.predicates))
        return pa.RecordBatch.from_arrays(values, schema=plan.emitted)

    def _columns(
        self, left: pa.RecordBatch, found: Found, wanted: frozenset[tuple[str, str]]
    ) -> dict[tuple[str, str], Any]:
        columns = dict(columns_of_rows(self.plan, R, left))
        of_right = self._versions.columns(found, self._of_right(wanted))
        return columns | {(self.plan.names[S], name): values for name, values in of_right.items()}

    def _of_right(self, wanted: frozenset[tuple[str, str]]) -> list[str]:
        """The columns of the right stream among these."""
        return [name for stream, name in wanted if stream == self.plan.names[S]]

    def _finish(self, clocks: tuple[StreamClock, StreamClock]) -> None:
        begun = self._work.seconds()
        self._merge_waiting()
        oldest_us = _lowest([clocks[R].mark_us, *(waiting.info.ts_min_us for waiting in self._waiting)])
        if clocks[R].mark_us is None:
            oldest_us = None
        rows_before = sum(segment.info.rows for segment in self._versions.segments)
        self._versions.settle(self._oldest_wanted(clocks[R].mark_us, oldest_us), clocks[S].mark_us)
        self.report.expired_rows += rows_before - sum(segment.info.rows for segment in self._versions.segments)
        kept = {R: self.joining.saved(self._waiting), S: self.joining.saved(self._versions.segments)}
        after = self.joining.after(kept, clocks)
        self.report.ended = self.report.ended and not self._waiting
        stated_us: int | None = self._work.before.values.get(_STATED)
        if oldest_us is not None:  # a late row does not take back what was stated
            stated_us = oldest_us if stated_us is None else max(stated_us, oldest_us)
        self.report.output_mark_us = stated_us
        values = {_NUMBERED: self._numbered, _STATED: stated_us}
        dropped = (*self._dropped, *self._versions.dropped)
        self.state = replace(after, tables=tables(kept), values=values, dropped=dropped)
        self.report.seconds["expire"] += self._work.seconds() - begun

    def _oldest_wanted(self, mark_us: int | None, oldest_us: int | None) -> int | None:
        """The lowest time by which rows that wait or may come look; None where it may be any."""
        if self.asof.at is None or oldest_us is None or mark_us is None:
            return oldest_us
        if self.asof.at_lags_us is None:
            return None
        waiting = [int(looked_up_at(self.plan, one.rows)[0].min()) for one in self._waiting]
        return min([mark_us - self.asof.at_lags_us, *waiting])

    def _merge_waiting(self) -> None:
        """Keep those together that are few."""
        merged: list[Sorted] = []
        for waiting in self._waiting:
            while merged and _fit(merged[-1], waiting):
                before = merged.pop()
                self._dropped += [one.info.file for one in (before, waiting) if one.info.file]
                waiting = described(pa.concat_batches([before.rows, waiting.rows]))
            merged.append(waiting)
        self._waiting = merged


def _fit(before: Sorted, last: Sorted) -> bool:
    if before.info.bytes + last.info.bytes > MERGED_BYTES_MAX:
        return False
    rows = before.info.rows + last.info.rows
    return rows <= WAITING_ROWS_MAX and before.info.rows <= 2 * last.info.rows


def _only(left: pa.RecordBatch, found: Found, keep: np.ndarray) -> tuple[pa.RecordBatch, Found]:
    if keep.all():
        return left, found
    rows = np.nonzero(keep)[0]
    return left.take(pa.array(rows)), Found(found.segment[rows], found.row[rows])


def _lowest(times_us: Sequence[int | None]) -> int | None:
    return min((time for time in times_us if time is not None), default=None)
