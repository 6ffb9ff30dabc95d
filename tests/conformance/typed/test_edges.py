"""The corpus of edges, by every operator and index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamjoin.index.layout import IndexLayout, Probes

from .case import WAYS, Case, Window
from .check import check, check_in_duckdb
from .edges import EDGES

pytestmark = pytest.mark.slow

INDEXES = ("tree", "hash", "scan")


def in_every_way(case: Case) -> Iterator[Case]:
    """Every operator, every index, and the window that an index can sort by."""
    for way in WAYS:
        yield replace(case, operator=way)
    for index in INDEXES:
        yield replace(case, index=index)
    yield replace(case, window=Window(1_000, 1_000), batches=2)


@pytest.mark.parametrize("name", EDGES)
def test_every_edge_joins_exactly_by_every_operator_and_index(name: str) -> None:
    edge = EDGES[name]
    assert edge.case.wanted().total() == edge.pairs
    check(in_every_way(edge.case))


def test_edges_are_where_duckdb_has_them() -> None:
    assert check_in_duckdb(edge.case for edge in EDGES.values()) > len(EDGES) // 4


def test_infinite_rows_meet_few_slices_of_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    real = IndexLayout.probes
    met: list[tuple[str, int, int]] = []

    def probes(self: IndexLayout, columns: Any, coordinates: np.ndarray, rows: int) -> Probes:
        found = real(self, columns, coordinates, rows)
        met.append((self.kind, rows, found.rows.size))
        return found

    monkeypatch.setattr(IndexLayout, "probes", probes)
    names = (
        "two bands, one row at minus infinity", "two bands that open to one side",
        "bands narrower than the rounding of their constants",
    )  # fmt: skip
    for name in names:
        EDGES[name].case.found()
    assert met and {kind for kind, _, _ in met} == {"grid"}
    assert all(slices <= 5 * rows for _, rows, slices in met)
