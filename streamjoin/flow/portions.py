"""How much is taken into one array: so many rows, and where there are texts or bytes so many bytes.

An Arrow array of texts holds 2 GiB at most. A row is taken once for each pair that it is in, so a few rows of a key
that many others have may give a hundred times what they are; by rows alone nothing bounds that. What is taken is
therefore cut by what it has: exactly, as one long value among short ones hides in a mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streamjoin.kernel import kernel

BYTES_A_BATCH = 1 << 26
"""So many bytes of texts are taken together; a row that has more is taken alone."""
BYTES_TOGETHER = 1 << 30
"""What came in blocks, or is brought into order, is put together up to so many bytes."""


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type differ in length: texts and bytes."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )


def texts_of(rows: pa.RecordBatch) -> list[pa.Array]:
    """The columns whose values differ in length."""
    return [rows.column(place) for place, kind in enumerate(rows.schema.types) if is_text(kind)]


def offsets_of(values: pa.Array) -> np.ndarray:
    """Where each text begins, and where the last one ends, int32 or int64 of shape (n + 1,); no copy."""
    kind = values.type
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    data = values.buffers()[1]
    if not len(values) or data is None:
        return np.zeros(len(values) + 1, np.int32)
    offsets = np.frombuffer(data, np.int64 if is_large else np.int32)
    return offsets[values.offset : values.offset + len(values) + 1]


@kernel
def taken_bytes(offsets: np.ndarray, rows: np.ndarray) -> int:
    """Bytes that texts have together, of which one may be taken several times.

    Args:
        offsets: as `offsets_of` gives them.
        rows: the numbers of texts, int64.
    Cost: a pass over `rows`, which takes a fiftieth of taking them.
    """
    total = np.int64(0)
    for i in range(rows.size):
        total += np.int64(offsets[rows[i] + 1]) - np.int64(offsets[rows[i]])
    return int(total)


def sizes(offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The same, one by one: int64 of the shape of `rows`."""
    return np.subtract(offsets[rows + 1], offsets[rows], dtype=np.int64)


def cuts(sizes: np.ndarray) -> Iterator[tuple[int, int]]:
    """(first, past) of portions that follow each other and have at most `BYTES_A_BATCH`, or one row.

    Args:
        sizes: bytes of each row, int64 of shape (n,).
    """
    yield from _cuts(np.cumsum(sizes), len(sizes))


def cut_together(read: Sequence[tuple[pa.Array, np.ndarray]], count: int) -> Iterator[tuple[int, int]]:
    """As `cuts`, of rows that are taken of several columns at once.

    Args:
        read: the columns, and which of their rows are taken, int64 of shape (count,).
    """
    texts = [(offsets_of(values), rows) for values, rows in read if is_text(values.type)]
    if sum(taken_bytes(*one) for one in texts) <= BYTES_A_BATCH:
        yield 0, count
        return
    of_each = np.zeros(count, np.int64)
    for one in texts:
        of_each += sizes(*one)
    yield from cuts(of_each)


def slices(rows: pa.RecordBatch, rows_max: int) -> Iterator[tuple[int, int]]:
    """(first, past) of portions that follow each other, of so many rows at most, and of bytes as `cuts` has them."""
    count = rows.num_rows
    if rows.nbytes <= BYTES_A_BATCH:
        yield from ((first, min(first + rows_max, count)) for first in range(0, count, rows_max))
        return
    yield from _cuts(bytes_upto(rows)[1:], rows_max)


def bytes_upto(rows: pa.RecordBatch) -> np.ndarray:
    """Bytes of the rows before each one, and of all, int64 of shape (n + 1,); of others than texts by their mean."""
    count = rows.num_rows
    upto = np.zeros(count + 1, np.int64)
    for values in texts_of(rows):
        offsets = offsets_of(values)
        upto += np.subtract(offsets, offsets[0], dtype=np.int64)
    rest = max(rows.nbytes - int(upto[-1]), 0) / max(count, 1)
    return np.asarray(upto + (rest * np.arange(count + 1)).astype(np.int64))


def together(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first, past) of parts that are put together: `BYTES_TOGETHER` at most, or one part.

    Args:
        sizes: bytes of each.
    """
    first = held = 0
    for number, size in enumerate(sizes):
        if held + size > BYTES_TOGETHER and number > first:
            yield first, number
            first, held = number, 0
        held += size
    if sizes:
        yield first, len(sizes)


def _cuts(upto: np.ndarray, rows_max: int) -> Iterator[tuple[int, int]]:
    first = 0
    while first < upto.size:
        before = int(upto[first - 1]) if first else 0
        past = int(np.searchsorted(upto, before + BYTES_A_BATCH, side="right"))
        past = min(max(past, first + 1), first + rows_max)
        yield first, past
        first = past


def warm_up() -> None:
    """Load the kernel; see `streamjoin/warming.py`."""
    taken_bytes(offsets_of(pa.array(["a"])), np.zeros(1, np.int64))
