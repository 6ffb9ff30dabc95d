"""ASOF JOIN: what it means, and what is refused at its place."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import InputError, QueryError
from streamjoin.plan.asof import AsOf
from streamjoin.plan.expression import TRUE
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.plan.window import FullHistory, TimeWindow
from streamjoin.query import plan_query

COLUMNS = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("i", pa.int64()), ("x", pa.int64())])
STREAMS = {name: StreamSchema(name, COLUMNS, "at") for name in "abc"}
STREAMS["none"] = StreamSchema("none", COLUMNS, "arrival")
STREAMS["seconds"] = StreamSchema("seconds", COLUMNS, "i", "s")
STREAMS["millis"] = StreamSchema("millis", COLUMNS, "i", "ms")
STREAMS["rel"] = StreamSchema.of_relation("rel", COLUMNS)
KEYED = "a.k = b.k AND a.at >= b.at"


def planned(joined: str) -> JoinPlan:
    found = plan_query(f"SELECT ONLINE a.x AS ax, b.x AS bx FROM {joined}", STREAMS)
    assert isinstance(found, JoinPlan)
    return found


@pytest.mark.parametrize(
    ("joined", "asof"),
    [
        (f"a ASOF JOIN b ON {KEYED}", AsOf(keeps=False, older=False)),
        (f"a ASOF LEFT JOIN b ON {KEYED}", AsOf(keeps=True, older=False)),
        ("a asof left outer join b ON b.at < a.at AND b.k = a.k", AsOf(keeps=True, older=True)),
        ("a ASOF JOIN b ON a.k = b.k AND (a.at > b.at) AND a.i = b.x", AsOf(keeps=False, older=True)),
        ("a AS b ASOF JOIN b AS a ON a.k = b.k AND b.at >= a.at", AsOf(keeps=False, older=False)),
    ],
)
def test_each_form_gives_its_join(joined: str, asof: AsOf) -> None:
    assert planned(joined).asof == asof


def test_within_bounds_how_old_the_right_row_may_be() -> None:
    assert planned(f"a ASOF JOIN b ON {KEYED} WITHIN 2 SECONDS").window == TimeWindow(2_000_000, 0)
    assert planned(f"a ASOF JOIN b ON {KEYED}").window == FullHistory()


def test_where_drops_left_rows_at_once_and_right_ones_only_when_they_come_out() -> None:
    plan = planned(f"a ASOF JOIN b ON {KEYED} WHERE a.x > 1 AND b.x > 2 AND a.x <> b.x")
    assert str(plan.predicate.selections[0]) == "(a.x > 1)" and plan.predicate.selections[1] == TRUE
    assert str(plan.filter) == "((b.x > 2) AND (a.x <> b.x))"


@pytest.mark.parametrize(
    ("joined", "at", "message"),
    [
        ("a ASOF JOIN b ON a.k = b.k", None, "needs a comparison of the event times; write ON a.key = b.key"),
        ("a ASOF JOIN b ON a.at >= b.at", None, "needs an equality between the two streams; write ON"),
        (f"a ASOF JOIN b ON {KEYED} AND b.x > 2", "b.x > 2", "write other conditions in WHERE"),
        (f"a ASOF JOIN b ON {KEYED} AND a.x > b.x", "a.x > b.x", "write other conditions in WHERE"),
        (f"a ASOF JOIN b ON {KEYED} AND a.at > b.at", "a.at > b.at", "has one comparison of the event times"),
        (
            "a ASOF JOIN b ON a.k = b.k AND a.at <= b.at",
            "a.at <= b.at",
            "write a.at >= b.at, or > for one that is older",
        ),
        ("a ASOF JOIN b USING (k)", None, "ASOF JOIN takes ON"),
        (f"a ASOF RIGHT JOIN b ON {KEYED}", None, "as-of joins are ASOF JOIN and ASOF LEFT JOIN"),
        (
            f"a ASOF JOIN b ON {KEYED} JOIN c ON a.k = c.k WITHIN 5 ROWS",
            "WITHIN 5 ROWS",
            "a window of rows or of two sides is for two streams",
        ),
        (
            f"a ASOF JOIN b ON {KEYED} JOIN c ON a.k = c.k WITHIN 1 HOUR FOR a, 1 HOUR FOR c",
            None,
            "b has no reach in this WITHIN",
        ),
        (
            f"a ASOF JOIN b ON {KEYED} ASOF JOIN c ON a.k = c.k AND b.at > c.at",
            "b.at > c.at",
            "b comes by an ASOF JOIN itself, as of the time of a row before it; compare that one, such as a.at >= c.at",
        ),
        (
            "a JOIN c ON a.k = c.k ASOF JOIN b ON a.k = b.k AND a.at >= b.at AND c.at >= b.at",
            "c.at >= b.at",
            "has one comparison of the event times",
        ),
        (
            "a JOIN c ON a.k = c.k ASOF JOIN b ON a.i = c.i AND a.at >= b.at",
            None,
            "has equalities between the two streams",
        ),
        ("a JOIN c ON a.k = c.k ASOF JOIN b ON a.k = b.k AND c.at < b.at", "c.at < b.at", "write c.at >= b.at, or >"),
        (
            "a, c ASOF JOIN b ON c.k = b.k AND a.at >= b.at",
            None,
            "this ON reads a, which a comma separates from it: .* write CROSS JOIN in place of the comma",
        ),
        ("a JOIN c ON a.k = c.k ASOF JOIN rel AS b ON a.k = b.k AND a.at >= b.at", None, '"rel" is a relation, whose'),
        (
            "rel AS c ASOF JOIN b ON c.k = b.k AND c.at >= b.at, a",
            None,
            "which are relations only, whose rows have no time",
        ),
        ("a ASOF JOIN b USING (k), c", None, "ASOF JOIN takes ON"),
        (f"a ASOF FULL JOIN b ON {KEYED}, c", None, "as-of joins are ASOF JOIN and ASOF LEFT JOIN"),
        (f"a ASOF JOIN b ON {KEYED} WITHIN 5 ROWS", "WITHIN 5 ROWS", "one span, how old the right row may be"),
        (f"a ASOF JOIN b ON {KEYED} WITHIN (1 SECOND, 2 SECONDS)", None, "one span, how old the right row may be"),
        ("a ASOF JOIN none AS b ON a.k = b.k AND a.at >= b.at", None, "b has no column of event time"),
        ("a ASOF JOIN b", None, "needs an equality between the two streams"),
        ("a ASOF JOIN rel AS b ON a.k = b.k AND a.at >= b.at", None, "is a relation"),
        (
            "a ASOF JOIN seconds AS b ON a.k = b.k AND b.i <= a.at",
            "b.i <= a.at",
            "b.i is a number and a.at is timestamp.* both are event times, so write CAST.b.i AS TIMESTAMP. <= a.at",
        ),
        (
            "seconds AS a JOIN c ON a.k = c.k ASOF JOIN b ON a.k = b.k AND a.i >= b.at WITHIN 1 HOUR",
            None,
            "so write CAST.a.i AS TIMESTAMP. >= b.at",
        ),
    ],
)
def test_what_is_refused_is_shown_where_it_stands(joined: str, at: str | None, message: str) -> None:
    text = f"SELECT ONLINE a.x AS ax, b.x AS bx FROM {joined}"
    with pytest.raises(QueryError, match=message.replace("(", r"\(")) as refused:
        plan_query(text, STREAMS)
    span = refused.value.span
    assert span is not None
    if at is not None:
        assert text[span.column - 1 : span.end_column] == at


def test_numbers_of_different_units_are_refused() -> None:
    with pytest.raises(InputError, match="give the two streams one unit"):
        plan_query("SELECT ONLINE a.x FROM seconds AS a ASOF JOIN millis AS b ON a.k = b.k AND a.i >= b.i", STREAMS)


@pytest.mark.parametrize(
    "setting", [{"index": "tree"}, {"archive_period_us": 5}, {"main": "a.k = b.k"}, {"tree": ("a", "b")}]
)
def test_settings_of_other_joins_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(InputError, match="run in one way; leave it out"):
        plan_query(f"SELECT ONLINE a.x FROM a ASOF JOIN b ON {KEYED} WITHIN 1 HOUR", STREAMS, **setting)


ENDING = {**STREAMS, "b": StreamSchema("b", COLUMNS, "at", key=("k", "i"))}


def test_rows_may_end_the_key_that_on_compares() -> None:
    for on in ("a.k = b.k AND b.i = a.x", "b.i = a.x AND a.k = b.k AND a.i = b.i"):
        plan = plan_query(f"SELECT ONLINE a.x FROM a ASOF JOIN b ON {on} AND a.at >= b.at", ENDING)
        assert isinstance(plan, JoinPlan) and plan.asof == AsOf(False, False, ("x",))
    plain = plan_query("SELECT ONLINE b.x FROM b ASOF JOIN a ON b.k = a.k AND b.at >= a.at", ENDING)
    assert isinstance(plain, JoinPlan) and plain.asof == AsOf(False, False)


@pytest.mark.parametrize("on", ["a.k = b.k", "a.k = b.k AND a.i = b.i AND a.x = b.x", "a.k = b.k AND a.i = b.i + 1"])
def test_rows_that_may_end_another_key_are_refused(on: str) -> None:
    text = f"SELECT ONLINE a.x FROM a ASOF JOIN b ON {on} AND a.at >= b.at"
    says = r"rows of b may end their key, so ON compares that key, k, i, .* such as a.k = b.k AND a.i = b.i; or leave"
    with pytest.raises(QueryError, match=says):
        plan_query(text, ENDING)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (("no",), 'there is no column "no"; columns are at, k, i, x'),
        (("k", "k"), '"k" is in it twice; name each column once'),
        (("k", "at"), '"at" is the event time, which each row of a key has anew; leave it out'),
        (("x", "i", "k"), "names every column but the event time, so each row would end its key"),
    ],
)
def test_a_key_that_cannot_be_one_is_refused(key: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        StreamSchema("b", COLUMNS, "at", key=key)
    assert refused.value.field == "streams.b.key"


def test_beside_other_joins_it_is_a_stage_of_its_own() -> None:
    joined = f"a ASOF LEFT JOIN b ON {KEYED} JOIN c ON b.x = c.x WITHIN 2 SECONDS FOR a, 1 HOUR FOR b, 5 SECONDS FOR c"
    plan = plan_query(f"SELECT ONLINE a.x AS ax, c.x AS cx FROM {joined}", STREAMS, index="hash")
    assert isinstance(plan, Cascade) and plan.shape == "((a, b), c)" and plan.index == "hash"
    latest, window = (stage.plan for stage in plan.stages)
    assert isinstance(latest, JoinPlan) and isinstance(window, JoinPlan) and window.asof is None
    assert latest.asof == AsOf(keeps=True, older=False) and latest.window == TimeWindow(3_600_000_000, 0)
    assert window.window == TimeWindow(5_000_000, 2_000_000)


@pytest.mark.parametrize(
    ("joined", "at", "lags_us"),
    [
        ("a JOIN c ON a.k = c.k ASOF JOIN b ON a.k = b.k AND a.at >= b.at WITHIN 2 SECONDS", "a.__ts", 2_000_000),
        ("a JOIN c ON a.k = c.k ASOF JOIN b ON a.k = b.k AND c.at >= b.at", "c.__ts", None),
        ("a LEFT SEMI JOIN c ON a.k = c.k ASOF JOIN b ON a.k = b.k AND a.at >= b.at WITHIN 2 SECONDS", None, None),
        ("a JOIN rel ON a.k = rel.k ASOF JOIN b ON a.k = b.k AND a.at >= b.at", None, None),
        (f"a ASOF JOIN c ON a.k = c.k AND a.at > c.at ASOF JOIN b ON {KEYED} WITHIN 2 SECONDS", None, None),
    ],
)
def test_a_row_of_several_parts_looks_by_the_time_of_one(joined: str, at: str | None, lags_us: int | None) -> None:
    plan = plan_query(f"SELECT ONLINE b.x FROM {joined}", STREAMS)
    asof = plan.stages[-1].asof if isinstance(plan, Cascade) else None
    assert asof is not None and (asof.at and asof.at.name) == at and asof.at_lags_us == lags_us


@pytest.mark.parametrize(("setting", "field"), [({"tree": (("a", "b"), "c")}, "tree"), ({"main": "a.k = c.k"}, "main")])
def test_the_order_of_joins_is_that_of_the_query(setting: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match="leave it out") as refused:
        plan_query(f"SELECT ONLINE a.x FROM a ASOF JOIN b ON {KEYED} JOIN c ON a.k = c.k", STREAMS, **setting)
    assert refused.value.field == f"operator.{field}"


TIMED = {
    "micros": pa.timestamp("us", tz="UTC"),
    "nanos": pa.timestamp("ns", tz="UTC"),
    "days": pa.date32(),
    "seconds": pa.int64(),
    "small": pa.int32(),
    "unsigned": pa.uint32(),
}


def compared(left: str, right: str, comparison: str) -> AsOf | None:
    """What a join of a and b is whose event times are of these types."""
    streams = {
        name: StreamSchema(name, pa.schema([("at", TIMED[kind]), ("k", pa.int64())]), "at", "s")
        for name, kind in (("a", left), ("b", right))
    }
    plan = plan_query(f"SELECT ONLINE a.k FROM a ASOF JOIN b ON a.k = b.k AND {comparison}", streams)
    assert isinstance(plan, JoinPlan)
    return plan.asof


@pytest.mark.parametrize(
    ("left", "right", "comparison"),
    [
        *((one, other, "a.at >= b.at") for kinds in (("micros", "nanos", "days"), ("seconds", "small", "unsigned"))
          for one in kinds for other in kinds),
        ("micros", "seconds", "a.at >= CAST(b.at AS TIMESTAMP)"),
        ("small", "nanos", "CAST(a.at AS TIMESTAMP) >= b.at"),
        ("seconds", "days", "CAST(CAST(a.at AS BIGINT) AS TIMESTAMP) >= b.at"),
        ("nanos", "micros", "CAST(a.at AS TIMESTAMP) >= b.at"),
        ("micros", "nanos", "CAST(a.at AS TIMESTAMP_NS) >= b.at"),
        ("days", "micros", "CAST(a.at AS TIMESTAMP) >= b.at"),
        ("micros", "seconds", "CAST(a.at AS BIGINT) >= b.at"),
    ],
)  # fmt: skip
def test_casts_that_keep_the_order_of_times_say_nothing(left: str, right: str, comparison: str) -> None:
    assert compared(left, right, comparison) == AsOf(keeps=False, older=False)


@pytest.mark.parametrize(
    ("left", "right", "comparison"),
    [
        ("micros", "micros", "CAST(a.at AS DATE) >= b.at"),
        ("nanos", "micros", "a.at >= CAST(b.at AS DATE)"),
        ("micros", "micros", "CAST(CAST(a.at AS DATE) AS TIMESTAMP) >= b.at"),
        ("micros", "micros", "CAST(a.at AS VARCHAR) >= CAST(b.at AS VARCHAR)"),
        ("seconds", "seconds", "CAST(a.at AS INT) >= b.at"),
        ("seconds", "seconds", "CAST(a.at AS DOUBLE) >= b.at"),
        ("seconds", "seconds", "CAST(a.at AS DECIMAL(9, 0)) >= b.at"),
        ("micros", "seconds", "CAST(a.at AS BIGINT) >= CAST(b.at AS SMALLINT)"),
    ],
)
def test_casts_that_make_one_of_several_times_are_refused(left: str, right: str, comparison: str) -> None:
    message = r"one comparison of their event times, such as ON a\.key = b\.key AND a\.at >= b\.at"
    with pytest.raises(QueryError, match=message) as refused:
        compared(left, right, comparison)
    assert refused.value.span is not None
