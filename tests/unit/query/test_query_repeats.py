"""IN, BETWEEN and CASE x repeat what stands before them: inside each other they double it with each level."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.errors import InputError, QueryError
from streamjoin.plan.coercion import call
from streamjoin.plan.expression import Column, Literal, walk
from streamjoin.plan.types import INT64
from streamjoin.query import bind_condition
from streamjoin.query.sizes import Sizes
from tests.processor import seconds_of

pytestmark = pytest.mark.slow

HEAD = "SELECT ONLINE R.k FROM R, S WHERE "
LARGE = "the query is too large: .* repeat what stands before them"
FORMS = {
    "in": "({} IN (TRUE, FALSE))",
    "between": "({} BETWEEN FALSE AND TRUE)",
    "case": "CASE {} WHEN TRUE THEN FALSE WHEN FALSE THEN TRUE END",
}


def nested(form: str, levels: int, inner: str = "(k = 1)") -> str:
    """A condition inside itself."""
    for _ in range(levels):
        inner = form.format(inner)
    return inner


@pytest.mark.timeout(60)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    "query",
    [
        HEAD + "{}",
        "SELECT ONLINE {} AS found FROM R, S WHERE R.k = S.k",
        "SELECT ONLINE R.k FROM R JOIN S ON R.k = S.k AND {}",
        "SELECT ONLINE COUNT(*) AS n FROM R GROUP BY {}",
        "SELECT ONLINE R.k, BOOL_AND({}) AS n FROM R GROUP BY R.k",
        "SELECT ONLINE R.k FROM R GROUP BY R.k HAVING {}",
    ],
    ids=["where", "select", "on", "group", "aggregate", "having"],
)
def test_forty_levels_are_refused_at_once(plan, query, form):
    def read() -> None:
        with pytest.raises(QueryError, match=LARGE) as caught:
            plan(query.format(nested(form, 40, "(R.k = 1)")))
        assert caught.value.span.line == 1

    assert seconds_of(read) < 0.5


@pytest.mark.timeout(60)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forty_levels_in_a_condition_on_results_are_refused_at_once(form):
    def read() -> None:
        with pytest.raises(InputError, match=LARGE):
            bind_condition(nested(form, 40), pa.schema({"k": pa.int64()}), "results")

    assert seconds_of(read) < 0.5


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_few_levels_are_bound(plan, form):
    assert plan(HEAD + nested(form, 6, "(R.k = 1)"))
    assert bind_condition(nested(form, 6), pa.schema({"k": pa.int64()}), "results")


def test_what_many_items_repeat_counts_together(plan):
    item = nested(FORMS["in"], 12, "(R.k = 1)")
    assert plan(f"SELECT ONLINE {item} AS a FROM R, S")
    many = ", ".join(f"{item} AS a{number}" for number in range(12))
    with pytest.raises(QueryError, match=LARGE):
        plan(f"SELECT ONLINE {many} FROM R, S")


@pytest.mark.parametrize("column", ["k", "id"])
def test_in_of_ten_thousand_numbers_is_bound(plan, column):
    listed = ",".join(map(str, range(10_000)))
    assert plan(f"{HEAD}R.{column} IN ({listed})")
    assert bind_condition(f"k IN ({listed})", pa.schema({"k": pa.int64()}), "results")


def test_five_thousand_conditions_are_bound(plan):
    assert plan(HEAD + " AND ".join(["x = y"] * 5_000))
    assert bind_condition(" AND ".join(["k > 1"] * 5_000), pa.schema({"k": pa.int64()}), "results")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("form", ["({} IS TRUE)", "({} IS DISTINCT FROM TRUE)", "(NOT ({} IS NOT DISTINCT FROM ok))"])
def test_the_text_of_thirty_comparisons_inside_each_other_is_made_at_once(form):
    levels = 30  # of the last form two pairs of brackets each
    found = bind_condition(nested(form, levels), pa.schema({"k": pa.int64(), "ok": pa.bool_()}), "results")
    assert seconds_of(lambda: str(found)) < 0.5
    assert str(found).count(" IS ") == levels


def test_sizes_count_what_is_shared_as_often_as_it_stands_there():
    shared = call("add", Column("R", "k", INT64), Literal(1, INT64))
    whole = call("multiply", shared, shared)
    assert Sizes().of(whole) == 7 == len(list(walk(whole)))
    for _ in range(60):
        whole = call("add", whole, whole)
    assert Sizes().of(whole) == 2**60 * 8 - 1


def test_walk_gives_parents_first_and_parts_from_left_to_right():
    inner = call("add", Column("R", "k", INT64), Literal(1, INT64))
    whole = call("multiply", inner, Literal(2, INT64))
    assert list(walk(whole)) == [whole, inner, *inner.args, Literal(2, INT64)]
