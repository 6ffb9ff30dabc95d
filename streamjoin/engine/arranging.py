"""Putting results in the order that was asked for; see `plan/ordering.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamjoin.flow.portions import cuts, offsets_of, sizes, texts_of, together
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
    runs = [pa.concat_batches(batches[first:past]) for first, past in together([rows.nbytes for rows in batches])]
    del batches
    newer, older = (np.concatenate([rows.column(name).to_numpy() for rows in runs]) for name in (NEWER, OLDER))
    order = arranged(ordering, newer, older)
    runs = runs if names is None else [rows.select(list(names)) for rows in runs]
    starts = np.cumsum([0, *(rows.num_rows for rows in runs)])
    for start in range(0, order.size, ROWS_A_BATCH):
        at = order[start : start + ROWS_A_BATCH]
        run = np.searchsorted(starts, at, side="right") - 1 if len(runs) > 1 else np.zeros(at.size, np.int64)
        of_each = np.zeros(at.size, np.int64)
        for number, rows in enumerate(runs):
            mine = np.nonzero(run == number)[0]
            for values in texts_of(rows):
                of_each[mine] += sizes(offsets_of(values), at[mine] - starts[number])
        for first, past in cuts(of_each):
            yield _taken(runs, run[first:past], (at - starts[run])[first:past])


def _taken(runs: Sequence[pa.RecordBatch], run: np.ndarray, rows: np.ndarray) -> pa.RecordBatch:
    """Rows of several batches.

    Args:
        run, rows: of which batch each is, and its place there, int64 of shape (n,).
    """
    places = [np.nonzero(run == number)[0] for number in range(len(runs))]
    there = [number for number, mine in enumerate(places) if mine.size]
    if len(there) == 1:
        return runs[there[0]].take(pa.array(rows))
    parts = [runs[number].take(pa.array(rows[places[number]])) for number in there]
    at = np.empty(run.size, np.int64)
    at[np.concatenate([places[number] for number in there])] = np.arange(run.size)
    return pa.concat_batches(parts).take(pa.array(at))
