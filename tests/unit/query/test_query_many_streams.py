"""Queries over three streams and more, as people write them: what they mean, and what they are told."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from streamjoin.errors import InputError, QueryError, UnsupportedError
from streamjoin.explain.stages import joined_streams
from streamjoin.operators import registry
from streamjoin.plan.schema import ARRIVAL, StreamSchema, parse_schema
from streamjoin.plan.stages import Cascade
from streamjoin.plan.window import FullHistory, TimeWindow
from streamjoin.query import RegisteredPredicate, plan_query
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind

STREAMS = {
    name: StreamSchema(name, parse_schema(columns), ARRIVAL)
    for name, columns in {
        "a": {"id": "int64", "k": "int64", "x": "float64"},
        "b": {"id": "int64", "k": "int64", "y": "float64", "name": "string"},
        "c": {"id": "int64", "k": "float64", "z": "float64", "name": "string"},
        "d": {"K": "int64", "w": "float64"},
        "odd.name": {"k": "int64", "a.b": "int64", 'q"q': "int64"},
    }.items()
}
PREDICATES = {
    "near": RegisteredPredicate(lambda left, right: abs(left - right) < 1, (pa.float64(), pa.float64())),
    "amid": RegisteredPredicate(lambda low, x, high: (low < x) & (x < high), (pa.float64(),) * 3),
}
CHAIN = "a.k = b.k AND b.k = c.k"
SPAN = "WITHIN 10 SECONDS"


def planned(source: str, items: str = "*", within: str = SPAN, **settings) -> Cascade:
    found = plan_query(f"SELECT ONLINE {items} FROM {source} {within}", STREAMS, predicates=PREDICATES, **settings)
    assert isinstance(found, Cascade)
    return found


def columns(plan: Cascade) -> str:
    return " ".join(field.name for field in plan.answering.output)


def checked(plan: Cascade) -> list[list[str]]:
    """What each stage checks, as it is written."""
    return [[str(condition) for condition in stage.conditions] for stage in plan.stages]


def refused(query: str, kind: type[InputError] = QueryError, **settings) -> tuple[str, str]:
    """The sentence, and the words it points at."""
    with pytest.raises(kind) as caught:
        plan_query(query, STREAMS, predicates=PREDICATES, **settings)
    span = getattr(caught.value, "span", None)
    return caught.value.message, query[span.column - 1 : span.end_column - 1] if span else ""


@pytest.mark.parametrize(
    ("source", "names", "conditions"),
    [
        ("a JOIN b USING (k) JOIN c USING (k)", "k a_id x b_id y b_name c_id z c_name",
         [["(a.k = b.k)"], ["(CAST(a.k AS float64) = c.k)"]]),
        ("a JOIN b USING (k) JOIN c USING (name)", "k name a_id x b_id y c_id c_k z",
         [["(a.k = b.k)"], ["(b.name = c.name)"]]),
        ("a JOIN b USING (k, id) JOIN c USING (id, k)", "id k x y b_name z c_name",
         [["(a.k = b.k)", "(a.id = b.id)"], ["(a.id = c.id)", "(CAST(a.k AS float64) = c.k)"]]),
        ("a JOIN b USING (k) JOIN d USING (k)", "k a_id x b_id y name w", [["(a.k = b.k)"], ["(a.k = d.K)"]]),
    ],
)  # fmt: skip
def test_a_chain_of_using_merges_its_columns_and_gives_them_first(source, names, conditions):
    plan = planned(source)
    assert columns(plan) == names
    assert checked(plan) == conditions


def test_a_star_is_every_column_in_the_order_of_from():
    assert columns(planned("a, d, b WHERE a.k = b.k AND d.K = a.k")) == "a_id a_k x d_K w b_id b_k y name"
    assert columns(planned("a JOIN b USING (k) JOIN d USING (k)", "d.*, a.x")) == "K w x"


@pytest.mark.parametrize(
    ("source", "sentence", "place"),
    [
        ("a JOIN b USING (k) JOIN c USING (id)", '"id" can be a.id or b.id; join them with ON', "id"),
        ("a JOIN b ON a.k = b.k JOIN c USING (k)", '"k" can be a.k or b.k; join them with ON', "k"),
        ("a JOIN b USING (k) JOIN c USING (nope)", 'no stream before c has a column "nope"', "nope"),
        ("a JOIN b USING (k) JOIN d USING (k, K)", '"K" stands twice in USING', "K"),
        ("a JOIN b ON a.k = c.k JOIN c ON b.k = c.k",
         "this ON reads c, which is joined later; write the condition where c is joined, or in WHERE", "a.k = c.k"),
        ("a JOIN b ON amid(a.x, b.y, c.z) JOIN c ON b.k = c.k", "this ON reads c, which is joined later",
         "amid(a.x, b.y, c.z)"),
        ("a JOIN b ON a.k = b.k JOIN c ON q.k = b.k", 'no stream "q" in FROM; the query reads "a", "b" and "c"', "q"),
        ("a JOIN b ON a.k = b.k JOIN c ON name = 'x'", '"name" can be b.name or c.name; write which', "name"),
        ("a JOIN b JOIN c ON a.k = c.k", "JOIN needs a condition", "JOIN"),
        ("a JOIN b ON a.k = b.k JOIN a ON a.k = b.k", 'calls the same stream "a"', "a"),
        ("a JOIN b ON a.k = b.k JOIN c AS A ON A.k = b.k", 'calls two streams "A"', "c AS A"),
        ("a LEFT JOIN (b JOIN c ON b.k = c.k AND a.x > 1) ON a.k = b.k",
         "this ON stands in brackets and reads a, which is outside of them; write the condition in the ON that joins "
         "the brackets with a, or in WHERE", "b.k = c.k AND a.x > 1"),
        ("(a JOIN b ON b.k = c.k) JOIN c ON b.k = c.k", "reads c, which is outside of them", "b.k = c.k"),
        ("a JOIN (b JOIN c ON b.k = d.k JOIN d ON d.k = b.k) ON a.k = b.k", "this ON reads d, which is joined later",
         "b.k = d.k"),
        ("a JOIN (b JOIN c ON b.k = c.k) ON a.k = d.k, d", "this ON reads d, which is joined later", "a.k = d.k"),
        ("(d, a LEFT JOIN b ON d.k = b.k), c", "this ON reads d, which a comma separates from it", "d.k = b.k"),
        ("a LEFT JOIN (b SEMI JOIN c ON b.k = c.k) ON a.k = c.k", "c is joined by LEFT SEMI or LEFT ANTI JOIN",
         "a.k = c.k"),
        ("a JOIN (b JOIN c ON b.k = c.k) USING (k)", '"k" can be b.k or c.k; join them with ON', "k"),
        ("a JOIN (b JOIN c ON b.k = c.k) USING (x)",
         'no stream in the brackets of b has a column "x", and USING needs one of each side', "x"),
        ("a JOIN (b JOIN c) ON a.k = b.k", "JOIN needs a condition", "JOIN"),
        ("a JOIN (b JOIN c ON b.k = c.k)", "JOIN needs a condition", "JOIN"),
        ("a LEFT JOIN (b LEFT JOIN nope ON b.k = nope.k) ON a.k = b.k", 'there is no stream "nope"', "nope"),
        ("a LEFT JOIN (nope LEFT JOIN c ON c.k = nope.k) ON a.k = b.k", 'there is no stream "nope"', "nope"),
        ("a LEFT JOIN (b AS A JOIN c ON A.k = c.k) ON a.k = c.k", 'calls two streams "A"', "b AS A"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_where_it_stands(source, sentence, place):
    found, words = refused(f"SELECT ONLINE * FROM {source} {SPAN}")
    assert sentence in found
    assert words == place


def test_a_condition_is_checked_where_the_last_of_its_streams_is_joined():
    where = "a.x > 3 AND a.x + b.y > c.z AND b.k = c.k AND a.k = b.k AND c.z < 2 AND b.y < 1"
    assert checked(planned(f"a, b, c WHERE {where}")) == [
        ["(a.x > 3.0)", "(a.k = b.k)", "(b.y < 1.0)"],
        ["((a.x + b.y) > c.z)", "(CAST(b.k AS float64) = c.k)", "(c.z < 2.0)"],
    ]
    # Of an ON too: it may read the streams before alone.
    assert checked(planned("a JOIN b ON b.k = 3 JOIN c ON a.k = b.k AND c.k = 1")) == [
        ["(b.k = 3)", "(a.k = b.k)"],
        ["(c.k = 1.0)"],
    ]


def test_a_registered_predicate_is_called_over_the_streams_it_reads():
    assert checked(planned("a, b, c WHERE near(a.x, b.y) AND amid(a.x, b.y, c.z)")) == [
        ["NEAR(a.x, b.y)"],
        ["AMID(a.x, b.y, c.z)"],
    ]
    assert set(planned("a, b, c WHERE near(a.x, c.z)").predicates) == {"near"}


def test_one_stream_may_be_read_under_several_names():
    plan = planned("a AS p JOIN a AS q ON p.k = q.k JOIN a ON q.k = a.k", "p.id, q.id, a.id")
    assert columns(plan) == "p_id q_id a_id"
    assert plan.names == ("p", "q", "a") and {stream.name for stream in plan.streams} == {"a"}


def test_names_with_dots_and_quotes_go_through_all_stages():
    plan = planned(
        'a AS "p.q" JOIN "odd.name" AS "say ""hi""" ON "p.q".k = "say ""hi""".k '
        'JOIN a AS p ON p.k = "say ""hi"""."a.b"',
        '"p.q".id, p.id, "say ""hi"""."q""q"',
    )
    assert columns(plan) == 'p.q_id p_id q"q'
    assert checked(plan) == [['(p.q.k = say "hi".k)'], ['(p.k = say "hi".a.b)']]


def test_names_are_found_without_regard_to_case():
    assert checked(planned("a JOIN b ON A.K = b.K JOIN D ON d.k = B.k")) == [["(a.k = b.k)"], ["(D.K = b.k)"]]


@pytest.mark.parametrize(
    ("within", "window"),
    [("", FullHistory()), (SPAN, TimeWindow(10_000_000, 10_000_000)),
     ("WITHIN (2 SECONDS, 2 SECONDS)", TimeWindow(2_000_000, 2_000_000))],
)  # fmt: skip
def test_within_is_one_span_for_all_streams_or_none(within, window):
    assert planned(f"a, b, c WHERE {CHAIN}", within=within).window == window


@pytest.mark.parametrize("within", ["WITHIN 5 ROWS", "WITHIN (1 SECOND, 2 SECONDS)"])
def test_windows_of_two_streams_are_refused_where_they_stand(within):
    found, place = refused(f"SELECT ONLINE * FROM a, b, c WHERE {CHAIN} {within}", UnsupportedError)
    assert found == (
        "a window of rows or of two sides is for two streams, and this query joins 3; write one span of time for all "
        "of them, such as WITHIN 10 SECONDS, or one for each, such as WITHIN 10 SECONDS FOR a, 1 MINUTE FOR b, ..."
    )
    assert place == within


def test_nine_streams_are_joined_and_ten_refused():
    def of(streams: int) -> str:
        return "SELECT ONLINE a0.id FROM " + ", ".join(f"a AS a{number}" for number in range(streams)) + f" {SPAN}"

    assert len(plan_query(of(9), STREAMS).stages) == 8
    assert refused(of(10), UnsupportedError) == (
        "a query joins 9 streams at most, and this one reads 10", "a AS a9",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "shape", "names"),
    [
        ("a JOIN (b JOIN c ON b.k = c.k) ON a.k = b.k", "(a, (b, c))",
         "a_id a_k x b_id b_k y b_name c_id c_k z c_name"),
        ("(a JOIN b ON a.k = b.k) JOIN c ON b.k = c.k", "((a, b), c)",
         "a_id a_k x b_id b_k y b_name c_id c_k z c_name"),
        ("((a LEFT JOIN (b FULL JOIN d ON b.k = d.K) ON a.k = b.k))", "(a, (b, d))",
         "a_id a_k x b_id b_k y name d_K w"),
        ("(a, d) JOIN (b, c) ON a.k = b.k", "((a, d), (b, c))",
         "a_id a_k x d_K w b_id b_k y b_name c_id c_k z c_name"),
        ("d, (c, a LEFT JOIN b ON a.k = b.k)", "(d, (c, (a, b)))",
         "d_K w c_id c_k z c_name a_id a_k x b_id b_k y b_name"),
        ("a JOIN (b JOIN d USING (k)) USING (k)", "(a, (b, d))", "k a_id x b_id y name w"),
        ("a SEMI JOIN (b JOIN d USING (k)) ON a.k = d.k", "(a, (b, d))", "id k x"),
        ("a AS p JOIN (a AS q RIGHT JOIN a ON q.k = a.k) ON p.k = a.k", "(p, (q, a))",
         "p_id p_k p_x q_id q_k q_x a_id a_k a_x"),
    ],
)  # fmt: skip
def test_brackets_say_what_is_joined_first(source, shape, names):
    plan = planned(source)
    assert plan.shape == shape
    assert columns(plan) == names


def test_what_using_merges_in_brackets_is_compared_as_one():
    assert checked(planned("a RIGHT JOIN (b FULL JOIN d USING (k)) USING (k)", "k")) == [
        ["(b.k = d.K)"], ["(a.k = COALESCE(b.k, d.K))"],
    ]  # fmt: skip


def test_a_window_that_no_join_in_brackets_can_have_is_refused_there():
    query = "SELECT ONLINE a.id FROM a JOIN (b LEFT JOIN c ON b.k = c.k) ON a.k = b.k"
    found, place = refused(query, UnsupportedError)
    assert "no row of LEFT JOIN is ever known to be unmatched" in found and place == "c ON b.k = c.k"
    assert refused(f"{query} WITHIN 5 ROWS", UnsupportedError)[1] == "WITHIN 5 ROWS"


def test_explain_shows_brackets():
    source = "a LEFT JOIN (b FULL JOIN (c JOIN d ON c.k = d.k) ON b.k = c.k) ON a.k = b.k"
    assert joined_streams(planned(source, "a.id")) == "a LEFT JOIN (b FULL JOIN (c JOIN d))"


def test_brackets_of_one_pair_of_streams_change_nothing():
    one, other = (
        plan_query(f"SELECT ONLINE * FROM {source} {SPAN}", STREAMS)
        for source in ("(a LEFT JOIN b ON a.k = b.k)", "a LEFT JOIN b ON a.k = b.k")
    )
    assert replace(one, text="") == replace(other, text="")


def test_an_index_that_a_stage_cannot_have_is_told_with_the_stage():
    query = f"SELECT ONLINE * FROM a, b, c WHERE a.k = b.k AND b.y > c.z {SPAN}"
    found, _ = refused(query, InputError, index="hash")
    assert found == "stage 2: a hash index needs an equality between the two streams"
    assert {
        query.index for stage in planned(f"a, b, c WHERE {CHAIN}", index="hash").stages for query in stage.plan.queries
    } == {"hash"}


def test_a_main_condition_is_refused():
    found, _ = refused(f"SELECT ONLINE * FROM a, b, c WHERE {CHAIN} {SPAN}", InputError, main="a.k = b.k")
    assert "each stage" in found and "leave it out" in found


FILE = """\
streams:
  a: {source: parquet, path: a, time: arrival, schema: {k: int64, x: float64}}
  b: {source: parquet, path: b, time: arrival, schema: {k: int64, y: float64}}
  c: {source: parquet, path: c, time: arrival, schema: {k: int64, z: float64}}
"""
QUERY = "SELECT ONLINE a.x, b.y, c.z FROM a, b, c WHERE a.k = b.k AND b.k = c.k WITHIN 10 SECONDS"


def bound(tmp_path, operator: str, query: str = f"query: {QUERY}\nresults: {{parquet: out}}"):
    for name in "abc":
        (tmp_path / name).mkdir()
    return bind(parse(f"{FILE}{query}\noperator: {operator}\nrun: {{slots: 2}}\n", base=tmp_path))


@pytest.mark.parametrize(
    ("operator", "field"),
    [
        ("{name: splitjoin, cores: 2, ordering: total}", "operator.ordering"),
        ("{name: handshake, workers: 2, ordering: total}", "operator.ordering"),
        ("{name: biclique, main: a.k = b.k}", "operator.main"),
        ("{name: biclique, index: bogus}", "operator.index"),
    ],
)
def test_settings_of_two_streams_are_refused_at_their_field(tmp_path, operator, field):
    with pytest.raises(InputError) as caught:
        bound(tmp_path, operator)
    assert caught.value.field == field


def test_hash_routing_needs_an_equality_at_each_stage(tmp_path):
    query = f"query: {QUERY.replace('b.k = c.k', 'b.y > c.z')}\nresults: {{parquet: out}}"
    with pytest.raises(InputError, match="equality") as caught:
        bound(tmp_path, "{name: biclique, routing: hash, r_units: 2, s_units: 2}", query)
    assert caught.value.field == "operator.routing"


def test_contrand_gives_every_stage_its_groups(tmp_path):
    given = "{name: biclique, routing: contrand, r_units: 4, s_units: 2, r_groups: 2, s_groups: 1}"
    first, second = bound(tmp_path, given).job(heartbeat=False).operators
    assert first == second and len(first.units) == 6


def test_several_queries_of_three_streams_may_share_a_job(tmp_path):
    queries = f"queries:\n  one: {{query: {QUERY!r}, results: {{parquet: one}}}}"
    found = bound(
        tmp_path, "{name: biclique}", f"{queries}\n  other: {{query: {QUERY!r}, results: {{parquet: other}}}}"
    )
    assert [one.name for one in found.queries] == ["one", "other"]
    assert [part.numbers for part in found.plan.parts] == [(0, 1), (0, 2)]


def test_every_operator_takes_three_streams():
    plan = planned(f"a, b, c WHERE {CHAIN}")
    for name in ("biclique", "matrix", "splitjoin", "handshake"):
        assert len(registry.build_all(name, {}, plan, 2)) == 2
