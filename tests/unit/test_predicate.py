"""A WHERE clause, taken apart: who can check what."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.index.columns import routed_columns, stored_columns
from streamjoin.index.layout import choose_layout, layout_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import FullHistory, TimeWindow
from streamjoin.query import plan_query

COLUMNS = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("k", pa.int64()),
        ("x", pa.int32()),
        ("y", pa.float64()),
        ("n", pa.string()),
    ]
)


def plan(where: str, within: str = "WITHIN 1 SECOND") -> JoinPlan:
    streams = {name: StreamSchema(name, COLUMNS, "ts") for name in "rs"}
    return plan_query(f"SELECT ONLINE r.k FROM r, s WHERE {where} {within}", streams)


@pytest.mark.parametrize(
    ("where", "low", "high", "exact"),
    [
        ("ABS(r.x - s.x) <= 3", -3, 3, True),
        ("3 >= ABS(s.x - r.x)", -3, 3, True),
        ("ABS(r.y - s.y) <= 0.5", -0.5, 0.5, False),
        ("r.x > s.x", 0, None, True),
        ("s.x < r.x", 0, None, True),
        ("r.x - s.x >= 2", 2, None, False),
        ("r.x + 5 < s.x - 1", None, -6, False),
        ("r.x BETWEEN s.x - 1 AND s.x + 4", -1, 4, False),
        ("r.ts <= s.ts + INTERVAL 2 SECONDS", None, 2_000_000, False),
        ("r.n < s.n", None, 0, True),
    ],
)
def test_a_comparison_across_streams_becomes_a_range(
    where: str, low: float | None, high: float | None, exact: bool
) -> None:
    (found,) = plan(where).predicate.ranges
    assert (found.low, found.high, found.exact) == (low, high, exact)


@pytest.mark.parametrize("where", ["r.x * s.x > 3", "r.x + s.x > r.y", "r.k = s.k OR r.x = s.x", "NOT r.k = s.k"])
def test_what_mixes_streams_stays_a_residual(where: str) -> None:
    predicate = plan(where).predicate
    assert not predicate.ranges
    assert not predicate.equalities
    assert len(predicate.residual) == 1


def test_equality_of_nulls_is_answered_by_a_hash_and_checked_again() -> None:
    found = plan("s.k IS NOT DISTINCT FROM r.k")
    assert (str(layout_of(found, 0)), [str(part) for part in layout_of(found, 0).recheck]) == (
        "hash of r.k",
        ["(s.k IS NOT DISTINCT FROM r.k)"],
    )


def test_single_stream_conditions_go_to_intake() -> None:
    predicate = plan("r.k = s.k AND r.x > 3 AND s.n = 'a' AND r.y < 0").predicate
    assert str(predicate.selections[0]) == "((r.x > 3) AND (r.y < 0.0))" or "r.x" in str(predicate.selections[0])
    assert "s.n" in str(predicate.selections[1])
    assert len(predicate.equalities) == 1


@pytest.mark.parametrize(
    ("where", "kind", "rechecked"),
    [
        ("r.k = s.k", "hash", 0),
        ("r.n = s.n", "hash", 1),
        ("r.k = s.k AND r.n = s.n", "hash", 2),
        ("ABS(r.x - s.x) <= 3", "tree", 0),
        ("ABS(r.y - s.y) <= 3", "tree", 1),
        ("ABS(r.x - s.x) <= 3 AND ABS(r.y - s.y) <= 1.5", "grid", 2),
        ("r.x > s.x", "tree", 0),
        ("r.x * s.x = 4", "scan", 1),
    ],
)
def test_the_layout_fits_the_predicate(where: str, kind: str, rechecked: int) -> None:
    for side in (0, 1):
        layout = layout_of(plan(where), side)
        assert layout.kind == kind
        assert len(layout.recheck) == rechecked


def test_a_window_is_the_key_where_no_range_is() -> None:
    predicate = plan("r.k = s.k").predicate
    assert choose_layout(predicate, TimeWindow(1, 1), 0).window_is_key
    assert not choose_layout(predicate, FullHistory(), 0).window_is_key


def test_only_what_results_and_rechecks_read_is_stored_and_only_what_keys_read_is_sent() -> None:
    found = plan("r.k = s.k AND r.x < 5 AND ABS(r.y - s.y) <= 1.5")
    assert stored_columns(found, 0) == ("k", "y")  # k is selected, y is checked again; x is done with at intake
    assert stored_columns(found, 1) == ("y",)
    assert routed_columns(found, 1) == ("k", "y")
