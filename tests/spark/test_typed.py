"""The edges of column types, on a real Spark: values come from files and travel in its rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.typed.edges import EDGES
from tests.conformance.typed.on_spark import found

from .jobs import check_same

pytestmark = pytest.mark.spark

WAYS = {
    "decimals at a bound of two digits": "biclique by value ranges",
    "decimal key is double key": "biclique by hash",
    "unsigned integers 20 apart": "splitjoin",
    "nothing is above the greatest integer": "matrix",
    "infinities less one": "biclique",
    "nanoseconds differ": "biclique by contrand",
    "31 digits and two scales": "biclique by hash",
    "two bands, one row at minus infinity": "handshake",
}
"""Edge -> operator."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] if place % 2 else []) for place, name in enumerate(WAYS)]
)
def test_edges_join_exactly_on_spark(name: str, session: SparkSession, tmp_path: Path) -> None:
    edge = EDGES[name]
    case = replace(edge.case, operator=WAYS[name])
    got = found(case, session, tmp_path)
    assert got.total() == edge.pairs
    check_same(got, case.wanted())
