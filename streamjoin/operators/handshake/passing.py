"""How tuples probe that are on their way through a chain: by numbers and counts that were given to them at its head."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamjoin.engine.joining import Joining
from streamjoin.flow.block import Block
from streamjoin.index.segment import Segment
from streamjoin.index.view import NUMBER
from streamjoin.operators.handshake.counted import OPPOSITE, CountedSegment
from streamjoin.operators.handshake.started import StartedSegment
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.window import CountWindow, Window


@dataclass(frozen=True, slots=True)
class Passing:
    """See `Probing`."""

    joining: Joining

    def numbers(self, side: int, block: Block) -> np.ndarray | None:
        """See `Probing`."""
        if self.joining.plan.ordering is Ordering.NONE:
            return None
        return np.asarray(block.rows.column(NUMBER).to_numpy())

    def coordinates(self, window: Window, side: int, block: Block) -> np.ndarray:
        """See `Probing`."""
        if isinstance(window, CountWindow):
            return np.asarray(block.rows.column(OPPOSITE).to_numpy())
        return self.joining.coordinates(window, side, block)

    def probed(self, query: int, segments: list[Segment], probing: int, block: Block) -> list[Segment]:
        """See `Probing`; without pairs that a count window leaves out, or of two tuples older than the query."""
        plan = self.joining.plan
        window = plan.queries[query].window
        if isinstance(window, CountWindow):
            assert block.positions is not None
            ranks = block.positions + self.joining.before.clocks[probing].rows
            segments = [CountedSegment.over(found, ranks, window.rows) for found in segments]
        if (bit := plan.before_bit(query)) is not None:
            segments = [StartedSegment.over(found, bit, block) for found in segments]
        return segments
