"""Blocks: many tuples of one stream, in columns. Blocks travel, rows don't (blocked transfer, ESJ)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamjoin.flow import portions

TS = "__ts"
"""Engine column: event time in us, int64."""
POSITION = "__position"
"""Engine column: place of the tuple among all its piece's tuples of the batch, int64; count windows and ordered results
need it."""
QUERIES = "__queries"
"""Engine column: the queries that a tuple is for, a bit each; only jobs with several queries need it. Above them, a bit
for each query that was started later: whether the tuple was there before it."""


def to_ipc(batch: pa.RecordBatch) -> pa.Buffer:
    """An Arrow IPC stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


@dataclass(frozen=True, slots=True)
class Block:
    """Tuples of one stream, in arrival order.

    Args:
        rows: the columns the join needs, n rows.
        ts_us: event times, int64 of shape (n,).
        positions: places among the tuples their piece brought in this batch, int64 of shape (n,); None where
            nothing counts tuples.
        queries: the queries each tuple is for, a bit each, unsigned of shape (n,); None where there is one query.
    """

    rows: pa.RecordBatch
    ts_us: np.ndarray
    positions: np.ndarray | None = None
    queries: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def take(self, order: np.ndarray) -> Block:
        """The rows numbered by `order`, in that order."""
        return Block(
            self.rows.take(pa.array(order)),
            self.ts_us[order],
            None if self.positions is None else self.positions[order],
            None if self.queries is None else self.queries[order],
        )

    def of(self, query: int) -> Block:
        """The tuples that are for one query."""
        members = members_of(self.queries, query)
        return self if members is None or members.size == len(self) else self.take(members)

    def slice(self, start: int, stop: int) -> Block:
        """Rows start..stop-1, without copying."""
        return Block(
            self.rows.slice(start, stop - start),
            self.ts_us[start:stop],
            None if self.positions is None else self.positions[start:stop],
            None if self.queries is None else self.queries[start:stop],
        )

    def with_column(self, name: str, values: np.ndarray) -> Block:
        """The block with one column more."""
        return replace(self, rows=self.rows.append_column(name, pa.array(values)))

    def to_ipc(self) -> pa.Buffer:
        """The block as an Arrow IPC stream of one batch; `from_ipc` reads it back."""
        arrays = [*self.rows.columns, pa.array(self.ts_us)]
        names = [*self.rows.schema.names, TS]
        for name, values in ((POSITION, self.positions), (QUERIES, self.queries)):
            if values is not None:
                arrays.append(pa.array(values))
                names.append(name)
        batch = pa.RecordBatch.from_arrays(arrays, names)
        return to_ipc(batch)

    @staticmethod
    def from_ipc(buffer: pa.Buffer) -> Block:
        """A block over `buffer`'s memory, without copying."""
        batch = pa.ipc.open_stream(buffer).read_next_batch()
        ts_us = batch.column(TS).to_numpy()
        positions, queries = (
            batch.column(name).to_numpy() if name in batch.schema.names else None for name in (POSITION, QUERIES)
        )
        names = [name for name in batch.schema.names if name not in (TS, POSITION, QUERIES)]
        return Block(batch.select(names), ts_us, positions, queries)

    @staticmethod
    def concat(blocks: Sequence[Block]) -> Block:
        """All rows of `blocks`, in order. There must be at least one block."""
        if len(blocks) == 1:
            return blocks[0]
        rows = pa.concat_batches([block.rows for block in blocks])

        def joined(parts: list[np.ndarray | None]) -> np.ndarray | None:
            return None if parts[0] is None else np.concatenate([part for part in parts if part is not None])

        return Block(
            rows,
            np.concatenate([block.ts_us for block in blocks]),
            joined([block.positions for block in blocks]),
            joined([block.queries for block in blocks]),
        )

    @staticmethod
    def together(blocks: Sequence[Block]) -> list[Block]:
        """All rows of `blocks`, in order, in as few blocks as arrays hold them: in one, but for a lot of long texts."""
        if len(blocks) < 2:
            return list(blocks)
        sizes = [block.rows.nbytes for block in blocks]
        return [Block.concat(blocks[first:past]) for first, past in portions.together(sizes)]


def members_of(queries: np.ndarray | None, query: int) -> np.ndarray | None:
    """Row numbers of the tuples that are for a query; None where all are, as there is one query only."""
    return None if queries is None else np.nonzero(has_bit(queries, query))[0]


def has_bit(bits: np.ndarray, number: int) -> np.ndarray:
    """Where a bit is set, bool of shape (n,)."""
    return (bits >> bits.dtype.type(number) & bits.dtype.type(1)).astype(bool)
