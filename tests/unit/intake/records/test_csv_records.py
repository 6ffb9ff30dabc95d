"""CSV records: the splitting of lines, and values as CSV writes them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin.intake.dialect import Dialect
from streamjoin.intake.records import BadRecord, Decoded, decoder
from streamjoin.plan.schema import parse_schema


def decode(records: Sequence[str | bytes | None], **fields: str) -> Decoded:
    raw = [each.encode() if isinstance(each, str) else each for each in records]
    decoded = decoder("csv", parse_schema(fields)).decode(pa.array(raw, pa.binary()))
    decoded.rows.validate(full=True)
    assert sorted([*decoded.positions.tolist(), *(each.position for each in decoded.bad)]) == list(range(len(records)))
    return decoded


def check(record: str | bytes, *expected: object, **fields: str) -> None:
    """`record` gives one row of `expected`, and its neighbours are untouched."""
    empty = "," * (len(fields) - 1) or '""'
    decoded = decode([empty, record, empty], **fields)
    assert decoded.bad == []
    assert [tuple(row.values()) for row in decoded.rows.to_pylist()][1] == expected


def check_bad(record: str | bytes, reason: str, **fields: str) -> None:
    """`record` is bad for `reason`, and its neighbours are untouched."""
    empty = "," * (len(fields) - 1) or '""'
    decoded = decode([empty, record, empty], **fields)
    assert [(bad.position, bad.detail) for bad in decoded.bad] == [(1, reason)]


def test_every_type_is_read() -> None:
    check(
        "TRUE,-128,+7,0.5,text,bytes,2024-05-31,2024-05-31T12:30:00+01:00,1.50",
        True, -128, 7, 0.5, "text", b"bytes", datetime(2024, 5, 31).date(),
        datetime(2024, 5, 31, 11, 30, tzinfo=UTC), Decimal("1.50"),
        a="bool", b="int8", c="int64", d="float32", e="string", f="binary", g="date", h="timestamp", i="decimal(5,2)",
    )  # fmt: skip


def test_empty_field_is_null_and_an_empty_text_stands_in_quotes() -> None:
    fields = {"a": "bool", "b": "int64", "c": "float64", "d": "date", "e": "timestamp", "f": "decimal(5,2)"}
    fields |= {"g": "string", "h": "binary"}
    check(",,,,,,,", None, None, None, None, None, None, None, None, **fields)
    check('"",,,,,,"",""', None, None, None, None, None, None, "", b"", **fields)


def test_quoted_field_keeps_commas_quotes_and_line_breaks() -> None:
    check('"a, ""b""\r\nc",1', 'a, "b"\r\nc', 1, a="string", b="int64")
    check('"""",2', '"', 2, a="string", b="int64")


def test_quote_inside_an_unquoted_field_is_text() -> None:
    check('5" nail,1', '5" nail', 1, a="string", b="int64")


def test_blanks_count_in_text_only() -> None:
    check(" a , 1\t", " a ", 1, a="string", b="int64")


@pytest.mark.parametrize(
    ("dialect", "record", "expected"),
    [
        (Dialect(";"), "1;a,b;", [1, "a,b", None]),
        (Dialect("\t", null="\\N"), "\\N\t\\N\t", [None, None, ""]),
        (Dialect(null="NA"), 'NA,NA,"NA"', [None, None, "NA"]),
        (Dialect(null="NA"), ",NAN,", [None, "NAN", ""]),
        (Dialect(quote="'"), "1,'it''s, \"so\"',\"", [1, 'it\'s, "so"', '"']),
        (Dialect("|", quote=""), '1|"a|"', [1, '"a', '"']),
        (Dialect(" "), '1 "a b" ', [1, "a b", None]),
    ],
)
def test_dialects_have_marks_of_their_own(dialect: Dialect, record: str, expected: list[object]) -> None:
    schema = parse_schema({"a": "int64", "b": "string", "c": "string"})
    decoded = decoder("csv", schema, csv=dialect).decode(pa.array([record.encode()], pa.binary()))
    assert decoded.bad == []
    assert list(decoded.rows.to_pylist()[0].values()) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_one_line_break_at_the_end_is_allowed(end: str) -> None:
    check("x,1" + end, "x", 1, a="string", b="int64")


@pytest.mark.parametrize("text", ["1", "0", "true", "FALSE"])
def test_boolean_forms(text: str) -> None:
    check(text, text in ("1", "true"), a="bool")


@pytest.mark.parametrize(
    ("text", "value"),
    [("inf", math.inf), ("-Infinity", -math.inf), ("+INF", math.inf), ("+.5", 0.5), ("5.", 5.0), ("007", 7.0)],
)
def test_float_forms(text: str, value: float) -> None:
    check(text, value, a="float64")


def test_nan_is_a_float() -> None:
    assert math.isnan(decode(["nan"], a="float64").rows.column("a")[0].as_py())


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("", "empty record"),
        ("\n", "empty record"),
        ("1", '1 of 2 CSV fields; field "b" is missing'),
        ("1,x,2", 'more than 2 CSV fields; "b" is the last'),
        ("1,x,", 'more than 2 CSV fields; "b" is the last'),
        ("1,x\n2,y", "a CSV record is one line; another begins at byte 4"),
        ("1,x\n\n", "a CSV record is one line; another begins at byte 4"),
        ('1,"x', 'field "b": the closing quote is missing'),
        ('1,"x""', 'field "b": the closing quote is missing'),
        ('1,"x"y', 'field "b": text after the closing quote'),
        (b"1,\xff", "not valid UTF-8 at byte 2"),
        ("x,1", 'field "a": the text is no int64'),
        ("-,1", 'field "a": the text is no int64'),
        ("1.5,1", 'field "a": the text is no int64'),
        ('"1""",1', 'field "a": text where int64 is expected'),
        ("9223372036854775808,1", 'field "a": out of range for int64'),
        ("99999999999999999999x,1", 'field "a": the text is no int64'),
    ],
)
def test_bad_record_says_why(record: str | bytes, reason: str) -> None:
    check_bad(record, reason, a="int64", b="string")


@pytest.mark.parametrize("text", ["+-5", "1e", "e5", ".", "0x10", "1_000", "in", "nano", "1 2", "--inf"])
def test_what_is_no_number_is_no_float(text: str) -> None:
    check_bad(text, 'field "a": the text is no float64', a="float64")


@pytest.mark.parametrize("text", ["yes", "2", "tru", "10"])
def test_what_is_no_boolean_is_bad(text: str) -> None:
    check_bad(text, 'field "a": the text is no bool', a="bool")


def test_number_too_large_for_the_float_is_not_infinite() -> None:
    check_bad("1e400", 'field "a": out of range for float64', a="float64")


def test_null_is_a_tombstone() -> None:
    assert decode(["x", None], a="string").bad == [BadRecord(1, "empty record (tombstone)", "tombstone")]


_TEXT = st.text(st.sampled_from('ab",\n\r é😀'), max_size=6)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(_TEXT, st.integers(-(2**63), 2**63 - 1), _TEXT), max_size=5))
def test_what_the_csv_module_writes_is_read_back(rows: list[tuple[str, int, str]]) -> None:
    records = []
    for row in rows:
        text = io.StringIO()
        csv.writer(text).writerow(row)
        records.append(text.getvalue())
    decoded = decode(records, a="string", b="int64", c="string")
    assert decoded.bad == []
    read = [tuple(row.values()) for row in decoded.rows.to_pylist()]
    # The module writes an empty text as it writes None.
    assert read == [(first or None, number, last or None) for first, number, last in rows]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=12) | _TEXT.map(str.encode), max_size=5))
def test_any_bytes_are_rows_or_bad(records: list[bytes]) -> None:
    together = decode(records, a="string", b="float64")
    alone = [decode([record], a="string", b="float64") for record in records]
    assert together.positions.tolist() == [place for place, each in enumerate(alone) if not each.bad]
    assert [each.detail for each in together.bad] == [each.bad[0].detail for each in alone if each.bad]
