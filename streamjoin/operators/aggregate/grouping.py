"""Which rows are of one group: exactly, for columns of any type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.index.kernels import radix_order


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
    Cost: a hash table for each key, and two passes.
    """
    codes = panes - panes.min()
    size = int(codes.max()) + 1
    if size > panes.size:  # few panes that are far apart
        found, codes = np.unique(codes, return_inverse=True)
        size = found.size
    codes = codes.astype(np.int64)
    for key in keys:
        encoded = key.dictionary_encode(null_encoding="encode")
        own = encoded.indices.to_numpy().astype(np.int64)
        many = max(len(encoded.dictionary), 1)
        if size * many > panes.size * 4:
            # As numbers without gaps, in the same order, so that products of them stay small.
            found, codes = np.unique(codes, return_inverse=True)
            size = found.size
        codes, size = codes * many + own, size * many
    order = radix_order(codes, np.arange(codes.size, dtype=np.int64))
    ordered = codes[order]
    starts = np.concatenate(([0], np.nonzero(np.diff(ordered))[0] + 1, [codes.size])).astype(np.int64)
    return Grouping(order, starts)


def normal(values: pa.Array) -> pa.Array:
    """Values of which equal ones have equal bits: one zero and one NaN."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(numbers), pa.scalar(float("nan"), values.type), numbers)
