"""Arrow records: many rows each, nothing in them trusted."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.intake.records import BadRecord, Decoded, decoder
from streamjoin.plan.schema import parse_schema


def stream(*batches: pa.RecordBatch, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def file(*batches: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def batch(**columns: Any) -> pa.RecordBatch:
    arrays = [each if isinstance(each, pa.Array) else pa.array(each) for each in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def decode(records: Sequence[bytes | None], **fields: str) -> Decoded:
    schema = parse_schema(fields)
    decoded = decoder("arrow", schema).decode(pa.array(records, pa.binary()))
    decoded.rows.validate(full=True)
    assert decoded.rows.schema == schema
    assert len(decoded.positions) == decoded.rows.num_rows
    assert not set(decoded.positions.tolist()) & {each.position for each in decoded.bad}
    return decoded


def reason_of(record: bytes, **fields: str) -> str:
    """Why `record` is bad; the good record beside it must stay good."""
    good = stream(batch(**{name: pa.nulls(1) for name in fields}))
    decoded = decode([good, record, good], **fields)
    assert decoded.positions.tolist() == [0, 2]
    [bad] = decoded.bad
    assert bad.position == 1
    return bad.detail


AB = batch(a=[1, 2, 3], b=["x", None, "é"])


def test_rows_of_every_batch_share_the_position_of_their_record() -> None:
    decoded = decode([stream(AB, AB.slice(1)), file(AB), stream(AB.slice(0, 0)), None], a="int64", b="string")
    assert decoded.positions.tolist() == [0] * 5 + [1] * 3
    assert decoded.rows.column("a").to_pylist() == [1, 2, 3, 2, 3, 1, 2, 3]
    assert decoded.bad == [BadRecord(3, "empty record (tombstone)", "tombstone")]


def test_columns_are_matched_by_name_and_missing_ones_are_null() -> None:
    decoded = decode([stream(batch(x=[[1]], b=["y"], a=[7]))], a="int64", c="date", b="string")
    assert decoded.rows.to_pylist() == [{"a": 7, "c": None, "b": "y"}]


def test_fields_of_structs_are_found_by_their_paths() -> None:
    whole = pa.array([{"b": 7, "c": {"d": "x", "e": [1]}}, {"b": None, "c": None}, None])
    found = decode(
        [stream(batch(a=whole, x=[1, 2, 3])), file(batch(a=[{"z": 1}]))], **{"a.b": "int64", "a.c.d": "string"}
    )
    assert found.rows.to_pylist() == [{"a.b": 7, "a.c.d": "x"}] + [{"a.b": None, "a.c.d": None}] * 3
    own = stream(batch(**{"a": [{"b": 1}], "a.b": [2]}))
    assert decode([own], **{"a.b": "int64"}).rows.to_pylist() == [{"a.b": 2}]  # one of that very name comes first
    views = pa.array([{"b": "text" * 5}, {"b": None}], pa.struct([("b", pa.string_view())]))
    assert decode([stream(batch(a=views.slice(1))), stream(batch(a=views))], **{"a.b": "string"}).rows.to_pylist() == [
        {"a.b": None}, {"a.b": "text" * 5}, {"a.b": None},
    ]  # fmt: skip


def test_fields_of_structs_that_are_no_values_of_their_columns_make_a_record_bad() -> None:
    twins = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], fields=[pa.field("b", pa.int64())] * 2)
    assert reason_of(stream(batch(a=twins)), **{"a.b": "int64"}) == 'field "b" of "a" is given twice'
    assert 'field "a.b": Arrow string where int64' in reason_of(stream(batch(a=[{"b": "x"}])), **{"a.b": "int64"})
    both = pa.RecordBatch.from_arrays([pa.array([{"b": 1}]), pa.array([{"c": 1}])], names=["a", "a"])
    assert reason_of(stream(both), **{"a.b": "int64"}) == 'field "a" is given twice'
    bad = pa.StructArray.from_arrays([pa.array([b"\xff"]).view(pa.string())], ["b"])
    assert "not an Arrow IPC stream" in reason_of(stream(batch(a=bad)), **{"a.b": "string"})


def test_record_without_any_known_column_is_rows_of_nulls() -> None:
    assert decode([stream(batch(x=[1, 2]))], a="int64").rows.to_pylist() == [{"a": None}] * 2


@pytest.mark.parametrize(
    ("array", "kind", "read"),
    [
        (pa.array([True]), "bool", True),
        (pa.array([200], pa.uint8()), "int16", 200),
        (pa.array([2**40]), "float64", float(2**40)),
        (pa.array([0.5], pa.float16()), "float32", 0.5),
        (pa.array([float("inf")]), "float32", float("inf")),
        (pa.array(["x"], pa.large_string()), "string", "x"),
        (pa.array(["long enough for a buffer"], pa.string_view()), "string", "long enough for a buffer"),
        (pa.array(["x"]).dictionary_encode(), "string", "x"),
        (pa.array([b"x"], pa.binary(1)), "binary", b"x"),
        (pa.array([b"\xc3\xa9"]), "string", "é"),
        (pa.array([5], pa.timestamp("s")), "timestamp", datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)),
        (
            pa.array([5_000], pa.timestamp("ns", "Asia/Tokyo")),
            "timestamp",
            datetime(1970, 1, 1, 0, 0, 0, 5, tzinfo=UTC),
        ),
        (pa.array([86_400_000], pa.date64()), "date", datetime(1970, 1, 2).date()),
        (pa.array([Decimal("1.5")]), "decimal(12,2)", Decimal("1.50")),
        (pa.nulls(1), "decimal(12,2)", None),
    ],
)
def test_value_is_read(array: pa.Array, kind: str, read: Any) -> None:
    assert decode([stream(batch(a=array))], a=kind).rows.to_pylist() == [{"a": read}]


@pytest.mark.parametrize(
    ("array", "kind", "problem"),
    [
        (pa.array([1, 300]), "int8", "not in range"),
        (pa.array([2**60]), "float64", "not in range"),
        (pa.array([1e300]), "float32", "out of range for float32"),
        (pa.array([1.0]), "int64", "Arrow double where int64 is expected"),
        (pa.array([1]), "string", "Arrow int64 where string is expected"),
        (pa.array(["1"]), "int64", "Arrow string where int64 is expected"),
        (pa.array([1]), "timestamp", "Arrow int64 where timestamp is expected"),
        (pa.array([1], pa.timestamp("ns")), "timestamp", "would lose data"),
        (pa.array([b"\xff"]), "string", "Invalid UTF8"),
        (pa.array([Decimal("1.55")]), "decimal(12,1)", "would cause data loss"),
        (pa.array([1, 1]).dictionary_encode(), "int64", "where int64 is expected"),
        (pa.array([[1]]), "int64", "where int64 is expected"),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"])), "string", "an extension type where string"),
        (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16], pa.binary(16))), "binary", "an extension"),
    ],
)
def test_value_of_another_type_names_the_field(array: pa.Array, kind: str, problem: str) -> None:
    reason = reason_of(stream(batch(a=array)), a=kind)
    assert reason.startswith('field "a": ')
    assert problem in reason


def test_unknown_extension_type_is_refused_too() -> None:
    field = pa.field("a", pa.string(), metadata={"ARROW:extension:name": "somebody.else"})
    record = stream(pa.RecordBatch.from_arrays([pa.array(["x"])], schema=pa.schema([field])))
    assert "extension type" in reason_of(record, a="string")


def test_what_is_wrong_in_an_extra_column_costs_nothing() -> None:
    good = stream(batch(x=["secret"], a=[7]))
    # The only int32 pair 0, 6 of the record are the offsets of "secret".
    damaged = good.replace(struct.pack("<ii", 0, 6), struct.pack("<ii", 0, 2**30))
    assert damaged != good
    assert decode([damaged], a="int64").rows.to_pylist() == [{"a": 7}]
    assert "not an Arrow IPC stream" in reason_of(damaged, x="string")


@pytest.mark.parametrize("scale", [-(2**24), -1, 3, 2**24])
def test_decimal_of_impossible_scale_is_bad(scale: int) -> None:
    wild = pa.array([Decimal("15")]).view(pa.decimal128(2, scale))
    assert "where decimal(10,2) is expected" in reason_of(stream(batch(a=wild)), a="decimal(10,2)")


@pytest.mark.parametrize("is_dictionary", [False, True])
def test_view_under_a_null_is_not_followed(is_dictionary: bool) -> None:
    wild = np.frombuffer(struct.pack("<iiii", 2**30, 0, 2**30, 2**30) * 2, np.int32)
    one_valid = pa.py_buffer(b"\x02")
    short = np.frombuffer(struct.pack("<i12s", 2, b"ok"), np.int32)
    views = pa.py_buffer(np.concatenate([wild[:4], short]))
    array = pa.Array.from_buffers(pa.string_view(), 2, [one_valid, views])
    if is_dictionary:
        array = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), array)
    decoded = decode([stream(batch(a=array))], a="string")
    assert decoded.rows.column("a").to_pylist() == [None, "ok"]


def test_two_columns_of_one_name_are_bad() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert reason_of(stream(twice), a="int64") == 'field "a" is given twice'


def test_dictionary_index_outside_the_dictionary_is_bad() -> None:
    wild = pa.DictionaryArray.from_arrays(pa.array([0, 9], pa.int32()), pa.array(["x"]), safe=False)
    assert "not an Arrow IPC stream" in reason_of(stream(batch(a=wild)), a="string")


@pytest.mark.parametrize("record", [b"", b"x", b"ARROW1\0\0", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b'{"a":1}' * 100])
def test_what_is_no_stream_is_bad(record: bytes) -> None:
    assert reason_of(record, a="int64")


@pytest.mark.parametrize("write", [stream, file])
def test_cut_record_never_gives_part_of_a_batch(write: Any) -> None:
    whole = write(AB)
    for size in range(0, len(whole), 7):
        decoded = decode([whole[:size]], a="int64", b="string")
        if decoded.rows.num_rows:
            # Only the end mark is lost, which a stream may leave out and a file may not.
            assert write is stream
            assert decoded.rows.to_pylist() == AB.to_pylist()
            assert size >= len(whole) - 8


@pytest.mark.parametrize("seed", range(3))
def test_damaged_bytes_never_reach_a_neighbour_or_crash(seed: int) -> None:
    dice = random.Random(seed)
    rows = batch(
        a=pa.array([1, 2, 3], pa.timestamp("s")),
        b=pa.array(["x", "y", "x"]).dictionary_encode(),
        c=pa.array(["p", None, "q" * 40], pa.string_view()),
        d=[Decimal("1.5")] * 3,
    )
    whole = [stream(rows), file(rows), stream(rows, compression="lz4"), stream(rows, compression="zstd")]
    good = stream(rows)
    records = []
    for _ in range(80):
        record = bytearray(dice.choice(whole))
        for _ in range(dice.randint(1, 4)):
            record[dice.randrange(len(record))] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
        records += [bytes(record), good]
    decoded = decode(records, a="timestamp", b="string", c="string", d="decimal(10,2)")
    odd = decoded.positions % 2 == 1
    assert decoded.rows.filter(pa.array(odd)).num_rows == 3 * 80
    assert all(each.position % 2 == 0 for each in decoded.bad)


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_record_is_read_and_a_bomb_is_not(compression: str) -> None:
    assert decode([stream(AB, compression=compression)], a="int64").rows.num_rows == 3
    zeros = pa.RecordBatch.from_arrays([pa.array(np.zeros(1 << 22, np.int64))] * 9, names=list("abcdefghi"))
    bomb = stream(zeros, compression=compression)
    assert len(bomb) < 4 << 20
    assert reason_of(bomb, a="int64") == "more than 256 MiB in one record"


def test_rows_without_bytes_are_bounded() -> None:
    assert reason_of(stream(batch(x=pa.nulls(1 << 25))), a="int64") == "more than 16777216 rows in one record"
    wide = {f"c{index}": "int64" for index in range(40)}
    assert reason_of(stream(batch(x=pa.nulls(1 << 20))), **wide) == "more than 256 MiB in one record"


@pytest.mark.parametrize("kind", ["dictionary", "view"])
def test_one_long_value_repeated_for_free_is_bounded(kind: str) -> None:
    text, count = "x" * 100_000, 10_000
    if kind == "dictionary":
        array = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))
    else:
        one = pa.array([text], pa.string_view())
        views = pa.py_buffer(one.buffers()[1].to_pybytes()[:16] * count)
        array = pa.Array.from_buffers(pa.string_view(), count, [None, views, *one.buffers()[2:]])
    reason = reason_of(stream(batch(a=array)), a="string")
    assert reason == 'field "a": more than 256 MiB in one record'
