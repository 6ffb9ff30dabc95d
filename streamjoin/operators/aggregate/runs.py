"""A unit that gives each value once for every run of rows that have it (SELECT DISTINCT).

Rows of a value are intervals [hi, end], and a run is a longest chain of them in which each begins while one before it
still counts; its row is given when the mark has passed its first `hi`, from when on no earlier one can come. Which runs
there are depends on the rows alone, and not on the order in which they came.

Source: the deduplicator of BiStream (SIGMOD 2015, section 3.4), as a stage of its own. A value that was seen needs
nothing but the latest end of its views, so what was given is not remembered in any other way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamjoin.engine.unit import Work
from streamjoin.flow.block import Block
from streamjoin.operators.aggregate.changing import of_groups
from streamjoin.operators.aggregate.keeping import VIEWS, Keeping, Kept, latest_us
from streamjoin.operators.aggregate.rows import rows_of
from streamjoin.operators.aggregate.views import LAST, ROWS, key_names, last_us, merge, numbered
from streamjoin.plan.aggregate import AggregatePlan


class RunsStep(Keeping):
    """See `Step`. `given_us` is the mark up to which runs were given: views before it were looked at."""

    def __init__(self, plan: AggregatePlan, work: Work) -> None:
        super().__init__(plan, work)
        self.latest_us = latest_us(work)

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        begun = self.work.seconds()
        clock = self.clock()
        kept = [Kept(self.opened(info), info) for info in self.state.segments(VIEWS)]
        fresh = [self.given_us is None] * len(kept)
        if (arrived := self.brought()) is not None:
            kept.append(Kept(arrived))
            fresh.append(True)
            if self.given_us is not None:
                late = arrived.ts_us < self.given_us
                self.report.late[0] = int(arrived.rows.column(ROWS).to_numpy()[late].sum())
        self.spent("store", begun)
        marks = [mark for mark in (clock.mark_us, self.given_us) if mark is not None]
        if clock.ended and self.latest_us is not None:
            marks.append(self.latest_us + 1)
        begun = self.work.seconds()
        if marks:
            until_us = max(marks)
            yield from self.counted(self._given([one.views for one in kept], fresh, until_us))
            begun = self.work.seconds()
            self.given_us = until_us
            needed = (
                self.needed(one, np.nonzero((one.views.ts_us >= until_us) | (last_us(one.views) >= until_us))[0])
                for one in kept
            )
            kept = [one for one in needed if one is not None]
        self.finish(kept, clock, self.given_us)
        self.spent("expire", begun)

    def settled(self, views: Block) -> Block:
        """Of views that were looked at, the latest end of each value is all that is needed."""
        if self.given_us is None:
            return merge(self.plan, views)
        views = replace(views, ts_us=np.maximum(views.ts_us, self.given_us - 1))
        if LAST not in views.rows.schema.names:
            return merge(self.plan, views)
        seen = views.ts_us < self.given_us
        known, fresh = (views.take(np.nonzero(mask)[0]) for mask in (seen, ~seen))
        made = [self._latest(known)] if len(known) else []
        return Block.concat([*made, *([merge(self.plan, fresh)] if len(fresh) else [])])

    def _latest(self, views: Block) -> Block:
        """The view of each value that ends last."""
        numbers = numbered(self.plan, views)
        order = np.lexsort((last_us(views), numbers))
        ends = np.nonzero(np.append(np.diff(numbers[order]) != 0, True))[0]
        return views.take(order[ends])

    def _given(self, kept: list[Block], fresh: list[bool], until_us: int) -> Iterator[pa.RecordBatch]:
        """A row for each run that begins with a view that has not been looked at."""
        due = [self._due(views, is_fresh, until_us) for views, is_fresh in zip(kept, fresh, strict=True)]
        marked = [_with_mark(views, mask) for views, mask in zip(kept, due, strict=True)]
        looked_at = of_groups(marked, due, key_names(self.plan))
        if looked_at is None:
            return
        looked_at = looked_at.take(np.nonzero(looked_at.ts_us < until_us)[0])
        is_due = np.asarray(looked_at.rows.column(_DUE).to_numpy(zero_copy_only=False))
        numbers = numbered(self.plan, looked_at)
        order = np.lexsort((looked_at.ts_us, is_due, numbers))  # those that were looked at come first
        begins = order[_begins(numbers[order], looked_at.ts_us[order], last_us(looked_at)[order]) & is_due[order]]
        if begins.size:
            yield from rows_of(self.plan, looked_at.take(begins))

    def _due(self, views: Block, is_fresh: bool, until_us: int) -> np.ndarray:
        """Which views are looked at now; those that came with the batch are, however late."""
        due = views.ts_us < until_us
        return np.asarray(due if is_fresh or self.given_us is None else due & (views.ts_us >= self.given_us))


_DUE = "due"


def _with_mark(views: Block, mask: np.ndarray) -> Block:
    return replace(views, rows=views.rows.append_column(_DUE, pa.array(mask)))


def _begins(numbers: np.ndarray, his: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Whether each interval begins when none before it of the same value counts any more, bool of shape (n,).

    Args:
        numbers, his, ends: by value, and in the order in which they are looked at, int64 of shape (n,).
    """
    levels, ranks = np.unique(ends, return_inverse=True)
    # The latest end so far, value by value: a later value's number is above every rank of those before.
    latest = np.maximum.accumulate(numbers * levels.size + ranks)
    before = np.concatenate(([-1], latest[:-1]))
    is_first = before < numbers * levels.size
    return np.asarray(is_first | (his > levels[np.maximum(before, 0) % levels.size]))
