"""Views: what is known of the tuples of a group and a pane, as blocks whose times are the starts of panes.

Of groups that change, the time of a view is the first T that counts its tuples, and a column has the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa

from streamjoin.flow import portions
from streamjoin.flow.block import Block
from streamjoin.operators.aggregate.grouping import Grouping, group, normal
from streamjoin.operators.aggregate.parts import column_types, made, merged
from streamjoin.plan.aggregate import AggregatePlan, Hopping, Kind, Part, key_name
from streamjoin.plan.evaluation import evaluate

ROWS = "rows"
"""The column of a view that says of how many tuples it is."""
LAST = "last_us"
"""The column of a view with the last T that counts its tuples, where they do not count for ever."""
_HELD_ROWS = 1 << 18
_HELD_BYTES = 1 << 28
"""Views are merged once so many are held; merging takes a multiple of it."""
_SENT_ROWS = 1 << 16


def view_names(plan: AggregatePlan) -> list[str]:
    """The columns of a view: what it is of, of how many tuples, and its parts."""
    names = [*key_names(plan), *([LAST] if _leave(plan) else [])]
    parts = [f"{number}.{place}" for number, part in enumerate(plan.parts) for place in range(len(column_types(part)))]
    return [*names, ROWS, *parts]


def key_names(plan: AggregatePlan) -> list[str]:
    """The columns of a view that have its group."""
    return [key_name(place) for place in range(len(plan.keys))]


def _leave(plan: AggregatePlan) -> bool:
    """Whether tuples leave their groups again."""
    return plan.windows.ends is not None


def _width(plan: AggregatePlan) -> int:
    """How many columns say what a view is of."""
    return len(plan.keys) + _leave(plan)


def views_of(plan: AggregatePlan, block: Block) -> Block | None:
    """Views of n >= 1 tuples, ordered by pane; None where all come and go between two moments of `EMIT EVERY`."""
    (name,) = plan.names
    columns = {(name, column): block.rows.column(column) for column in block.rows.schema.names}
    pane_us = plan.windows.pane_us
    panes = block.ts_us // pane_us
    lasts: list[pa.Array] = []
    if not isinstance(plan.windows, Hopping):
        panes = -(-block.ts_us // pane_us)
        if plan.windows.ends is not None:
            ends = evaluate(plan.windows.ends, columns, len(block), plan.predicates).to_numpy() // pane_us
            counted = np.nonzero(panes <= ends)[0]
            if not counted.size:
                return None
            if counted.size < len(block):
                block, panes, ends = block.take(counted), panes[counted], ends[counted]
                columns = {(name, column): block.rows.column(column) for column in block.rows.schema.names}
            lasts = [pa.array(ends * pane_us)]
    keys = [*(normal(evaluate(key.value, columns, len(block), plan.predicates)) for key in plan.keys), *lasts]
    rows = group(panes, keys)
    arrays = [*_of(keys, rows), pa.array(np.diff(rows.starts))]
    for part in plan.parts:
        values = [evaluate(arg, columns, len(block), plan.predicates) for arg in part.args]
        arrays += made(part, values, rows)
    return Block(pa.RecordBatch.from_arrays(arrays, view_names(plan)), panes[rows.firsts] * pane_us)


def merge(plan: AggregatePlan, views: Block) -> Block:
    """One view for each group and time of n >= 1 views, ordered by time."""
    keys = views.rows.columns[: _width(plan)]
    rows = group(views.ts_us, keys)
    if len(rows) == len(views):
        return views.take(rows.order)
    arrays = [*_of(keys, rows), *merged(Part(Kind.ROWS), [views.rows.column(ROWS)], rows)]
    for part, columns in zip(plan.parts, columns_of_parts(plan, views), strict=True):
        arrays += merged(part, columns, rows)
    return Block(pa.RecordBatch.from_arrays(arrays, views.rows.schema.names), views.ts_us[rows.firsts])


def last_us(views: Block) -> np.ndarray:
    """The last T that counts each view, int64 of shape (n,); where they count for ever, one that never comes."""
    if LAST not in views.rows.schema.names:
        return np.full(len(views), np.iinfo(np.int64).max)
    return np.asarray(views.rows.column(LAST).to_numpy())


def numbered(plan: AggregatePlan, views: Block) -> np.ndarray:
    """The number of each view's group, whatever its time, int64 of shape (n,)."""
    return group(np.zeros(len(views), np.int64), views.rows.select(key_names(plan)).columns).of_rows


def columns_of_parts(plan: AggregatePlan, views: Block) -> list[list[pa.Array]]:
    """The columns of each part, in the order of the plan's."""
    widths = [len(column_types(part)) for part in plan.parts]
    return [views.rows.columns[first:past] for first, past in pairwise(accumulate(widths, initial=_width(plan) + 1))]


def _of(keys: Sequence[pa.Array], rows: Grouping) -> list[pa.Array]:
    firsts = pa.array(rows.firsts)
    return [key.take(firsts) for key in keys]


class Folding:
    """Makes views of what is on its way to the units, so that views travel instead of tuples.

    Args:
        counts: tuples and their bytes that came in.
    """

    def __init__(self, plan: AggregatePlan) -> None:
        self.plan = plan
        self.counts = {"tuples": 0, "tuple_bytes": 0}
        self._held: list[Block] = []

    def add(self, block: Block) -> Iterator[Block]:
        """Take n >= 1 tuples; gives views when many have come together that cannot be made fewer."""
        self.counts["tuples"] += len(block)
        self.counts["tuple_bytes"] += block.rows.nbytes + block.ts_us.nbytes
        if (views := views_of(self.plan, block)) is not None:
            self._held.append(views)
        rows, size = sum(map(len, self._held)), sum(views.rows.nbytes for views in self._held)
        if rows >= _HELD_ROWS or size >= _HELD_BYTES:
            self._held = [merge(self.plan, Block.concat(self._held))]
            merged = self._held[0]
            if len(merged) >= _HELD_ROWS // 2 or merged.rows.nbytes >= _HELD_BYTES // 2:
                yield from self.rest()

    def rest(self) -> Iterator[Block]:
        """What is held, in blocks of bounded size."""
        if not self._held:
            return
        views = merge(self.plan, Block.concat(self._held))
        self._held = []
        for first, past in portions.slices(views.rows, _SENT_ROWS):
            yield views.slice(first, past)
