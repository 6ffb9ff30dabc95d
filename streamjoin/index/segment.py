"""Segments: immutable sub-indexes of the chained index (BiStream, section 3.3).

A segment is one Arrow record batch of stored tuples, sorted as its layout says. In a file it is an Arrow IPC file,
opened by memory map: every process of a machine that attaches it shares the same pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.block import TS
from streamjoin.index.kernels import probe_segment
from streamjoin.index.layout import IndexLayout, Probes
from streamjoin.window import CountWindow, FullHistory

RANK = "__rank"
"""Engine column: place of the tuple in its whole stream, int64; only count windows need it."""
CELL = "__cell"
KEY = "__key"

_EMPTY = np.zeros(0, np.int64)
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
    """

    file: str
    rows: int
    bytes: int
    ts_min_us: int
    ts_max_us: int
    first: int
    rank_min: int = 0
    rank_max: int = -1

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> SegmentInfo:
        """The inverse of `to_json`."""
        return SegmentInfo(**value)


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that can be probed.

    Args:
        rows: the stored columns, then the engine's, sorted by (cell, key).
        cells, keys, coordinates: views of engine columns, empty where the layout has none.
    """

    info: SegmentInfo
    rows: pa.RecordBatch
    cells: np.ndarray
    keys: np.ndarray
    coordinates: np.ndarray

    @staticmethod
    def attach(rows: pa.RecordBatch, info: SegmentInfo, layout: IndexLayout) -> Segment:
        """A segment over `rows` as `build` made them, without copying."""

        def view(name: str) -> np.ndarray:
            return rows.column(name).to_numpy() if name in rows.schema.names else _EMPTY

        coordinates = _EMPTY
        if not isinstance(layout.window, FullHistory):
            coordinates = view(RANK if isinstance(layout.window, CountWindow) else TS)
        keys = coordinates if layout.window_is_key else view(KEY)
        return Segment(info, rows, view(CELL), keys, coordinates)

    @property
    def span(self) -> tuple[int, int]:
        """(lowest, highest) window coordinate of the rows; event times where there is no window."""
        info = self.info
        if info.rank_min <= info.rank_max:  # ranks are kept for count windows only
            return info.rank_min, info.rank_max
        return info.ts_min_us, info.ts_max_us

    def probe(
        self, probes: Probes, layout: IndexLayout, counts: ProbeCounts
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs (row number in the probing block, row number in this segment), in parts of bounded size.

        Args:
            counts: gains the number of stored rows compared.
        """
        bounds = layout.window.bounds(layout.stored)
        window = np.array(bounds, np.int64) if bounds else _EMPTY
        low, high = self.span
        span = np.array([low, high, self.info.rows], np.int64)
        # Where the window is the key, the search has tested it already.
        tested = _EMPTY if layout.window_is_key else self.coordinates
        cursor = np.zeros(6, np.int64)
        while cursor[0] < probes.rows.size:
            out_probe = np.empty(_PAIRS_A_CALL, np.int64)
            out_stored = np.empty(_PAIRS_A_CALL, np.int64)
            found, compared = probe_segment(
                self.cells, self.keys, tested, span,
                probes.rows, probes.cells, probes.lows, probes.highs, probes.coordinates,
                window, cursor, out_probe, out_stored,
            )  # fmt: skip
            counts.comparisons += compared
            if found:
                yield out_probe[:found], out_stored[:found]


@dataclass(slots=True)
class ProbeCounts:
    """Work done by probes, added up."""

    comparisons: int = 0


def build(
    rows: pa.RecordBatch, ts_us: np.ndarray, ranks: np.ndarray | None, cells: np.ndarray, keys: np.ndarray
) -> tuple[pa.RecordBatch, SegmentInfo]:
    """A segment's record batch and description from columns that are sorted already.

    Args:
        rows: the stored columns, n >= 1 rows.
        ts_us, ranks, cells, keys: int64 of shape (n,); cells and keys may be empty, ranks None.
    """
    arrays = [*rows.columns, pa.array(ts_us)]
    names = [*rows.schema.names, TS]
    for name, values in ((RANK, ranks), (CELL, cells), (KEY, keys)):
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
    )
    return batch, info
