"""Names: which column is meant, and what output columns are called."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.errors import InputError, QueryError
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.query import RegisteredPredicate, bind, parse, plan_query


def check(plan, items: str, names: str, source: str = "R, S") -> None:
    """The output columns of SELECT ONLINE `items` are called `names`, separated by blanks."""
    assert " ".join(name for name, _ in plan(f"SELECT ONLINE {items} FROM {source}").select) == names


def test_a_column_keeps_its_name(plan):
    check(plan, "R.x, y", "x y")


def test_an_alias_wins_with_and_without_as(plan):
    check(plan, 'R.x AS one, S.y two, R.k "three", S.k `four`', "one two three four")


def test_columns_of_one_name_get_the_stream_in_front(plan):
    check(plan, "R.k, R.x, S.k", "R_k x S_k")


def test_a_column_gives_way_to_an_alias_of_its_name(plan):
    check(plan, "R.k, S.y AS K", "R_k K")


def test_an_expression_is_called_by_its_position(plan):
    check(plan, "R.x, R.x + 1, ABS(S.y)", "x column_2 column_3")


def test_a_star_is_every_column_of_both_streams_in_order(plan):
    check(plan, "*", "R_k x name ts ok day id price S_k y label a b")


def test_a_qualified_star_is_every_column_of_one_stream(plan):
    check(plan, "S.*, R.x", "k y label a b x")


USING = {
    "A": StreamSchema("A", pa.schema([("x", pa.string()), ("k", pa.int64()), ("L", pa.date32())]), ARRIVAL),
    "B": StreamSchema(
        "B", pa.schema([("k", pa.float64()), ("y", pa.bool_()), ("l", pa.timestamp("us", tz="UTC"))]), ARRIVAL
    ),
}


def test_using_makes_one_column_of_two_that_comes_first_and_needs_no_stream():
    found = plan_query("SELECT ONLINE *, A.k AS mine FROM A JOIN B USING (l, k) WHERE k > 5 AND B.k < 9", USING)
    assert [str(equality.source) for equality in found.predicate.equalities] == [
        "(CAST(A.L AS timestamp) = B.l)",
        "(CAST(A.k AS float64) = B.k)",
    ]
    # In the types of the comparisons, as if either side had been taken.
    assert {name: str(expression) for name, expression in found.select} == {
        "L": "CAST(A.L AS timestamp)",
        "k": "CAST(A.k AS float64)",
        "x": "A.x",
        "y": "B.y",
        "mine": "A.k",
    }
    assert [str(selection.args[0]) for selection in found.predicate.selections] == ["CAST(A.k AS float64)", "B.k"]


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("k, A.k, B.k", "k A_k B_k"),
        ("K, x", "k x"),
        ("k + 1, l", "column_1 L"),
        ("A.*, B.k AS other", "x k L other"),
        ("B.*, k AS again", "k y l again"),
        ("l AS k, B.k", "k B_k"),
    ],
)
def test_columns_of_using_have_the_name_it_was_written_with(items, names):
    select = plan_query(f"SELECT ONLINE {items} FROM A JOIN B USING (k, l)", USING).select
    assert " ".join(name for name, _ in select) == names


def test_using_of_columns_that_cannot_be_compared_is_refused_there():
    streams = {name: StreamSchema(name, pa.schema([("k", kind)]), ARRIVAL)
               for name, kind in (("A", pa.string()), ("B", pa.int64()))}  # fmt: skip
    with pytest.raises(QueryError, match=r"column 40: =: cannot compare string with int64"):
        plan_query("SELECT ONLINE A.k FROM A JOIN B USING (k)", streams)


def test_both_kinds_of_quotes_make_a_name(plan):
    check(plan, 'S."a b", S.`a b` AS again', "a b again")


def test_characters_beyond_16_bits_stay_whole_in_names_and_texts():
    pizza = "\U0001f355\U0001f3fd"
    stream = StreamSchema("R", pa.schema([(pizza, pa.string())]), ARRIVAL)
    items = f"R.\"{pizza}\", S.`{pizza}`, 'a{pizza}' AS `{pizza}!`"
    text = f"SELECT ONLINE {items} FROM R, R AS S WHERE R.\"{pizza}\" ILIKE '{pizza}%'"
    found = plan_query(text, {"R": stream})
    assert found.text == text
    assert {name: str(expression) for name, expression in found.select} == {
        f"R_{pizza}": f"R.{pizza}",
        f"S_{pizza}": f"S.{pizza}",
        f"{pizza}!": f"'a{pizza}'",
    }
    assert str(found.predicate.selections[0]) == f"(R.{pizza} ILIKE '{pizza}%')"


def test_a_self_join_calls_the_stream_by_two_names(plan):
    found = plan("SELECT ONLINE one.k, other.k FROM R AS one JOIN R other ON one.k = other.k")
    assert found.names == ("one", "other")
    assert [stream.name for stream in found.streams] == ["R", "R"]
    assert [name for name, _ in found.select] == ["one_k", "other_k"]
    assert len(found.predicate.equalities) == 1


def test_case_decides_first_and_is_ignored_where_only_one_name_fits(plan):
    check(plan, "r.X, S.LABEL", "x label", "r, s")


def test_streams_whose_names_differ_by_case_only_are_told_apart():
    upper = StreamSchema("T", pa.schema([("a", pa.int64())]), ARRIVAL)
    lower = StreamSchema("t", pa.schema([("b", pa.int64())]), ARRIVAL)
    found = plan_query("SELECT ONLINE * FROM t AS one, T AS other", {"T": upper, "t": lower})
    assert found.streams == (lower, upper)


def test_one_parsed_query_can_be_bound_to_different_streams(plan):
    parsed = parse("SELECT ONLINE a.v FROM A a, B b WITHIN 5 ROWS")
    for kind in (pa.int64(), pa.string()):
        stream = StreamSchema("A", pa.schema([("v", kind)]), ARRIVAL)
        assert bind(parsed, {"A": stream, "B": stream}).output == pa.schema([("v", kind)])


def test_the_plan_keeps_the_text_as_written(plan):
    text = "select ONLINE  R.k\nFROM R, S -- all\n"
    assert plan(text).text == text


def test_a_wrong_argument_beside_the_query_is_named(plan):
    with pytest.raises(InputError, match="archive period"):
        plan("SELECT ONLINE R.k FROM R, S", archive_period_us=0)
    with pytest.raises(InputError, match="hash index needs an equality"):
        plan("SELECT ONLINE R.k FROM R, S WHERE R.k < S.k", index="hash")
    with pytest.raises(InputError, match='"ABS" has the name of a built-in'):
        plan("SELECT ONLINE R.k FROM R, S", predicates={"ABS": RegisteredPredicate(abs, (pa.int64(),))})


def test_no_streams_at_all_is_an_error_with_a_place():
    with pytest.raises(QueryError, match="there is no stream") as caught:
        plan_query("SELECT ONLINE *\nFROM R, S", {})
    assert (caught.value.span.line, caught.value.span.column) == (2, 6)


def test_the_exact_name_wins_over_one_of_another_case_in_the_other_stream():
    streams = {
        "A": StreamSchema("A", pa.schema([("Key", pa.int64())]), ARRIVAL),
        "B": StreamSchema("B", pa.schema([("key", pa.string())]), ARRIVAL),
    }
    assert str(plan_query("SELECT ONLINE key FROM A, B", streams).select[0][1]) == "B.key"
    assert str(plan_query("SELECT ONLINE Key FROM A, B", streams).select[0][1]) == "A.Key"
    with pytest.raises(QueryError, match=r'"KEY" can be A\.Key or B\.key'):
        plan_query("SELECT ONLINE KEY FROM A, B", streams)
