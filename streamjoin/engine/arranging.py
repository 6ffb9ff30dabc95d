"""Putting results in the order that was asked for; see `plan/ordering.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamjoin.index.kernels import radix_order
from streamjoin.plan.ordering import NEWER, OLDER, Ordering
from streamjoin.plan.window import R

ROWS_A_BATCH = 1 << 16


def places(side: int, positions: np.ndarray, arrived: tuple[int, int], *, alternate: bool) -> np.ndarray:
    """Places of tuples in the sequence of a batch.

    Args:
        positions: places among the tuples of their own stream, int64 of shape (n,).
        arrived: how many tuples R and S brought in the batch.
        alternate: the streams take turns, R first; otherwise all of R comes before all of S.
    """
    if not alternate:
        return positions if side == R else positions + arrived[R]
    return positions + (np.minimum(positions, arrived[1]) if side == R else np.minimum(positions + 1, arrived[R]))


def arranged(ordering: Ordering, newer: np.ndarray, older: np.ndarray) -> np.ndarray:
    """Row numbers in the promised order.

    One sequence serves the results of both streams, so `inner` and `total` come out alike.

    Cost: a counting pass over the rows for each byte that the numbers differ in.
    """
    order = np.arange(newer.size, dtype=np.int64)
    if ordering is not Ordering.OUTER:
        order = radix_order(older, order)
    return radix_order(newer, order)


def in_order(
    ordering: Ordering, batches: Sequence[pa.RecordBatch], names: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Results that carry their sequence numbers, in the promised order.

    Args:
        names: the columns to give; None for all.
    Cost: all rows are in memory.
    """
    if not batches:
        return
    rows = pa.concat_batches(batches)
    del batches
    order = arranged(ordering, rows.column(NEWER).to_numpy(), rows.column(OLDER).to_numpy())
    rows = rows if names is None else rows.select(list(names))
    for start in range(0, order.size, ROWS_A_BATCH):
        yield rows.take(pa.array(order[start : start + ROWS_A_BATCH]))
