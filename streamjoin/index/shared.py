"""Tuples that several queries share: each is stored once, and each query has an index of its own over them.

    rows       stored columns, event time, ...   in the order in which the tuples came
    query 0    __row.0  __cell.0  __key.0         sorted by (cell, key); the first `members[0]` entries
    query 1    __row.1  ...

An index lists only the tuples that its query can match something of. Its columns stand beside the tuples in the same
record batch, filled up with zeros, so a segment stays one file, whoever keeps it or hands it on. Source: ESJ, "Join
engine": the instances of a worker share its tuples, and each has its own indexes.

Cost: 8 bytes a tuple and query for the row number, and 8 for each of cell, key and coordinate that the layout has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamjoin.flow.block import members_of
from streamjoin.index.layout import IndexLayout, sorted_by
from streamjoin.index.view import CELL, EMPTY, KEY, View, column_of, coordinate_column
from streamjoin.plan.values import Columns

_ROW = "__row"
_COORDINATE = "__coordinate"


def shared_view(rows: pa.RecordBatch, query: int, members: int, layout: IndexLayout) -> View:
    """The view of a query, without copying."""
    order, cells, keys, coordinates = (
        column_of(rows, f"{name}.{query}")[:members] for name in (_ROW, CELL, KEY, _COORDINATE)
    )
    return View(cells, keys, keys if layout.window_is_key else coordinates, order, members)


def index_rows(
    layouts: Sequence[IndexLayout], columns: Sequence[Columns], coordinates: np.ndarray, queries: np.ndarray
) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
    """The indexes of a block of n tuples.

    Args:
        layouts, columns: each query's layout, and the block's columns as its expressions read them.
        coordinates: window coordinates, int64 of shape (n,); empty where no query has a window.
        queries: see `Block`.
    Returns:
        (column name -> int64 of shape (n,), how many tuples are in each index).
    """
    index: dict[str, np.ndarray] = {}
    members: list[int] = []
    for query, (layout, mine) in enumerate(zip(layouts, columns, strict=True)):
        chosen = members_of(queries, query)
        assert chosen is not None
        rows = pa.array(chosen)
        known = {name: values.take(rows) for name, values in mine.items() if name in layout.stored_reads}
        at = coordinates[chosen] if coordinate_column(layout) else EMPTY
        keys = at if layout.window_is_key else layout.stored_keys(known, chosen.size)
        view = view_of(layout.stored_cells(known, chosen.size), keys, at, chosen)
        index |= index_columns(query, layout, view, queries.size)
        members.append(chosen.size)
    return index, tuple(members)


def view_of(cells: np.ndarray, keys: np.ndarray, coordinates: np.ndarray, rows: np.ndarray) -> View:
    """The index over n tuples, in whatever order they are given.

    Args:
        cells, keys, coordinates: int64 of shape (n,), empty where the layout has none.
        rows: row numbers, int64 of shape (n,).
    """
    order = sorted_by(cells, keys, rows.size)
    cells, keys, coordinates = (values[order] if values.size else values for values in (cells, keys, coordinates))
    return View(cells, keys, coordinates, rows[order], rows.size)


def merge_indexes(
    group: Sequence[pa.RecordBatch], members: Sequence[Sequence[int]], layouts: Sequence[IndexLayout]
) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
    """The indexes over the rows of several segments, one after the other; as `index_rows`."""
    starts = np.cumsum([0, *(rows.num_rows for rows in group)])
    index: dict[str, np.ndarray] = {}
    sizes: list[int] = []
    for query, layout in enumerate(layouts):
        views = [shared_view(rows, query, size[query], layout) for rows, size in zip(group, members, strict=True)]
        rows = np.concatenate([view.order + start for view, start in zip(views, starts, strict=False)])
        cells = np.concatenate([view.cells for view in views])
        keys = np.concatenate([view.keys for view in views])
        at = np.concatenate([view.coordinates for view in views])
        index |= index_columns(query, layout, view_of(cells, keys, at, rows), int(starts[-1]))
        sizes.append(rows.size)
    return index, tuple(sizes)


def is_index_column(name: str) -> bool:
    """Whether a column of a segment belongs to an index."""
    return name.startswith((f"{_ROW}.", f"{CELL}.", f"{KEY}.", f"{_COORDINATE}."))


def index_columns(query: int, layout: IndexLayout, view: View, size: int) -> dict[str, np.ndarray]:
    """The index of one query over `size` tuples, as `shared_view` finds it."""

    def filled() -> Iterator[tuple[str, np.ndarray]]:
        named = (_ROW, view.order), (CELL, view.cells), (KEY, view.keys)
        for name, values in (*named, (_COORDINATE, EMPTY if layout.window_is_key else view.coordinates)):
            if values.size:
                column = np.zeros(size, np.int64)
                column[: values.size] = values
                yield f"{name}.{query}", column

    return dict(filled())
