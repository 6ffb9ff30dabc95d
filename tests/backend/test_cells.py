"""Rows as JSON: nothing that a browser would round, and nothing that JSON does not have."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from backend.cells import rows_of, table_cells, time_text, to_json
from backend.skew import skew_of

TINY = Decimal("0.1234567890123456789")


@pytest.mark.parametrize(
    ("kind", "values", "shown"),
    [
        (pa.int64(), [1, 2**53, 2**53 + 1, -(2**53) - 1, None], [1, 2**53, str(2**53 + 1), str(-(2**53) - 1), None]),
        (pa.int64(), [None, None], [None, None]),
        (pa.uint64(), [2**64 - 1], [str(2**64 - 1)]),
        (pa.int32(), [2**31 - 1, None], [2**31 - 1, None]),
        (pa.float64(), [0.5, math.nan, math.inf, -math.inf, None], [0.5, None, None, None, None]),
        (pa.decimal128(12, 2), [Decimal("123.45"), Decimal("-1.00"), None], [123.45, -1.0, None]),
        (pa.decimal128(38, 0), [Decimal(2**60), Decimal(7)], [str(2**60), 7]),
        (pa.decimal128(38, 19), [TINY], [str(TINY)]),
        (pa.bool_(), [True, None], [True, None]),
        (pa.string(), ['"\\\n\u2028é', "", None], ['"\\\n\u2028é', "", None]),
        (pa.binary(), [b"\x00\xff", None], ["00ff", None]),
        (pa.date32(), [date(2026, 1, 31), None], ["2026-01-31", None]),
        (pa.duration("us"), [timedelta(seconds=1), None], [1_000_000, None]),
        (pa.timestamp("us", "UTC"), [datetime(2026, 1, 31, tzinfo=UTC), None], ["2026-01-31T00:00:00.000000Z", None]),
        (pa.list_(pa.int64()), [[1, 2**60], None], [[1, str(2**60)], None]),
        (pa.struct([("x", pa.float64())]), [{"x": math.nan}], [{"x": None}]),
    ],
)  # fmt: skip
def test_every_type_is_json_and_exact(kind: pa.DataType, values: list[Any], shown: list[Any]) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(values, kind)], ["c"])
    rows, _ = rows_of(batch)
    assert [row[0] for row in rows] == shown
    assert json.loads(to_json(rows)) == [[value] for value in shown]


def test_what_is_no_number_is_counted_also_inside_of_structures() -> None:
    plain = pa.array([1.0, math.nan, None, math.inf])
    inside = pa.array([[math.nan], [], None, [1.0, math.inf]])
    rows, not_finite = rows_of(pa.RecordBatch.from_arrays([plain, inside], ["a", "b"]))
    assert not_finite == 4
    assert rows[3] == (None, [1.0, None])


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_text_that_is_no_utf8_is_shown_byte_by_byte(kind: pa.DataType) -> None:
    # Parquet files may have such texts, and Arrow hands them on.
    texts = pa.array([b"caf\xe9", "é".encode(), None]).view(pa.string())
    column = texts if kind == pa.string() else pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), texts)
    batch = pa.RecordBatch.from_arrays([column], ["a"])
    rows, _ = rows_of(batch)
    assert rows == [("caf\\xe9",), ("é",), (None,)]
    assert {top["value"] for top in skew_of(batch)["a"]["top"]} == {"caf\\xe9", "é", None}


def test_a_table_in_parts_is_one_list_of_rows() -> None:
    table = pa.concat_tables([pa.table({"n": [1, 2]}), pa.table({"n": [3]})])
    assert table_cells(table) == [[1], [2], [3]]
    assert table_cells(pa.table({"n": pa.array([], pa.int64())})) == []


def test_times_of_any_year_are_texts() -> None:
    far = pa.array([2**61, -(2**61), 0], pa.timestamp("us", "UTC"))
    days = pa.array([2**31 - 1, -(2**31), 0], pa.int32()).cast(pa.date32())
    rows, _ = rows_of(pa.RecordBatch.from_arrays([far, days], ["t", "d"]))
    assert rows == [
        ("75039-04-04T19:00:13.693952Z", "5881580-07-11"),
        ("-71100-09-29T04:59:46.306048Z", "-5877641-06-23"),
        ("1970-01-01T00:00:00.000000Z", "1970-01-01"),
    ]


def test_moments_that_pythons_calendar_has_not_are_null() -> None:
    assert time_text(0) == "1970-01-01T00:00:00.000000Z"
    assert time_text(-1) == "1969-12-31T23:59:59.999999Z"
    assert time_text(2**61) is None and time_text(None) is None
