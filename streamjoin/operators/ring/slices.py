"""Slices of age: which node of a ring keeps a tuple, and until when (PSP, definition 1).

With N nodes of equal slices, node i keeps the rows whose age is between i/N and (i + 1)/N of their reach. A row is as
old as the slowest of the other streams says, since these are what it still can meet. A segment is as old as its newest
row, and moves on as a whole. A row that comes in is stored by the node of its age once the batch is over: the first
one, unless a batch spans more than a slice. Which node has a row is about balance, never about results: partial results
ask every node that may keep some of the stream.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

Ends = tuple[int, ...]
"""By place but the last one, the age in us at which a row leaves it; they do not fall."""
_SLICES_MIN = 8
"""Slices narrower than this share of an equal one are no reason to have smaller segments."""


def even_ends_us(reach_us: int, length: int) -> Ends:
    """Of so many slices of equal width."""
    return tuple(-(-place * max(reach_us, length) // length) for place in range(1, length))


@dataclass(frozen=True)
class Slices:
    """The slices of a ring in one batch.

    Args:
        nodes: by place, from the youngest slice on, the number of the node that keeps it.
        ends_us: by stream.
        earlier_us: by stream, ends that still hold for rows of before `changed_us`, where those are later.
        changed_us: by stream, how far the others had come when the ends became others.
        recuts: everything goes to the node of its age now, also back towards the first one.
    """

    nodes: tuple[int, ...]
    ends_us: tuple[Ends, ...]
    earlier_us: tuple[Ends, ...] | None = None
    changed_us: tuple[int, ...] = ()
    recuts: bool = False

    @cached_property
    def _places(self) -> dict[int, int]:
        return {node: place for place, node in enumerate(self.nodes)}

    @cached_property
    def _numbers(self) -> np.ndarray:
        return np.array(self.nodes, np.int64)

    def nodes_of(self, stream: int, ts_us: np.ndarray, mark_us: int | None) -> np.ndarray:
        """The node of each row that comes in, int64 of the shape of `ts_us`.

        Args:
            mark_us: how far the other streams have come; where they have not begun, everything is young.
        """
        if mark_us is None:
            return np.full(ts_us.shape, self.nodes[0], np.int64)
        ends_us = np.array(self.ends_us[stream], np.int64)
        return np.asarray(self._numbers[np.searchsorted(ends_us, mark_us - ts_us, side="right")])

    def goes_to(self, stream: int, ts_max_us: int, mark_us: int | None, node: int) -> int:
        """Where a segment of a node is from now on, by its newest row: there, or at the node of its age.

        A node that has no slice keeps what it has until that is dead.
        """
        if mark_us is None or (node not in self._places and not self.recuts):
            return node
        place = bisect_right(self._ends_of(stream, ts_max_us), mark_us - ts_max_us)
        return self.nodes[place] if self.recuts or place > self._places[node] else node

    def _ends_of(self, stream: int, ts_max_us: int) -> Sequence[int]:
        """For rows of that time. Those that were there before a change stay until they are too old by both ends."""
        ends_us = self.ends_us[stream]
        if self.earlier_us is None or ts_max_us > self.changed_us[stream]:
            return ends_us
        # A slice that had no end before has none for these rows.
        return [max(both) for both in zip(ends_us, self.earlier_us[stream], strict=False)]

    def width_us(self, stream: int, reach_us: int) -> int:
        """Of the narrowest slice, by which segments are cut."""
        ends_us, even_us = (0, *self.ends_us[stream], reach_us), reach_us // (len(self.ends_us[stream]) + 1)
        narrowest = min(after - before for before, after in pairwise(ends_us))
        return min(max(narrowest, even_us // _SLICES_MIN), even_us)


def even_slices(nodes: int, lengths: Sequence[int], reaches_us: Sequence[int]) -> Slices:
    """Equal slices of nodes that are numbered by place.

    Args:
        lengths: by stream, how many nodes keep its rows.
        reaches_us: by stream.
    """
    ends_us = tuple(even_ends_us(reach_us, length) for reach_us, length in zip(reaches_us, lengths, strict=True))
    return Slices(tuple(range(nodes)), ends_us)


def node_of(ts_max_us: int, mark_us: int | None, reach_us: int, length: int) -> int:
    """The node of a segment in a ring of equal slices, by its newest row."""
    return 0 if mark_us is None else bisect_right(even_ends_us(reach_us, length), mark_us - ts_max_us)
