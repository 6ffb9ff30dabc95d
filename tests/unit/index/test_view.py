"""Where a query sees none of a segment's tuples."""

from __future__ import annotations

import numpy as np

from streamjoin.index.view import EMPTY, View


def test_values_go_back_to_their_rows() -> None:
    cells = np.array([7, 8, 9])
    assert View(cells, cells, EMPTY, EMPTY, 3).by_row("cells", 3).tolist() == [7, 8, 9]  # the rows are sorted so
    assert View(cells, cells, EMPTY, np.array([4, 0, 2]), 3).by_row("cells", 5).tolist() == [8, 0, 9, 0, 7]


def test_a_query_without_a_tuple_in_a_segment_has_no_value_for_any_row() -> None:
    assert View(EMPTY, EMPTY, EMPTY, EMPTY, 0).by_row("keys", 5).tolist() == [0] * 5
