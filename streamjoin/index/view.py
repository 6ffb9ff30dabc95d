"""How a query sees a segment: the stored tuples in the order of an index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamjoin.flow.block import TS
from streamjoin.index.layout import IndexLayout
from streamjoin.plan.window import CountWindow, FullHistory

RANK = "__rank"
"""Engine column: place of the tuple in its whole stream, int64; only count windows need it."""
NUMBER = "__number"
"""Engine column: sequence number of the tuple, int64; ordered results need it, and rows that are decided on."""
CELL = "__cell"
KEY = "__key"

EMPTY = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class View:
    """Stored tuples as one query looks them up, sorted by (cell, key).

    Args:
        cells, keys, coordinates: int64 of shape (n,), empty where the layout has none.
        order: the row number of each, int64 of shape (n,); empty where the rows themselves are sorted so.
        size: n.
    """

    cells: np.ndarray
    keys: np.ndarray
    coordinates: np.ndarray
    order: np.ndarray
    size: int

    def by_row(self, name: str, rows: int) -> np.ndarray:
        """Its `cells` or `keys` by the number of the row, of so many; zeros for rows that are not in it."""
        values = np.zeros(rows, np.int64)
        if self.size:
            values[self.order if self.order.size else slice(None)] = getattr(self, name)
        return values


def sorted_view(rows: pa.RecordBatch, layout: IndexLayout) -> View:
    """The view of rows that are sorted themselves, without copying."""
    name = coordinate_column(layout)
    coordinates = column_of(rows, name) if name else EMPTY
    keys = coordinates if layout.window_is_key else column_of(rows, KEY)
    return View(column_of(rows, CELL), keys, coordinates, EMPTY, rows.num_rows)


def coordinate_column(layout: IndexLayout) -> str | None:
    """The engine column that the layout's window compares; None without a window."""
    if isinstance(layout.window, FullHistory):
        return None
    return RANK if isinstance(layout.window, CountWindow) else TS


def column_of(rows: pa.RecordBatch, name: str) -> np.ndarray:
    """An engine column, without copying; empty where there is none."""
    return rows.column(name).to_numpy() if name in rows.schema.names else EMPTY
