"""The rows of a stream, as far as a stage that stores them can give them back to a query that starts later.

A stage stores the columns that its queries' results and rechecks read. A key that decides by itself is not among them,
but what it is found by is a number that it can be made of again: the cell of one equal key, the key of a range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import pyarrow as pa

from streamjoin.engine.operator import Operator
from streamjoin.engine.starting import Asked, asked_of
from streamjoin.engine.state import UnitState
from streamjoin.flow.block import QUERIES, TS, has_bit
from streamjoin.index.chain import Open
from streamjoin.index.keys import is_whole, value_of
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import Segment, SegmentInfo
from streamjoin.plan.decimals import widened
from streamjoin.plan.expression import Column, Expression
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Stage
from streamjoin.plan.window import CountWindow, FullHistory, TimeWindow


@dataclass(frozen=True)
class Giver:
    """One query of a stage, for whose sake tuples of a side are stored.

    Args:
        query: its number among those of the stage.
    """

    stage: Stage
    operator: Operator
    side: int
    query: int

    @property
    def join(self) -> JoinPlan:
        """The query's join."""
        plan = self.stage.plan.queries[self.query]
        assert isinstance(plan, JoinPlan)
        return plan

    @cached_property
    def keys(self) -> Mapping[str, str]:
        """The columns that are not stored but can be made of the index: by name, of its `cells` or its `keys`."""
        layout = layout_of(self.join, self.side)
        found: dict[str, str] = {}
        if len(layout.equal) == 1 and (name := _whole(layout.equal[0][0])) is not None:
            found[name] = "cells"
        if layout.key is not None and (name := _whole(layout.key.keys[0])) is not None:
            found.setdefault(name, "keys")
        return {name: made_of for name, made_of in found.items() if name not in self._stored}

    @cached_property
    def _stored(self) -> tuple[str, ...]:
        return self.operator.stored_columns(cast(Pairs, self.stage.plan), self.side)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that its rows have."""
        return frozenset((*self._stored, *self.keys))

    @property
    def asked(self) -> frozenset[Asked]:
        """What is true of all its rows, in its own name for the stream."""
        return frozenset(asked_of(self.join, self.side))

    def kept_us(self) -> int | None:
        """How far behind the other side's mark it still has every row; None if it never lets any go."""
        window = self.stage.plan.window
        assert isinstance(window, TimeWindow | FullHistory)
        return window.keeps_us(self.side) if isinstance(window, TimeWindow) else None

    def since_us(self, state: UnitState) -> int | None:
        """From which event time on it has every row; None if it has let none go yet."""
        mark_us, kept_us = state.clock(1 - self.side).mark_us, self.kept_us()
        return None if mark_us is None or kept_us is None else mark_us - kept_us

    def rows(self, states: Mapping[int, UnitState], open_segment: Callable[[int], Open]) -> Iterator[pa.RecordBatch]:
        """Its rows, each once: columns by the stream's names, and their event times as `TS`.

        Args:
            states: of the stage's units, by number.
            open_segment: of a unit.
        """
        stream = self.join.streams[self.side]
        layouts = [layout_of(one, self.side) for one in self.stage.plan.queries if isinstance(one, JoinPlan)]
        for unit in self.operator.units:
            if self.side not in unit.counts:  # of several units that store a tuple one counts it
                continue
            for info in states[unit.number].tuples(self.side):
                rows = open_segment(unit.number)(info)
                mine = self._mine(rows, info)
                view = Segment.attach(rows, info, layouts).views[self.query] if self.keys else None
                columns = {name: widened(rows.column(name).take(mine)) for name in self._stored}
                for name, made_of in self.keys.items():
                    assert view is not None
                    at = view.by_row(made_of, rows.num_rows)[mine.to_numpy()]
                    columns[name] = value_of(at, stream.columns.field(name).type)
                columns[TS] = rows.column(TS).take(mine)
                yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def _mine(self, rows: pa.RecordBatch, info: SegmentInfo) -> pa.Array:
        if QUERIES not in rows.schema.names:
            return pa.array(np.arange(rows.num_rows))
        return pa.array(np.nonzero(has_bit(rows.column(QUERIES).to_numpy(), self.query))[0])


def givers(stage: Stage, operator: Operator, side: int) -> Iterator[Giver]:
    """The queries of a stage that can give back the tuples of a side; none if it stores none, or in another way."""
    plan = stage.plan
    joins = all(isinstance(query, JoinPlan) for query in plan.queries)
    if not joins or stage.table is not None or stage.asof is not None:
        return
    if isinstance(plan.window, CountWindow) or operator.capabilities.hands_on or operator.capabilities.adapts:
        return
    for query in range(len(plan.queries)):
        yield Giver(stage, operator, side, query)


def _whole(key: Expression) -> str | None:
    """The column that a key is, if its values can be made of keys."""
    return key.name if isinstance(key, Column) and is_whole(key.type) else None
