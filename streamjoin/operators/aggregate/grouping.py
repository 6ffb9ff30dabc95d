"""Which rows are of one group: exactly, for columns of any type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.index.kernels import radix_order
from streamjoin.kernel import kernel

_CODES_A_ROW = 4
"""With more possible codes than so many for each row they are sorted, and else counted."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Rows by group.

    Args:
        order: row numbers, those of a group beside each other and in their order, int64 of shape (n,).
        starts: where in `order` each group begins, and n, int64 of shape (g + 1,).
    """

    order: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return int(self.starts.size - 1)

    @property
    def firsts(self) -> np.ndarray:
        """A row of each group, int64 of shape (g,)."""
        return self.order[self.starts[:-1]]

    @property
    def groups(self) -> np.ndarray:
        """The group of each row in `order`, int64 of shape (n,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts))

    @property
    def of_rows(self) -> np.ndarray:
        """The group of each row as rows lie, int64 of shape (n,)."""
        numbers = np.empty(self.order.size, np.int64)
        numbers[self.order] = self.groups
        return numbers


def group(panes: np.ndarray, keys: Sequence[pa.Array]) -> Grouping:
    """Rows by pane, in time's order, and within one by their keys; NULL is a group of its own.

    Args:
        panes: int64 of shape (n,), n >= 1.
        keys: n values each, in their normal form; see `normal`.
    Cost: a hash table for each key, and three passes.
    """
    low, high = int(panes.min()), int(panes.max())
    size = high - low + 1
    if size > panes.size:  # few panes, far apart; their distance may not fit an int64
        found, codes = np.unique(panes, return_inverse=True)
        size = found.size
    else:
        codes = panes - low
    codes = codes.astype(np.int64)
    for key in keys:
        own, many = _numbered(key, panes.size * _CODES_A_ROW // size)
        if size * many > panes.size * _CODES_A_ROW:
            # As numbers without gaps, in the same order, so that products of them stay small.
            found, codes = np.unique(codes, return_inverse=True)
            size = found.size
        codes, size = codes * many + own, size * many
    if size <= codes.size * _CODES_A_ROW:
        return Grouping(*_counted(codes, size))
    order = radix_order(codes, np.arange(codes.size, dtype=np.int64))
    ordered = codes[order]
    starts = np.concatenate(([0], np.nonzero(np.diff(ordered))[0] + 1, [codes.size])).astype(np.int64)
    return Grouping(order, starts)


def _numbered(key: pa.Array, most: int) -> tuple[np.ndarray, int]:
    """A number in [0, many) for each value, int64 of shape (n,), equal for equal ones, and how many.

    Args:
        most: whole numbers that lie so close need no table.
    """
    if pa.types.is_integer(key.type) and not key.null_count:
        values = key.to_numpy()
        low, high = int(values.min()), int(values.max())
        if high - low < most:
            wide = values if values.itemsize == 8 else values.astype(np.int64)
            return (wide - wide.dtype.type(low)).astype(np.int64), high - low + 1
    encoded = key.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), max(len(encoded.dictionary), 1)


@kernel
def _counted(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The order and the starts of a `Grouping` by codes in [0, size)."""
    ends = np.zeros(size + 1, np.int64)
    for i in range(codes.size):
        ends[codes[i] + 1] += 1
    starts = np.empty(min(size, codes.size) + 1, np.int64)
    groups = 0
    for code in range(size):
        if ends[code + 1]:
            starts[groups] = ends[code]
            groups += 1
        ends[code + 1] += ends[code]
    starts[groups] = codes.size
    order = np.empty(codes.size, np.int64)
    for i in range(codes.size):
        place = ends[codes[i]]
        order[place] = i
        ends[codes[i]] = place + 1
    return order, starts[: groups + 1]


def normal(values: pa.Array) -> pa.Array:
    """Values of which equal ones have equal bits: one zero and one NaN."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = pc.add(values, pa.scalar(0.0, values.type))
    # One NaN makes a sum one; so does infinity less infinity, and what is done then changes nothing.
    if not np.isnan(pc.sum(numbers, min_count=0).as_py()):
        return numbers
    return pc.if_else(pc.is_nan(numbers), pa.scalar(float("nan"), values.type), numbers)


def warm_up() -> None:
    """Load the kernel; see `streamjoin/warming.py`."""
    _counted(np.zeros(1, np.int64), 1)
