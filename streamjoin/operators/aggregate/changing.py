"""A unit that keeps views of its groups, and gives each group again that changed, as of the latest T.

T is a multiple of the span of EMIT EVERY below the mark, and a view counts from its own time, the first such T, to its
last one. In a batch each group is looked at that a view entered or left since the T before: what it was and what it is
are both added up from its views, and what differs is given. Nothing is subtracted, and nothing that was given needs to
be remembered. What comes late counts from the next T on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.engine.emit import ROWS_A_BATCH
from streamjoin.engine.unit import Work
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import StreamClock
from streamjoin.operators.aggregate.keeping import VIEWS, Keeping, Kept, latest_us
from streamjoin.operators.aggregate.rows import changes_of, chosen
from streamjoin.operators.aggregate.views import LAST, ROWS, key_names, last_us, merge, numbered
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.changing import DELETE, UPSERT, Changing
from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.values import Columns


class ChangingStep(Keeping):
    """See `Step`."""

    def __init__(self, plan: AggregatePlan, work: Work) -> None:
        super().__init__(plan, work)
        assert isinstance(plan.windows, Changing)
        self.every_us = plan.windows.every_us
        self.latest_us = latest_us(work)

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        begun = self.work.seconds()
        clock = self.clock()
        kept = [self._attached(Kept(self.opened(info), info)) for info in self.state.segments(VIEWS)]
        if (arrived := self._arrived()) is not None:
            kept.append(Kept(arrived))
        self.spent("store", begun)
        at_us, begun = self._at_us(clock, [one.views for one in kept]), self.work.seconds()
        if at_us is not None and (self.given_us is None or at_us > self.given_us):
            yield from self.counted(self._changes([one.views for one in kept], at_us))
            begun = self.work.seconds()
            self.given_us = at_us
            needed = (self.needed(one, np.nonzero(self._counts(one.views, at_us))[0]) for one in kept)
            kept = [one for one in needed if one is not None]
        mark_us = clock.mark_us
        if self.given_us is not None:
            # The next T is a later multiple, whatever the mark.
            mark_us = max(self.given_us + self.every_us, mark_us or self.given_us)
        self.finish(kept, clock, mark_us)
        self.spent("expire", begun)

    def settled(self, views: Block) -> Block:
        """Views that count already are alike, whenever they began to."""
        if self.given_us is not None:
            views = replace(views, ts_us=np.maximum(views.ts_us, self.given_us))
        return merge(self.plan, views)

    def _at_us(self, clock: StreamClock, kept: Sequence[Block]) -> int | None:
        """The latest T; at the end of the input the first one that counts all of it, also what came late."""
        moments = [] if clock.mark_us is None else [(clock.mark_us - 1) // self.every_us]
        if clock.ended and self.latest_us is not None:
            last_us = max([self.latest_us, *(int(views.ts_us.max()) for views in kept if len(views))])
            moments.append(-(-last_us // self.every_us))
        return max(moments) * self.every_us if moments else None

    def _attached(self, one: Kept) -> Kept:
        """A segment without the views that count no more."""
        if self.given_us is None:
            return one
        live = np.nonzero(self._counts(one.views, self.given_us))[0]
        return one if live.size == len(one.views) else Kept(one.views.take(live), one.info)

    def _arrived(self) -> Block | None:
        """The views that came with the batch; they count from the next T on, if they were to count before."""
        views = self.brought()
        if views is None or self.given_us is None:
            return views
        late = views.ts_us <= self.given_us
        if late.any():
            self.report.late[0] = int(views.rows.column(ROWS).to_numpy()[late].sum())
            views = merge(self.plan, replace(views, ts_us=np.maximum(views.ts_us, self.given_us + self.every_us)))
        counted = np.nonzero(last_us(views) >= views.ts_us)[0]
        return views.take(counted) if counted.size else None

    def _counts(self, views: Block, at_us: int) -> np.ndarray:
        """Whether each view counts at a moment or may do so later."""
        return last_us(views) >= at_us

    def _changes(self, kept: Sequence[Block], at_us: int) -> Iterator[pa.RecordBatch]:
        """The groups that differ from what they were, as of a moment."""
        looked_at = of_groups(kept, [self._moved(views, at_us) for views in kept], key_names(self.plan))
        if looked_at is None:
            return
        # Numbered groups, so that what one was and what it is are found beside each other.
        numbers = numbered(self.plan, looked_at)
        moved = np.zeros(int(numbers.max()) + 1, bool)
        moved[numbers[self._moved(looked_at, at_us)]] = True
        lasts = last_us(looked_at)
        now = moved[numbers] & (looked_at.ts_us <= at_us) & (lasts >= at_us)
        before = np.zeros(len(looked_at), bool)
        if self.given_us is not None:
            before = moved[numbers] & (looked_at.ts_us <= self.given_us) & (lasts >= self.given_us)
        # Most views count at both moments, and are added up once.
        both = self._of_groups(looked_at, numbers, before & now)
        was, is_now = (
            self._as_of([both, self._of_groups(looked_at, numbers, counted & ~(before & now))])
            for counted in (before, now)
        )
        yield from self._differing(was, is_now, at_us)

    def _moved(self, views: Block, at_us: int) -> np.ndarray:
        """Whether each view entered or left its group since the T before."""
        lasts = last_us(views)
        if self.given_us is None:
            return np.asarray((views.ts_us <= at_us) & (lasts >= at_us))
        enters = (views.ts_us > self.given_us) & (views.ts_us <= at_us) & (lasts >= at_us)
        leaves = (views.ts_us <= self.given_us) & (lasts >= self.given_us) & (lasts < at_us)
        return np.asarray(enters | leaves)

    def _of_groups(self, views: Block, numbers: np.ndarray, counted: np.ndarray) -> Block | None:
        """One view for each group of the views that count, whose time is the number of the group; None without any."""
        rows = np.nonzero(counted)[0]
        if not rows.size:
            return None
        some = replace(views.take(rows), ts_us=numbers[rows])
        if LAST in some.rows.schema.names:
            place = some.rows.schema.get_field_index(LAST)
            some = replace(some, rows=some.rows.set_column(place, LAST, pa.array(np.zeros(rows.size, np.int64))))
        return merge(self.plan, some)

    def _as_of(self, parts: Sequence[Block | None]) -> _AsOf:
        """The groups of views that `_of_groups` has made."""
        there = [part for part in parts if part is not None]
        if not there:
            return _AsOf(np.zeros(0, np.int64), {}, [])
        found = merge(self.plan, Block.concat(there))
        kept, columns = chosen(self.plan, found)
        arrays = [evaluate(expression, columns, kept.size, self.plan.predicates) for _, expression in self.plan.select]
        return _AsOf(found.ts_us[kept], columns, arrays)

    def _differing(self, before: _AsOf, now: _AsOf, at_us: int) -> Iterator[pa.RecordBatch]:
        """Groups that are other than they were, and those that are no more."""
        if now.groups.size:
            places = np.nonzero(~_same(before, now))[0]
            yield from self._given(UPSERT, now, places, at_us)
        if before.groups.size:
            places = np.nonzero(~np.isin(before.groups, now.groups))[0]
            hidden = [name not in self.plan.identity for name in dict(self.plan.select)]
            arrays = [
                pa.nulls(len(values), values.type) if hide else values
                for hide, values in zip(hidden, before.arrays, strict=True)
            ]
            yield from self._given(DELETE, replace(before, arrays=arrays), places, at_us)

    def _given(self, operation: str, found: _AsOf, places: np.ndarray, at_us: int) -> Iterator[pa.RecordBatch]:
        for first in range(0, places.size, ROWS_A_BATCH):
            some = pa.array(places[first : first + ROWS_A_BATCH])
            columns = {name: values.take(some) for name, values in found.columns.items()}
            yield changes_of(self.plan, operation, [values.take(some) for values in found.arrays], columns, at_us)


@dataclass(frozen=True, slots=True)
class _AsOf:
    """Groups as of a moment.

    Args:
        groups: their numbers, which rise, int64 of shape (g,).
        columns: what expressions over groups read, g values each.
        arrays: of the SELECT list, g values each.
    """

    groups: np.ndarray
    columns: Columns
    arrays: list[pa.Array]


def of_groups(blocks: Sequence[Block], moved: Sequence[np.ndarray], names: Sequence[str]) -> Block | None:
    """All views of groups of which one has moved; of others some, where groups have several keys. None if none has."""
    changed = [block.rows.select(names).filter(pa.array(mask)) for block, mask in zip(blocks, moved, strict=True)]
    if not sum(rows.num_rows for rows in changed):
        return None
    keys = [pa.concat_arrays([rows.column(name) for rows in changed]).unique() for name in names]
    found = []
    for block in blocks:
        mask = np.ones(len(block), bool)
        for name, values in zip(names, keys, strict=True):
            is_one = pc.is_in(block.rows.column(name), value_set=values)
            mask &= is_one.to_numpy(zero_copy_only=False)
        places = np.nonzero(mask)[0]
        if places.size:
            found.append(block if places.size == len(block) else block.take(places))
    return Block.concat(found)


def _same(before: _AsOf, now: _AsOf) -> np.ndarray:
    """Whether each group is what it was."""
    was = np.full(int(max(now.groups.max(), before.groups.max(initial=0))) + 1, -1, np.int64)
    was[before.groups] = np.arange(before.groups.size, dtype=np.int64)
    places = was[now.groups]
    same = places >= 0
    if not same.any():
        return np.asarray(same)
    both = np.nonzero(same)[0]
    for one, other in zip(before.arrays, now.arrays, strict=True):
        pairs = pa.concat_arrays([one.take(pa.array(places[both])), other.take(pa.array(both))])
        codes = pairs.dictionary_encode(null_encoding="encode").indices.to_numpy()
        same[both] &= codes[: both.size] == codes[both.size :]
    return np.asarray(same)
