"""Streams that a query calls as a stage calls what an earlier one gives: they are joined like any others."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query

from .loops import joined, loop_of

COLUMNS = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64()), ("until", pa.int64())])
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us", 0) for name in "abcd"}
WITHIN = "WITHIN 20 MICROSECONDS"
QUERIES = {
    "a flow beside a stream": (
        "SELECT ONLINE {0}.id AS x, {1}.id AS y, {2}.id AS z, {2}.until AS u FROM a AS {0} JOIN b AS {1} "
        "ON {0}.k = {1}.k JOIN c AS {2} ON {1}.k = {2}.k AND {0}.until <> {2}.until " + WITHIN,
        ("a", "b", "(a, b)"),
    ),
    "an outer join": (
        "SELECT ONLINE {0}.id AS x, {1}.id AS y, {2}.id AS z FROM a AS {0} LEFT JOIN b AS {1} ON {0}.k = {1}.k "
        "LEFT JOIN c AS {2} ON {0}.k = {2}.k " + WITHIN,
        ("a", "b", "(a, b)"),
    ),
    "a stream before a flow": (
        "SELECT ONLINE {0}.id AS x, {1}.id AS y, {2}.id AS z FROM a AS {0} LEFT JOIN (b AS {1} JOIN c AS {2} "
        "ON {1}.k = {2}.k) ON {0}.k = {1}.k " + WITHIN,
        ("(b, c)", "b", "c"),
    ),
    "two flows": (
        "SELECT ONLINE {0}.id AS x, {1}.id AS y, {2}.id AS z, {3}.id AS w FROM a AS {0} LEFT JOIN b AS {1} "
        "ON {0}.k = {1}.k LEFT JOIN (c AS {2} JOIN d AS {3} ON {2}.k = {3}.k) ON {0}.k = {2}.k " + WITHIN,
        ("a, b", "c", "a", "b, c"),
    ),
    "a later stage": (
        "SELECT ONLINE {0}.id AS x, {1}.id AS y, {2}.id AS z, {3}.id AS w FROM a AS {0} LEFT JOIN b AS {1} "
        "ON {0}.k = {1}.k JOIN c AS {2} ON {0}.k = {2}.k JOIN d AS {3} ON {2}.k = {3}.k " + WITHIN,
        ("a", "b", "c", "(a, b, c)"),
    ),
    "an as-of join": (
        "SELECT ONLINE {0}.id AS x, {1}.id AS y, {2}.id AS z FROM a AS {0} JOIN b AS {1} ON {0}.k = {1}.k "
        "ASOF LEFT JOIN c AS {2} ON {1}.k = {2}.k AND {0}.ts >= {2}.ts " + WITHIN,
        ("a", "b", "(a, b)"),
    ),
    "an as-of join alone": (
        "SELECT ONLINE {0}.id AS x, {1}.id AS y FROM a AS {0} ASOF LEFT JOIN b AS {1} ON {0}.k = {1}.k "
        "AND {0}.ts >= {1}.ts",
        ("a", "(left)"),
    ),
}


def rows(seed: int) -> pa.RecordBatch:
    chosen = random.Random(seed)
    times = sorted(chosen.randrange(60) for _ in range(20))
    made = [
        {"ts": time, "id": id, "k": chosen.randrange(3), "until": chosen.randrange(3)} for id, time in enumerate(times)
    ]
    return pa.RecordBatch.from_pylist(made, COLUMNS)


@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_may_be_called_as_a_flow_is(name: str, tmp_path: Path) -> None:
    text, names = QUERIES[name]
    found: list[Counter[Any]] = []
    for number, called in enumerate([("p", "q", "r", "s"), names]):
        plan = plan_query(text.format(*(f'"{one}"' for one in called)), STREAMS)
        if isinstance(plan, Cascade):
            assert all(len(set(stage.plan.queries[0].names)) == 2 for stage in plan.stages)
        operator = "biclique by hash" if isinstance(plan, Cascade) else "asof"
        loop = loop_of(plan, operator, tmp_path / str(number), 1, 2)
        found.append(
            joined(loop, [rows(seed) for seed in range(len(plan.inputs) if isinstance(plan, Cascade) else 2)], 3, 1)
        )
    assert found[0] == found[1] and found[0].total() > 10


def test_other_flows_keep_their_names() -> None:
    """Those are in what checkpoints know of their queries."""
    text, _ = QUERIES["a later stage"]
    plan = plan_query(text.format("a", "b", "c", '"(a, b)"'), STREAMS)
    assert isinstance(plan, Cascade)
    assert [stage.plan.queries[0].names for stage in plan.stages] == [
        ("a", "b"), ("(a, b)", "c"), ("(a, b, c)", "(a, b)"),
    ]  # fmt: skip
