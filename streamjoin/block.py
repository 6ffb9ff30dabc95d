"""Blocks: many tuples of one stream, in columns. Blocks travel, rows don't (blocked transfer, ESJ)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

TS = "__ts"
"""Engine column: event time in us, int64."""
POSITION = "__position"
"""Engine column: place of the tuple among all its piece's tuples of the batch, int64; only count windows need it."""


@dataclass(frozen=True, slots=True)
class Block:
    """Tuples of one stream, in arrival order.

    Args:
        rows: the columns the join needs, n rows.
        ts_us: event times, int64 of shape (n,).
        positions: places among the tuples their piece brought in this batch, int64 of shape (n,); None where the
            window does not count tuples.
    """

    rows: pa.RecordBatch
    ts_us: np.ndarray
    positions: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def take(self, order: np.ndarray) -> Block:
        """The rows numbered by `order`, in that order."""
        return Block(
            self.rows.take(pa.array(order)),
            self.ts_us[order],
            None if self.positions is None else self.positions[order],
        )

    def slice(self, start: int, stop: int) -> Block:
        """Rows start..stop-1, without copying."""
        return Block(
            self.rows.slice(start, stop - start),
            self.ts_us[start:stop],
            None if self.positions is None else self.positions[start:stop],
        )

    def to_ipc(self) -> pa.Buffer:
        """The block as an Arrow IPC stream of one batch; `from_ipc` reads it back."""
        arrays = [*self.rows.columns, pa.array(self.ts_us)]
        names = [*self.rows.schema.names, TS]
        if self.positions is not None:
            arrays.append(pa.array(self.positions))
            names.append(POSITION)
        batch = pa.RecordBatch.from_arrays(arrays, names)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue()

    @staticmethod
    def from_ipc(buffer: pa.Buffer) -> Block:
        """A block over `buffer`'s memory, without copying."""
        batch = pa.ipc.open_stream(buffer).read_next_batch()
        ts_us = batch.column(TS).to_numpy()
        positions = batch.column(POSITION).to_numpy() if POSITION in batch.schema.names else None
        names = [name for name in batch.schema.names if name not in (TS, POSITION)]
        return Block(batch.select(names), ts_us, positions)

    @staticmethod
    def concat(blocks: Sequence[Block]) -> Block:
        """All rows of `blocks`, in order. There must be at least one block."""
        if len(blocks) == 1:
            return blocks[0]
        rows = pa.concat_batches([block.rows for block in blocks])
        counted = blocks[0].positions is not None
        return Block(
            rows,
            np.concatenate([block.ts_us for block in blocks]),
            np.concatenate([block.positions for block in blocks if block.positions is not None]) if counted else None,
        )
