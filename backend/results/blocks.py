"""Decoded result blocks that were read lately: they never change, so what was read once is not read again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import pyarrow as pa

from backend.results.at_once import NotAtOnce
from streamjoin.results.block import BlockRef
from streamjoin.results.reader import Reader

BYTES_MAX = 64 << 20


class Blocks:
    """The newest used ones, of all jobs, bounded in bytes. Any number of threads.

    A block's name is all that its manifest says of it, its rows' hashes included: another block under the same key is
    another block.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.size = 0
        self._there: OrderedDict[tuple[str, BlockRef], pa.RecordBatch] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, job: str, ref: BlockRef) -> pa.RecordBatch | None:
        """A block's rows, if they are there."""
        with self._lock:
            found = self._there.get((job, ref))
            if found is not None:
                self._there.move_to_end((job, ref))
            return found

    def put(self, job: str, ref: BlockRef, rows: pa.RecordBatch) -> None:
        """Keep a block's rows for a while."""
        with self._lock:
            if (job, ref) in self._there or rows.nbytes > self.bytes_max // 8:
                return
            self._there[job, ref] = rows
            self.size += rows.nbytes
            while self.size > self.bytes_max:
                _, oldest = self._there.popitem(last=False)
                self.size -= oldest.nbytes


@dataclass
class KeepingReader(Reader):
    """A reader that keeps blocks, shared with all other readers of this process.

    Args:
        left: so many blocks may still be looked at; None for any number.
    """

    blocks: Blocks = field(default_factory=Blocks)
    left: int | None = None

    def kept(self, ref: BlockRef) -> pa.RecordBatch | None:
        """See `Reader`."""
        if self.left is not None:
            if not self.left:
                raise NotAtOnce
            self.left -= 1
        return self.blocks.get(self.job, ref)

    def keep(self, ref: BlockRef, rows: pa.RecordBatch) -> None:
        """See `Reader`."""
        self.blocks.put(self.job, ref, rows)
