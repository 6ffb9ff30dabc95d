"""Avro records: every type against fastavro as the writer, and damage of every kind."""

from __future__ import annotations

import copy
import io
import json
import re
import struct
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin.errors import InputError
from streamjoin.intake.records import BadRecord, Decoded, decoder
from streamjoin.plan.schema import parse_schema

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
ENUM = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
NOON = datetime(2024, 5, 31, 12, 0, 0, 125_000, UTC)


def record_of(**fields: Any) -> dict[str, Any]:
    """A writer schema of `fields`: name -> Avro type, in order."""
    return {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def encode(avro: dict[str, Any], row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(copy.deepcopy(avro)), row)
    return out.getvalue()


def decode(avro: Any, records: Sequence[bytes | None], **fields: str) -> Decoded:
    schema = parse_schema(fields)
    decoded = decoder("avro", schema, avro_schema=avro).decode(pa.array(records, pa.binary()))
    decoded.rows.validate(full=True)
    assert decoded.rows.schema == schema
    assert sorted([*decoded.positions.tolist(), *(each.position for each in decoded.bad)]) == list(range(len(records)))
    return decoded


def check(avro_type: Any, written: Any, kind: str, read: Any) -> None:
    """A field of `avro_type` that fastavro writes as `written` is `read` in a column of `kind`."""
    avro = record_of(before="string", a=avro_type, after="long")
    row = {"before": "x", "a": written, "after": 1}
    decoded = decode(avro, [encode(avro, row), encode(avro, row)], a=kind, after="int64")
    assert decoded.bad == []
    assert decoded.rows.to_pylist() == [{"a": read, "after": 1}] * 2


def check_bad(avro: Any, record: bytes | None, reason: str, **fields: str) -> None:
    decoded = decode(avro, [record], **fields)
    assert [(bad.position, bad.detail) for bad in decoded.bad] == [(0, reason)]


@pytest.mark.parametrize(
    ("avro_type", "written", "kind", "read"),
    [
        ("boolean", True, "bool", True),
        ("int", -(2**31), "int64", -(2**31)),
        ("long", -(2**63), "int64", -(2**63)),
        ("long", 2**63 - 1, "int64", 2**63 - 1),
        ("long", -128, "int8", -128),
        ("long", 3, "float64", 3.0),
        ("float", 0.5, "float32", 0.5),
        ("float", -0.5, "float64", -0.5),
        ("double", 0.1, "float64", 0.1),
        ("double", float("-inf"), "float64", float("-inf")),
        ("string", "é😀", "string", "é😀"),
        ("string", "", "string", ""),
        ("string", "é", "binary", "é".encode()),
        ("bytes", b"\xff\x00", "binary", b"\xff\x00"),
        ("bytes", "é".encode(), "string", "é"),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc", "binary", b"abc"),
        (ENUM, "GREEN", "string", "GREEN"),
        (DATE, date(1969, 12, 31), "date", date(1969, 12, 31)),
        (MILLIS, NOON, "timestamp", NOON),
        (MICROS, NOON, "timestamp", NOON),
        (MICROS, NOON, "int64", int(NOON.timestamp() * 1_000_000)),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, NOON.replace(tzinfo=None), "timestamp", NOON),
        (DECIMAL, Decimal("-12.34"), "decimal(12,2)", Decimal("-12.34")),
        (DECIMAL, Decimal("0.00"), "decimal(12,2)", Decimal("0.00")),
        (DECIMAL, Decimal("-12.34"), "decimal(38,10)", Decimal("-12.3400000000")),
        (
            {"type": "fixed", "name": "D", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 0},
            Decimal("-" + "9" * 38), "decimal(38,0)", Decimal("-" + "9" * 38),
        ),
        ("null", None, "string", None),
        (["null", "long"], None, "int64", None),
        (["null", "long"], 5, "int64", 5),
        (["long", "null"], None, "int64", None),
        (["long", "null"], 5, "int64", 5),
        (["string"], "x", "string", "x"),
        (["null", DECIMAL], Decimal("1.50"), "decimal(5,2)", Decimal("1.50")),
        (["null", ENUM], "RED", "string", "RED"),
    ],
)  # fmt: skip
def test_value_is_read(avro_type: Any, written: Any, kind: str, read: Any) -> None:
    check(avro_type, written, kind, read)


def test_extra_fields_of_any_type_are_stepped_over() -> None:
    inner = {"type": "record", "name": "space.Inner", "fields": [
        {"name": "colour", "type": ENUM}, {"name": "again", "type": {"type": "array", "items": "Colour"}},
        {"name": "nothing", "type": "null"},
    ]}  # fmt: skip
    avro = record_of(
        u=["null", "string", {"type": "map", "values": "double"}, inner],
        deep={"type": "array", "items": {"type": "map", "values": {"type": "array", "items": ["int", "space.Inner"]}}},
        nulls={"type": "array", "items": "null"},
        f={"type": "fixed", "name": "F", "size": 2},
        a="long",
    )
    one = {"colour": "RED", "again": ["GREEN", "RED"], "nothing": None}
    deeps: list[Any] = [[], [{}], [{"k": [1, one, 2]}, {"l": [], "m": [one]}]]
    rows = [
        {"u": union, "deep": deep, "nulls": [None] * 3, "f": b"ab", "a": 7}
        for union in (None, "x", {"k": 0.5, "l": 1.5}, one)
        for deep in deeps
    ]
    decoded = decode(avro, [encode(avro, row) for row in rows], a="int64")
    assert decoded.bad == []
    assert decoded.rows.column("a").to_pylist() == [7] * len(rows)


def test_fields_of_records_are_columns_called_by_their_path() -> None:
    inner = {"type": "record", "name": "Inner", "fields": [
        {"name": "c", "type": ["null", "string"]}, {"name": "d", "type": "double"},
        {"name": "list", "type": {"type": "array", "items": "int"}},
    ]}  # fmt: skip
    other = {
        "type": "record",
        "name": "Other",
        "fields": [{"name": "c", "type": "string"}, {"name": "e", "type": "int"}],
    }
    outer = {"type": "record", "name": "Outer", "fields": [
        {"name": "b", "type": "long"}, {"name": "in", "type": inner}, {"name": "after", "type": "string"},
        {"name": "others", "type": {"type": "array", "items": "Inner"}},
    ]}  # fmt: skip
    avro = record_of(a=outer, u=["null", "int", "Inner", other], last="long")
    one = {"c": "x", "d": 0.5, "list": [1, 2]}
    rows = [
        {"a": {"b": 1, "in": one, "after": "y", "others": [one]}, "u": one, "last": 7},
        {"a": {"b": 2, "in": {**one, "c": None}, "after": "", "others": []}, "u": {"c": "z", "e": 5}, "last": 8},
        *({"a": {"b": 3, "in": one, "after": "y", "others": [one] * 2}, "u": u, "last": 9} for u in (None, 4)),
    ]
    kinds = {"a.in.c": "string", "u.c": "string", "a.b": "int64", "last": "int64", "u.d": "float64", "u.e": "int64",
             "a.nothing": "date"}  # fmt: skip
    decoded = decode(avro, [encode(avro, row) for row in rows], **kinds)
    assert decoded.bad == []
    read = [tuple(row.values()) for row in decoded.rows.to_pylist()]
    assert read == [
        ("x", "x", 1, 7, 0.5, None, None),
        (None, "z", 2, 8, None, 5, None),
        ("x", None, 3, 9, None, None, None),
        ("x", None, 3, 9, None, None, None),
    ]
    check_bad(avro, b"\x02\x02\x04y", 'not Avro of this schema: field "a.in.c": the record ends inside it', **kinds)


def test_block_with_a_size_is_stepped_over() -> None:
    avro = record_of(x={"type": "array", "items": "int"}, a="long")
    # Two items in three bytes, then the end of the array, then a = 7.
    assert decode(avro, [b"\x03\x06\x02\x80\x01\x00\x0e"], a="int64").rows.to_pylist() == [{"a": 7}]


def test_columns_may_stand_in_another_order_and_be_missing() -> None:
    avro = record_of(b="string", a="long")
    decoded = decode(avro, [encode(avro, {"a": 1, "b": "x"})], a="int64", b="string", c="date")
    assert decoded.rows.to_pylist() == [{"a": 1, "b": "x", "c": None}]


def test_record_of_nulls_takes_no_bytes() -> None:
    assert decode(record_of(a="null"), [b""], a="int64").rows.to_pylist() == [{"a": None}]


def test_schema_may_be_json_text() -> None:
    assert decode(json.dumps(record_of(a="long")), [b"\x02"], a="int64").rows.to_pylist() == [{"a": 1}]


A = record_of(a="long", b="string")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (b"", 'field "a": the record ends inside it'),
        (b"\x80", 'field "a": the record ends inside it'),
        (b"\x80" * 11 + b"\x00", 'field "a": a number of more than 64 bits'),
        (b"\xff" * 9 + b"\x02", 'field "a": a number of more than 64 bits'),
        (b"\x02", 'field "b": the record ends inside it'),
        (b"\x02\x04x", 'field "b": the record ends inside it'),
        (b"\x02\x01", 'field "b": a negative length'),
        (b"\x02" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" + b"x", 'field "b": the record ends inside it'),
        (b"\x02\x02xy", "bytes are left over after the last field"),
    ],
)
def test_damaged_record_says_where(record: bytes, problem: str) -> None:
    check_bad(A, record, f"not Avro of this schema: {problem}", a="int64", b="string")


@pytest.mark.parametrize(
    ("avro_type", "record", "kind", "problem"),
    [
        ("boolean", b"\x02", "bool", "a boolean that is neither 0 nor 1"),
        ("int", b"\x80\x80\x80\x80\x10", "int64", "an int of more than 32 bits"),
        ("float", b"\x00\x00\x00", "float32", "the record ends inside it"),
        (["null", "long"], b"\x04\x00", "int64", "no such branch of the union"),
        (["null", "long"], b"\x01\x00", "int64", "no such branch of the union"),
        (ENUM, b"\x04", "string", "no such symbol of the enum"),
        (ENUM, b"\x01", "string", "no such symbol of the enum"),
    ],
)
def test_impossible_value_says_where(avro_type: Any, record: bytes, kind: str, problem: str) -> None:
    check_bad(record_of(a=avro_type), record, f'not Avro of this schema: field "a": {problem}', a=kind)


@pytest.mark.parametrize(
    ("avro_type", "record", "kind", "problem"),
    [
        ("long", b"\x80\x02", "int8", "out of range for int8"),
        ("string", b"\x02\xff", "string", "not valid UTF-8"),
        ("bytes", b"\x06\xed\xa0\x80", "string", "not valid UTF-8"),
        (MILLIS, b"\xff" * 9 + b"\x01", "timestamp", "out of range for timestamp"),
        (DECIMAL, b"\x00", "decimal(4,2)", "the text is no decimal(4,2)"),
        (DECIMAL, b"\x04\x27\x10", "decimal(4,2)", "out of range for decimal(4,2)"),
        (DECIMAL, b"\x04\x27\x0f", "decimal(4,3)", "out of range for decimal(4,3)"),
        (DECIMAL, b"\x22" + b"\x00" * 17, "decimal(4,2)", "out of range for decimal(4,2)"),
    ],
)
def test_value_the_column_cannot_hold_names_the_field(avro_type: Any, record: bytes, kind: str, problem: str) -> None:
    check_bad(record_of(a=avro_type), record, f'field "a": {problem}', a=kind)


def test_lying_item_count_costs_no_time() -> None:
    many = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    started = time.process_time()
    ints = decode(record_of(x={"type": "array", "items": "int"}, a="long"), [many + b"\x00\x02"], a="int64")
    nulls = decode(record_of(x={"type": "array", "items": "null"}, a="long"), [many + b"\x00\x02"], a="int64")
    assert time.process_time() - started < 5
    assert ints.bad == [BadRecord(0, 'not Avro of this schema: field "x": the record ends inside it')]
    assert nulls.rows.to_pylist() == [{"a": 1}]


def test_bad_record_costs_no_neighbour() -> None:
    good = encode(A, {"a": 1, "b": "x"})
    decoded = decode(A, [good, good[:-1], None, good + b"\x00", good], a="int64", b="string")
    assert decoded.positions.tolist() == [0, 4]
    assert [each.position for each in decoded.bad] == [1, 2, 3]
    assert decoded.bad[1].detail == "empty record (tombstone)"


def test_confluent_prefix_is_taken_off_and_its_schema_id_checked() -> None:
    body = encode(A, {"a": 1, "b": "x"})
    records = [b"\0" + struct.pack(">I", 7) + body, b"\0" + struct.pack(">I", 8) + body, body, b"\0\0\0", b""]
    fields = {"a": "int64", "b": "string"}
    any_id = decode({"confluent": True, "schema": A}, records, **fields)
    assert any_id.positions.tolist() == [0, 1]
    assert any_id.bad[0] == BadRecord(2, "the Confluent prefix, a zero byte and a schema id, is missing")
    one_id = decode({"confluent": True, "schema": json.dumps(A), "schema_id": 7}, records, **fields)
    assert one_id.positions.tolist() == [0]
    assert one_id.bad[0] == BadRecord(1, "written with schema id 8, not 7")
    assert decode({"confluent": False, "schema": A}, records, **fields).positions.tolist() == [2]


LIST = {"type": "record", "name": "List", "fields": [{"name": "next", "type": ["null", "List"]}]}


@pytest.mark.parametrize(
    ("avro", "kind", "message"),
    [
        ("{", "int64", "not JSON"),
        ('"string"', "int64", "record with fields"),
        ({"type": "record", "name": "R"}, "int64", "list of fields"),
        (record_of(a="string"), "int64", 'column "a": Avro string cannot be read as int64'),
        (record_of(a="double"), "float32", "double cannot be read as float32"),
        (record_of(a="long"), "timestamp", "long cannot be read as timestamp"),
        (record_of(a=DECIMAL), "decimal(12,1)", r"bytes \(decimal\) cannot be read as decimal\(12,1\)"),
        (record_of(a={"type": "array", "items": "int"}), "int64", 'field "a": a column is a simple type, not array'),
        (record_of(a=["int", "string"]), "int64", 'field "a": a column is one type or a union'),
        (record_of(a=["null", ["int"]]), "int64", 'field "a": unknown type "union"'),
        (record_of(a=[]), "int64", "at least one type"),
        (record_of(a="Colour"), "int64", 'field "a": unknown type "Colour"'),
        (record_of(a={"type": "fixed", "name": "F"}), "binary", "has a size"),
        (record_of(a={"type": "enum", "name": "E"}), "string", "has symbols"),
        (record_of(a=DECIMAL | {"scale": "x"}), "decimal(10,2)", 'field "a": "scale" is a whole number'),
        (record_of(a=DECIMAL | {"scale": None}), "decimal(10,2)", 'field "a": "scale" is a whole number'),
        (record_of(a=["null", DECIMAL | {"scale": -1}]), "decimal(10,2)", '"scale" is a whole number'),
        (record_of(a=DECIMAL | {"scale": 1.5}), "decimal(10,2)", '"scale" is a whole number'),
        (record_of(a="long", x=LIST), "int64", 'field "x": a type that contains itself'),
        (record_of(a=7), "int64", "a type is a name"),
        ({"confluent": True}, "int64", '"schema"'),
        ({"confluent": True, "schema": record_of(a="long"), "schema_id": "7"}, "int64", "schema_id"),
    ],
)
def test_schema_that_cannot_be_read_is_refused(avro: Any, kind: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decoder("avro", parse_schema({"a": kind}), avro_schema=avro)


INNER = {"type": "record", "name": "I", "fields": [{"name": "b", "type": "int"}]}
OTHER = {"type": "record", "name": "O", "fields": [{"name": "b", "type": "string"}]}


@pytest.mark.parametrize(
    ("avro_type", "message"),
    [
        ("long", 'field "a": column "a.b" is a field of a record, and this is none'),
        ({"type": "array", "items": INNER}, 'field "a": column "a.b" is a field of a record, and this is none'),
        ([INNER, OTHER], 'field "a.b": a column is one type; it is int in one record of a union and string in another'),
        (OTHER, 'column "a.b": Avro string cannot be read as int64'),
        ({**INNER, "fields": [{"name": "b", "type": INNER}]}, 'field "a.b": a column is a simple type, not record'),
    ],
)
def test_a_path_that_leads_to_no_such_field_is_refused(avro_type: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        decoder("avro", parse_schema({"a.b": "int64"}), avro_schema=record_of(a=avro_type))


def test_what_other_types_call_scale_or_symbols_is_not_looked_at() -> None:
    avro = record_of(a={"type": "long", "scale": "large", "symbols": 5})
    decoder("avro", parse_schema({"a": "int64"}), avro_schema=avro)


WIDE = record_of(
    a=["null", "long"], b="string", c={"type": "map", "values": ["int", "string"]}, d=DECIMAL, e=MICROS, f="double"
)
WIDE_FIELDS = {"a": "int64", "b": "string", "d": "decimal(10,2)", "e": "timestamp", "f": "float64"}
_ROWS = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(-(2**63), 2**63 - 1),
        "b": st.text(max_size=8),
        "c": st.dictionaries(st.text(max_size=3), st.integers(-(2**31), 2**31 - 1) | st.text(max_size=3), max_size=3),
        "d": st.decimals(Decimal("-99999999.99"), Decimal("99999999.99"), places=2),
        "e": st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
        "f": st.floats(allow_nan=False),
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_ROWS, max_size=5))
def test_what_fastavro_writes_is_read_back(rows: list[dict[str, Any]]) -> None:
    decoded = decode(WIDE, [encode(WIDE, row) for row in rows], **WIDE_FIELDS)
    assert decoded.rows.to_pylist() == [{name: row[name] for name in WIDE_FIELDS} for row in rows]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=4), _ROWS, st.data())
def test_any_bytes_are_rows_or_bad_whatever_stands_beside_them(
    noise: list[bytes], row: dict[str, Any], data: st.DataObject
) -> None:
    good = encode(WIDE, row)
    place = data.draw(st.integers(0, len(good) - 1))
    damaged = good[:place] + data.draw(st.binary(max_size=3)) + good[place + 1 :]
    records = [good, damaged, *noise, good[:place], good]
    together = decode(WIDE, records, **WIDE_FIELDS)
    alone = [decode(WIDE, [record], **WIDE_FIELDS) for record in records]
    assert together.positions.tolist() == [index for index, each in enumerate(alone) if not each.bad]
    assert together.rows.num_rows >= 2
    assert [each.detail for each in together.bad] == [each.bad[0].detail for each in alone if each.bad]
