"""Columns of files as columns of a stream: exactly, or not at all."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from streamjoin.errors import RunError
from streamjoin.sources.columns import conform, stream_schema, stream_type, widened

TIMESTAMP = pa.timestamp("us", tz="UTC")
FIRST_US, LAST_US = -(2**63) + 1, 2**63 - 1


@pytest.mark.parametrize(
    ("carried", "kind"),
    [
        (pa.int8(), pa.int8()),
        (pa.uint8(), pa.int64()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.null(), pa.string()),
        (pa.binary(4), pa.binary()),
        (pa.large_binary(), pa.binary()),
        (pa.timestamp("s"), TIMESTAMP),
        (pa.timestamp("ms", "America/New_York"), TIMESTAMP),
        (pa.timestamp("ns", "America/New_York"), pa.timestamp("ns", "UTC")),
        (pa.date64(), pa.date32()),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal256(38, 2), pa.decimal128(38, 2)),
        (pa.decimal256(39, 2), None),
        (pa.decimal128(5, -2), None),
        (pa.time64("us"), pa.string()),
        (pa.time32("s"), pa.string()),
        (pa.uuid(), pa.string()),
        (pa.duration("us"), None),
        (pa.list_(pa.int8()), None),
        (pa.struct([("a", pa.int8())]), None),
        (pa.map_(pa.string(), pa.int8()), None),
    ],
)
def test_every_arrow_type_has_one_stream_type_or_none(carried: pa.DataType, kind: pa.DataType | None) -> None:
    assert stream_type(carried) == kind


def test_columns_without_a_stream_type_are_left_out() -> None:
    assert stream_schema(pa.schema([("a", pa.int8()), ("b", pa.list_(pa.int8())), ("c", pa.string())])).names == [
        "a",
        "c",
    ]


@pytest.mark.parametrize(
    ("first", "other", "both"),
    [
        (pa.int64(), pa.float64(), pa.float64()),
        (pa.int8(), pa.int32(), pa.int32()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(9, 4), pa.decimal128(9, 4)),
        (pa.int64(), pa.decimal128(9, 2), pa.decimal128(21, 2)),
        (pa.decimal128(38, 0), pa.decimal128(38, 2), pa.decimal128(38, 2)),
        (pa.int64(), pa.uint64(), pa.decimal128(20, 0)),
        (pa.decimal128(9, 2), pa.float32(), pa.float64()),
        (pa.null(), pa.string(), pa.string()),
        (pa.int64(), pa.null(), pa.int64()),
        (pa.int64(), pa.string(), pa.int64()),
        (pa.string(), pa.int64(), pa.string()),
        (pa.bool_(), pa.int64(), pa.bool_()),
        (pa.binary(), pa.string(), pa.binary()),
        (pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.timestamp("ns"), pa.timestamp("ms", "UTC"), pa.timestamp("ns")),
        (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("s")),  # both are microseconds in a stream
        (pa.date32(), pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.date32(), pa.timestamp("us"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.date32(), pa.timestamp("us")),
        (pa.date32(), pa.date64(), pa.date32()),
    ],
)
def test_numbers_and_times_are_widened_and_nothing_else(
    first: pa.DataType, other: pa.DataType, both: pa.DataType
) -> None:
    found = widened(pa.schema([("a", first)]), pa.schema([("b", pa.int8()), ("a", other)]))
    assert found == pa.schema([("a", both), ("b", pa.int8())])


def test_fields_of_structs_are_columns_and_read_with_the_struct_s_nulls() -> None:
    person = [
        {"name": "Ada", "at": {"x": 1, "y": [1]}},
        None,
        {"name": None, "at": None},
        {"name": "Bob", "at": {"x": 2}},
    ]
    carried = pa.table({"p": person, "q.z": [1, 2, 3, 4], "q": [{"z": 9}] * 4}).to_batches()[0]
    schema = stream_schema(carried.schema)
    assert {name: str(schema.field(name).type) for name in schema.names} == {
        "p.at.x": "int64", "p.name": "string", "q.z": "int64"
    }  # fmt: skip
    for rows, first in ((carried, 0), (carried.slice(1), 1)):
        found = conform(rows, schema, schema.names, "1.parquet").to_pydict()
        assert found == {
            "p.at.x": [1, None, None, 2][first:],
            "p.name": ["Ada", None, None, "Bob"][first:],
            "q.z": [1, 2, 3, 4][first:],
        }


def test_uuids_and_times_of_day_are_text() -> None:
    ids = [uuid.UUID(int=0), None, uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), uuid.UUID(int=2**128 - 1)]
    for kind in (pa.uuid(), pa.binary(16)):
        values = pa.array([one and one.bytes for one in ids], kind)
        assert converted(values, pa.string()).to_pylist() == [one and str(one) for one in ids]
        assert converted(values[1:3], pa.string()).to_pylist() == [None, str(ids[2])]
        assert converted(values[:0], pa.string()).to_pylist() == []
    assert converted(pa.array([ids[2].bytes], pa.uuid()), pa.binary()).to_pylist() == [ids[2].bytes]
    noon = datetime.time(12, 30, 1)
    for unit in ("s", "ms"):
        assert converted(pa.array([noon, None], pa.time32(unit)), pa.string()).to_pylist() == ["12:30:01.000000", None]
    moments = [
        0,
        45_001_000_001_000,
        45_001_000_001_001,
        45_001_000_001_999,
        None,
        45_001_000_002_000,
        86_399_999_999_999,
    ]
    texts = converted(pa.array(moments, pa.time64("ns")), pa.string()).to_pylist()
    assert texts == ["00:00:00.000000", "12:30:01.000001", "12:30:01.000001001", "12:30:01.000001999", None,
                     "12:30:01.000002", "23:59:59.999999999"]  # fmt: skip
    known = [text for text in texts if text]
    assert known == sorted(set(known)), "in order of time, and no two are equal"
    assert converted(pa.array(moments, pa.time64("ns"))[2:4], pa.string()).to_pylist() == texts[2:4]


def converted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    schema = pa.schema([("c", kind)])
    rows = conform(pa.RecordBatch.from_arrays([values], ["c"]), schema, ["c"], "1.parquet")
    rows.validate(full=True)
    assert rows.schema == schema
    return rows.column(0)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array([1, None], pa.int32()), pa.int64(), [1, None]),
        (pa.array([127, None], pa.int64()), pa.int8(), [127, None]),
        (pa.array([2**53, None]), pa.float64(), [2.0**53, None]),
        (pa.array([2.0, None]), pa.int64(), [2, None]),
        (pa.array([0.5, float("inf")]), pa.float32(), [0.5, float("inf")]),
        (pa.array([0.5], pa.float32()), pa.float64(), [0.5]),
        (pa.array([1.5], pa.float16()), pa.float32(), [1.5]),
        (pa.array([1.5, None]), pa.decimal128(5, 2), [Decimal("1.50"), None]),
        (pa.array([Decimal("1.25")]), pa.decimal128(9, 4), [Decimal("1.2500")]),
        (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
        (pa.array([7]), pa.decimal128(20, 0), [Decimal(7)]),
        (pa.array([7, None, 9_999_999]), pa.decimal128(9, 2), [Decimal(7), None, Decimal(9_999_999)]),
        (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(22, 2), [Decimal(2**64 - 1)]),
        (pa.array([Decimal("0.57"), Decimal("2.01"), None]), pa.float64(), [0.57, 2.01, None]),
        (pa.array([Decimal("0.57")], pa.decimal32(5, 2)), pa.float64(), [0.57]),
        (pa.array(["2026-01-01 00:00:00"]), TIMESTAMP, [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]),
        (pa.array([None, None]), pa.int64(), [None, None]),
        (pa.array([None]), TIMESTAMP, [None]),
        (pa.array([None]), pa.bool_(), [None]),
        (pa.array(["a", "b", None, "a"]).dictionary_encode(), pa.string(), ["a", "b", None, "a"]),
        (pa.array(["a"], pa.large_string()), pa.string(), ["a"]),
        (pa.array(["a"], pa.string_view()), pa.string(), ["a"]),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
        (pa.array(["12"]), pa.int64(), [12]),
        (pa.array([12]), pa.string(), ["12"]),
        (pa.array(["2026-01-01"]), pa.date32(), [datetime.date(2026, 1, 1)]),
        (pa.array(["2026-01-01", None], pa.string_view()), pa.date32(), [datetime.date(2026, 1, 1), None]),
        (
            pa.array(["1970-01-01T00:00:00.000001Z"], pa.string_view()),
            TIMESTAMP,
            [datetime.datetime(1970, 1, 1, 0, 0, 0, 1, datetime.UTC)],
        ),
        (pa.array([86_400, None], pa.timestamp("s", "Asia/Tokyo")), pa.date32(), [datetime.date(1970, 1, 2), None]),
        (pa.array([datetime.date(1970, 1, 2)]), TIMESTAMP, [datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)]),
        (
            pa.array(["2026-01-01T00:00:00.000001999Z"]),
            TIMESTAMP,
            [datetime.datetime(2026, 1, 1, 0, 0, 0, 1, datetime.UTC)],
        ),
    ],
)
def test_value_that_fits_is_kept(values: pa.Array, kind: pa.DataType, expected: list[Any]) -> None:
    assert converted(values, kind).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (pa.array([2**40]), pa.int32(), "Integer value 1099511627776 not in range"),
        (pa.array([2**63], pa.uint64()), pa.int64(), "not in range"),
        (pa.array([10_000_000]), pa.decimal128(9, 2), "does not fit"),
        (pa.array([2**53 + 1]), pa.float64(), "not in range"),
        (pa.array([1.5]), pa.int64(), "truncated"),
        (pa.array([float("nan")]), pa.int64(), "truncated"),
        (pa.array([0.5, 0.1]), pa.float32(), "0.1 does not fit float32 exactly"),
        (pa.array([1e300]), pa.float32(), "does not fit float32 exactly"),
        (pa.array([0.125]), pa.decimal128(5, 2), "0.125 does not fit decimal(5,2) exactly"),
        (pa.array([Decimal("1.25")]), pa.decimal128(5, 1), "would cause data loss"),
        (pa.array(["x"]), pa.int64(), "Failed to parse"),
        (pa.array([True]), pa.int64(), "it is bool here, and int64 in the schema"),
        (pa.array([1]), pa.bool_(), "it is int64 here, and bool in the schema"),
        (pa.array([5]), TIMESTAMP, "it is int64 here, and timestamp in the schema; declare it as it is and give"),
        (pa.array([5]), pa.date32(), "it is int64 here, and date in the schema"),
        (pa.array([0, 1], pa.timestamp("ns")), pa.date32(), "1970-01-01 00:00:00.000000001 has a time of day"),
        (pa.array([0], TIMESTAMP), pa.int64(), "it is timestamp here, and int64 in the schema"),
        (pa.array([b"a"]), pa.string(), "it is binary here, and string in the schema"),
        (pa.array([[1]]), pa.string(), "Unsupported cast"),
        (pa.array([{"a": 1}]), pa.int64(), "Unsupported cast"),
    ],
)  # fmt: skip
def test_value_that_does_not_fit_is_refused_with_file_and_column(
    values: pa.Array, kind: pa.DataType, message: str
) -> None:
    with pytest.raises(RunError) as refused:
        converted(values, kind)
    assert str(refused.value).startswith('1.parquet, column "c": ')
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("values", "unit", "us"),
    [
        ([1_999, 1_000, 999, 0, -1, -1_000, -1_001, None], "ns", [1, 1, 0, 0, -1, -1, -2, None]),
        ([5, -5, None], "ms", [5_000, -5_000, None]),
        ([2**61, -(2**61), 2**63 - 1], "ms", [LAST_US, FIRST_US, LAST_US]),
        ([2**62, -(2**62), 253_402_300_799], "s", [LAST_US, FIRST_US, 253_402_300_799_000_000]),
        ([2**63 - 1, None], "us", [LAST_US, None]),
    ],
)
def test_times_of_every_unit_become_microseconds_and_never_wrap(
    values: list[int | None], unit: str, us: list[int | None]
) -> None:
    assert converted(pa.array(values, pa.timestamp(unit)), TIMESTAMP).view(pa.int64()).to_pylist() == us


def test_missing_column_is_null() -> None:
    rows = pa.RecordBatch.from_pydict({"a": [1, 2]})
    found = conform(rows, pa.schema([("c", pa.decimal128(5, 2)), ("a", pa.int64())]), ["c", "a"], "1.parquet")
    assert found.to_pylist() == [{"c": None, "a": 1}, {"c": None, "a": 2}]


def test_nanoseconds_are_carried_and_coarser_times_become_nanoseconds() -> None:
    ns = pa.timestamp("ns", "UTC")
    schema = pa.schema([("t", ns)])
    for unit, raw, found in (("ns", [1, 999, None], [1, 999, None]), ("ms", [-1, None], [-1_000_000, None])):
        rows = pa.record_batch([pa.array(raw, pa.timestamp(unit, "Asia/Tokyo"))], ["t"])
        assert conform(rows, schema, ["t"], "x").column("t").equals(pa.array(found, ns))
    texts = pa.record_batch([pa.array(["2026-01-01 00:00:00.1234567891", None, "2026-01-01T01:00:00.5+01:00"])], ["t"])
    for rows, raw in (
        (texts.slice(0, 2), [1_767_225_600_123_456_789, None]),
        (texts.slice(2), [1_767_225_600_500_000_000]),
    ):
        assert conform(rows, schema, ["t"], "x").column("t").cast(pa.int64()).to_pylist() == raw
    far = pa.record_batch([pa.array([2**62], pa.timestamp("us", "UTC"))], ["t"])
    with pytest.raises(RunError, match='column "t"'):
        conform(far, schema, ["t"], "x")


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_are_decimals_with_all_their_digits(text: pa.DataType) -> None:
    kind = pa.decimal128(38, 20)
    given = ["-96", "1.50", "+5e-20", "1E17", "0." + "9" * 20, None]
    found = [None if one is None else Decimal(one) for one in given]
    assert converted(pa.array(given, text), kind).to_pylist() == found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("-96", pa.decimal128(38, 38)),
        ("100", pa.decimal128(4, 2)),
        ("0.001", pa.decimal128(4, 2)),
        ("1e-9999999", pa.decimal128(10, 2)),
        ("1e39", pa.decimal128(10, 2)),
        ("1" * 39, pa.decimal128(38, 0)),
    ],
)
def test_texts_that_are_no_such_decimals_are_refused(text: str, kind: pa.DataType) -> None:
    with pytest.raises(RunError, match=r'1\.parquet, column "c": '):
        converted(pa.array(["1", text]).slice(1), kind)


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("given", ["0x10", "0XfF", "0xFFFFFFFFFFFFFFFF"])
def test_a_hexadecimal_text_is_no_integer(given: str, text: pa.DataType) -> None:
    with pytest.raises(RunError, match=rf"1\.parquet, column \"c\": '{given}' is no int64"):
        converted(pa.array(["1", given], text), pa.int64())
    assert converted(pa.array(["-16", None], text), pa.int64()).to_pylist() == [-16, None]
