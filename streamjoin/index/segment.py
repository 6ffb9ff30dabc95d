"""Segments: immutable sub-indexes of the chained index (BiStream, section 3.3).

A segment is one Arrow record batch of stored tuples, sorted as its layout says. In a file it is an Arrow IPC file,
opened by memory map: every process of a machine that attaches it shares the same pages.

Where several queries share tuples, these stay in the order in which they came, and the batch has an index for each
query: further columns, as `index/shared.py` lays them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.flow.block import QUERIES, TS
from streamjoin.index.kernels import probe_segment
from streamjoin.index.layout import IndexLayout, Probes
from streamjoin.index.shared import shared_view
from streamjoin.index.view import EMPTY, NUMBER, RANK, View, sorted_view

_PAIRS_A_CALL = 1 << 17


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """What is known of a segment without opening it: a line of a manifest.

    Args:
        file: name in the state directory; empty for a segment that was never written.
        ts_min_us, ts_max_us: event times of its tuples, both ends included.
        first: the latest window coordinate of the oldest batch merged into it. Segments are merged while their latest
            coordinate is within an archive period of this, so that merging step by step cannot stretch one without end.
        rank_min, rank_max: ranks of its tuples, or 0, -1 where ranks are not kept.
        number_min, number_max: the lowest and the highest sequence number of its tuples, or 0, -1 where none are kept.
        members: how many of its tuples are in each query's index; empty where the rows themselves are sorted.
        checksum: of the file's content, where it travels; empty where it stays on one machine.
    """

    file: str
    rows: int
    bytes: int
    ts_min_us: int
    ts_max_us: int
    first: int
    rank_min: int = 0
    rank_max: int = -1
    members: tuple[int, ...] = ()
    number_min: int = 0
    number_max: int = -1
    checksum: str = ""

    def taken_over(self, giver: int, taker: int) -> SegmentInfo:
        """The segment as the unit `taker` names it, from how `giver` does: the file stays where it was written."""
        folder, _, name = self.file.rpartition("/")
        owner = int(folder.removeprefix("../")) if folder else giver
        return replace(self, file=name if owner == taker else f"../{owner}/{name}")

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        found = {name: getattr(self, name) for name in SegmentInfo.__slots__}  # four times as fast as `asdict`
        if not self.checksum:
            del found["checksum"]  # manifests of a folder are as they were before there were any
        return found

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> SegmentInfo:
        """The inverse of `to_json`."""
        return SegmentInfo(**{**value, "members": tuple(value.get("members", ()))})


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that can be probed.

    Args:
        rows: the stored columns, then the engine's.
        views: one for each query.
    """

    info: SegmentInfo
    rows: pa.RecordBatch
    views: tuple[View, ...]

    @staticmethod
    def attach(rows: pa.RecordBatch, info: SegmentInfo, layouts: Sequence[IndexLayout]) -> Segment:
        """A segment over `rows` as `build` made them, without copying."""
        if info.members:
            sized = enumerate(zip(info.members, layouts, strict=True))
            return Segment(info, rows, tuple(shared_view(rows, query, size, layout) for query, (size, layout) in sized))
        (layout,) = layouts
        return Segment(info, rows, (sorted_view(rows, layout),))

    @property
    def span(self) -> tuple[int, int]:
        """(lowest, highest) window coordinate of the rows; event times where there is no window."""
        info = self.info
        if info.rank_min <= info.rank_max:  # ranks are kept for count windows only
            return info.rank_min, info.rank_max
        return info.ts_min_us, info.ts_max_us

    def probe(
        self, query: int, probes: Probes, layout: IndexLayout, counts: ProbeCounts
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs (row number in the probing block, row number in this segment), in parts of bounded size.

        Args:
            query: whose probes they are; its number in the job.
            counts: gains what is looked at.
        """
        view = self.views[query]
        bounds = layout.window.bounds(layout.stored)
        window = np.array(bounds, np.int64) if bounds else EMPTY
        low, high = self.span
        span = np.array([low, high, view.size], np.int64)
        # Where the window is the key, the search has tested it already.
        tested = EMPTY if layout.window_is_key else view.coordinates
        cursor = np.zeros(6, np.int64)
        while view.size and cursor[0] < probes.rows.size:
            out_probe = np.empty(_PAIRS_A_CALL, np.int64)
            out_stored = np.empty(_PAIRS_A_CALL, np.int64)
            found, compared, searched = probe_segment(
                view.cells, view.keys, tested, span,
                probes.rows, probes.cells, probes.lows, probes.highs, probes.coordinates,
                window, cursor, out_probe, out_stored,
            )  # fmt: skip
            counts.comparisons += compared
            counts.search_steps += searched
            if found:
                stored = out_stored[:found]
                yield out_probe[:found], view.order[stored] if view.order.size else stored


@dataclass(slots=True)
class ProbeCounts:
    """Work done by probes, added up.

    Args:
        comparisons: stored rows compared.
        search_steps: places of an index that searches looked at to find them.
    """

    comparisons: int = 0
    search_steps: int = 0


def build(
    rows: pa.RecordBatch,
    ts_us: np.ndarray,
    ranks: np.ndarray | None,
    index: Mapping[str, np.ndarray],
    numbers: np.ndarray | None = None,
    queries: np.ndarray | None = None,
    members: tuple[int, ...] = (),
) -> tuple[pa.RecordBatch, SegmentInfo]:
    """A segment's record batch and description.

    Args:
        rows: the stored columns, n >= 1 rows.
        ts_us, ranks, numbers, queries: of shape (n,), as the engine columns of these names; None where there are none.
        index: the columns of its index or indexes, int64 of shape (n,); empty ones are left out.
        members: see `SegmentInfo`.
    """
    arrays = [*rows.columns, pa.array(ts_us)]
    names = [*rows.schema.names, TS]
    for name, values in ((RANK, ranks), (NUMBER, numbers), (QUERIES, queries), *index.items()):
        if values is not None and values.size:
            arrays.append(pa.array(values))
            names.append(name)
    batch = pa.RecordBatch.from_arrays(arrays, names)
    info = SegmentInfo(
        "",
        batch.num_rows,
        batch.nbytes,
        int(ts_us.min()),
        int(ts_us.max()),
        int((ts_us if ranks is None else ranks).max()),
        int(ranks.min()) if ranks is not None else 0,
        int(ranks.max()) if ranks is not None else -1,
        members,
        int(numbers.min()) if numbers is not None else 0,
        int(numbers.max()) if numbers is not None else -1,
    )
    return batch, info
