"""Which columns of a stream a join has to carry, and how: those that intake sends on, and those that units store."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow as pa

from streamjoin.index.layout import layout_of
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.decimals import carried, carried_type
from streamjoin.plan.expression import Expression, columns_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import StagePlan
from streamjoin.plan.window import R, S


def stored_columns(plan: Pairs, side: int) -> tuple[str, ...]:
    """The columns of a side that any query's results and rechecks read, in the stream's order."""
    return _in_order(plan, side, {name for query in plan.queries for name in _stored(query, side)})


def routed_columns(plan: StagePlan, side: int) -> tuple[str, ...]:
    """The columns of a side that leave intake: the stored ones and those that keys are computed from, of any query."""
    if isinstance(plan, AggregatePlan):
        return plan.reads
    if isinstance(plan, RoundPlan):
        return _of_round(plan, side)
    wanted = set(stored_columns(plan, side))
    for query in plan.queries:
        wanted |= _read([query.predicate.whole], query.names[side])
    return _in_order(plan, side, wanted)


def kept_columns(plan: RoundPlan, stream: int) -> tuple[str, ...]:
    """The columns that a ring stores of a stream: those that any of its joins reads."""
    return _in_order(plan.met_as_s(stream)[0], S, {name for join in plan.met_as_s(stream) for name in _stored(join, S)})


def _of_round(plan: RoundPlan, side: int) -> tuple[str, ...]:
    """What partial results carry; tuples that come in, also what is stored of them."""
    join = plan.steps[side][plan.number]
    wanted = set(routed_columns(join, R))
    for kept in plan.met_as_s(side) if plan.is_first else ():
        wanted |= set(routed_columns(kept, S))
    return _in_order(join, R, wanted)


def carried_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with each column as it is carried; segments that an earlier version wrote may have others."""
    if all(kind == carried_type(kind) for kind in rows.schema.types):
        return rows
    return pa.RecordBatch.from_arrays([carried(column) for column in rows.columns], rows.schema.names)


def _stored(query: JoinPlan, side: int) -> set[str]:
    expressions = [expression for _, expression in query.select]
    if query.keyed and (key := query.key_of(side if side in query.kind.preserved else R)) is not None:
        expressions += [key, query.result_key or key]
    expressions.append(query.filter)
    if query.asof is not None and query.asof.at is not None:
        expressions.append(query.asof.at)
    if side in query.kind.decided and (until := query.untils[side]) is not None:
        expressions.append(until)
    for stored in (0, 1):
        expressions += layout_of(query, stored).recheck
    return _read(expressions, query.names[side])


def _read(expressions: Iterable[Expression], stream: str) -> set[str]:
    return {name for expression in expressions for of, name in columns_of(expression) if of == stream}


def _in_order(plan: Pairs, side: int, wanted: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in plan.streams[side].columns.names if name in wanted)
