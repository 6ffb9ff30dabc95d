"""Expressions over many rows, NULL among them, have DuckDB's values; where they do not, it is said here and why."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.functions import times
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.query import plan_query

NAN, INF = float("nan"), float("inf")
TIMES = [
    *(None, "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-02-29 13:30:05.000001", "2024-12-30 00:00:00"),
    *("1901-01-06 12:00:00.5", "2023-12-31 23:59:59.999", "2020-06-30 07:08:09.123456", "0001-01-01 00:00:00", None),
]
NAMES = [None, "", "Ada", "a,b,c", ",,", "hello", "ÄÖÜ ß", "\U0001f355,\U0001f355!", "İſ", "A%\\_"]
DECIMALS = ("9.95", None, "-0.05", "0", "1159.95", "-1150", "9999999999.99", "-9999999999.99", "0.01", "5")
COLUMNS = {
    "R": {
        "k": [None, 1, 2, None, 0, -15, 149, 2**63 - 1, -(2**63), 55],
        "x": [None, 0.0, -0.0, NAN, INF, -INF, 2.675, -1.005, 1e300, 12345.678],
        "name": NAMES,
        "ts": [text and datetime.fromisoformat(text) for text in TIMES],
        "ok": [None, True, False, None, True, False, None, True, False, None],
        "day": [text and date.fromisoformat(text[:10]) for text in TIMES],
        "id": [None, 0, 4, 5, 15, -15, -25, 2**31 - 1, -(2**31), 149],
        "price": [text and Decimal(text) for text in DECIMALS],
    },
    "S": {
        "k": [None, 1, 3, 4, None, -15, 150, 2**63 - 1, 0, 55],
        "y": [None, -0.0, 0.0, NAN, NAN, INF, 2.675, None, 1e300, 0.5],
        "label": [None, "", "ada", "A,b,c", None, "x", "äöü ß", "y", "", "z"],
        "a b": list(range(10)),
    },
}


@pytest.fixture(scope="session")
def check(plan):
    """A text's values on all rows are DuckDB's; `differs` has ours by row where DuckDB's is another."""
    streams = plan("SELECT ONLINE * FROM R, S").streams
    rows = {
        (stream.name, field.name): pa.array(COLUMNS[stream.name][field.name]).cast(field.type)
        for stream in streams
        for field in stream.columns
    }
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for stream in streams:
        # Zones are cut off, for which DuckDB would need an extension; all is UTC.
        columns = {name: values for (of, name), values in rows.items() if of == stream.name}
        plain = {name: values.cast(pa.timestamp("us")) if name == "ts" else values for name, values in columns.items()}
        connection.register(stream.name, pa.table(plain))

    def check(text: str, differs: dict[int, object] | None = None) -> None:
        expression = plan(f"SELECT ONLINE {text} AS answer FROM R, S").select[0][1]
        found = evaluate(expression, rows, 10)
        assert found.type == expression.type
        ours = [value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in found.to_pylist()]
        theirs = [value for (value,) in connection.execute(f"SELECT {text} FROM R POSITIONAL JOIN S").fetchall()]
        assert any(value is not None for value in ours), "a test that cannot fail"
        for row, value in (differs or {}).items():
            assert shown(ours[row]) == shown(value) != shown(theirs[row])
            theirs[row] = value
        assert list(map(shown, ours)) == list(map(shown, theirs))

    return check


def test_using_has_the_columns_of_duckdb_but_puts_those_that_are_equal_first(plan):
    columns = {
        name: pa.schema([(column, pa.int64()) for column in names]) for name, names in (("A", "xkl"), ("B", "lyk"))
    }
    streams = [StreamSchema(name, schema, ARRIVAL) for name, schema in columns.items()]
    text = "FROM A JOIN B USING (k, l)"
    found = plan_query(f"SELECT ONLINE * {text}", {stream.name: stream for stream in streams}).output.names
    with duckdb.connect() as connection:
        for stream in streams:
            connection.register(stream.name, stream.columns.empty_table())
        theirs = [name for name, *_ in connection.execute(f"SELECT * {text}").description]
    # As the standard and PostgreSQL have it; DuckDB leaves them at their places in the first table.
    assert found == ["k", "l", "x", "y"] and theirs == ["x", "k", "l", "y"]


def shown(value: object) -> str:
    """What tells values apart: also NaN, and 1 from 1.0 and from TRUE."""
    return repr(value + 0.0) if isinstance(value, float) else repr(value)


@pytest.mark.parametrize(
    "text",
    [
        "R.k IS NOT DISTINCT FROM S.k",
        "R.k IS DISTINCT FROM S.k",
        "R.x IS NOT DISTINCT FROM S.y",
        "R.x IS DISTINCT FROM S.k",
        "R.price IS NOT DISTINCT FROM R.id",
        "NOT R.name IS DISTINCT FROM S.label",
        "R.k IS DISTINCT FROM NULL",
        "R.day IS DISTINCT FROM R.ts",
        *(f"R.ok IS {word}" for word in ("TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN")),
        "(R.k = S.k) IS NOT TRUE",
        "R.k = S.k IS UNKNOWN",
        "R.ok = R.ok IS NULL",
        "R.k IS NOT DISTINCT FROM S.k AND R.ok IS TRUE",
    ],
)
def test_conditions_with_is_have_the_values_of_duckdb(check, text):
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        *(f"EXTRACT({field} FROM R.ts)" for field in (*times.FIELDS, "epoch")),
        *(f"EXTRACT('{field}' FROM R.day)" for field in (*times.FIELDS, "epoch")),
        "EXTRACT(EPOCH FROM R.ts - R.day)",
        *(f"DATE_TRUNC('{unit}', R.ts)" for unit in times.UNITS),
        *(f"DATE_TRUNC('{unit}', R.day)" for unit in times.UNITS),
        "DATE_TRUNC('MONTH', TIMESTAMP '2024-05-17 10:00:00')",
    ],
)
def test_times_have_the_parts_that_duckdb_gives_them(check, text):
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "IF(R.ok, R.k, S.k)",
        "IF(R.k = S.k, 'same', R.name)",
        "IF(NULL, 1, 2)",
        *(f"{function}(R.name, {n})" for function in ("LEFT", "RIGHT") for n in (0, 2, -2, 99, -99, 2**31, -(2**63))),
        *(f"SPLIT_PART(R.name, ',', {n})" for n in (1, 2, 4, 99, -1, -3, -99)),
        "SPLIT_PART(R.name, 'l', 3)",
        "SPLIT_PART('a--b', '--', 2)",
        "R.name ILIKE 'a%'",
        "R.name NOT ILIKE '%ÄÖ%ß'",
        "R.name ILIKE '%\U0001f355_'",
        "LEFT(R.name, 1) ILIKE 'i'",
        "R.name ILIKE '%S'",
    ],
)
def test_texts_have_the_parts_that_duckdb_gives_them(check, text):
    check(text)


@pytest.mark.parametrize("like", ["LIKE", "ILIKE"])
def test_a_backslash_escapes_in_patterns_as_in_postgresql_and_not_as_in_duckdb(check, like):
    check(rf"R.name {like} 'A\%\\_'", {9: True})


@pytest.mark.parametrize(
    "text",
    [
        *(f"ROUND(R.x, {n})" for n in (0, 1, 2, 3, -1, -3, 20, 308, 309, 400, -300, -308, -309, -400)),
        *(f"ROUND(CAST(R.id AS BIGINT), {n})" for n in (0, 3, -1, -2, -9)),
        *(f"ROUND(R.price, {n})" for n in (0, 1, 2, 5, -1, -2, -9)),
        "ROUND(R.x * 0 - 4.9999999999999994e-1, 0)",
        "ROUND(S.k % 1000, -1)",
    ],
)
def test_numbers_are_rounded_as_duckdb_does(check, text):
    check(text)
