"""Plans with groups: the stage that makes them, behind the joins of a query or behind its only stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamjoin.plan.aggregate import AggregatePlan, Groups, Hopping
from streamjoin.plan.expression import Column, Expression, Literal, conjunction
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.plan.stages import Cascade, Flow, Stage
from streamjoin.plan.types import INT64
from streamjoin.plan.window import FullHistory, R, S, TimeWindow

Select = tuple[tuple[str, Expression], ...]


def feeding_select(groups: Groups) -> Select:
    """What a join gives to the stage that makes groups of it: each value that is read, and something if none is."""
    select: dict[str, Expression] = {}
    for place, value in enumerate(groups.values):
        name = str(value) if isinstance(value, Column) else f"value {place}"
        while name in select:  # names with dots in them may come out alike
            name += "."
        select[name] = value
    return tuple(select.items()) or (("one", Literal(1, INT64)),)


def joined_groups(joined: JoinPlan | Cascade, conditions: Sequence[Expression], groups: Groups) -> Cascade:
    """Groups of what a join gives.

    Args:
        joined: with `feeding_select` as its SELECT list.
        conditions: of a join of two streams, what it checks.
    """
    stages = joined.stages if isinstance(joined, Cascade) else (Stage(0, (R, S), joined, tuple(conditions)),)
    last = stages[-1].plan
    assert isinstance(last, JoinPlan)
    names = joined.names
    flow = StreamSchema(f"({', '.join(names)})", last.output, ARRIVAL)
    columns = {value: Column(flow.name, name, value.type) for name, value in joined.select}
    plan = _plan(flow, flow.name, groups, columns, last.predicates, joined.text)
    stage = Stage(len(stages), (Flow(len(stages) - 1),), plan)
    feeding = replace(stages[-1], plan=replace(last, feeds=True))
    made = (*stages[:-1], feeding, stage)
    if isinstance(joined, Cascade):
        return replace(joined, stages=made)
    return Cascade(joined.streams, names, made, joined.window, joined.text, joined.select)


def stream_groups(
    stream: StreamSchema,
    name: str,
    conditions: Sequence[Expression],
    groups: Groups,
    predicates: Mapping[str, Callable[..., Any]],
    text: str,
) -> Cascade:
    """Groups of one stream.

    Args:
        name: what the query calls it.
        conditions: which of its rows are looked at.
    """
    plan = replace(_plan(stream, name, groups, {}, predicates, text), selection=conjunction(conditions))
    windows = groups.windows
    window = TimeWindow(windows.size_us, windows.size_us) if isinstance(windows, Hopping) else FullHistory()
    stage = Stage(0, (0,), plan, tuple(conditions))
    return Cascade((stream,), (name,), (stage,), window, text, feeding_select(groups))


def _plan(
    stream: StreamSchema,
    name: str,
    groups: Groups,
    columns: Mapping[Expression, Column],
    predicates: Mapping[str, Callable[..., Any]],
    text: str,
) -> AggregatePlan:
    """The last stage; `columns` has the values that its input has computed."""
    keys = tuple(replace(key, value=columns.get(key.value, key.value)) for key in groups.keys)
    parts = tuple(replace(part, args=tuple(columns.get(arg, arg) for arg in part.args)) for part in groups.parts)
    windows = groups.windows
    if not isinstance(windows, Hopping) and windows.ends is not None:
        windows = replace(windows, ends=columns.get(windows.ends, windows.ends))
    return AggregatePlan(
        (stream,), (name,), keys, windows, parts, groups.aggregates, groups.select, groups.having,
        predicates=predicates, text=text,
    )  # fmt: skip
