"""Queries of several kinds in one join file: how they are bound and explained, and what is refused, with its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError
from streamjoin.explain.bundle import explain, summary
from streamjoin.explain.preview import preview
from streamjoin.plan.sharing import SharedJoin
from streamjoin.plan.stages import Bundle

from .conftest import GONE, Changes, Try

IDS = "SELECT ONLINE o.id AS o, p.id AS p FROM orders AS o"
PAIRS = f"{IDS}, payments AS p WHERE o.k = p.k WITHIN 10 SECONDS"
NEAR = f"{IDS}, payments AS p WHERE o.k = p.k AND o.price > 1 WITHIN 5 SECONDS"
LEFT = f"{IDS} LEFT JOIN payments AS p ON o.k = p.k WITHIN 9 SECONDS"
LATEST = f"{IDS} ASOF JOIN payments AS p ON o.k = p.k AND o.ts >= p.ts"
GROUPS = "SELECT ONLINE o.k, COUNT(*) AS n FROM orders AS o GROUP BY o.k, TUMBLE(1 MINUTE)"
NAMED = "SELECT ONLINE o.id, c.name FROM orders AS o JOIN customers AS c ON o.k = c.id"
THREE = f"{IDS}, payments AS p, orders AS q WHERE o.k = p.k AND p.k = q.k WITHIN 5 SECONDS"
WIDER = THREE.replace("5 SECONDS", "7 SECONDS")
ALL = {"pairs": PAIRS, "near": NEAR, "left": LEFT, "latest": LATEST, "groups": GROUPS}


def queries(**given: str) -> Changes:
    found = {name: {"query": query, "results": {"discard": True}} for name, query in given.items()}
    return {"query": GONE, "results": GONE, "queries": found}


@pytest.fixture
def customers(tmp_path: Path) -> Changes:
    pq.write_table(pa.table({"id": [1, 2], "name": ["Ada", "Bob"]}), tmp_path / "customers.parquet")
    return {"relations": {"customers": {"source": "parquet", "path": str(tmp_path / "customers.parquet")}}}


def test_pairs_are_one_part_and_every_other_query_is_one(validate: Try, customers: Changes) -> None:
    bound = validate({**customers, **queries(**ALL, named=NAMED)})
    assert isinstance(bound.plan, Bundle)
    assert [part.names for part in bound.plan.parts] == [
        ("pairs", "near"), ("left",), ("latest",), ("groups",), ("named",)
    ]  # fmt: skip
    assert [one.name for one in bound.queries] == ["pairs", "near", "left", "latest", "groups", "named"]
    assert bound.operators == ("biclique", "biclique", "asof", "aggregate", "lookup")
    operators = [operator.name for operator in bound.job().operators]
    assert operators == ["biclique", "biclique", "asof", "aggregate", "lookup"]
    assert summary(bound) == (
        "pairs, near, left, latest, groups, named: 6 queries over orders, payments and customers, which share what is "
        "read of streams, in 5 parts of 5 stages"
    )


def test_pairs_alone_share_their_tuples_as_ever(validate: Try) -> None:
    assert isinstance(validate(queries(pairs=PAIRS, near=NEAR)).plan, SharedJoin)


def test_a_stopped_query_that_no_checkpoint_knows_counts_for_nothing(validate: Try) -> None:
    bound = validate({**queries(pairs=PAIRS, near=NEAR, left=LEFT), "queries/left/stopped": True})
    assert isinstance(bound.plan, SharedJoin)
    assert [one.name for one in bound.queries] == ["pairs", "near"]


@pytest.mark.parametrize(
    "other",
    [
        PAIRS.replace("10 SECONDS", "5 ROWS"),
        PAIRS.replace("orders AS o, payments AS p", "payments AS p, orders AS o"),
    ],
)
def test_pairs_that_cannot_share_tuples_are_parts_of_their_own(other: str, validate: Try) -> None:
    bound = validate(queries(pairs=PAIRS, near=NEAR, other=other))
    assert isinstance(bound.plan, Bundle)
    assert [part.names for part in bound.plan.parts] == [("pairs", "near"), ("other",)]


def test_explain_says_what_is_shared_and_explains_each_part(validate: Try) -> None:
    found = explain(validate(queries(**ALL)))
    lines = str(found).splitlines()
    assert lines[:8] == [
        "job         5 queries: pairs, near, left, latest, groups",
        "shared      orders is read and decoded once, for 4 stages: ts, id, k, price",
        "            payments is read and decoded once, for 3 stages: ts, id, k",
        "            pairs and near share the stored tuples of o and p",
        "not shared  what each part stores, its marks and its matched rows; a stream's rows are sent",
        "            to each part that selects them",
        "operator    operator.name is one for all queries; left out, each part has one that fits it",
        "shuffles    1 a batch: the parts run side by side",
    ]
    assert "queries     pairs and near, in the job stage 1" in lines and "query       left, in the job stage 2" in lines
    assert sum(line.startswith("spark ") and "cannot:" in line for line in lines) == len(found.parts) - 1
    told = json.loads(json.dumps(found.to_json()))
    assert [part["names"] for part in told["parts"]] == [["pairs", "near"], ["left"], ["latest"], ["groups"]]
    assert told["reads"]["orders"] == ["ts", "id", "k", "price"]
    assert [stage["stage"] for stage in told["stages"]] == [1, 2, 3, 4]


def test_a_preview_shows_rows_of_each(validate: Try, customers: Changes) -> None:
    found = preview(validate({**customers, **queries(pairs=PAIRS, left=LEFT, named=NAMED)}))
    assert {one.query: one.rows.num_rows for one in found.queries} == {"pairs": 2, "left": 2, "named": 2}
    assert [one.name for one in found.looked] == ["orders", "payments", "customers"]


@pytest.mark.parametrize("operator", ["ring", "aligned", "coordinated"])
def test_operators_that_work_in_rounds_run_each_query_as_a_part(operator: str, validate: Try) -> None:
    """What docs/operators/ says of them."""
    bound = validate({**queries(pairs=PAIRS, near=NEAR, three=THREE), "operator": {"name": operator}})
    assert isinstance(bound.plan, Bundle)
    assert [part.names for part in bound.plan.parts] == [("pairs",), ("near",), ("three",)]
    assert bound.operators == (operator, operator, operator)


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({**queries(pairs=PAIRS, left=LEFT), "operator": {"name": "spark"}}, "operator.name", "one query a job"),
        (
            {**queries(pairs=PAIRS, left=LEFT), "operator": {"name": "biclique", "ordering": "total"}},
            "operator.ordering",
            "in no order",
        ),
        (
            {**queries(pairs=PAIRS, latest=LATEST), "operator": {"name": "biclique"}},
            "operator.name",
            "(query latest)",
        ),
        (
            queries(pairs=PAIRS, left=LEFT.replace("p.k WITHIN", "p.key WITHIN")),
            "",
            "queries.left.query, line 1, column",
        ),
        (
            queries(**{f"q{number}": LEFT for number in range(65)}),
            "queries",
            "65 queries are too many for one job; 64 at most",
        ),
        (
            {**queries(pairs=PAIRS, left=LEFT), "operator": {"name": "matrix", "row": 2}},
            "operator.row",
            "matrix has no such knob",
        ),
        (
            {**queries(three=THREE, wider=WIDER), "operator": {"name": "ring", "adaptive": True}},
            "operator.adaptive",
            "ring looks at all its rounds",
        ),
    ],
)
def test_what_queries_of_several_kinds_cannot_have_is_refused_with_its_place(
    changes: Changes, field: str, message: str, validate: Try
) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        validate(changes)
    assert not field or refused.value.field == field


def test_rings_of_several_queries_run_side_by_side(validate: Try) -> None:
    bound = validate({**queries(three=THREE, wider=WIDER), "operator": {"name": "ring"}})
    assert [operator.name for operator in bound.job().operators] == ["ring"] * 4


def test_shedding_is_refused(validate: Try) -> None:
    rule: dict[str, Any] = {"threshold": 100, "capacity": 200}
    validate({**queries(pairs=PAIRS, near=NEAR), "streams/orders/shed": rule})
    with pytest.raises(InputError, match="by the load of one operator") as refused:
        validate({**queries(pairs=PAIRS, groups=GROUPS), "streams/orders/shed": rule})
    assert refused.value.field == "streams.orders.shed"


def refusals(told: dict[str, Any], names: list[str]) -> dict[str, str | None]:
    """By operator, why it cannot run the part of these queries."""
    (part,) = (one for one in told["parts"] if one["names"] == names)
    return {one["name"]: one["refusal"] for one in part["operators"]}


def test_an_operator_can_run_a_query_of_several_if_it_can_run_them_all(validate: Try) -> None:
    semi = LEFT.replace("SELECT ONLINE o.id AS o, p.id AS p", "SELECT ONLINE o.id AS o").replace("LEFT", "LEFT SEMI")
    asked = queries(pairs=PAIRS, semi=semi, three=THREE)
    explained = explain(validate(asked))
    told = explained.to_json()
    chosen = {**asked, "operator": {"name": "handshake"}}
    with pytest.raises(InputError, match=r"handshake|chain"):
        validate(chosen)
    for names in (["pairs"], ["three"]):
        why = refusals(told, names)["handshake"]
        assert why is not None and "operator.name is one for all queries; semi: LEFT SEMI JOIN needs one unit" in why
        # What all can run is possible, and refused nowhere.
        assert refusals(told, names)["matrix"] is None
    validate({**asked, "operator": {"name": "matrix"}})
    (pairs,) = (one for one in told["parts"] if one["names"] == ["pairs"])
    costs = {one["name"]: one["memory_bytes"] for one in pairs["operators"]}
    assert costs["handshake"] is None and costs["matrix"] is not None and costs["biclique"] is not None
    assert "operator    operator.name is one for all queries; left out, each part has one that fits it" in str(
        explained
    )


def test_with_a_query_that_joins_nothing_no_operator_can_be_named(validate: Try) -> None:
    asked = queries(pairs=PAIRS, groups=GROUPS)
    with pytest.raises(InputError, match="joins nothing"):
        validate({**asked, "operator": {"name": "matrix"}})
    found = refusals(explain(validate(asked)).to_json(), ["pairs"])
    assert found["biclique"] is None
    assert str(found["matrix"]).endswith("groups: it joins nothing, and leaves operator.name out")


@pytest.mark.parametrize(
    ("query", "grows"),
    [
        ("SELECT DISTINCT ONLINE o.k FROM orders AS o", True),
        ("SELECT ONLINE o.k, COUNT(*) AS n FROM orders AS o GROUP BY o.k CUMULATIVE", True),
        (GROUPS, False),
    ],
)
def test_groups_alone_grow_by_what_no_sample_tells(query: str, grows: bool, validate: Try) -> None:
    told = explain(validate({"query": query}))
    figures = told.to_json()
    assert (figures["state_grows"], figures["state_bytes_per_hour"]) == (grows, None)
    said = "full history: state grows without end as long as rows come that are of no group before"
    assert (said in str(told)) == grows and "an hour" not in str(told) and "below" not in str(told)
