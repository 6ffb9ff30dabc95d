"""GROUP BY: what a query with groups means, and what is refused where."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamjoin.errors import InputError, QueryError
from streamjoin.plan.aggregate import AggregatePlan, Hopping, Kind
from streamjoin.plan.changing import Changing
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade
from streamjoin.query import plan_query

COLUMNS = pa.schema(
    [
        ("ts", pa.int64()), ("k", pa.int64()), ("x", pa.int32()), ("f", pa.float32()), ("t", pa.string()),
        ("d", pa.decimal128(12, 2)), ("p", pa.bool_()), ("at", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip
STREAMS = {name: StreamSchema(name, COLUMNS, "ts", "us") for name in "abc"}
BY = "GROUP BY a.t, TUMBLE(1 MINUTE)"


def planned(text: str, **settings: object) -> Cascade:
    found = plan_query(text, STREAMS, **settings)  # type: ignore[arg-type]
    assert isinstance(found, Cascade)
    return found


def groups(text: str) -> AggregatePlan:
    found = planned(text).groups
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("COUNT(*)", pa.int64()), ("COUNT(a.t)", pa.int64()), ("COUNT(DISTINCT a.t)", pa.int64()),
        ("SUM(a.x)", pa.int64()), ("SUM(a.f)", pa.float64()), ("SUM(a.d)", pa.decimal128(38, 2)),
        ("AVG(a.x)", pa.float64()), ("mean(a.d)", pa.float64()), ("MIN(a.t)", pa.string()),
        ("MAX(a.at)", pa.timestamp("us", "UTC")),
        ("MIN(a.p)", pa.bool_()), ("BOOL_AND(a.x > 3)", pa.bool_()), ("bool_or(a.p)", pa.bool_()),
        ("ARG_MIN(a.t, a.f)", pa.string()), ("ARG_MAX(a.d, a.at)", pa.decimal128(12, 2)),
        ("VARIANCE(a.x)", pa.float64()), ("VAR_POP(a.d)", pa.float64()), ("STDDEV(a.f)", pa.float64()),
        ("STDDEV_POP(a.f)", pa.float64()), ("WINDOW_START()", pa.timestamp("us", "UTC")),
        ("WINDOW_END()", pa.timestamp("us", "UTC")), ("APPROX_COUNT_DISTINCT(a.t)", pa.int64()),
        ("approx_quantile(a.f, 0.95)", pa.float64()), ("APPROX_QUANTILE(a.x, 1)", pa.int64()),
        ("APPROX_QUANTILE(a.d, 0)", pa.float64()), ("a.t", pa.string()), ("a.t || 'x'", pa.string()),
        ("SUM(a.x) / COUNT(*)", pa.float64()), ("CASE WHEN COUNT(*) > 1 THEN a.t END", pa.string()),
    ],
)  # fmt: skip
def test_what_an_item_is(call: str, kind: pa.DataType) -> None:
    assert groups(f"SELECT ONLINE {call} AS it FROM a {BY}").output == pa.schema([("it", kind)])


def test_what_columns_are_called() -> None:
    plan = groups(f"SELECT ONLINE a.t, a.x % 2, WINDOW_START(), COUNT(*), COUNT(*) AS n FROM a {BY}, a.x % 2")
    assert plan.output.names == ["t", "column_2", "window_start", "column_4", "n"]


@pytest.mark.parametrize("kind", ["FULL", "LEFT", "RIGHT", ""])
@pytest.mark.parametrize("column", ["k", "x"])
def test_a_column_that_using_made_is_called_as_without_groups(kind: str, column: str) -> None:
    streams = {"a": STREAMS["a"], "b": StreamSchema("b", pa.schema([("ts", pa.int64()), ("k", pa.int64()),
                                                                    ("x", pa.float64())]), "ts", "us")}  # fmt: skip
    joined = f"FROM a {kind} JOIN b USING ({column}) WITHIN 5 SECONDS"
    plain = plan_query(f"SELECT ONLINE {column}, 1 AS n {joined}", streams).queries[0]
    for by in (f"GROUP BY {column}", f"GROUP BY {column}, TUMBLE(1 MINUTE)"):
        grouped = plan_query(f"SELECT ONLINE {column}, COUNT(*) AS n {joined} {by}", streams).queries[0]
        assert grouped.output.names[:2] == plain.output.names == [column, "n"]
    other = plan_query(f"SELECT ONLINE {column} + 1, COUNT(*) AS n {joined} GROUP BY {column} + 1", streams).queries[0]
    assert other.output.names[:2] == ["column_1", "n"]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("TUMBLE(1.5 SECONDS)", Hopping(1_500_000, 1_500_000)),
        ("hop(10 seconds, 1 minute)", Hopping(10_000_000, 60_000_000)),
        ("HOP(4 SECONDS, 10 SECONDS)", Hopping(4_000_000, 10_000_000)),
        ("HOP(1 HOUR, 1 HOUR)", Hopping(3_600_000_000, 3_600_000_000)),
    ],
)
def test_windows(window: str, expected: Hopping) -> None:
    assert groups(f"SELECT ONLINE COUNT(*) FROM a GROUP BY {window}").windows == expected


@pytest.mark.parametrize(
    ("clause", "every_us", "leaves"),
    [
        ("GROUP BY a.t", 1_000_000, True),
        ("GROUP BY a.t CUMULATIVE", 1_000_000, False),
        ("group by a.t cumulative having count(*) > 1 emit every 1.5 minutes", 90_000_000, False),
        ("GROUP BY a.t EMIT EVERY 5 SECONDS HAVING COUNT(*) > 1", 5_000_000, True),
        ("GROUP BY a.t HAVING MAX(a.t) = 'x' EMIT EVERY 1 DAY", 86_400_000_000, True),
    ],
)
def test_groups_that_change(clause: str, every_us: int, leaves: bool) -> None:
    plan = groups(f"SELECT ONLINE a.t AS name, COUNT(*) AS n FROM a, b WHERE a.k = b.k WITHIN 5 SECONDS {clause}")
    assert isinstance(plan.windows, Changing)
    assert (plan.windows.every_us, plan.windows.ends is not None) == (every_us, leaves)
    assert plan.output.names == ["name", "n", "op", "emit_time"] and plan.identity == ("name",)


def test_names_that_only_look_like_clauses_of_groups() -> None:
    named = {"emit": STREAMS["a"], "every": STREAMS["b"]}
    found = plan_query(
        "SELECT ONLINE cumulative.t, emit.t AS every FROM emit, every cumulative WHERE emit.k = cumulative.k", named
    )
    assert found.queries[0].output.names == ["t", "every"]
    found = plan_query("SELECT ONLINE emit.t, COUNT(*) AS n FROM emit GROUP BY emit.t", named)
    assert isinstance(found, Cascade) and found.groups is not None and isinstance(found.groups.windows, Changing)


def test_what_several_functions_need_is_kept_once() -> None:
    plan = groups(f"SELECT ONLINE SUM(a.f), AVG(a.f), VARIANCE(a.f), COUNT(a.f), SUM(a.f) + 1 FROM a {BY}")
    assert [part.kind for part in plan.parts] == [Kind.FLOATS, Kind.VALUES, Kind.SQUARES]
    assert len(plan.aggregates) == 4


def test_what_a_join_gives_to_its_groups() -> None:
    plan = planned(
        "SELECT ONLINE a.t, SUM(b.x + a.x) AS s FROM a, b WHERE a.k = b.k WITHIN 5 SECONDS "
        "GROUP BY a.t, TUMBLE(1 MINUTE) HAVING MAX(b.f) > 1"
    )
    assert plan.shape == "(a, b)" and len(plan.stages) == 2
    joined = plan.last_join
    assert joined is not None and joined.feeds
    assert joined.output.names == ["a.t", "value 1", "b.f"]
    bare = planned("SELECT ONLINE COUNT(*) FROM a, b WHERE a.k = b.k GROUP BY TUMBLE(1 DAY)").last_join
    assert bare is not None and bare.output.names == ["one"]


def test_three_streams_join_before_groups_are_made() -> None:
    plan = planned(f"SELECT ONLINE a.t, COUNT(*) FROM a, b, c WHERE a.k = b.k AND b.k = c.k WITHIN 1 SECONDS {BY}")
    assert plan.shape == "((a, b), c)" and [len(stage.inputs) for stage in plan.stages] == [2, 2, 1]


HEAD = "SELECT ONLINE a.t FROM a "
WRONG = [
    ("SELECT ONLINE a.x, COUNT(*) FROM a " + BY, 1, 15, "a.x is neither in GROUP BY nor inside an aggregate"),
    ("SELECT ONLINE a.t, x + COUNT(*) FROM a " + BY, 1, 20, "a.x is neither in GROUP BY"),
    ("SELECT ONLINE SUM(MAX(x)) FROM a " + BY, 1, 19, "MAX cannot stand inside SUM: aggregates do not nest"),
    (
        "SELECT ONLINE SUM(x) FROM a, b",
        1,
        15,
        "query with GROUP BY; write GROUP BY R.k for groups that are given again",
    ),
    ("SELECT ONLINE MAX(a.x) FROM a, b", 1, 15, "of two values, write GREATEST"),
    (HEAD + "HAVING COUNT(*) > 1", 1, 26, "HAVING chooses among groups, and this query has none"),
    (HEAD + "WHERE COUNT(*) > 1 " + BY, 1, 32, "COUNT is computed of groups"),
    (HEAD + BY + " HAVING COUNT(*)", 1, 64, "a condition is true or false"),
    (HEAD + BY + " HAVING x > 1", 1, 64, "a.x is neither in GROUP BY"),
    (HEAD + "GROUP BY t, x", 1, 26, "each row shows which one it is; add a.x to the SELECT list"),
    (HEAD + "GROUP BY t EMIT EVERY 0 SECONDS", 1, 48, "EMIT EVERY: a span of time is longer than nothing"),
    (HEAD + "GROUP BY t EMIT EVERY -1 SECONDS", 1, 48, "EMIT EVERY takes no negative span"),
    (HEAD + "GROUP BY t EMIT EVERY SECOND", 1, 48, "EMIT EVERY takes a span of event time, such as EMIT EVERY 5 SEC"),
    (HEAD + "GROUP BY t EMIT EVERY 5", 1, 48, "EMIT EVERY: 5 needs a unit"),
    (HEAD + "GROUP BY t EMIT EVERY 5 WEEKS", 1, 48, '"WEEKS" is not a unit of time'),
    (HEAD + "GROUP BY t EMIT EVERY", 1, 42, "EMIT EVERY takes a span of event time"),
    (HEAD + "GROUP BY t EMIT EVERY 1 DAY EMIT EVERY 1 DAY", 1, 54, "EMIT EVERY is written twice"),
    (HEAD + "GROUP BY t CUMULATIVE CUMULATIVE", 1, 48, "CUMULATIVE is written twice"),
    (HEAD + BY + " EMIT EVERY 5 SECONDS", 1, 57, "EMIT EVERY 5 SECONDS is for groups that are given again as they cha"),
    (HEAD + BY + " CUMULATIVE", 1, 57, "CUMULATIVE is for groups that are given again as they change, and each window"),
    ("SELECT ONLINE a.x FROM a, b CUMULATIVE", 1, 29, "CUMULATIVE stands behind GROUP BY, such as GROUP BY R.k CUMUL"),
    ("SELECT ONLINE a.x FROM a, b EMIT EVERY 1 DAY", 1, 29, "EMIT EVERY stands behind GROUP BY"),
    ("SELECT ONLINE t, WINDOW_END() FROM a GROUP BY t", 1, 18, "WINDOW_END is a bound of a window, and these groups"),
    ("SELECT ONLINE t, COUNT(*) AS Op FROM a GROUP BY t", 1, 40, 'rows of groups that change have a column "Op"'),
    ("SELECT ONLINE a.t, COUNT(*) FROM a, b WITHIN 5 ROWS GROUP BY a.t", 1, 39, "or GROUP BY ... CUMULATIVE"),
    (HEAD + "GROUP BY t, TUMBLE(0 SECONDS)", 1, 45, "TUMBLE: a span of time is longer than nothing"),
    (HEAD + "GROUP BY t, TUMBLE(-1 SECONDS)", 1, 45, "TUMBLE takes no negative span"),
    (HEAD + "GROUP BY t, TUMBLE(1)", 1, 45, "TUMBLE: 1 needs a unit"),
    (HEAD + "GROUP BY t, TUMBLE(1 MONTH)", 1, 45, "TUMBLE: a MONTH has no fixed length; write days"),
    (HEAD + "GROUP BY t, TUMBLE(200000 DAYS)", 1, 45, "TUMBLE: 200000 DAYS is longer than 100 years"),
    (HEAD + "GROUP BY t, TUMBLE()", 1, 45, "TUMBLE takes the size of the windows, such as TUMBLE(1 MINUTE)"),
    (HEAD + "GROUP BY t, TUMBLE(1 DAY, 1 DAY)", 1, 57, "TUMBLE takes the size of the windows"),
    (HEAD + "GROUP BY t, TUMBLE(1 DAY", 1, 47, "TUMBLE takes the size of the windows"),
    (HEAD + "GROUP BY t, HOP(1 DAY)", 1, 47, "HOP takes how far they are apart and their size"),
    (HEAD + "GROUP BY t, HOP(2 DAYS, 1 DAY)", 1, 38, "windows of 1 d every 2 d leave gaps"),
    (HEAD + "GROUP BY t, HOP(7 MILLISECONDS, 1 HOUR)", 1, 38, "are made of 3,600,000 parts of 1 ms, and 10,000"),
    (HEAD + "GROUP BY t, TUMBLE(1 DAY), TUMBLE(1 DAY)", 1, 53, "GROUP BY has one window of time"),
    ("SELECT ONLINE TUMBLE(1 DAY) FROM a GROUP BY t", 1, 15, "TUMBLE stands in GROUP BY"),
    (HEAD + "GROUP BY t + COUNT(*), TUMBLE(1 DAY)", 1, 39, "COUNT is computed of a group"),
    (HEAD + "GROUP BY 1, TUMBLE(1 DAY)", 1, 35, "not constants or positions"),
    (HEAD + "GROUP BY (t, x), TUMBLE(1 DAY)", 1, 36, "is not part of the query language"),
    (HEAD + "GROUP BY ROLLUP (t), TUMBLE(1 DAY)", 1, 35, "ROLLUP: a query groups its rows in one way; run one job"),
    (HEAD + "GROUP BY x, CUBE (t, x)", 1, 38, "CUBE: a query groups its rows in one way; run one job for each"),
    (HEAD + "GROUP BY GROUPING SETS ((t), (x))", 1, 35, "GROUPING SETS: a query groups its rows in one way"),
    (HEAD + "GROUP BY t\nWITH ROLLUP", 2, 1, "ROLLUP: a query groups its rows in one way"),
    (HEAD + "\nGROUP BY ALL", 2, 1, "GROUP BY ALL is not supported; name what rows of a group have in common"),
    (HEAD + "GROUP BY t, SESSION(5 SECONDS)", 1, 38, "there are no windows called SESSION; windows are TUMBLE(1 MIN"),
    (HEAD + "GROUP BY session(t, 5)", 1, 35, "there are no windows called session; windows are TUMBLE(1 MINUTE)"),
    (HEAD + "GROUP BY sliding(5 SECONDS, 1 DAY)", 1, 35, "there are no windows called sliding"),
    (HEAD + "WITHIN 5 SECONDS " + BY, 1, 26, "this query reads one stream; leave it out"),
    ("SELECT ONLINE * FROM a " + BY, 1, 15, "* is every column of a row, and a group is of many rows"),
    ("SELECT ONLINE a.* FROM a " + BY, 1, 15, "* is every column of a row"),
    (
        "SELECT ONLINE SUM(t) FROM a " + BY,
        1,
        15,
        "this is string; if its values are numbers, write SUM(CAST(a.t AS DOUBLE))",
    ),
    ("SELECT ONLINE SUM(*) FROM a " + BY, 1, 15, "SUM needs an expression; only COUNT takes *"),
    ("SELECT ONLINE COUNT() FROM a " + BY, 1, 15, "COUNT needs an argument, or COUNT(*)"),
    ("SELECT ONLINE COUNT(x, t) FROM a " + BY, 1, 15, "COUNT takes 1 argument, not 2"),
    ("SELECT ONLINE ARG_MAX(x) FROM a " + BY, 1, 15, "ARG_MAX takes 2 arguments, not 1"),
    ("SELECT ONLINE SUM(DISTINCT x) FROM a " + BY, 1, 15, "SUM takes no DISTINCT; only COUNT does"),
    ("SELECT ONLINE BOOL_AND(x) FROM a " + BY, 1, 15, "BOOL_AND takes conditions, and this is int32"),
    ("SELECT ONLINE APPROX_QUANTILE(x) FROM a " + BY, 1, 15, "APPROX_QUANTILE takes 2 arguments, not 1"),
    ("SELECT ONLINE APPROX_QUANTILE(x, 95) FROM a " + BY, 1, 15, "takes a number from 0 to 1 behind what it is of"),
    ("SELECT ONLINE APPROX_QUANTILE(x, -0.1) FROM a " + BY, 1, 15, "takes a number from 0 to 1 behind what it is of"),
    ("SELECT ONLINE APPROX_QUANTILE(x, x) FROM a " + BY, 1, 15, "takes a number from 0 to 1 behind what it is of"),
    ("SELECT ONLINE APPROX_QUANTILE(x, '0.5') FROM a " + BY, 1, 15, "takes a number from 0 to 1 behind what it is"),
    ("SELECT ONLINE APPROX_QUANTILE(t, 0.5) FROM a " + BY, 1, 15, "takes numbers, and this is string"),
    ("SELECT ONLINE APPROX_COUNT_DISTINCT(*) FROM a " + BY, 1, 15, "needs an expression; only COUNT takes *"),
    ("SELECT ONLINE SUM(NULL) FROM a " + BY, 1, 15, "NULL alone has no type"),
    ("SELECT ONLINE SUM(x) FILTER (WHERE p) FROM a " + BY, 1, 22, "COUNT(CASE WHEN c THEN 1 END)"),
    ("SELECT ONLINE COUNT(*) FILTER (WHERE p) FROM a " + BY, 1, 24, "write SUM(CASE WHEN c THEN x END), and for COUNT"),
    ("SELECT ONLINE WINDOW_END(1) FROM a " + BY, 1, 15, "WINDOW_END takes no argument"),
    ("SELECT ONLINE t AS n, COUNT(*) AS N FROM a " + BY, 1, 23, "two output columns are called"),
    ("SELECT ONLINE COUNT(*) AS __n FROM a " + BY, 1, 15, "cannot be the name of a column"),
    ("SELECT DISTINCT ONLINE t FROM a " + BY, 1, 8, "groups differ already by what they are made of; leave DISTINCT"),
    ("SELECT ONLINE DISTINCT ON (t) t FROM a", 1, 15, "DISTINCT ON is not supported"),
    ("SELECT DISTINCT ONLINE SUM(x) FROM a", 1, 24, "SUM is computed of groups"),
    ("SELECT DISTINCT ONLINE t FROM a WITHIN 5 SECONDS", 1, 33, "this query reads one stream; leave it out"),
    (
        "SELECT DISTINCT ONLINE a.t FROM a, b WITHIN 5 ROWS",
        1,
        38,
        "DISTINCT gives a row again when none like it is inside",
    ),
    ("SELECT ONLINE t FROM a", 1, 22, "can be grouped, with GROUP BY R.k, or GROUP BY R.k, TUMBLE(1 MINUTE)"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), WRONG, ids=[row[0] for row in WRONG])
def test_what_is_wrong_is_said_at_its_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(QueryError) as wrong:
        plan_query(text, STREAMS)
    assert wrong.value.span is not None
    assert message in wrong.value.message
    assert (wrong.value.span.line, wrong.value.span.column) == (line, column)


def test_how_many_arguments_there_are_is_a_number_alone() -> None:
    for call, said in (
        ("ARG_MAX(x)", "ARG_MAX takes 2 arguments, not 1"),
        ("SUM(x, k)", "SUM takes 1 argument, not 2"),
    ):
        with pytest.raises(QueryError) as wrong:
            planned(f"SELECT ONLINE {call} FROM a {BY}")
        assert wrong.value.message == said


def test_words_of_other_systems_may_be_names() -> None:
    named = {"filter": STREAMS["a"], "rollup": STREAMS["b"], "session": STREAMS["c"]}
    found = plan_query(
        "SELECT ONLINE filter.t, session.x, COUNT(*) AS cube FROM filter, rollup, session WHERE filter.k = rollup.k "
        "AND rollup.k = session.k WITHIN 1 SECOND GROUP BY filter.t, session.x HAVING MAX(rollup.x) > 1",
        named,
    )
    assert found.queries[0].output.names[:3] == ["t", "x", "cube"]


@pytest.mark.parametrize("setting", [{"main": "a.k = b.k"}, {"tree": ("a", "b")}])
def test_one_stream_is_not_joined(setting: dict[str, object]) -> None:
    with pytest.raises(InputError, match="this query reads one stream and joins nothing"):
        planned(f"SELECT ONLINE a.t FROM a {BY}", **setting)


def test_group_by_may_say_what_select_calls_an_item() -> None:
    long = groups("SELECT ONLINE LOWER(a.t) AS who, COUNT(*) AS n FROM a GROUP BY LOWER(a.t), TUMBLE(1 MINUTE)")
    short = groups("SELECT ONLINE LOWER(a.t) AS who, COUNT(*) AS n FROM a GROUP BY Who, TUMBLE(1 MINUTE)")
    assert (short.keys, short.select) == (long.keys, long.select)
    assert groups("SELECT ONLINE LOWER(a.t) AS who, COUNT(*) AS n FROM a GROUP BY who").identity == ("who",)
    # A column comes first.
    (key,) = groups("SELECT ONLINE MAX(a.f) AS x, COUNT(*) AS n FROM a GROUP BY x, TUMBLE(1 MINUTE)").keys
    assert str(key.value) == "a.x"
    with pytest.raises(QueryError, match="COUNT is computed of a group, so it cannot be what groups are made by"):
        planned("SELECT ONLINE COUNT(*) AS n FROM a GROUP BY n, TUMBLE(1 MINUTE)")
