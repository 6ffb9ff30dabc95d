"""JSON records: the grammar, the types, and that no record touches a neighbour's row."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin.intake.records import BadRecord, Decoded, decoder
from streamjoin.plan.schema import parse_schema

GOOD = b'{"a":1}'


def decode(records: Sequence[bytes | None], **fields: str) -> Decoded:
    decoded = decoder("json", parse_schema(fields)).decode(pa.array(records, pa.binary()))
    decoded.rows.validate(full=True)
    assert decoded.rows.schema == parse_schema(fields)
    assert sorted([*decoded.positions.tolist(), *(each.position for each in decoded.bad)]) == list(range(len(records)))
    return decoded


def check_good(record: str | bytes, value: object, kind: str) -> None:
    """`record` gives one row whose only column `a` is `value`, and its neighbours are untouched."""
    raw = record.encode() if isinstance(record, str) else record
    decoded = decode([b"{}", raw, b"{}"], a=kind)
    assert decoded.bad == []
    assert decoded.rows.column("a").to_pylist() == [None, value, None]


def check_bad(record: str | bytes, reason: str, kind: str = "int64") -> None:
    """`record` is bad for `reason`, and its neighbours are untouched."""
    raw = record.encode() if isinstance(record, str) else record
    decoded = decode([b"{}", raw, b"{}"], a=kind)
    assert [(bad.position, bad.detail) for bad in decoded.bad] == [(1, reason)]
    assert decoded.positions.tolist() == [0, 2]
    assert decoded.rows.column("a").to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("record", "value", "kind"),
    [
        ('{"a":9223372036854775807}', 2**63 - 1, "int64"),
        ('{"a":-9223372036854775808}', -(2**63), "int64"),
        ('{"a":-0}', 0, "int64"),
        ('{"a":-128}', -128, "int8"),
        ('{"a":0.1}', 0.1, "float64"),
        ('{"a":1}', 1.0, "float64"),
        ('{"a":-1.5E+3}', -1500.0, "float64"),
        ('{"a":1e-400}', 0.0, "float64"),
        ('{"a":9007199254740993}', 9007199254740992.0, "float64"),
        ('{"a":0.1}', float(np.float32(0.1)), "float32"),
        ('{"a":true}', True, "bool"),
        ('{"a":false}', False, "bool"),
        ('{"a":""}', "", "string"),
        (r'{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000"}', '"\\/\b\f\n\r\té😀\0', "string"),
        ('{"a":"é€😀"}', "é€😀", "string"),
        ('{"a":"é\\n"}', "é\n".encode(), "binary"),
        ('{"a":"2024-02-29"}', datetime(2024, 2, 29).date(), "date"),
        ('{"a":12.3}', Decimal("12.30"), "decimal(6,2)"),
        ('{"a":"-0012.300"}', Decimal("-12.30"), "decimal(6,2)"),
        ('{"a":123e1}', Decimal("1230.00"), "decimal(6,2)"),
        ('{"a":1200e-2}', Decimal("12.00"), "decimal(6,2)"),
        ('{"a":0e99}', Decimal("0.00"), "decimal(6,2)"),
        ('{"a":"-' + "9" * 38 + '"}', Decimal("-" + "9" * 38), "decimal(38,0)"),
        (' \t\r\n{ "a" :\n7 } ', 7, "int64"),
        (r'{"\u0061":7}', 7, "int64"),
        ('{"b":[{"a":1},{"a":[2]}],"a":7}', 7, "int64"),
        ('{"b":1,"b":2,"a":7}', 7, "int64"),
        ('{"A":1,"aa":2,"":3,"a":7}', 7, "int64"),
        (b'{"b":' + b"[" * 1000 + b"]" * 1000 + b',"a":7}', 7, "int64"),
        (b'{"b":"' + b"x" * 1_500_000 + b'","a":7}', 7, "int64"),
        ('{"b":1e999,"c":"\\ud800","a":7}', 7, "int64"),
        ('{"a":null}', None, "int64"),
        ('{"b":7}', None, "int64"),
    ],
)
def test_value_is_read(record: str | bytes, value: object, kind: str) -> None:
    check_good(record, value, kind)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-05-31T12:30:45Z", datetime(2024, 5, 31, 12, 30, 45)),
        ("2024-05-31T12:30:45.123456z", datetime(2024, 5, 31, 12, 30, 45, 123456)),
        ("2024-05-31T12:30:45.1234560000Z", datetime(2024, 5, 31, 12, 30, 45, 123456)),
        ("2024-05-31T12:30:45.5", datetime(2024, 5, 31, 12, 30, 45, 500000)),
        ("2024-05-31 12:30", datetime(2024, 5, 31, 12, 30)),
        ("2024-05-31", datetime(2024, 5, 31)),
        ("2024-05-31T12:30:45+02:00", datetime(2024, 5, 31, 10, 30, 45)),
        ("2024-05-31T12:30:45-0530", datetime(2024, 5, 31, 18, 0, 45)),
        ("2024-05-31T12:30:45+02", datetime(2024, 5, 31, 10, 30, 45)),
        ("2024-05-31T12:30:45\\u002b02:00", datetime(2024, 5, 31, 10, 30, 45)),
        ("2024-05-31T12:30:45.123456789Z", datetime(2024, 5, 31, 12, 30, 45, 123456)),
        ("2024-05-31T12:30:45.9999999999999+02:00", datetime(2024, 5, 31, 10, 30, 45, 999999)),
        ("1969-12-31T23:59:59.9999999Z", datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1)),
        ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999999)),
        ("2000-02-29T00:00:00Z", datetime(2000, 2, 29)),
    ],
)
def test_timestamp_is_read_as_utc(text: str, value: datetime) -> None:
    check_good(f'{{"a":"{text}"}}', value.replace(tzinfo=UTC), "timestamp")


@pytest.mark.parametrize(
    "text",
    [
        "", "2024", "20240531", "2024-5-31", "2024-02-30", "2023-02-29", "1900-02-29", "0000-01-01", "2024-13-01",
        "2024-05-31T24:00:00Z", "2024-05-31T23:59:60Z", "2024-05-31T12", "2024-05-31T12:30:45.Z", "2024-05-31T12:30Zx",
        "2024-05-31T12:30:45+2:00", "2024-05-31T12:30:45+24:00", "2024-05-31T12:30:45 Z", " 2024-05-31", "12024-05-31",
        "2024-05-31Tx2:30",
    ],
)  # fmt: skip
def test_what_is_no_timestamp_is_bad(text: str) -> None:
    check_bad(f'{{"a":"{text}"}}', 'field "a": the text is no timestamp, such as 2026-01-31T12:00:00Z', "timestamp")


@pytest.mark.parametrize(
    ("record", "reason", "kind"),
    [
        ('{"a":"1"}', "a string where int64 is expected", "int64"),
        ('{"a":1.0}', "a number with fraction or exponent where int64 is expected", "int64"),
        ('{"a":1e3}', "a number with fraction or exponent where int64 is expected", "int64"),
        ('{"a":9223372036854775808}', "out of range for int64", "int64"),
        ('{"a":-9223372036854775809}', "out of range for int64", "int64"),
        ('{"a":99999999999999999999999999}', "out of range for int64", "int64"),
        ('{"a":128}', "out of range for int8", "int8"),
        ('{"a":true}', "a boolean where int64 is expected", "int64"),
        ('{"a":[1]}', "an object or array where int64 is expected", "int64"),
        ('{"a":{}}', "an object or array where string is expected", "string"),
        ('{"a":7}', "a number where string is expected", "string"),
        ('{"a":7}', "a number where binary is expected", "binary"),
        ('{"a":1}', "a number where bool is expected", "bool"),
        ('{"a":"true"}', "a string where bool is expected", "bool"),
        ('{"a":"1.5"}', "a string where float64 is expected", "float64"),
        ('{"a":1e400}', "out of range for float64", "float64"),
        ('{"a":-1e400}', "out of range for float64", "float64"),
        ('{"a":1e39}', "out of range for float32", "float32"),
        ('{"a":1717159845}', "a number where timestamp is expected", "timestamp"),
        ('{"a":"2024-05-31T00:00:00"}', "the text is no date, such as 2026-01-31", "date"),
        ('{"a":19000}', "a number where date is expected", "date"),
        ('{"a":1.234}', "more digits than decimal(6,2) keeps", "decimal(6,2)"),
        ('{"a":10000}', "out of range for decimal(6,2)", "decimal(6,2)"),
        ('{"a":1e99999999999999999999}', "out of range for decimal(6,2)", "decimal(6,2)"),
        ('{"a":1e-99999999999999999999}', "more digits than decimal(6,2) keeps", "decimal(6,2)"),
        ('{"a":"1,5"}', "the text is no decimal(6,2)", "decimal(6,2)"),
        ('{"a":"NaN"}', "the text is no decimal(6,2)", "decimal(6,2)"),
        ('{"a":""}', "the text is no decimal(6,2)", "decimal(6,2)"),
        (r'{"a":"\ud800"}', "an escaped surrogate without its pair is not text", "string"),
        (r'{"a":"\ud800\u0041"}', "an escaped surrogate without its pair is not text", "string"),
        (r'{"a":"\udc00"}', "an escaped surrogate without its pair is not text", "binary"),
    ],
)
def test_value_of_another_type_names_the_field(record: str, reason: str, kind: str) -> None:
    check_bad(record, f'field "a": {reason}', kind)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("", "empty record"),
        (" \n\t", "empty record"),
        ("null", "a JSON record is one object; another value begins at byte 0"),
        ("[1]", "a JSON record is one object; another value begins at byte 0"),
        ("7", "a JSON record is one object; another value begins at byte 0"),
        ('{"a":1}{"a":2}', "a JSON record is one object; more follows it at byte 7"),
        ('{"a":1}\n{"a":2}', "a JSON record is one object; more follows it at byte 8"),
        ('{"a":1}null{"a":2}', "a JSON record is one object; more follows it at byte 7"),
        ('{"a":1},', "a JSON record is one object; more follows it at byte 7"),
        ("{", "not JSON: the record ends inside the object"),
        ('{"a', "not JSON: the record ends inside the object"),
        ('{"a"', "not JSON: the record ends inside the object"),
        ('{"a":', "not JSON: the record ends inside the object"),
        ('{"a":1', "not JSON: the record ends inside the object"),
        ('{"a":1,', "not JSON: the record ends inside the object"),
        ('{"a":"\\', "not JSON: the record ends inside the object"),
        ('{"a":"\\u12', "not JSON: the record ends inside the object"),
        ('{"b":[{"c":1}', "not JSON: the record ends inside the object"),
        ('{"a":1,}', "not JSON: a field name in double quotes is missing at byte 7"),
        ("{'a':1}", "not JSON: a field name in double quotes is missing at byte 1"),
        ('{"a" 1}', "not JSON: a colon is missing at byte 5"),
        ('{"a":1 "b":2}', "not JSON: a comma or closing bracket is missing at byte 7"),
        ('{"b":[1}', "not JSON: a comma or closing bracket is missing at byte 7"),
        ('{"b":[1,]}', "not JSON: no valid value at byte 8"),
        ('{"a":01}', "not JSON: no valid value at byte 5"),
        ('{"a":-}', "not JSON: no valid value at byte 5"),
        ('{"a":1.}', "not JSON: no valid value at byte 5"),
        ('{"a":.5}', "not JSON: no valid value at byte 5"),
        ('{"a":+1}', "not JSON: no valid value at byte 5"),
        ('{"a":1e}', "not JSON: no valid value at byte 5"),
        ('{"a":NaN}', "not JSON: no valid value at byte 5"),
        ('{"b":Infinity}', "not JSON: no valid value at byte 5"),
        ('{"b":-Infinity}', "not JSON: no valid value at byte 5"),
        ('{"a":nul}', "not JSON: no valid value at byte 5"),
        ('{"a":1}//x', "a JSON record is one object; more follows it at byte 7"),
        ('{"b":"\n"}', "not JSON: unescaped control character in a string at byte 6"),
        (r'{"b":"\x"}', "not JSON: unknown escape at byte 6"),
        (r'{"b":"\u00g0"}', "not JSON: unknown escape at byte 6"),
        (b'{"b":"\xff"}', "not valid UTF-8 at byte 6"),
        (b'{"b":"\xc0\x80"}', "not valid UTF-8 at byte 6"),
        (b'{"b":"\xed\xa0\x80"}', "not valid UTF-8 at byte 6"),
        (b'{"b":"\xf4\x90\x80\x80"}', "not valid UTF-8 at byte 6"),
        (b'{"b":"\xe2\x82', "not valid UTF-8 at byte 6"),
        (b'\xef\xbb\xbf{"a":1}', "a JSON record is one object; another value begins at byte 0"),
        ('{"a":1,"a":1}', 'field "a" is given twice'),
        ('{"a":null,"\\u0061":1}', 'field "a" is given twice'),
        ('{"b":' + "[" * 10_001, "nested more than 10000 deep at byte 10005"),
    ],
    ids=lambda value: None if len(value) < 60 else "long",
)
def test_what_is_not_one_json_object_is_bad(record: str | bytes, reason: str) -> None:
    check_bad(record, reason)


def test_null_is_a_tombstone() -> None:
    decoded = decode([GOOD, None, GOOD], a="int64")
    assert decoded.bad == [BadRecord(1, "empty record (tombstone)", "tombstone")]
    assert decoded.positions.tolist() == [0, 2]


def test_halves_of_one_object_do_not_become_a_row() -> None:
    decoded = decode([b'{"a":', b"1}", b'{"b":"', b'","a":2}', GOOD], a="int64")
    assert [each.position for each in decoded.bad] == [0, 1, 2, 3]
    assert decoded.rows.to_pylist() == [{"a": 1}]


def test_first_faulty_field_in_schema_order_is_named() -> None:
    decoded = decode([b'{"b":"x","a":"y"}'], a="int64", b="int64")
    assert decoded.bad == [BadRecord(0, 'field "a": a string where int64 is expected', "bad_value")]


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string()])
def test_every_layout_and_offset_of_the_input_is_read(kind: pa.DataType) -> None:
    values = pa.array(['{"a":1}', None, '{"a":"é"}', '{"a":4}', "{", '{"a":6}'], kind)[1:5]
    decoded = decoder("json", parse_schema({"a": "int64"})).decode(values)
    assert decoded.rows.to_pylist() == [{"a": 4}]
    assert decoded.positions.tolist() == [2]
    assert [each.position for each in decoded.bad] == [0, 1, 3]


def test_other_input_is_refused() -> None:
    with pytest.raises(TypeError, match="int64"):
        decoder("json", parse_schema({"a": "int64"})).decode(pa.array([1]))


def test_no_records_give_no_rows() -> None:
    assert decode([], a="int64", b="string").rows.num_rows == 0


def test_wide_schema_is_decoded_in_parts_without_a_seam() -> None:
    fields = {f"c{index}": "int64" for index in range(1_000)}
    # 4194 records fill one part.
    records = [b"{" if row == 4_200 else b'{"c%d":%d}' % (row % 1_000, row) for row in range(8_500)]
    decoded = decode(records, **fields)
    assert decoded.bad == [BadRecord(4_200, "not JSON: the record ends inside the object")]
    assert decoded.positions.tolist() == [row for row in range(8_500) if row != 4_200]
    assert decoded.rows.column("c195").drop_null().to_pylist() == list(range(195, 8_500, 1_000))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
_OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "é"]), _VALUES, max_size=5)


@st.composite
def _records(draw: st.DrawFn) -> bytes:
    """A JSON object as text, often with one place damaged."""
    text = bytearray(json.dumps(draw(_OBJECTS), ensure_ascii=draw(st.booleans())).encode())
    if draw(st.booleans()):
        place = draw(st.integers(0, len(text) - 1))
        damage = draw(st.sampled_from([b"", b"{", b"}", b'"', b",", b"\\", b"\n", b"0", b"\xff", b"null", b"]", b" "]))
        text[place : place + draw(st.integers(0, 3))] = damage
    return bytes(text)


def _reference(record: bytes) -> dict[str, object] | None:
    """The row a plain reading gives, None when the record is bad."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return {"__twice": [name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1], **dict(pairs)}

    def refuse(constant: str) -> object:
        raise ValueError(constant)

    try:
        found = json.loads(record.decode(), parse_constant=refuse, object_pairs_hook=once)
    except ValueError:
        return None
    if not isinstance(found, dict) or set(found["__twice"]) & set("abcd"):
        return None
    row = {name: found.get(name) for name in "abcd"}
    is_right = (
        (row["a"] is None or (type(row["a"]) is int and -(2**63) <= row["a"] < 2**63))
        and isinstance(row["b"], str | None)
        and (row["c"] is None or type(row["c"]) in (int, float))
        and isinstance(row["d"], bool | None)
    )
    if isinstance(row["b"], str) and any("\ud800" <= letter <= "\udfff" for letter in row["b"]):
        return None
    row["c"] = None if row["c"] is None or not is_right else float(row["c"])
    return row if is_right and abs(row["c"] or 0) < float("inf") else None


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(_records(), max_size=8))
def test_block_reads_as_each_record_alone_does(records: list[bytes]) -> None:
    expected = [_reference(record) for record in records]
    decoded = decode(records, a="int64", b="string", c="float64", d="bool")
    assert decoded.rows.to_pylist() == [row for row in expected if row is not None]
    assert decoded.positions.tolist() == [place for place, row in enumerate(expected) if row is not None]


@settings(max_examples=100, deadline=None)
@given(
    st.datetimes(
        datetime(2, 1, 1),
        datetime(9998, 1, 1),
        timezones=st.integers(-1439, 1439).map(lambda east: timezone(timedelta(minutes=east))),
    )
)
def test_timestamp_with_any_zone_is_the_same_instant(moment: datetime) -> None:
    check_good(f'{{"a":"{moment.isoformat()}"}}', moment, "timestamp")


@settings(max_examples=100, deadline=None)
@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_decimal_is_kept_to_the_last_digit(unscaled: int, scale: int) -> None:
    value = Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    check_good(f'{{"a":"{value:f}"}}', value, f"decimal(38,{scale})")
    check_good(f'{{"a":{value:E}}}', value, f"decimal(38,{scale})")


@pytest.mark.slow
def test_clean_block_is_read_faster_than_record_by_record() -> None:
    fields = {"id": "int64", "at": "timestamp", "name": "string", "price": "float64"}
    records = [
        b'{"id": %d, "at": "2024-05-31T12:30:00.%06dZ", "name": "user%d", "price": %d.25}' % (row, row, row, row)
        for row in range(100_000)
    ]
    for bad in range(0, 100_000, 10_000):
        records[bad] = b'{"id":'
    reader, values = decoder("json", parse_schema(fields)), pa.array(records, pa.binary())
    ours_s, loop_s = [], []
    for _ in range(5):
        started = time.process_time()
        decoded = reader.decode(values)
        ours_s.append(time.process_time() - started)
        started = time.process_time()
        for record in records:
            with suppress(ValueError):
                json.loads(record)
        loop_s.append(time.process_time() - started)
    assert len(decoded.bad) == 10
    assert decoded.rows.num_rows == 99_990
    # The records become nothing in the loop; a way through Python objects would take several times as long.
    assert min(ours_s) < min(loop_s)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ('{"a": {"b": 1, "c": {"d": "x"}}, "k": 2}', [1, "x", 2]),
        ('{"k": 2, "a": {"c": {"d": null, "e": [{}]}, "b": null}}', [None, None, 2]),
        ('{"a": null, "k": 2}', [None, None, 2]),
        ("{}", [None, None, None]),
        ('{"a": {}}', [None, None, None]),
        ('{"a.b": 7, "a": {"b": 1, "c.d": "y"}}', [7, "y", None]),
        ('{"a": {"\\u0062": 3, "c": {"d": "\\u00e9"}}}', [3, "é", None]),
    ],
)
def test_fields_inside_objects_are_found_by_their_path(record: str, expected: list[object]) -> None:
    decoded = decode([b"{}", record.encode(), b'{"k": 5}'], **{"a.b": "int64", "a.c.d": "string", "k": "int64"})
    assert decoded.bad == []
    assert list(decoded.rows.to_pylist()[1].values()) == expected
    assert decoded.rows.to_pylist()[2] == {"a.b": None, "a.c.d": None, "k": 5}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"a": 1}', 'field "a": a number where an object is expected'),
        ('{"a": "{}"}', 'field "a": a string where an object is expected'),
        ('{"a": [1]}', 'field "a": an array where an object is expected'),
        ('{"a": {"c": false}}', 'in "a": field "c": a boolean where an object is expected'),
        ('{"a": {"b": 1, "b": 2}}', 'in "a": field "b" is given twice'),
        ('{"a": {"b": "x"}}', 'field "a.b": a string where int64 is expected'),
    ],
)
def test_what_is_wrong_inside_an_object_is_named_by_its_path(record: str, reason: str) -> None:
    decoded = decode([b"{}", record.encode(), b"{}"], **{"a.b": "int64", "a.c.d": "string", "k": "int64"})
    assert [(bad.position, bad.detail) for bad in decoded.bad] == [(1, reason)]
