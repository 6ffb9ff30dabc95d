"""From the views of windows to result rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamjoin.engine.emit import ROWS_A_BATCH
from streamjoin.flow.block import Block
from streamjoin.flow.portions import slices
from streamjoin.operators.aggregate.values import value
from streamjoin.operators.aggregate.views import columns_of_parts
from streamjoin.plan.aggregate import WINDOW_END, WINDOW_START, AggregatePlan, Hopping
from streamjoin.plan.evaluation import evaluate, filter_mask
from streamjoin.plan.expression import TRUE
from streamjoin.plan.types import TIMESTAMP
from streamjoin.plan.values import Columns


def results_of(plan: AggregatePlan, views: Block) -> Iterator[pa.RecordBatch]:
    """Result rows in parts of bounded size.

    Args:
        views: one for each group and window; their times are the starts of windows.
    """
    for first, past in slices(views.rows, ROWS_A_BATCH):
        found = _results(plan, views.slice(first, past))
        if found.num_rows:
            yield found


def _results(plan: AggregatePlan, views: Block) -> pa.RecordBatch:
    assert isinstance(plan.windows, Hopping)
    kept, columns = chosen(plan, views)
    starts = views.ts_us[kept]
    arrays = [evaluate(expression, columns, kept.size, plan.predicates) for _, expression in plan.select]
    return _delivered(plan, arrays, columns, starts + (plan.windows.size_us - 1))


def chosen(plan: AggregatePlan, views: Block) -> tuple[np.ndarray, Columns]:
    """The numbers of the views that HAVING lets through, and what expressions over groups read of these."""
    columns = _columns(plan, views)
    if plan.having == TRUE:
        return np.arange(len(views), dtype=np.int64), columns
    kept = np.nonzero(filter_mask(plan.having, columns, len(views), plan.predicates))[0]
    return kept, {name: values.take(pa.array(kept)) for name, values in columns.items()}


def changes_of(
    plan: AggregatePlan, operation: str, arrays: Sequence[pa.Array], columns: Columns, at_us: int
) -> pa.RecordBatch:
    """Rows of groups that change.

    Args:
        arrays: of the SELECT list.
        columns: what expressions over groups read.
        at_us: as of when they are.
    """
    rows = len(arrays[0])
    at = np.full(rows, at_us, np.int64)
    listed = [*arrays, pa.array([operation] * rows, pa.string()), pa.array(at).view(TIMESTAMP)]
    return _delivered(plan, listed, columns, at)


def rows_of(plan: AggregatePlan, views: Block) -> Iterator[pa.RecordBatch]:
    """Rows whose time is that of their view, in parts of bounded size."""
    for first, past in slices(views.rows, ROWS_A_BATCH):
        some = views.slice(first, past)
        columns = _columns(plan, some)
        arrays = [evaluate(expression, columns, len(some), plan.predicates) for _, expression in plan.select]
        yield _delivered(plan, arrays, columns, some.ts_us)


def _delivered(plan: AggregatePlan, arrays: list[pa.Array], columns: Columns, times: np.ndarray) -> pa.RecordBatch:
    if plan.keyed:
        arrays = [*arrays, pa.array(times)]
        if plan.result_key is not None:
            arrays.append(evaluate(plan.result_key, columns, times.size))
    return pa.RecordBatch.from_arrays(arrays, schema=plan.delivered)


def _columns(plan: AggregatePlan, views: Block) -> Columns:
    """What expressions over groups read."""
    starts = views.ts_us
    columns = {(key.shown.stream, key.shown.name): views.rows.column(place) for place, key in enumerate(plan.keys)}
    if isinstance(plan.windows, Hopping):
        columns[WINDOW_START.stream, WINDOW_START.name] = pa.array(starts).view(TIMESTAMP)
        columns[WINDOW_END.stream, WINDOW_END.name] = pa.array(starts + plan.windows.size_us).view(TIMESTAMP)
    parts = columns_of_parts(plan, views)
    for aggregate in plan.aggregates:
        own = [column for number in aggregate.parts for column in parts[number]]
        columns[aggregate.result.stream, aggregate.result.name] = value(aggregate, own)
    return columns
