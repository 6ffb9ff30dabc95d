"""Queries that are started and stopped over stored tuples (ESJ, "Join engine": tasks come and go on a running job).

Between two batches every segment is written anew: with an index for each query that there is from now on, of those
tuples that it can match anything of, without the indexes of the others, and without tuples that no query is left for.

A query's results are the pairs whose later tuple came after its start. Where only new tuples probe, this is so by
itself. In a chain two stored tuples may still be on their way to each other, while others have met already; so a stored
tuple is marked for the query, and two that are marked are no result.

Cost: every stored tuple is read and written once, and indexed for the queries that are started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from streamjoin.engine.operator import Operator
from streamjoin.engine.starting import Start, start_of
from streamjoin.engine.state import Rewritten, Table, UnitState
from streamjoin.flow.block import QUERIES, TS, has_bit
from streamjoin.index.chain import Open, Save
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import Segment, SegmentInfo, build
from streamjoin.index.shared import index_columns, view_of
from streamjoin.index.view import CELL, EMPTY, KEY, NUMBER, RANK, View, column_of, coordinate_column
from streamjoin.intake.selection import bits_of, select_by
from streamjoin.plan.expression import conjunction
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.predicate import any_null
from streamjoin.plan.sharing import SharedJoin
from streamjoin.plan.window import R, S


@dataclass(frozen=True)
class Requery:
    """From the queries that the state is of to those that it is to be of.

    Args:
        operator: the same for both.
        earlier: the plan so far.
        plan: the plan from now on; the queries in it that `earlier` has not are among its `started`.
    """

    operator: Operator
    earlier: SharedJoin
    plan: SharedJoin

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The earlier numbers of queries."""
        return {name: number for number, name in enumerate(self.earlier.names_of_queries)}

    @cached_property
    def _renumbered(self) -> dict[int, int]:
        """The numbers of queries that stay: earlier -> from now on."""
        return {
            self._numbers[name]: number
            for number, name in enumerate(self.plan.names_of_queries)
            if name in self._numbers
        }

    @cached_property
    def _starts(self) -> dict[tuple[str, int], Start]:
        """How new queries start on each side."""
        return {
            (name, side): start_of(query, self.earlier, side)
            for name, query in zip(self.plan.names_of_queries, self.plan.queries, strict=True)
            if name not in self._numbers
            for side in (R, S)
        }

    def state(self, before: UnitState, open_segment: Open, save_segment: Save) -> UnitState:
        """A unit's state with the new indexes.

        Raises:
            StateError: a segment cannot be read.
        """
        tables: dict[str, Table] = {}
        files: dict[str, str | None] = {}
        for name, table in before.tables.items():
            if table.input is None:
                tables[name] = table
                continue
            made = [self._segment(table.input, info, open_segment, save_segment) for info in table.segments]
            files |= {
                info.file: now.file if now is not None else None for info, now in zip(table.segments, made, strict=True)
            }
            tables[name] = replace(table, segments=tuple(now for now in made if now is not None))
        return self.operator.requeried(replace(before, tables=tables), Rewritten(files, self._renumbered))

    def _segment(self, side: int, info: SegmentInfo, open_segment: Open, save_segment: Save) -> SegmentInfo | None:
        """A segment's tuples as they are wanted from now on; None where nobody wants any."""
        plan, rows = self.plan, open_segment(info)
        bits = rows.column(QUERIES).to_numpy() if QUERIES in rows.schema.names else None
        members = list(self._members(side, rows, bits))
        by_any = np.logical_or.reduce(members)
        wanted = np.nonzero(by_any)[0]
        if not wanted.size:
            return None
        views = list(self._views(side, rows, info, members))
        queries = None
        if plan.bits > 1:
            queries = bits_of([*members, *self._before(rows.num_rows, bits)], plan.bits)[wanted]
            places = np.cumsum(by_any) - 1
            index: dict[str, np.ndarray] = {}
            for query, view in enumerate(views):
                layout = layout_of(plan.queries[query], side)
                index |= index_columns(query, layout, replace(view, order=places[view.order]), wanted.size)
        else:
            (view,) = views
            wanted = view.order
            index = {CELL: view.cells, KEY: EMPTY if layout_of(plan.queries[0], side).window_is_key else view.keys}
        ts_us, ranks, numbers = (
            rows.column(name).to_numpy()[wanted] if name in rows.schema.names else None for name in (TS, RANK, NUMBER)
        )
        assert ts_us is not None
        kept = rows.select(list(self.operator.stored_columns(plan, side))).take(pa.array(wanted))
        sizes = tuple(view.size for view in views) if queries is not None else ()
        batch, made = build(kept, ts_us, ranks, index, numbers, queries, sizes)
        return save_segment(batch, replace(made, first=info.first))

    def _views(self, side: int, rows: pa.RecordBatch, info: SegmentInfo, members: list[np.ndarray]) -> Iterator[View]:
        """For each query, its index over these rows; what a query has indexed before stays in its order."""
        earlier = Segment.attach(rows, info, [layout_of(query, side) for query in self.earlier.queries])
        for name, query, mine in zip(self.plan.names_of_queries, self.plan.queries, members, strict=True):
            if name in self._numbers:
                view = earlier.views[self._numbers[name]]
                yield view if view.order.size else replace(view, order=np.arange(view.size))
                continue
            yield self._started(name, query, side, rows, np.nonzero(mine)[0], earlier.views)

    def _started(
        self, name: str, query: JoinPlan, side: int, rows: pa.RecordBatch, chosen: np.ndarray, views: Sequence[View]
    ) -> View:
        """The index of a new query over some rows; what an earlier one has computed is taken from it."""
        layout, start = layout_of(query, side), self._starts[name, side]
        taken = pa.array(chosen)
        columns = {(query.names[side], read): rows.column(read).take(taken) for read in start.reads}
        cells, keys = (
            views[donor].by_row(values, rows.num_rows)[chosen] if donor is not None else compute(columns, chosen.size)
            for donor, values, compute in (
                (start.cells, "cells", layout.stored_cells),
                (start.order, "keys", layout.stored_keys),
            )
        )
        coordinate = coordinate_column(layout)
        at = column_of(rows, coordinate)[chosen] if coordinate else EMPTY
        return view_of(cells, at if layout.window_is_key else keys, at, chosen)

    def _members(self, side: int, rows: pa.RecordBatch, bits: np.ndarray | None) -> Iterator[np.ndarray]:
        """For each query, which tuples are for it."""
        for name, query in zip(self.plan.names_of_queries, self.plan.queries, strict=True):
            if name in self._numbers:
                yield _members(rows, bits, self._numbers[name])
                continue
            start = self._starts[name, side]
            base = _members(rows, bits, start.base)
            chosen = np.nonzero(base)[0]
            some = rows if chosen.size == rows.num_rows else rows.take(pa.array(chosen))
            selection = conjunction(start.selection)
            base[chosen] = select_by(query, side, some, selection, any_null(start.keys)).joinable
            yield base

    def _before(self, rows: int, bits: np.ndarray | None) -> Iterator[np.ndarray]:
        """For each query that was started later, which tuples were there before it."""
        for number, name in enumerate(self.plan.names_of_queries):
            if self.plan.before_bit(number) is None:
                continue
            if name not in self._numbers:
                yield np.ones(rows, bool)
                continue
            bit = self.earlier.before_bit(self._numbers[name])
            assert bits is not None and bit is not None
            yield has_bit(bits, bit)


def _members(rows: pa.RecordBatch, bits: np.ndarray | None, query: int | None) -> np.ndarray:
    """The tuples of an earlier query, bool; all of them where there was one query, or where none is asked for."""
    return np.ones(rows.num_rows, bool) if bits is None or query is None else has_bit(bits, query)
