"""The inner loop of the as-of join."""

from __future__ import annotations

import numpy as np

from streamjoin.kernel import kernel


@kernel
def latest(cells: np.ndarray, times: np.ndarray, wanted: np.ndarray, until: np.ndarray, out: np.ndarray) -> None:
    """The last row of each wanted cell whose time is not above `until`.

    Args:
        cells, times: of n rows, sorted by both, int64.
        wanted, until: of m probes, int64.
        out: int64 of shape (m,); gets the row number, or -1 where there is none.
    Cost: log2(n) steps for each probe.
    """
    for i in range(wanted.size):
        cell, time = wanted[i], until[i]
        low, high = 0, cells.size
        while low < high:
            middle = (low + high) >> 1
            if cells[middle] < cell or (cells[middle] == cell and times[middle] <= time):
                low = middle + 1
            else:
                high = middle
        found = low - 1
        out[i] = found if found >= 0 and cells[found] == cell else -1
