"""The last row of each group, where results are groups that change: at a snapshot, or as of a moment.

Rows of a group have times that rise, so its last row is the one with the latest time, in whichever block it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.plan.changing import DELETE, OPERATION
from streamjoin.plan.join import RESULT_TIME

Holds = Callable[[int], None]
"""Told how many bytes of last values are held for an answer; raises where they are too many."""
_HELD_ROWS = 1 << 18
_HELD_BYTES = 64 << 20
_PLACE = "__place"


def latest(
    batches: Iterable[pa.RecordBatch],
    identity: Sequence[str],
    until_us: int | None = None,
    holds: Holds | None = None,
) -> pa.Table | None:
    """The last row of each group, ordered by their columns of `identity`; None without rows.

    Args:
        batches: stored rows, in any order.
        until_us: rows of later times do not count; None for all.
        holds: told how many bytes the last rows so far have; it raises where they are too many.
    Cost: memory grows with the number of groups, however often they change.
    """
    held: list[pa.RecordBatch] = []
    rows = kept = size = kept_bytes = 0
    for batch in batches:
        if until_us is not None:
            batch = batch.filter(pa.array(batch.column(RESULT_TIME).to_numpy() <= until_us))
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows > max(_HELD_ROWS, 2 * kept) or size > max(_HELD_BYTES, 2 * kept_bytes):
            held = _last_rows(pa.Table.from_batches(held), identity).to_batches()
            rows = kept = sum(part.num_rows for part in held)
            size = kept_bytes = sum(part.nbytes for part in held)
            if holds is not None:
                holds(size)
    if not held:
        return None
    found = _last_rows(pa.Table.from_batches(held), identity)
    if holds is not None:
        holds(found.nbytes)
    return found.take(pc.sort_indices(found, sort_keys=[(name, "ascending") for name in identity]))


def living(rows: pa.Table) -> pa.Table:
    """Without the groups that are no more."""
    return rows.filter(pc.not_equal(rows.column(OPERATION), DELETE))


def _last_rows(rows: pa.Table, identity: Sequence[str]) -> pa.Table:
    order = np.argsort(rows.column(RESULT_TIME).to_numpy(), kind="stable")
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    placed = rows.select(list(identity)).append_column(_PLACE, pa.array(places))
    last = placed.group_by(list(identity)).aggregate([(_PLACE, "max")])
    return rows.take(pa.array(order[np.sort(last.column(f"{_PLACE}_max").to_numpy())]))
