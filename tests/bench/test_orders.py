"""The queries whose trees are measured, and which of them `auto` takes."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from benchmarks.orders import looked, made, planned, run, taken
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
    for tree in ("[[a, b], c]", "[a, [b, c]]"):
        assert run(planned(query, little, tree), list(little.values())) > 0
