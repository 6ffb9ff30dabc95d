"""The queries whose trees are measured, and which of them `auto` takes."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from benchmarks import orders, ring_or_tree
from benchmarks.orders import Ran, looked, made, planned, run, run_ways, taken
from streamjoin.explain.candidates import Way


def with_work(way: Way, work_s: float) -> Way:
    return replace(way, cost=replace(way.cost, work_s=work_s))


def test_auto_takes_another_tree_only_where_it_has_clearly_less_work() -> None:
    trees = [way for way in looked(*made(1)).found if way.setting.startswith("tree")]
    written = next(way for way in trees if way.is_written)
    other = next(way for way in trees if not way.is_written)
    for work_s, takes in ((0.9, written.plan), (0.7, written.plan), (0.6, other.plan), (1.1, written.plan)):
        both = sorted([with_work(other, work_s), with_work(written, 1.0)], key=lambda way: way.cost.work_s)
        assert taken(both).plan == takes, work_s


def test_every_tree_of_a_query_has_seconds_of_a_processor() -> None:
    query, streams = made(1)
    little = {name: rows.slice(0, 500) for name, rows in streams.items()}
    assert all(isinstance(rows, pa.RecordBatch) for rows in little.values())
    found = [run(planned(query, little, tree), list(little.values())) for tree in ("[[a, b], c]", "[a, [b, c]]")]
    assert all(seconds > 0 for seconds, _ in found) and len({results for _, results in found}) == 1


def test_ways_with_other_results_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    given, wrong = made(1), iter(range(1_000))
    monkeypatch.setattr(orders, "run", lambda *_: (1.0, next(wrong)))
    with pytest.raises(AssertionError, match="ways differ in their results"):
        run_ways(*given, tries=1, pairs_max=1e12)


def test_rings_are_run_beside_trees_and_what_auto_takes_is_told() -> None:
    query, streams = ring_or_tree.made("=", 3, 1, 1.0)
    little = {name: rows.slice(0, 300) for name, rows in streams.items()}
    ran = run_ways(query, little, tries=1)
    assert ran is not None and ran.of_auto in ran.ways
    assert {way.numbered is None for way in ran.ways} == {True, False}
    assert min(map(ran.times, ran.ways)) == 1
    assert ring_or_tree.fastest(ran).keys() == {"tree", "ring"}
    cells = ring_or_tree.cells(("=", 3, 1, 1.0), ran)
    assert len(cells) == len(ring_or_tree.HEADER)
    assert cells[:4] == ["=", "3", "1 s", "1"]


def test_the_table_counts_what_is_near_and_leaves_out_what_was_not_run() -> None:
    ways = [way for way in looked(*made(1)).found if not way.is_baseline]
    ring = next(way for way in ways if way.numbered is None)
    tree = next(way for way in ways if way.numbered is not None)
    far = Ran([with_work(ring, 1.0), with_work(tree, 1.0)], [40.0, 130.0], with_work(tree, 1.0))
    alone = Ran([with_work(tree, 1.0)], [60.0], with_work(tree, 1.0))
    lines = list(ring_or_tree.lines({("=", 3, 1, 0.1): far, ("%", 5, 10, 3.0): None, ("%", 5, 1, 3.0): alone}))
    assert lines[2].startswith("| = | 3 | 1 s | 0.1 | 130.000 | 40.000 | 3.25 |") and lines[2].endswith("| 3.25 |")
    assert lines[3] == "| % | 5 | 10 s | 3 | - | - | - | - | - |"
    assert lines[4] == "| % | 5 | 1 s | 3 | 60.000 | - | - | - | - |"
    assert lines[-2].endswith("the ring is faster in 1 of 1; what auto takes is within a fifth of the fastest in 0")
    assert lines[-1].endswith(": 2 of 3"), "130 s are more than twice the predicted 60 s"
