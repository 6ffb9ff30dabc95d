"""Whatever order `auto` chooses, a query gives the same rows, with the same times and keys, as it is written."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.explain.candidates import Way, candidates
from streamjoin.explain.sampling import Look
from streamjoin.operators import registry
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.plan.reordering import keyed, reordered
from streamjoin.plan.stages import Cascade, Plan
from streamjoin.query import plan_query
from streamjoin.state.memory import MemoryStates

from .loops import Loop, joined
from .test_ring import STREAMS, nested_loop, random_query, record_batch, rows_of, text_of

KEYED = "SELECT ONLINE a.id AS a, b.id AS b, c.id AS c FROM a, b, c WHERE {} WITHIN 40 MICROSECONDS"
CONDITIONS = {
    "an equality and a band": "a.k = b.k AND ABS(b.x - c.x) <= 3",
    "a band and an equality": "ABS(a.x - b.x) <= 3 AND b.k = c.k",
    "the last stream meets the first": "a.k = b.k AND a.x < c.x AND b.x < c.x",
    "keys of two types": "a.k = b.k AND a.k + b.x = c.x * 1.0",
    "two equalities": "a.k = b.k AND b.k = c.k AND a.x < c.x",
    "nothing leads to the last": "a.k = b.k",
}


def as_way(plan: Cascade, way: Way) -> Plan:
    if way.numbered is not None:
        return reordered(plan, way.numbered)
    return registry.planned("ring", {"orders": way.operator.get("orders", {})}, plan, 2)


def ways_of(plan: Cascade, streams: list[pa.RecordBatch]) -> list[Way]:
    looked = Look(plan, tuple(streams))
    statistics = looked.statistics()
    assert statistics is not None
    found = candidates(plan, looked, statistics, registry.build_all("biclique", {}, plan, 2), 2)
    return found.ways(3, "")


def results(plan: Plan, way: Way, streams: list[pa.RecordBatch]) -> Counter[Any]:
    name = "ring" if way.numbered is None else "biclique"
    knobs: Mapping[str, Any] = {"orders": way.operator["orders"]} if "orders" in way.operator else {}
    states: dict[int, MemoryStates] = {}
    operators = registry.build_all(name, knobs, plan, 2)
    return joined(Loop(plan, operators, lambda stage: states.setdefault(stage, MemoryStates()), 2), streams, 3)


def check_random(seed: int) -> int:
    """One random query: the order that is predicted to be the best, and a ring, against the written one and loops."""
    chosen = random.Random(seed)
    count = 3 + seed % 3
    conditions, reaches_us = random_query(chosen, count)
    rows = [rows_of(seed * 10 + place, {3: 30, 4: 18, 5: 13}[count]) for place in range(count)]
    streams = [record_batch(one) for one in rows]
    plan = plan_query(text_of(count, conditions, reaches_us), STREAMS)
    assert isinstance(plan, Cascade)
    plan = keyed(plan)
    ways = ways_of(plan, streams)
    (written,) = (way for way in ways if way.is_written)
    expected = results(plan, written, streams)
    ids = Counter(row[:count] for row in expected.elements())
    assert ids == nested_loop(rows, conditions, reaches_us)
    trees, rings = ([way for way in ways if (way.numbered is None) == ring] for ring in (False, True))
    for way in [next(way for way in trees if not way.is_written), rings[0]]:
        assert results(as_way(plan, way), way, streams) == expected, (seed, way.plan)
    return expected.total()


@pytest.mark.parametrize("first", [0, 4])
def test_the_chosen_order_gives_what_the_written_one_and_a_nested_loop_give(first: int) -> None:
    assert sum(check_random(seed) for seed in range(first, first + 4)) > 20


@pytest.mark.parametrize("name", CONDITIONS)
def test_results_are_looked_up_by_what_the_written_query_says(name: str) -> None:
    """By the same values, in columns of the same types and names."""
    plan = plan_query(KEYED.format(CONDITIONS[name]), STREAMS)
    assert isinstance(plan, Cascade)
    plan = keyed(plan)
    (query,) = plan.queries
    streams = [record_batch(rows_of(place, 25)) for place in range(3)]
    ways = ways_of(plan, streams)
    (written,) = (way for way in ways if way.is_written)
    expected = results(plan, written, streams)
    assert expected and {way.numbered is None for way in ways} == {True, False}
    for way in ways:
        other = as_way(plan, way)
        (same,) = other.queries
        assert same.emitted == query.emitted, way.plan
        assert same.emitted.names[-1] == (RESULT_TIME if name == "nothing leads to the last" else RESULT_KEY)
        assert (same.key_name, same.has_equal_keys) == (query.key_name, query.has_equal_keys), way.plan
        assert results(other, way, streams) == expected, way.plan


def test_groups_of_another_order_are_the_same() -> None:
    text = (
        "SELECT ONLINE a.k, COUNT(*) AS n, SUM(b.x) AS total FROM a, b, c WHERE a.k = b.k AND ABS(b.x - c.x) <= 3 "
        "WITHIN 40 MICROSECONDS GROUP BY a.k, TUMBLE(30 MICROSECONDS)"
    )
    plan = plan_query(text, STREAMS)
    assert isinstance(plan, Cascade)
    plan = keyed(plan)
    streams = [record_batch(rows_of(place, 25)) for place in range(3)]
    ways = ways_of(plan, streams)
    (written,) = (way for way in ways if way.is_written)
    expected = results(plan, written, streams)
    assert len(expected) > 5 and len(ways) > 3
    for way in ways:
        assert results(as_way(plan, way), way, streams) == expected, way.plan
