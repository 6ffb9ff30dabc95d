"""Expressions: what a query writes is what is computed, on one row of R and one of S."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from streamjoin.plan.evaluation import evaluate, filter_mask
from streamjoin.plan.functions.table import PUBLIC_FUNCTIONS
from streamjoin.query.tokens import SYNONYMS

ROW = {
    ("R", "k"): 7,
    ("R", "x"): 2.5,
    ("R", "name"): "Ada",
    ("R", "ts"): datetime(2024, 5, 1, 13, 30, 5, tzinfo=UTC),
    ("R", "ok"): True,
    ("R", "day"): date(2024, 5, 1),
    ("R", "id"): 3,
    ("R", "price"): Decimal("9.95"),
    ("S", "k"): None,
    ("S", "y"): -1.0,
    ("S", "label"): "12",
    ("S", "a b"): 5,
}


def check(plan, text: str, value: object) -> None:
    """`text`, as the only output column, has `value` on ROW."""
    found = plan(f"SELECT ONLINE {text} AS answer FROM R, S")
    columns = {
        (stream, field.name): pa.array([ROW[(stream, field.name)]], field.type)
        for stream, schema in zip(found.names, found.streams, strict=True)
        for field in schema.columns
    }
    expression = found.select[0][1]
    array = evaluate(expression, columns, 1, found.predicates)
    assert array.type == expression.type
    assert array.to_pylist() == [value]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * 3", 9),
        ("7 / 2", 3.5),
        ("R.k % 4", 3),
        ("-R.k", -7),
        ("- - R.k", 7),
        ("-9223372036854775808", -(2**63)),
        ("R.x / 0", None),
        ("R.x + S.k", None),
        ("R.price + 1", Decimal("10.95")),
        ("-R.price", Decimal("-9.95")),
        ("R.price * R.price", Decimal("99.0025")),
        ("R.price * 2", Decimal("19.90")),
        ("CAST(1 AS DECIMAL(38, 2)) + CAST(1 AS DECIMAL(38, 2))", 2.0),
        ("R.price / 0", None),
        ("LENGTH(NULL)", None),
        ("NULL || R.name", None),
        ("LEAST(NULL, NULL) IS NULL", True),
        ("NULL = NULL", None),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1_000", 1000),
        ("'it''s'", "it's"),
        (r"'a\d'", r"a\d"),
        ("R.name || '-' || S.label", "Ada-12"),
        ("TRUE", True),
        ("CAST(NULL AS INT)", None),
        ("CASE WHEN R.k > 5 THEN 'big' WHEN R.k > 0 THEN 'small' END", "big"),
        ("CASE WHEN R.k < 5 THEN 'small' END", None),
        ("CASE R.k WHEN 1 THEN 'one' WHEN 7 THEN 'seven' ELSE 'other' END", "seven"),
        ("CASE (R.k) WHEN (7) THEN (1) ELSE (2) END", 1),
        ("INTERVAL '5' SECOND", timedelta(seconds=5)),
        ("INTERVAL 5 SECONDS", timedelta(seconds=5)),
        ("INTERVAL '5 seconds'", timedelta(seconds=5)),
        ("INTERVAL -1.5 MINUTES", timedelta(seconds=-90)),
        ("R.ts - INTERVAL 5 SECONDS", datetime(2024, 5, 1, 13, 30, tzinfo=UTC)),
        ("R.ts - R.day", timedelta(hours=13, minutes=30, seconds=5)),
        ("TIMESTAMP '2024-05-01 13:30'", datetime(2024, 5, 1, 13, 30, tzinfo=UTC)),
        ("TIMESTAMP '2024-05-01T13:30:00+02:00'", datetime(2024, 5, 1, 11, 30, tzinfo=UTC)),
        ("DATE '2024-05-01'", date(2024, 5, 1)),
    ],
)
def test_arithmetic_and_constants_have_the_values_of_sql(plan, text, value):
    check(plan, text, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("R.k = 7", True),
        ("R.k <> 7", False),
        ("R.k != 7", False),
        ('R.k < S."a b" OR R.k >= 7 AND NOT R.k > 7', True),
        ("R.k = S.k", None),
        ("S.k IS NULL", True),
        ("S.k IS NOT NULL", False),
        ("R.k BETWEEN 7 AND 9", True),
        ("R.k NOT BETWEEN 8 AND 9", True),
        ("R.k IN (1, 7)", True),
        ("(R.k) IN (7) AND (R.k) BETWEEN (7) AND (9) AND NOT (R.name) LIKE ('B%')", True),
        ("R.k NOT IN (1, 7)", False),
        ("R.k IN (1, NULL)", None),
        ("R.name LIKE 'A%'", True),
        ("R.name NOT LIKE 'A_a'", False),
        ("NULL AND FALSE", False),
        ("NULL OR TRUE", True),
        ("NOT NULL", None),
        ("R.ts > '2024-05-01'", True),
        ("'2024-05-01 13:30:05Z' = R.ts", True),
        ("R.day = '2024-05-01'", True),
        ("R.day < '2024-05-01 00:00:01'", True),
        ("R.ts BETWEEN '2024-05-01' AND '2024-05-02'", True),
        ("R.day IN ('2024-04-30', '2024-05-01')", True),
        ("R.k IS DISTINCT FROM S.k", True),
        ("S.k IS NOT DISTINCT FROM NULL", True),
        ("NULL IS NOT DISTINCT FROM NULL", True),
        ("R.k IS NOT DISTINCT FROM R.k + 0.0", True),
        ("R.ts IS DISTINCT FROM '2024-05-01'", True),
        ("R.ok IS TRUE AND R.ok IS NOT FALSE AND R.ok IS NOT UNKNOWN", True),
        ("(R.k = S.k) IS TRUE OR (R.k = S.k) IS FALSE", False),
        ("R.k = S.k IS UNKNOWN", True),
        ("NULL IS NOT TRUE", True),
        ("near(R.x, 2)", True),
        ("NEAR(R.k, S.y)", False),
        ("ABS(R.x - S.y) <= 3.5", True),
    ],
)
def test_conditions_follow_three_valued_logic(plan, text, value):
    check(plan, text, value)


CALLS = {
    "abs": ("ABS(S.y)", 1.0),
    "ceil": ("CEIL(R.x)", 3),
    "coalesce": ("COALESCE(S.k, R.k)", 7),
    "concat": ("CONCAT(R.name, '!')", "Ada!"),
    "contains": ("CONTAINS(R.name, 'd')", True),
    "date_trunc": ("DATE_TRUNC('month', R.ts)", datetime(2024, 5, 1, tzinfo=UTC)),
    "day": ("DAY(R.ts)", 1),
    "dow": ("DOW(R.ts)", 3),
    "doy": ("DOY(R.ts)", 122),
    "ends_with": ("ENDS_WITH(R.name, 'da')", True),
    "epoch": ("EPOCH(R.ts)", 1714570205.0),
    "floor": ("FLOOR(R.x)", 2),
    "greatest": ("GREATEST(R.k, 9)", 9),
    "hour": ("HOUR(R.ts)", 13),
    "if": ("IF(R.k > 5, 'big', 'small')", "big"),
    "least": ("LEAST(R.k, 9)", 7),
    "left": ("LEFT(R.name, 1)", "A"),
    "length": ("LENGTH(R.name)", 3),
    "lower": ("lower(R.name)", "ada"),
    "microsecond": ("MICROSECOND(R.ts)", 5_000_000),
    "millisecond": ("MILLISECOND(R.ts)", 5_000),
    "minute": ("MINUTE(R.ts)", 30),
    "month": ("MONTH(R.day)", 5),
    "nullif": ("NULLIF(R.k, 7)", None),
    "power": ("POWER(R.k, 2)", 49.0),
    "quarter": ("QUARTER(R.ts)", 2),
    "regexp_like": (r"REGEXP_LIKE(R.name, '^A\w+$')", True),
    "replace": ("REPLACE(R.name, 'da', 'lan')", "Alan"),
    "reverse": ("REVERSE(R.name)", "adA"),
    "right": ("RIGHT(R.name, 2)", "da"),
    "round": ("ROUND(R.x)", 3),
    "second": ("SECOND(R.ts)", 5),
    "split_part": ("SPLIT_PART('a,b', ',', 2)", "b"),
    "sqrt": ("SQRT(R.k + 2)", 3.0),
    "starts_with": ("STARTS_WITH(R.name, 'A')", True),
    "substring": ("SUBSTRING(R.name, 2, 2)", "da"),
    "trim": ("TRIM(' a ')", "a"),
    "upper": ("UPPER(R.name)", "ADA"),
    "week": ("WEEK(R.ts)", 18),
    "year": ("YEAR(R.ts)", 2024),
    "substr": ("SUBSTR(R.name, 2)", "da"),
    "ceiling": ("CEILING(R.x)", 3),
    "pow": ("POW(2, 3)", 8.0),
    "char_length": ("CHAR_LENGTH(R.name)", 3),
    "mod": ("MOD(R.k, 4)", 3),
}


@pytest.mark.parametrize(("text", "value"), CALLS.values(), ids=CALLS)
def test_every_public_function_can_be_called(plan, text, value):
    check(plan, text, value)


def test_the_list_of_called_functions_is_complete():
    assert set(CALLS) == set(PUBLIC_FUNCTIONS) | set(SYNONYMS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # DuckDB refuses the first three.
        ("ROUND(9223372036854775807, -1)", None),
        ("ROUND(-9223372036854775808, -1)", None),
        ("ROUND(5000000000000000000, -19)", None),
        ("ROUND(-4999999999999999999, -19)", 0),
        ("ROUND(9223372036854775807, -20)", 0),
        ("ROUND(9223372036854775807, -18)", 9_000_000_000_000_000_000),
        ("ROUND(R.id, 2)", 3),
        ("ROUND(R.x, 0)", 3.0),
        ("ROUND(R.price, 1)", Decimal("10.0")),
        ("ROUND(R.price, -1)", Decimal("10")),
        ("ROUND(CAST(99 AS DECIMAL(2, 0)), -1)", Decimal("100")),
        # 38 digits are all that there are.
        ("ROUND(CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)), -1)", None),
        ("ROUND(R.price, NULL)", None),
        ("LEFT(R.name, NULL)", None),
        ("IF(NULL, 1, 2)", 2),
        ("SPLIT_PART(S.label, NULL, 1)", None),
        ("R.name ILIKE 'a_A'", True),
        ("R.name ILIKE NULL", None),
        ("EXTRACT(epoch FROM INTERVAL 1500 MILLISECONDS)", 1.5),
        ("EXTRACT(hour FROM R.day)", 0),
    ],
)
def test_functions_have_a_value_or_null_at_the_ends_of_their_types(plan, text, value):
    check(plan, text, value)


@pytest.mark.parametrize("unit", ["millisecond", "week", "month", "year"])
def test_moments_that_no_unit_of_int64_begins_before_are_cut_off_to_null(plan, unit):
    expression = plan(f"SELECT ONLINE DATE_TRUNC('{unit}', R.ts) AS at FROM R, S").select[0][1]
    times = pa.array([-(2**63), None, 0]).cast(pa.timestamp("us", tz="UTC"))
    begins = evaluate(expression, {("R", "ts"): times}, 3).cast(pa.int64()).to_pylist()
    assert begins[:2] == [None, None] and begins[2] <= 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CAST(R.x AS INT)", 2),
        ("R.x::BIGINT", 2),
        ("CAST(R.k AS int8)", 7),
        ("CAST(300 AS int8)", None),
        ("CAST(1e30 AS INT)", None),
        ("CAST(R.k AS DECIMAL(5, 1))", Decimal("7.0")),
        ("CAST(100000 AS DECIMAL(5, 1))", None),
        ("CAST(R.price AS DECIMAL(5, 1))", Decimal("10.0")),
        ("CAST(R.price AS INT)", 9),
        ("CAST(R.ok AS INT)", 1),
        ("CAST(S.label AS INT)", 12),
        ("CAST(R.name AS INT)", None),
        ("CAST(R.name AS float64)", None),
        ("CAST(R.k AS VARCHAR)", "7"),
        ("CAST(R.ts AS DATE)", date(2024, 5, 1)),
        ("CAST(R.day AS TIMESTAMP)", datetime(2024, 5, 1, tzinfo=UTC)),
        ("CAST('2024-05-01' || ' 10:00:00' AS TIMESTAMP)", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("CAST('2024-05-01' || ' 10:00:00+02:00' AS TIMESTAMP)", datetime(2024, 5, 1, 8, tzinfo=UTC)),
        ("CAST(R.name AS TIMESTAMP)", None),
        ("CAST(R.ts AS BIGINT)", 1_714_570_205_000_000),
        ("CAST(TIMESTAMP '1969-12-31 23:59:59.999999' AS int64)", -1),
        ("CAST(R.id AS TIMESTAMP)", datetime(1970, 1, 1, 0, 0, 0, 3, tzinfo=UTC)),
        ("CAST(CAST(R.ts AS BIGINT) AS TIMESTAMP) = R.ts", True),
        ("S.k::TIMESTAMP", None),
    ],
)
def test_a_cast_gives_the_value_or_null_and_never_fails(plan, text, value):
    check(plan, text, value)


def test_a_cast_of_many_rows_loses_only_the_rows_without_a_value(plan):
    expression = plan("SELECT ONLINE CAST(R.name AS TIMESTAMP) AS at FROM R, S").select[0][1]
    names = pa.array(["2024-05-01 10:00:00", "soon", None, "2024-05-01 10:00:00Z"])
    ten = datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert evaluate(expression, {("R", "name"): names}, 4).to_pylist() == [ten, None, None, ten]


def test_a_condition_of_500_terms_can_be_walked_printed_and_evaluated(plan):
    for word in ("AND", "OR"):
        terms = f" {word} ".join(f"R.k <> S.k + {number}" for number in range(500))
        whole = plan(f"SELECT ONLINE R.k FROM R, S WHERE {terms}").predicate.whole
        assert str(whole).count("<>") == 500
        assert hash(whole)
        keys = {("R", "k"): pa.array([7, 7]), ("S", "k"): pa.array([1, 8])}
        assert filter_mask(whole, keys, 2).tolist() == [word == "OR", True]


@pytest.mark.parametrize(
    "text",
    [
        "(R.k IS NOT DISTINCT FROM S.k)",
        "(R.k IS DISTINCT FROM S.k)",
        "(NOT (R.k IS DISTINCT FROM S.k))",
        "((R.k = S.k) IS TRUE)",
        "((R.k = S.k) IS NOT FALSE)",
        "((R.k IS NOT DISTINCT FROM S.k) IS DISTINCT FROM R.ok)",
    ],
)
def test_conditions_with_is_are_shown_as_they_are_written(plan, text):
    assert str(plan(f"SELECT ONLINE R.k FROM R, S WHERE {text}").predicate.whole) == text


def test_where_and_on_both_count(plan):
    predicate = plan("SELECT ONLINE R.k FROM R JOIN S ON R.k = S.k WHERE R.ok AND S.y > 0").predicate
    assert [str(equality.source) for equality in predicate.equalities] == ["(R.k = S.k)"]
    assert [str(selection) for selection in predicate.selections] == ["R.ok", "(S.y > 0.0)"]


@pytest.mark.parametrize("source", ["R, S", "R CROSS JOIN S", "R, S WHERE 1 = 1", "R JOIN S ON TRUE"])
def test_a_join_without_condition_keeps_every_pair(plan, source):
    predicate = plan(f"SELECT ONLINE R.k FROM {source}").predicate
    assert (predicate.equalities, predicate.ranges, predicate.residual) == ((), (), ())
    assert filter_mask(predicate.selections[0], {}, 1).all()


@pytest.mark.parametrize("condition", ["FALSE", "NULL", "1 = 0", "NULL = 1"])
def test_a_condition_that_is_never_true_is_legal_and_drops_every_tuple(plan, condition):
    selection = plan(f"SELECT ONLINE R.k FROM R, S WHERE {condition}").predicate.selections[0]
    assert not filter_mask(selection, {}, 1).any()


def test_the_plan_holds_only_the_predicates_the_query_calls(plan):
    assert list(plan("SELECT ONLINE R.k FROM R, S WHERE near(R.x, S.y)").predicates) == ["near"]
    assert not plan("SELECT ONLINE R.k FROM R, S").predicates
