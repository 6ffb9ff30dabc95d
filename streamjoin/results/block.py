"""Result blocks: rows of one unit's batch in columns, sorted by join key, with what a reader needs to skip them.

A stored row is the query's output plus two engine columns: the result's time (the latest event time among its tuples)
and its key (the R-side value of the main predicate). Blocks carry the lowest and highest of both, so a question for
some time or some key reads few of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from streamjoin.errors import StateError
from streamjoin.index.kernels import mix, radix_order
from streamjoin.index.keys import WideSpace, float_key, hash_key, hash_limbs, is_exact, key_space, order_key
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.results.stores.store import BlockKey

BLOCK_BYTES_MAX = 4 << 20
"""So much a block has at most, unless a single row has more: every store takes it."""
ROWS_A_BLOCK_MIN = 64


@dataclass(frozen=True, slots=True)
class KeyCode:
    """How keys become int64 codes by which rows are sorted and blocks are skipped.

    Args:
        ordered: codes are in the order of the keys, so that ranges can be answered; otherwise they are hashes, which
            tell long texts with one beginning apart and answer equality only.
        buckets: how many parts rows are spread over; 1 where the join has no equality to spread by.
    """

    ordered: bool
    buckets: int = 1

    def codes(self, keys: pa.Array) -> np.ndarray:
        """int64 of shape (n,)."""
        if self.ordered:
            return ordered_codes(keys)
        return mix(ordered_codes(keys)) if isinstance(key_space(keys.type), WideSpace) else hash_key([keys])

    def buckets_of(self, codes: np.ndarray) -> np.ndarray:
        """The bucket of each code, int64 of shape (n,)."""
        if self.buckets == 1:
            return np.zeros(codes.size, np.int64)
        return (mix(codes) & np.int64(2**62 - 1)) % self.buckets


def ordered_codes(keys: pa.Array) -> np.ndarray:
    """Codes in the order of the keys, int64 of shape (n,).

    Wide decimals have those of the floats near them: blocks are found by what was written with them.
    """
    if isinstance(key_space(keys.type), WideSpace):
        return float_key(keys.cast(pa.float64()).fill_null(0.0).to_numpy())
    return order_key(keys)


def key_code(kind: pa.DataType | None, *, equality: bool, buckets: int) -> KeyCode:
    """The code for keys of a type.

    Args:
        kind: the key's type; None for a join without a key.
        equality: the main predicate is an equality.
    """
    if kind is None:
        return KeyCode(ordered=True)
    return KeyCode(ordered=is_exact(kind) or not equality, buckets=buckets if equality else 1)


@dataclass(frozen=True, slots=True)
class BlockRef:
    """What is known of a block without reading it.

    Args:
        rows, size: rows, and bytes in the store.
        hash_sum: the sum of the rows' hashes, modulo 2**64.
        time_min_us, time_max_us: of its rows' times, both ends included.
        code_min, code_max: of its rows' key codes; 0, 0 without keys.
        checksum: CRC-32 of its bytes, by which a part of it can be trusted without decoding the rest.
    """

    key: BlockKey
    rows: int
    size: int
    hash_sum: int
    time_min_us: int
    time_max_us: int
    code_min: int
    code_max: int
    checksum: int


def row_hashes(rows: pa.RecordBatch) -> np.ndarray:
    """One int64 a row over all its columns; a NULL is told from every value."""
    parts = []
    for column in rows.columns:
        hashes = hash_limbs(column) if pa.types.is_decimal(column.type) else hash_key([column])
        if column.null_count:
            hashes = np.where(column.is_null().to_numpy(zero_copy_only=False), np.int64(0x5DEECE66D), hashes)
        parts.append(hashes)
    combined = np.zeros(rows.num_rows, np.int64)
    for part in parts:
        combined = mix(combined * np.int64(31) + part)
    return combined


def hash_sum(rows: pa.RecordBatch) -> int:
    """The sum of the rows' hashes, modulo 2**64: the same for the same rows in any order."""
    return int(row_hashes(rows).view(np.uint64).sum(dtype=np.uint64))


def encode(rows: pa.RecordBatch, compression: str = "lz4") -> bytes:
    """An Arrow IPC stream of one batch: a block's bytes, or a record's."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(rows)
    return sink.getvalue().to_pybytes()


_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)  # a block is so small that handing its columns out costs more


def check(ref: BlockRef, content: bytes) -> None:
    """Compare a block's bytes with its manifest.

    Raises:
        StateError: they are others.
    """
    if zlib.crc32(content) != ref.checksum:
        raise _changed(ref)


def one_column(content: bytes, place: int) -> pa.Array:
    """One column of a block whose bytes have been checked; the others are not decompressed."""
    options = pa.ipc.IpcReadOptions(included_fields=[place], use_threads=False)
    return pa.ipc.open_stream(content, options=options).read_next_batch().column(0)


def decode(ref: BlockRef, content: bytes, schema: pa.Schema | None = None) -> pa.RecordBatch:
    """A block's rows, its bytes checked first; see `decode_all`."""
    check(ref, content)
    return decode_all([(ref, content)], schema)[0]


def decode_all(blocks: Sequence[tuple[BlockRef, bytes]], schema: pa.Schema | None = None) -> list[pa.RecordBatch]:
    """The rows of blocks of one job whose bytes have been checked, hashed in one go.

    The calls for each of many small ones would cost more than the work.

    Args:
        schema: the columns that they must have; None for those of the first.
    Raises:
        StateError: one is not what the manifest says.
    """
    batches: list[pa.RecordBatch] = []
    for ref, content in blocks:
        try:
            rows = pa.ipc.open_stream(content, options=_ONE_THREAD).read_next_batch()
            rows.validate(full=True)  # before anything follows an offset in it
            schema = schema or rows.schema
            as_said = (rows.schema.names, rows.schema.types, rows.num_rows) == (schema.names, schema.types, ref.rows)
        except (pa.ArrowException, OSError, ValueError, MemoryError, StopIteration) as cause:
            raise StateError(f"result block {ref.key} cannot be read: {cause}") from None
        if not as_said:
            raise _changed(ref)
        batches.append(rows)
    if batches:
        hashes = row_hashes(pa.concat_batches([rows.replace_schema_metadata() for rows in batches]))
        sums = sums_of_parts(hashes.view(np.uint64), [rows.num_rows for rows in batches])
        for (ref, _), found in zip(blocks, sums.tolist(), strict=True):
            if found != ref.hash_sum:
                raise _changed(ref)
    return batches


def sums_of_parts(values: np.ndarray, lengths: Sequence[int]) -> np.ndarray:
    """The sum of each part of an array, for parts that follow one another; an empty one has 0.

    Shapes: values (n,), lengths (k,) with the sum n, gives (k,) of the type of the values, which wraps around.
    """
    sums = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values, dtype=values.dtype)])
    return np.diff(sums[np.cumsum([0, *lengths])])


def _changed(ref: BlockRef) -> StateError:
    return StateError(f"result block {ref.key} is not what its manifest says; it was changed after its commit")


def cut(
    rows: pa.RecordBatch,
    code: KeyCode,
    *,
    generation: int,
    batch: int,
    unit: int,
    first_number: int,
    block_bytes: int,
    rows_max: int | None = None,
    period_us: int | None = None,
) -> Iterator[tuple[BlockRef, bytes]]:
    """Sort rows by (period, bucket, key) and cut them into blocks.

    Args:
        rows: with the engine columns.
        first_number: of the first block.
        block_bytes: about how large a block may be before compression.
        rows_max: a block has no more rows than this, so that a threshold is met closely.
        period_us: blocks hold results of one period of event time only; None where snapshots close by epoch.
    """
    if rows.num_rows == 0:
        return
    times = rows.column(RESULT_TIME).to_numpy()
    keyed = RESULT_KEY in rows.schema.names
    codes = code.codes(rows.column(RESULT_KEY)) if keyed else np.zeros(rows.num_rows, np.int64)
    buckets = code.buckets_of(codes)
    order = radix_order(codes, np.arange(rows.num_rows, dtype=np.int64))
    if code.buckets > 1:
        order = radix_order(buckets, order)
    periods = np.zeros(rows.num_rows, np.int64) if period_us is None else np.floor_divide(times, period_us)
    if period_us is not None:
        order = radix_order(periods, order)
    rows, times, codes, buckets = rows.take(pa.array(order)), times[order], codes[order], buckets[order]
    periods = periods[order]
    step = max(block_bytes * rows.num_rows // max(rows.nbytes, 1), ROWS_A_BLOCK_MIN)
    step = min(step, rows_max or step)
    changes = np.nonzero((np.diff(buckets) != 0) | (np.diff(periods) != 0))[0] + 1
    starts = [0, *changes.tolist(), rows.num_rows]
    hashes = row_hashes(rows).view(np.uint64)
    number = first_number
    for begin, end in pairwise(starts):
        for low, high, content in _encoded(rows, begin, end, step):
            name = BlockKey(int(buckets[low]), int(codes[low]), generation, batch, unit, number)
            yield (
                BlockRef(
                    name, high - low, len(content), int(hashes[low:high].sum(dtype=np.uint64)),
                    int(times[low:high].min()), int(times[low:high].max()), int(codes[low]), int(codes[high - 1]),
                    zlib.crc32(content),
                ),
                content,
            )  # fmt: skip
            number += 1


def _encoded(rows: pa.RecordBatch, begin: int, end: int, step: int) -> Iterator[tuple[int, int, bytes]]:
    """Slices of rows in turn, from and up to where each goes and encoded: `step` rows, fewer where they are large."""
    low = begin
    while low < end:
        high = min(low + step, end)
        while len(content := encode(rows.slice(low, high - low))) > BLOCK_BYTES_MAX and high - low > 1:
            step = max((high - low) * BLOCK_BYTES_MAX // (2 * len(content)), 1)  # the next ones are likely as large
            high = low + step
        yield low, high, content
        low = high


_REF_FIELDS = (
    "bucket", "lowest", "generation", "batch", "unit", "number", "rows", "size", "time_min_us", "time_max_us",
    "code_min", "code_max", "checksum",
)  # fmt: skip
REFS_SCHEMA = pa.schema([*((name, pa.int64()) for name in _REF_FIELDS), ("hash_sum", pa.uint64())])


def refs_to_batch(refs: Sequence[BlockRef]) -> pa.RecordBatch:
    """Refs as columns."""
    rows = [
        (*(getattr(ref.key, name) for name in _REF_FIELDS[:6]), *(getattr(ref, name) for name in _REF_FIELDS[6:]))
        for ref in refs
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_REF_FIELDS)
    arrays = [pa.array(column, pa.int64()) for column in columns]
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.array([ref.hash_sum for ref in refs], pa.uint64())], schema=REFS_SCHEMA
    )


def refs_from_batch(batch: pa.RecordBatch) -> list[BlockRef]:
    """The inverse of `refs_to_batch`."""
    columns = [column.to_pylist() for column in batch.columns]
    return [BlockRef(BlockKey(*row[:6]), row[6], row[7], row[13], *row[8:13]) for row in zip(*columns, strict=True)]
