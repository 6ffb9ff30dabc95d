"""Segments of event time, and which nodes of ATR a tuple goes to (PSP, section 7).

Segment k is [k L, (k + 1) L), counted from 1970, and belongs to node k mod N for ever. So the node of a segment is
known before any of its tuples comes, and those of the other streams may come first.

A tuple of the master goes to the node of its segment. It may meet tuples of stream l that are up to W_l older, and up
to its own reach newer. So a tuple of stream l goes to the nodes of all segments with such a time of the master, which
are 1 + (W_l + W_master) / L on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamjoin.engine.routing import split
from streamjoin.operators.costs.replicated import aligned_copies


@dataclass(frozen=True, slots=True)
class Segments:
    """How streams are cut.

    Args:
        length_us: L.
        nodes: N.
        master: the stream whose tuples go to one node each.
        reaches_us: W, by stream.
    """

    length_us: int
    nodes: int
    master: int
    reaches_us: tuple[int, ...]

    def home(self, ts_us: np.ndarray) -> np.ndarray:
        """The node of the segment in which each tuple lies, one of those it goes to; int64 of the same shape."""
        return np.asarray(ts_us // self.length_us % self.nodes)

    def spread(self, stream: int, ts_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each tuple, its first segment, and how many follow each other; int64 of the same shape."""
        if stream == self.master:
            return ts_us // self.length_us, np.ones(ts_us.shape, np.int64)
        first = (ts_us - self.reaches_us[self.master]) // self.length_us
        last = (ts_us + self.reaches_us[stream]) // self.length_us
        return first, last - first + 1

    def groups(self, stream: int, ts_us: np.ndarray) -> list[tuple[np.ndarray, tuple[int, ...]]]:
        """Row numbers of tuples of a stream, and the nodes that they go to; each node has a tuple once."""
        first, count = self.spread(stream, ts_us)
        codes = first % self.nodes * (self.nodes + 1) + np.minimum(count, self.nodes)
        found = []
        for code, rows in split(codes):
            begin, nodes = divmod(code, self.nodes + 1)
            found.append((rows, tuple(sorted((begin + place) % self.nodes for place in range(nodes)))))
        return found

    @property
    def copies(self) -> tuple[float, ...]:
        """To how many nodes a tuple goes on average, by stream."""
        return aligned_copies(self.reaches_us, self.master, self.length_us, self.nodes)
