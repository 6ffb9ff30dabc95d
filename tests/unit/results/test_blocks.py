"""Result blocks: what is cut comes back as it was, in order, with true bounds and a hash that notices every change."""

from __future__ import annotations

import datetime as dt
import math
import re
import zlib
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from result_jobs import rows, table

from streamjoin.errors import StateError
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.block import (
    BLOCK_BYTES_MAX,
    ROWS_A_BLOCK_MIN,
    BlockRef,
    KeyCode,
    check,
    cut,
    decode,
    decode_all,
    encode,
    hash_sum,
    key_code,
    refs_from_batch,
    refs_to_batch,
    row_hashes,
    sums_of_parts,
)
from streamjoin.results.stores.store import BlockKey

pytestmark = pytest.mark.slow

UTC = dt.UTC
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [-128, 0, 127]),
    "int16": (pa.int16(), [-(2**15), 5]),
    "int32": (pa.int32(), [-(2**31), 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "float32": (pa.float32(), [math.nan, -0.0, math.inf, -math.inf, 1.5]),
    "float64": (pa.float64(), [math.nan, -0.0, 0.25, math.inf, -math.inf, 5e-324, 1.7e308]),
    "decimal(18,2)": (pa.decimal128(18, 2), [Decimal("-9999999999999999.99"), Decimal("0.01"), Decimal("0.00")]),
    "decimal(5,5)": (pa.decimal128(5, 5), [Decimal("0.99999"), Decimal("-0.00001")]),
    "decimal(38,10)": (pa.decimal128(38, 10), [Decimal("9" * 28 + ".9999999999"), Decimal("-0.0000000001")]),
    "string": (pa.string(), ["", "a", "\x00", "a\x00", "größe", "\U0001f600" * 9]),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff\x00" * 9]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
    ),
    "duration": (pa.duration("us"), [dt.timedelta(microseconds=-1), dt.timedelta(days=10**6)]),
}


def with_column(kind: pa.DataType, values: list[Any], keyed: bool = False) -> pa.RecordBatch:
    n = len(values)
    fields = [("id", pa.int64()), ("value", kind), (RESULT_TIME, pa.int64())]
    columns = [pa.array(range(n), pa.int64()), pa.array(values, kind), pa.array(range(n), pa.int64())]
    if keyed:
        fields.append((RESULT_KEY, kind))
        columns.append(pa.array(values, kind))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def blocks_of(content: pa.RecordBatch, code: KeyCode, **more: Any) -> list[tuple[BlockRef, bytes]]:
    given = {"generation": 1, "batch": 2, "unit": 3, "first_number": 4, "block_bytes": 1 << 12, **more}
    return list(cut(content, code, **given))


def shown(batches: Any) -> Counter[str]:
    """Rows as texts: NaN is equal to itself there, and -0.0 is not 0.0."""
    return Counter(repr(row) for batch in batches for row in batch.to_pylist())


@pytest.mark.parametrize("equality", [True, False])
@pytest.mark.parametrize("name", VALUES)
def test_keys_of_every_type_come_back_sorted_in_blocks_with_true_bounds(name: str, equality: bool) -> None:
    kind, values = VALUES[name]
    content = with_column(kind, (values * 1000)[:1000], keyed=True)
    code = key_code(kind, equality=equality, buckets=4)
    blocks = blocks_of(content, code, block_bytes=1)
    batches = [decode(ref, block) for ref, block in blocks]
    assert shown(batches) == shown([content])
    assert sum(ref.rows for ref, _ in blocks) == 1000
    assert [ref.key.number for ref, _ in blocks] == list(range(4, 4 + len(blocks)))
    assert sum(ref.hash_sum for ref, _ in blocks) % 2**64 == hash_sum(content)
    last: dict[int, int] = {}
    for (ref, block), batch in zip(blocks, batches, strict=True):
        codes, times = code.codes(batch.column(RESULT_KEY)), batch.column(RESULT_TIME).to_numpy()
        assert (ref.code_min, ref.code_max) == (codes.min(), codes.max()) == (codes[0], codes[-1])
        assert np.all(codes[1:] >= codes[:-1]) and ref.key.lowest == codes[0]
        assert (ref.time_min_us, ref.time_max_us) == (times.min(), times.max())
        assert ref.size == len(block) and ref.rows == batch.num_rows <= ROWS_A_BLOCK_MIN
        assert set(code.buckets_of(codes).tolist()) == {ref.key.bucket}
        assert last.get(ref.key.bucket, -(2**63)) <= ref.code_min
        last[ref.key.bucket] = ref.code_max


@pytest.mark.parametrize("name", VALUES)
def test_columns_of_every_type_keep_their_values_and_nulls(name: str) -> None:
    kind, values = VALUES[name]
    content = with_column(kind, [*values, None, *values, None])
    (found,) = blocks_of(content, KeyCode(ordered=True))
    assert shown([decode(*found)]) == shown([content])
    assert found[0].hash_sum == hash_sum(content)


def test_a_column_without_any_value_is_kept() -> None:
    for kind, _ in VALUES.values():
        content = with_column(kind, [None, None])
        (found,) = blocks_of(content, KeyCode(ordered=True))
        assert decode(*found).equals(content)


def test_no_rows_give_no_blocks() -> None:
    assert blocks_of(rows(0), KeyCode(ordered=True)) == []


def test_the_same_rows_are_cut_into_the_same_bytes() -> None:
    code = key_code(pa.int64(), equality=True, buckets=8)
    content = rows(5000, seed=3)
    again = pa.concat_batches([content.slice(0, 1234), content.slice(1234)])
    assert blocks_of(content, code) == blocks_of(again, code)


@pytest.mark.parametrize("buckets", [1, 2, 8])
def test_equal_keys_are_in_one_bucket_and_buckets_are_used_evenly(buckets: int) -> None:
    code = key_code(pa.int64(), equality=True, buckets=buckets)
    of_key: dict[int, set[int]] = {}
    sizes: Counter[int] = Counter()
    for seed in (1, 2):
        for ref, block in blocks_of(rows(20_000, seed, keys=1000), code):
            sizes[ref.key.bucket] += ref.rows
            for key in decode(ref, block).column(RESULT_KEY).unique().to_pylist():
                of_key.setdefault(key, set()).add(ref.key.bucket)
    assert len(of_key) == 1000 and all(len(found) == 1 for found in of_key.values())
    assert set(sizes) == set(range(buckets))
    assert max(sizes.values()) < 1.3 * 40_000 / buckets


def test_a_range_join_is_not_spread_over_buckets() -> None:
    assert key_code(pa.int64(), equality=False, buckets=8).buckets == 1
    assert key_code(None, equality=True, buckets=8) == KeyCode(ordered=True, buckets=1)


def test_long_texts_with_one_beginning_are_told_apart_where_only_equality_is_asked() -> None:
    values = pa.array([f"https://example.com/{number}" for number in range(1000)])
    assert len(set(key_code(pa.string(), equality=True, buckets=1).codes(values).tolist())) == 1000
    ranged = key_code(pa.string(), equality=False, buckets=1)
    codes = ranged.codes(pa.array(["", "a", "b", "ba"])).tolist()
    assert ranged.ordered and codes == sorted(set(codes))


@pytest.mark.parametrize("most", [1, 7, 64, 100])
def test_blocks_have_no_more_rows_than_asked_for(most: int) -> None:
    blocks = blocks_of(rows(500), KeyCode(ordered=True), rows_max=most, block_bytes=1 << 20)
    assert max(ref.rows for ref, _ in blocks) == most
    assert len(blocks) == -(-500 // most)


def test_blocks_are_about_as_large_as_asked_for() -> None:
    content = rows(20_000)
    blocks = blocks_of(content, KeyCode(ordered=True), block_bytes=1 << 14)
    wanted = content.nbytes / (1 << 14)
    assert 0.9 * wanted <= len(blocks) <= 1.2 * wanted


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 10**6), st.integers(-(10**7), 10**7))
def test_no_block_has_results_of_two_periods(period_us: int, first_us: int) -> None:
    content = rows(300, 5, 20, first_us, first_us + 3_000_000)
    code = key_code(pa.int64(), equality=True, buckets=3)
    blocks = blocks_of(content, code, period_us=period_us)
    assert sum(ref.rows for ref, _ in blocks) == 300
    assert all(ref.time_min_us // period_us == ref.time_max_us // period_us for ref, _ in blocks)
    periods = [ref.time_min_us // period_us for ref, _ in blocks]
    assert periods == sorted(periods)


# ---- the hash ---------------------------------------------------------------------------------------------------

CELLS = {
    name: st.none() | st.sampled_from(values) if name in ("date", "timestamp", "duration") else st.none() | more
    for (name, (_, values)), more in zip(
        VALUES.items(),
        [
            st.booleans(), st.integers(-128, 127), st.integers(-(2**15), 2**15 - 1), st.integers(-(2**31), 2**31 - 1),
            st.integers(-(2**63), 2**63 - 1), st.floats(width=32), st.floats(),
            st.decimals(-(10**9), 10**9, places=2), st.decimals("-0.99999", "0.99999", places=5),
            st.decimals(-(10**20), 10**20, places=10), st.text(max_size=9), st.binary(max_size=9),
            st.none(), st.none(), st.none(),
        ],
        strict=True,
    )
}  # fmt: skip
COLUMNS = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
ROW = st.fixed_dictionaries(CELLS)


def hashed(content: list[dict[str, Any]]) -> int:
    return hash_sum(pa.RecordBatch.from_pylist(content, schema=COLUMNS))


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6), st.randoms())
def test_the_hash_does_not_see_order_but_sees_every_dropped_and_doubled_row(
    content: list[dict[str, Any]], random: Any
) -> None:
    whole = hashed(content)
    mixed = random.sample(content, len(content))
    assert hashed(mixed) == whole
    assert (hashed(content[:2]) + hashed(content[2:])) % 2**64 == whole
    for place in range(len(content)):
        assert hashed(content[:place] + content[place + 1 :]) != whole
        assert hashed([*content, content[place]]) != whole


@settings(max_examples=150, deadline=None)
@given(ROW, st.sampled_from(sorted(VALUES)), st.data())
def test_the_hash_sees_every_changed_value(row: dict[str, Any], name: str, data: Any) -> None:
    other = data.draw(CELLS[name])
    same = other == row[name] or (other != other and row[name] != row[name])
    assert (hashed([row]) == hashed([{**row, name: other}])) is same


@pytest.mark.parametrize("change", [Decimal("0.0000000001"), Decimal(1), Decimal(1000)])
def test_the_hash_sees_the_last_digit_of_a_wide_decimal(change: Decimal) -> None:
    value = Decimal("12345678901234567890.0123456789")
    kind = pa.decimal128(38, 10)
    assert hash_sum(with_column(kind, [value])) != hash_sum(with_column(kind, [value + change]))


def test_the_hash_tells_null_from_zero_and_from_empty() -> None:
    for name, zero in (("int64", 0), ("string", ""), ("binary", b""), ("bool", False), ("float64", 0.0)):
        kind = VALUES[name][0]
        assert hash_sum(with_column(kind, [None])) != hash_sum(with_column(kind, [zero]))


def test_the_hash_sees_values_that_changed_columns_or_rows() -> None:
    one = pa.RecordBatch.from_pydict({"a": [1, 2], "b": [3, 4]})
    assert len({hash_sum(one), hash_sum(one.rename_columns(["x", "y"]).select([1, 0]))}) == 2
    assert hash_sum(one) != hash_sum(pa.RecordBatch.from_pydict({"a": [1, 2], "b": [4, 3]}))


def test_the_hash_of_a_row_does_not_depend_on_where_it_lies() -> None:
    content = pa.RecordBatch.from_pylist(
        [{name: values[place % len(values)] for name, (_, values) in VALUES.items()} for place in range(40)]
        + [dict.fromkeys(VALUES)],
        schema=COLUMNS,
    )
    whole = row_hashes(content)
    for begin, n in ((0, 1), (3, 5), (17, 24), (40, 1)):
        assert np.array_equal(row_hashes(content.slice(begin, n)), whole[begin : begin + n])


# ---- what was damaged -------------------------------------------------------------------------------------------


def test_blocks_that_were_exchanged_are_noticed() -> None:
    (one, _), (_, other) = blocks_of(rows(128), KeyCode(ordered=True), rows_max=64)
    with pytest.raises(StateError, match="is not what its manifest says"):
        decode(one, other)


def test_a_block_with_a_row_more_or_less_is_noticed() -> None:
    ((ref, content),) = blocks_of(rows(60), KeyCode(ordered=True))
    batch = decode(ref, content)
    with pytest.raises(StateError, match="is not what its manifest says"):
        decode(ref, content[:-1] + b"x")
    for other in (batch.slice(1), pa.concat_batches([batch, batch.slice(0, 1)])):
        with pytest.raises(StateError, match="is not what its manifest says"):
            decode(replace(ref, checksum=zlib.crc32(encode(other))), encode(other))
    with pytest.raises(StateError, match="is not what its manifest says"):
        decode(replace(ref, hash_sum=ref.hash_sum ^ 1), content)


def test_of_blocks_decoded_together_the_changed_one_is_named() -> None:
    blocks = blocks_of(rows(640), KeyCode(ordered=True), rows_max=64)
    assert shown(decode_all(blocks)) == shown([decode(*block) for block in blocks])
    ref, content = blocks[3]
    blocks[3] = (replace(ref, hash_sum=ref.hash_sum ^ 1), content)
    with pytest.raises(StateError, match=re.escape(str(ref.key))):
        decode_all(blocks)
    assert decode_all([]) == []


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=5), max_size=6))
def test_sums_of_parts_are_those_of_each_part(parts: list[list[int]]) -> None:
    values = np.array([value for part in parts for value in part], np.uint64)
    found = sums_of_parts(values, [len(part) for part in parts])
    assert found.tolist() == [sum(part) % 2**64 for part in parts]


@pytest.mark.parametrize("content", [b"", b"\x00", b"no Arrow at all" * 50, b"\xff" * 400])
def test_what_is_no_block_is_an_error_of_the_state(content: bytes) -> None:
    ((ref, _),) = blocks_of(rows(60), KeyCode(ordered=True))
    with pytest.raises(StateError, match="cannot be read"):
        decode(replace(ref, checksum=zlib.crc32(content)), content)


def test_a_block_cut_off_anywhere_is_an_error_of_the_state() -> None:
    ((ref, content),) = blocks_of(rows(60), KeyCode(ordered=True))
    batch = decode(ref, content)
    for size in range(0, len(content), 13):
        try:
            same = replace(ref, checksum=zlib.crc32(content[:size]))
            assert decode(same, content[:size]).equals(batch)  # only the mark of the stream's end is missing
        except StateError:
            continue
        assert size > len(content) - 16


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_block_with_a_changed_byte_is_right_or_an_error_of_the_state(data: Any) -> None:
    content = with_column(pa.string(), [f"text {number}" for number in range(100)] + [None])
    ((ref, block),) = blocks_of(content, KeyCode(ordered=True), block_bytes=1 << 20)
    place = data.draw(st.integers(0, len(block) - 1))
    changed = bytearray(block)
    changed[place] ^= data.draw(st.integers(1, 255))
    try:
        found = decode(replace(ref, checksum=zlib.crc32(changed)), bytes(changed), content.schema)
    except StateError:
        pass
    else:
        assert found.to_pylist() == content.to_pylist()
    with pytest.raises(StateError, match="changed after its commit"):
        check(ref, bytes(changed))


# ---- refs -------------------------------------------------------------------------------------------------------

INT64 = st.integers(-(2**63), 2**63 - 1)
COUNT = st.integers(0, 2**62)
REFS = st.builds(
    BlockRef,
    st.builds(BlockKey, COUNT, INT64, COUNT, COUNT, COUNT, COUNT),
    COUNT, COUNT, st.integers(0, 2**64 - 1), INT64, INT64, INT64, INT64, st.integers(0, 2**32 - 1),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(REFS, max_size=8))
def test_refs_come_back_from_a_batch(refs: list[BlockRef]) -> None:
    assert refs_from_batch(refs_to_batch(refs)) == refs


def test_a_join_without_a_key_is_cut_by_size_alone() -> None:
    content = table(rows(300)).drop_columns([RESULT_KEY]).combine_chunks().to_batches()[0]
    blocks = blocks_of(content, key_code(None, equality=False, buckets=8), rows_max=100)
    assert [(ref.rows, ref.code_min, ref.code_max, ref.key.bucket) for ref, _ in blocks] == [(100, 0, 0, 0)] * 3
    assert pa.Table.from_batches([decode(*found) for found in blocks]).equals(table(content))


@pytest.mark.parametrize("small", [0, 400_000])
def test_blocks_of_large_rows_are_no_larger_than_every_store_takes(small: int) -> None:
    random = np.random.default_rng(1)
    large = [random.bytes(100_000).hex() for _ in range(100)]
    schema = pa.schema([("text", pa.string()), *list(rows(1).schema)[-2:]])
    some = pa.RecordBatch.from_arrays(
        [
            pa.array(["a"] * small + large),
            pa.array(np.zeros(small + 100, np.int64)).cast(schema.field(1).type),
            pa.array(np.repeat([0, 1], [small, 100])).cast(schema.field(2).type),
        ],
        schema=schema,
    )
    code = key_code(schema.field(2).type, equality=True, buckets=1)
    given = {"generation": 1, "batch": 0, "unit": 0, "first_number": 0, "block_bytes": 1 << 16, "rows_max": 12_500}
    found = list(cut(some, code, **given))
    assert max(len(content) for _, content in found) <= BLOCK_BYTES_MAX
    assert sum(ref.rows for ref, _ in found) == small + 100
    assert [ref.key.number for ref, _ in found] == list(range(len(found)))
    assert sum(decode(ref, content, schema).num_rows for ref, content in found) == small + 100


def test_a_row_that_is_too_large_for_a_block_is_one() -> None:
    random = np.random.default_rng(2)
    huge = [random.bytes(BLOCK_BYTES_MAX).hex()] * 2
    schema = pa.schema([("text", pa.string()), *list(rows(1).schema)[-2:]])
    some = pa.RecordBatch.from_arrays(
        [pa.array(huge), *(pa.array([0, 0]).cast(schema.field(place).type) for place in (1, 2))], schema=schema
    )
    found = list(
        cut(
            some,
            key_code(schema.field(2).type, equality=True, buckets=1),
            generation=1,
            batch=0,
            unit=0,
            first_number=0,
            block_bytes=1,
        )
    )
    assert [ref.rows for ref, _ in found] == [1, 1]
