"""Which tuples a query can match anything of: those its selection accepts, with all keys there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamjoin.plan.asof import ENDS
from streamjoin.plan.evaluation import filter_mask
from streamjoin.plan.expression import TRUE, Expression, columns_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.predicate import any_null, keys_of
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.stages import Query
from streamjoin.plan.window import R, S


@dataclass(frozen=True, slots=True)
class Selected:
    """What one query makes of n rows.

    Args:
        selected: bool of shape (n,), where its selection holds.
        joinable: and no key is NULL, nor is there anything else by which the row is unmatched in any case.
    """

    selected: np.ndarray
    joinable: np.ndarray


def select(query: Query, side: int, rows: pa.RecordBatch) -> Selected:
    """Apply a query's selection of `side`, and look for NULL keys in what is left."""
    predicate = query.predicate
    hopeless = any_null(query.keys(side) if isinstance(query, RoundPlan) else keys_of(predicate, side))
    if isinstance(query, JoinPlan) and query.asof is not None and query.asof.keeps and side == R:
        hopeless = None  # it gets no row of S, and is given all the same
    found = select_by(query, side, rows, predicate.selections[side], hopeless)
    if (eligible := predicate.eligible[side]) == TRUE:
        return found
    columns = {(query.names[side], name): rows.column(name) for name in rows.schema.names}
    return Selected(found.selected, found.joinable & filter_mask(eligible, columns, rows.num_rows, query.predicates))


def select_by(
    query: Query, side: int, rows: pa.RecordBatch, selection: Expression, hopeless: Expression | None
) -> Selected:
    """The same with a part of what a query asks of a side.

    Args:
        hopeless: where this holds a key is NULL; None where none is looked at.
    """
    name, count = query.names[side], rows.num_rows
    columns = {(name, column): rows.column(column) for column in rows.schema.names}
    selected = np.ones(count, bool)
    if selection != TRUE:
        selected = filter_mask(selection, columns, count, query.predicates)
    if hopeless is None:
        return Selected(selected, selected)
    # What was not selected is not looked at: its keys may be none that can be computed.
    chosen = None if selected.all() else np.nonzero(selected)[0]
    keys = {pair: columns[pair] for pair in columns_of(hopeless)}
    if chosen is None:
        return Selected(selected, ~filter_mask(hopeless, keys, count))
    taken = pa.array(chosen)
    null = filter_mask(hopeless, {pair: values.take(taken) for pair, values in keys.items()}, chosen.size)
    joinable = selected.copy()
    joinable[chosen[null]] = False
    return Selected(selected, joinable)


def with_ends(query: Query, side: int, sent: pa.RecordBatch, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as they are sent on, which say whether they end their key, if those of the side may.

    Args:
        rows: the same with all their columns.
    """
    if side != S or not isinstance(query, JoinPlan) or query.asof is None or not query.asof.values:
        return sent
    ends = np.ones(rows.num_rows, bool)
    for name in query.asof.values:
        ends &= np.asarray(rows.column(name).is_null())
    return sent.append_column(ENDS, pa.array(ends))


def bits_of(masks: Sequence[np.ndarray], bits: int) -> np.ndarray:
    """Truth values as the first of so many bits, in the smallest unsigned integers that hold them, of shape (n,)."""
    kind = np.min_scalar_type((1 << bits) - 1)
    values = np.zeros(masks[0].size, kind)
    for number, mask in enumerate(masks):
        values |= mask.astype(kind) << kind.type(number)
    return values
