"""Joins whose results are the numbers of the rows that match, for those who look at these rows afterwards."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa

from streamjoin.plan.expression import Column, Literal, columns_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import looked_into
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.schema import VERSION, StreamSchema
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan, asof_stages, is_divided
from streamjoin.plan.tree import cascade
from streamjoin.plan.window import CountWindow, R, S
from streamjoin.spec.job import read_columns

_NEVER_LATE_US = 1 << 62


def of_numbers(plan: Plan) -> Plan:
    """The same join with the numbers of rows as its only result columns: the last column of each stream.

    Behind them stands the version of each relation that is asked for it, which rows without a match have too. Groups
    are of many rows, so they are computed as they are.
    """
    assert not is_divided(plan)  # whose parts are looked at one by one
    if plan.groups:
        return plan
    if (pair := plan.pair) is None:
        return _stages_of_numbers(plan)
    streams = (_numbered(pair.streams[R], _matched(pair, R)), _numbered(pair.streams[S], _matched(pair, S)))
    return pair.asking([_query_of_numbers(query, streams) for query in pair.queries])


def _stages_of_numbers(plan: Plan) -> Plan:
    matched = {pair for stage in plan.stages for condition in stage.conditions for pair in columns_of(condition)}
    for stage in asof_stages(plan):
        assert isinstance(stage.plan, JoinPlan) and stage.asof is not None
        matched |= {(stage.plan.names[S], column) for column in stage.asof.values}
    names = (*plan.names, *plan.relation_names)
    inputs = [
        _numbered(one, {one.time, *(column for of, column in matched if of == name)})
        for name, one in zip(names, (*plan.streams, *plan.relations), strict=True)
    ]
    hidden = looked_into(plan.tree) if plan.tree is not None else frozenset()
    numbers = [
        (
            f"row of {name}",
            Literal(None, pa.int64())
            if plan.inputs.index(name) in hidden
            else Column(name, one.own_columns.names[-1], pa.int64()),
        )
        for name, one in zip(names, inputs, strict=True)
    ]
    numbers += [
        (version_name(name), Column(name, VERSION, pa.int64()))
        for name, one in zip(names, inputs, strict=True)
        if one.has_version and plan.inputs.index(name) not in hidden
    ]
    common = partial(JoinPlan, index=plan.index, predicates=plan.predicates)
    assert not isinstance(plan.window, CountWindow)
    given = dict(zip(names, inputs, strict=True))
    in_from = [given[name] for name in plan.inputs]
    return cascade(in_from, plan.inputs, plan.where, numbers, plan.window, common, tree=plan.tree)


def version_name(relation: str) -> str:
    """What the version of a relation is called among the numbers of its rows."""
    return f"version of {relation}"


def _matched(plan: Pairs, side: int) -> set[str]:
    """The columns that tuples are matched by."""
    return {name for query in plan.queries for name in read_columns(_without_results(query), side)}


def _numbered(stream: StreamSchema, matched: set[str]) -> StreamSchema:
    """A stream with these columns, and a number for each row."""
    number = "row"
    while number in stream.columns.names:
        number += "_"
    columns = [column for column in stream.own_columns if column.name in matched]
    # Where no row is late nothing expires, so late tuples meet all others.
    numbered = replace(
        stream,
        columns=pa.schema([*columns, pa.field(number, pa.int64())]),
        delay_us=_NEVER_LATE_US,
        idle_us=None,
        key=(),
    )
    return numbered.versioned() if stream.has_version else numbered


def _without_results(query: JoinPlan) -> JoinPlan:
    return replace(query, select=(), keyed=False, ordering=Ordering.NONE)


def _query_of_numbers(query: JoinPlan, streams: tuple[StreamSchema, StreamSchema]) -> JoinPlan:
    numbers = (Column(query.names[side], streams[side].columns.names[-1], pa.int64()) for side in (R, S))
    return replace(_without_results(query), streams=streams, select=tuple(zip("rs", numbers, strict=True)))
