"""Blocks that lie across the end of a period become one for each side of it.

Where rows or files end periods nobody knows where one ends before all streams have said so, and the blocks of its
results have been written long before. Whoever closes it splits them. The names of the parts are a function of the batch
that closes it, so a commit that is repeated writes the same ones again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from streamjoin.plan.join import RESULT_TIME
from streamjoin.results.block import BlockRef, cut, decode
from streamjoin.results.description import Description
from streamjoin.results.patience import Patience
from streamjoin.results.stores.store import BlockKey, Store

SPLIT_UNIT = (1 << 20) + 1
"""Parts of blocks say that they are of this unit, which no job has."""
_BLOCKS_A_PUT = 16
"""Blocks are at most a few MiB."""


@dataclass(slots=True)
class Splitter:
    """Splits the blocks of one commit.

    Args:
        generation: who writes.
        batch: the one that is committed.
        parts: of each block that has been split.
    """

    store: Store
    job: str
    description: Description
    patience: Patience
    generation: int
    batch: int
    parts: dict[BlockKey, list[BlockRef]] = field(default_factory=dict)
    _number: int = 0

    def split(self, blocks: Sequence[BlockRef], ends_us: Sequence[int]) -> None:
        """Split those that lie across one of the rising `ends_us`; their parts are kept when it returns."""
        across = [block for block in blocks if _is_across(block, ends_us)]
        for first in range(0, len(across), _BLOCKS_A_PUT):
            some = across[first : first + _BLOCKS_A_PUT]
            found = self.patience.steadily(partial(self._fetched, [block.key for block in some]))
            made: list[tuple[BlockKey, bytes]] = []
            for block in some:
                rows = decode(block, found[block.key], self.description.schema)
                cuts = list(self._cut(rows, np.asarray(ends_us, np.int64)))
                self.parts[block.key] = [ref for ref, _ in cuts]
                made += [(ref.key, content) for ref, content in cuts]
            self.patience.steadily(partial(self.store.put_blocks, self.job, made))

    def of(self, blocks: Sequence[BlockRef]) -> list[BlockRef]:
        """The blocks, in their order, with parts in place of those that have been split."""
        return [part for block in blocks for part in self.parts.get(block.key, [block])]

    def _cut(self, rows: pa.RecordBatch, ends_us: np.ndarray) -> Iterator[tuple[BlockRef, bytes]]:
        periods = np.searchsorted(ends_us, rows.column(RESULT_TIME).to_numpy(), side="right")
        for period in np.unique(periods).tolist():
            some = rows.take(pa.array(np.nonzero(periods == period)[0]))
            for ref, content in cut(
                some, self.description.code, generation=self.generation, batch=self.batch, unit=SPLIT_UNIT,
                first_number=self._number, block_bytes=self.store.block_bytes,
            ):  # fmt: skip
                self._number += 1
                yield ref, content

    def _fetched(self, keys: Sequence[BlockKey]) -> dict[BlockKey, bytes]:
        return dict(self.store.get_blocks(self.job, keys))


def _is_across(block: BlockRef, ends_us: Sequence[int]) -> bool:
    behind = bisect_right(ends_us, block.time_min_us)
    return behind < len(ends_us) and ends_us[behind] <= block.time_max_us
