"""Whichever way explain shows, it gives the results of a nested loop, for three to five streams."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from streamjoin.explain.sampling import Look
from streamjoin.explain.several import Ways, ways
from streamjoin.operators import registry
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query
from streamjoin.settings.orders import parse_orders
from streamjoin.settings.trees import parse_tree

from .loops import given
from .test_three_streams import COLUMNS, DISORDER_US, Condition, Within, equal, nested_loop

NAMES = "abcde"
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", DISORDER_US) for name in NAMES}
ROWS = {"a": 120, "b": 12, "c": 60, "d": 30, "e": 8}
"""Rates differ by as much as fifteen times."""

QUERIES: dict[str, tuple[str, Condition, Within]] = {
    "three, the selective pair last": (
        "FROM a JOIN c ON a.x > c.x JOIN b ON c.k = b.k AND c.x < b.x WITHIN 40 MICROSECONDS",
        lambda a, c, b: a["x"] > c["x"] and equal(c["k"], b["k"]) and c["x"] < b["x"],
        40,
    ),
    "three, one condition over all": (
        "FROM a, b, c WHERE a.k = c.k AND a.x + b.x > c.x WITHIN 30 MICROSECONDS",
        lambda a, b, c: equal(a["k"], c["k"]) and a["x"] + b["x"] > c["x"],
        30,
    ),
    "four, in a ring of equalities, with reaches of their own": (
        "FROM a, b, c, d WHERE a.k = b.k AND b.k = c.k AND c.k = d.k AND a.k = d.k AND d.x > 10 "
        "WITHIN 30 MICROSECONDS FOR a, 60 MICROSECONDS FOR b, 10 MICROSECONDS FOR c, 45 MICROSECONDS FOR d",
        lambda a, b, c, d: all(equal(a["k"], other["k"]) for other in (b, c, d)) and d["x"] > 10,
        (30, 60, 10, 45),
    ),
    "five, in a star": (
        "FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.k JOIN d ON d.k = b.k AND d.x < a.x JOIN e ON e.k = b.k "
        "WITHIN 30 MICROSECONDS",
        lambda a, b, c, d, e: all(equal(b["k"], other["k"]) for other in (a, c, d, e)) and d["x"] < a["x"],
        30,
    ),
}


def rows(name: str) -> pa.RecordBatch:
    """Rows of one span of time, out of order by less than the allowed delay, many of them with the same key."""
    chosen, count = random.Random(name), ROWS[name]
    times = sorted(chosen.randrange(360) for _ in range(count))
    keys = [chosen.choice([None, 0, 0, 0, 1, 2, 3]) for _ in times]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([max(time - chosen.randrange(DISORDER_US), 0) for time in times]),
            pa.array(range(count)),
            pa.array(keys, pa.int64()),
            pa.array([chosen.randrange(50) for _ in times]),
        ],
        schema=COLUMNS,
    )


def text_of(query: str) -> str:
    return f"SELECT ONLINE {', '.join(f'{name}.id AS {name}' for name in names_of(query))} {query}"


def names_of(query: str) -> list[str]:
    words = query.replace(",", " ").split("WHERE")[0].split("WITHIN")[0].split()
    return list(dict.fromkeys(word for word in words if word in NAMES))


def ways_of(query: str, streams: Sequence[pa.RecordBatch]) -> Ways:
    plan = plan_query(text_of(query), STREAMS)
    assert isinstance(plan, Cascade)
    looked = Look(plan, tuple(streams))
    found = ways(plan, looked, looked.statistics(), registry.build_all("biclique", {}, plan, 2), 2)
    assert found is not None
    return found


def results(query: str, setting: str, streams: Sequence[pa.RecordBatch], folder: Path) -> Counter[tuple[int, ...]]:
    """What the way gives that a join file has with this setting."""
    from streamjoin.engine.loop import Loop
    from streamjoin.state.store import StateStore

    at_once = setting.startswith("name: ")
    tree = None if at_once else parse_tree(setting.removeprefix("tree: "))
    orders = setting.partition("orders: ")[2]
    name = setting.removeprefix("name: ").partition(",")[0] if at_once else "biclique"
    knobs = {"orders": parse_orders(orders)} if orders else {}
    plan = registry.planned(name, knobs, plan_query(text_of(query), STREAMS, tree=tree), 2)
    loop = Loop(plan, registry.build_all(name, knobs, plan, 2), lambda stage: StateStore(folder, stage, sync=False), 2)
    found = [part for batch in given(loop, streams) for part in batch]
    return Counter(
        row for part in found for row in zip(*(part.column(n).to_pylist() for n in names_of(query)), strict=True)
    )


@pytest.mark.parametrize("name", QUERIES)
def test_every_way_that_is_shown_gives_the_results_of_a_nested_loop(name: str, tmp_path: Path) -> None:
    query, condition, within_us = QUERIES[name]
    streams = [rows(stream) for stream in names_of(query)]
    expected = nested_loop(streams, condition, within_us)
    assert len(expected) > 20
    found = ways_of(query, streams)
    assert len(found.found) >= 4
    for number, way in enumerate(found.found):
        assert results(query, way.setting, streams, tmp_path / str(number)) == expected, way.plan


def test_the_selective_pair_is_joined_first_wherever_it_is_written() -> None:
    streams = {name: rows(name) for name in NAMES}
    last = ways_of(QUERIES["three, the selective pair last"][0], [streams["a"], streams["c"], streams["b"]])
    assert last.found[0].plan == "(a, (c, b))"
    assert "tree: [a, [c, b]]" in last.advice
    turned = "FROM b JOIN c ON c.k = b.k AND c.x < b.x JOIN a ON a.x > c.x WITHIN 40 MICROSECONDS"
    first = ways_of(turned, [streams["b"], streams["c"], streams["a"]])
    assert (first.found[0].plan, first.found[0].runs) == ("((b, c), a)", True)
