"""Which columns of a stream a join has to carry: those that intake sends on, and those that units store."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from streamjoin.index.layout import layout_of
from streamjoin.plan.expression import Expression, columns_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.sharing import Plan


def stored_columns(plan: Plan, side: int) -> tuple[str, ...]:
    """The columns of a side that any query's results and rechecks read, in the stream's order."""
    return _in_order(plan, side, {name for query in plan.queries for name in _stored(query, side)})


def routed_columns(plan: Plan, side: int) -> tuple[str, ...]:
    """The columns of a side that leave intake: the stored ones and those that keys are computed from, of any query."""
    wanted = set(stored_columns(plan, side))
    for query in plan.queries:
        wanted |= _read([query.predicate.whole], query.names[side])
    return _in_order(plan, side, wanted)


def _stored(query: JoinPlan, side: int) -> set[str]:
    expressions = [expression for _, expression in query.select]
    if query.keyed and query.result_key is not None:
        expressions.append(query.result_key)
    for stored in (0, 1):
        expressions += layout_of(query, stored).recheck
    return _read(expressions, query.names[side])


def _read(expressions: Iterable[Expression], stream: str) -> set[str]:
    return {name for expression in expressions for of, name in columns_of(expression) if of == stream}


def _in_order(plan: Plan, side: int, wanted: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in plan.streams[side].columns.names if name in wanted)
