"""Whatever a job's plan was made from, all that look at it see one type, and nobody asks which it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from streamjoin.plan.hearing import elsewhere, hearing
from streamjoin.plan.in_rounds import ALIGNED, RING, in_rounds
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import (
    Bundle,
    Plan,
    answered_by,
    answering,
    entries_of,
    is_divided,
    joins_nothing,
    parts_at,
    together,
)
from streamjoin.plan.window import R, S
from streamjoin.query import plan_query

ROOT = Path(__file__).resolve().parents[2]
WAYS = {"Bundle", "Cascade", "SharedJoin"}
"""What a plan may have been made as, beside a join of two."""

COLUMNS = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("x", pa.int64())])
INPUTS = {name: StreamSchema(name, COLUMNS, "ts", "us", 5, idle_us=10 if name == "c" else None) for name in "abc"}
INPUTS["r"] = StreamSchema.of_relation("r", pa.schema([("key", pa.int64()), ("name", pa.string())]))

PAIRS = "SELECT ONLINE a.x AS x, b.x AS y FROM a, b WHERE a.k = b.k WITHIN 5 SECONDS"
THREE = "SELECT ONLINE a.x AS x, c.x AS y FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k WITHIN 5 SECONDS"
BUSHY = (
    "SELECT ONLINE a.x AS x FROM (a JOIN b ON a.k = b.k) JOIN (b AS d JOIN c ON d.k = c.k) ON a.x = c.x "
    "WITHIN 5 SECONDS"
)
GROUPS = "SELECT ONLINE a.k AS k, COUNT(*) AS n FROM a GROUP BY a.k, TUMBLE(1 MINUTE)"
NAMED = "SELECT ONLINE b.x AS x, r.name FROM b JOIN r ON b.k = r.key"


def of(text: str) -> Plan:
    return plan_query(text, INPUTS)


SHARED = together({"one": of(PAIRS), "two": of(PAIRS.replace("5 SECONDS", "3 SECONDS"))}, started=frozenset({"two"}))
PLANS: dict[str, Plan] = {
    "two streams": of(PAIRS),
    "two streams that several queries share": SHARED,
    "three streams": of(THREE),
    "two pairs of streams": of(BUSHY),
    "rounds": in_rounds(of(THREE), RING),
    "rounds at once": in_rounds(of(THREE), ALIGNED),
    "groups": of(GROUPS),
    "a relation": of(NAMED),
    "queries beside each other": Bundle(
        ((("named",), of(NAMED)), (("one", "two"), SHARED), (("three",), of(THREE)),
         (("again",), of(THREE.replace("a.x", "b.x"))), (("bushy",), of(BUSHY)), (("groups",), of(GROUPS)))
    ),
}  # fmt: skip


@pytest.fixture(params=PLANS, ids=lambda name: name)
def plan(request: pytest.FixtureRequest) -> Plan:
    return PLANS[request.param]


def test_each_query_has_a_name_and_one_stage_that_answers_it(plan: Plan) -> None:
    numbers = range(len(plan.queries))
    assert len(plan.names_of_queries) == len(numbers) == len(set(plan.names_of_queries))
    assert [query for stage in plan.stages for query in answered_by(plan, stage.number)] == list(numbers)
    for query in numbers:
        stage, streams = answering(plan, query)
        assert query in answered_by(plan, stage)
        assert plan.queries[query] in plan.stages[stage].plan.queries
        (part,) = (part for part in parts_at(plan, stage) if plan.names_of_queries[query] in part.names)
        assert (part.numbers[-1], part.streams) == (stage, streams)


def test_each_stage_is_of_a_part_and_reads_what_was_found_on_a_floor_before(plan: Plan) -> None:
    assert [stage.number for stage in plan.stages] == list(range(len(plan.stages)))
    assert sorted(stage.number for floor in plan.floors for stage in floor) == list(range(len(plan.stages)))
    at = {stage.number: number for number, floor in enumerate(plan.floors) for stage in floor}
    for stage in plan.stages:
        assert all(at[before] < at[stage.number] for before in stage.fed_by)
        for part in parts_at(plan, stage.number):
            own = part.plan.stages[part.numbers.index(stage.number)]
            assert type(own.plan) is type(stage.plan) and len(own.inputs) == len(stage.inputs)
            assert [part.streams[read] for read in own.inputs if isinstance(read, int)] == [
                read for read in stage.inputs if isinstance(read, int)
            ]
        assert parts_at(plan, stage.number)


def test_each_stream_has_a_name_and_enters_somewhere(plan: Plan) -> None:
    assert len(plan.names) == len(plan.streams) and len(plan.relation_names) == len(plan.relations)
    for number, stream in enumerate(plan.streams):
        entries = entries_of(plan, number)
        assert entries and all(stage.inputs[side] == number for stage, side in entries)
        others = [stage.number for stage in plan.stages if number in elsewhere(plan, stage.number)]
        assert hearing(plan, number) == tuple(others)
        assert all(elsewhere(plan, stage)[number] == stream for stage in others)


def test_one_join_of_two_streams_is_all_there_is_of_its_plan() -> None:
    pairs = {name for name, plan in PLANS.items() if plan.pair is not None}
    assert pairs == {"two streams", "two streams that several queries share"}
    assert {name for name, plan in PLANS.items() if plan.shared is not None} == {
        "two streams that several queries share"
    }
    assert {name for name, plan in PLANS.items() if is_divided(plan)} == {"queries beside each other"}
    assert {name for name, plan in PLANS.items() if joins_nothing(plan)} == {"groups"}
    for plan in (PLANS[name] for name in pairs):
        (stage,) = plan.stages
        assert plan.pair is plan is stage.plan and stage.inputs == (R, S)


def test_of_a_shared_join_other_queries_and_another_job_know_nothing_of_the_start() -> None:
    shared = SHARED.shared
    assert shared is not None and shared.before_bit(1) == 2 and shared.bits == 3
    assert shared.anew().bits == 2 and shared.anew().queries == shared.queries
    asking = shared.asking([replace(query, select=()) for query in shared.queries])
    assert asking.names_of_queries == ("one", "two") and [query.select for query in asking.queries] == [(), ()]


def test_nobody_outside_of_plans_asks_what_a_plan_was_made_from() -> None:
    folders = [one for one in (ROOT / "streamjoin").iterdir() if one.is_dir() and one.name != "plan"]
    paths = [path for folder in [*folders, ROOT / "backend", ROOT / "worker"] for path in folder.rglob("*.py")]
    assert len(paths) > 300  # it did look
    found = [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in _asking(ast.parse(path.read_text()))]
    assert not found, f"{', '.join(found)}: say it by what a plan has, in plan/plan.py"


@pytest.mark.parametrize(
    "text",
    ["isinstance(plan, Cascade)", "assert isinstance(plan, JoinPlan | Bundle)", "type(plan) is SharedJoin",
     "match plan:\n    case Cascade():\n        pass"],
)  # fmt: skip
def test_asking_is_found(text: str) -> None:
    assert list(_asking(ast.parse(text)))


def _asking(tree: ast.AST) -> Iterator[int]:
    """Lines that ask whether something is an instance of one of `WAYS`."""
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            asked = [node.args[1]]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        elif isinstance(node, ast.Compare):
            asked = node.comparators
        names = {name.id for one in asked for name in ast.walk(one) if isinstance(name, ast.Name)}
        if names & WAYS:
            yield node.lineno if isinstance(node, ast.expr) else asked[0].lineno
