"""Slices of age: which node of a ring keeps a tuple, and until when (PSP, definition 1).

With N nodes, node i keeps the rows whose age is between i/N and (i + 1)/N of their reach. A row is as old as the
slowest of the other streams says, since these are what it still can meet. A segment is as old as its newest row, and
moves on as a whole. A row that comes in is stored by the node of its age once the batch is over: the first one, unless
a batch spans more than a slice. Which node has a row is about balance, never about results: partial results ask every
node that may keep some of the stream.
"""

from __future__ import annotations

import numpy as np


def nodes_of(ts_us: np.ndarray, mark_us: int | None, reach_us: int, length: int) -> np.ndarray:
    """The node of each row, int64 of the shape of `ts_us`.

    Args:
        mark_us: how far the other streams have come; where they have not begun, everything is young.
        length: how many nodes keep rows of the stream.
    """
    if mark_us is None:
        return np.zeros(ts_us.shape, np.int64)
    ends_us = [-(-place * max(reach_us, length) // length) for place in range(1, length)]
    return np.searchsorted(np.array(ends_us, np.int64), mark_us - ts_us, side="right")


def node_of(ts_max_us: int, mark_us: int | None, reach_us: int, length: int) -> int:
    """The same of one segment, by its newest row."""
    return int(nodes_of(np.array([ts_max_us]), mark_us, reach_us, length)[0])
