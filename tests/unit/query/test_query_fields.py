"""Fields of structs in queries: `stream.column.field`, and without the stream where one fits."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.errors import QueryError
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query

TS = ("ts", pa.timestamp("us", "UTC"))
R = pa.schema([TS, ("k", pa.int64()), ("p.id", pa.int64()), ("p.at.x", pa.float64()), ("s.k", pa.string())])
S = pa.schema([TS, ("k", pa.int64()), ("p.id", pa.int64()), ("q.z", pa.string())])
STREAMS = {"r": StreamSchema("r", R, "ts"), "s": StreamSchema("s", S, "ts")}


def planned(select: str, where: str = "r.k = s.k") -> JoinPlan:
    return plan_query(f"SELECT ONLINE {select} FROM r, s WHERE {where} WITHIN 1 SECONDS", STREAMS)


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        ("r.p.id", {"id": "r.p.id"}),
        ("r.p.at.x, q.z", {"x": "r.p.at.x", "z": "s.q.z"}),
        ("R.P.AT.X", {"X": "r.p.at.x"}),
        ("p.at.x", {"x": "r.p.at.x"}),
        ("r.p.id, s.p.id", {"r_p_id": "r.p.id", "s_p_id": "s.p.id"}),
        ("r.p.id AS a, s.p.id AS b", {"a": "r.p.id", "b": "s.p.id"}),
        ('r."p.id"', {"p.id": "r.p.id"}),
        ("s.k", {"k": "s.k"}),  # a stream's name comes first
        ("r.s.k", {"k": "r.s.k"}),
    ],
)
def test_fields_are_named_with_dots_and_called_by_their_last_name(select: str, columns: dict[str, str]) -> None:
    assert {name: str(found) for name, found in planned(select).select} == columns


def test_fields_are_joined_on_and_selected_by() -> None:
    plan = planned("r.k", "r.p.id = s.p.id AND p.at.x > 1.5")
    assert len(plan.predicate.equalities) == 1
    assert str(plan.predicate.selections[0]) == "(r.p.at.x > 1.5)"


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("p.id", '"p.id" can be r.p.id or s.p.id; write which'),
        ("r.p", '"r.p" is a struct; name a field of it, such as r.p.id'),
        ("r.p.nothing", 'there is no column "r.p.nothing"'),
        ("t.p.id", 'there is no stream "t" in FROM'),
        ("r.p.id, r.p.id", 'two output columns are called "r_p_id": r.p.id and r.p.id; give one another name with AS'),
        ("r.k, r.k", 'two output columns are called "r_k": r.k and r.k; give one another name with AS'),
    ],
)
def test_names_that_mean_nothing_or_two_things_are_refused(select: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        planned(select)
    assert message in caught.value.message


CASED = pa.schema([TS, ("k", pa.int64()), ("Id", pa.int64()), ("id", pa.int64()), ("ID", pa.int64())])


def cased(select: str) -> JoinPlan:
    streams = {"r": StreamSchema("r", CASED, "ts"), "s": StreamSchema("s", CASED, "ts")}
    return plan_query(f"SELECT ONLINE {select} FROM r, s WHERE r.k = s.k WITHIN 1 SECONDS", streams)


def test_names_that_differ_by_case_only_are_told_apart_where_a_query_needs_them() -> None:
    assert [str(found) for _, found in cased("r.Id, s.ID AS other, r.K").select] == ["r.Id", "s.ID", "r.k"]
    with pytest.raises(QueryError, match=r'"iD" can be r.Id or r.id or r.ID; write which'):
        cased("r.iD")
    with pytest.raises(QueryError, match='two output columns are called "r_id"'):
        cased("r.*")
