"""Queries that were started over stored tuples: in a chain these still meet, and such pairs are no results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamjoin.flow.block import QUERIES, Block, has_bit
from streamjoin.index.layout import IndexLayout, Probes
from streamjoin.index.segment import ProbeCounts, Segment


@dataclass(frozen=True, slots=True)
class StartedSegment(Segment):
    """A segment that leaves out the pairs of two tuples that were there before the query.

    Args:
        found: the segment that finds the pairs.
        stored_before, probing_before: of its tuples and of the probing ones, which were there, bool.
    """

    found: Segment
    stored_before: np.ndarray
    probing_before: np.ndarray

    @staticmethod
    def over(segment: Segment, bit: int, probing: Block) -> Segment:
        """`segment` for a probing block; `bit` marks the tuples of either that were there."""
        assert probing.queries is not None
        before = has_bit(probing.queries, bit)
        if not before.any():
            return segment
        stored = has_bit(segment.rows.column(QUERIES).to_numpy(), bit)
        return StartedSegment(segment.info, segment.rows, segment.views, segment, stored, before)

    def probe(
        self, query: int, probes: Probes, layout: IndexLayout, counts: ProbeCounts
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """See `Segment`."""
        for probing, stored in self.found.probe(query, probes, layout, counts):
            keep = ~(self.probing_before[probing] & self.stored_before[stored])
            if keep.any():
                yield probing[keep], stored[keep]
