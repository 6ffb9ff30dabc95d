"""A relation as lookups see it: segments that are sorted together, so that a probe looks at one or two of them.

Within a segment rows lie as its layout says. Over all segments the first key that they are sorted by rises: the cell
where the layout has cells, else the key. Its lowest and highest value are known of each, and probes, which are sorted
by the same, go to those segments only that may have their partners. Where nothing is indexed, all meet all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.index.files import MappedFile
from streamjoin.index.layout import IndexLayout, Probes
from streamjoin.index.segment import ProbeCounts, Segment, SegmentInfo
from streamjoin.index.view import CELL, KEY, column_of


@dataclass(frozen=True, slots=True)
class Part:
    """What is known of a segment of a relation without opening it.

    Args:
        file: its name.
        low, high: the lowest and the highest first key; both 0 where nothing is indexed.
        unit: which unit reads it, where each has a part of the relation.
    """

    file: str
    rows: int
    bytes: int
    low: int
    high: int
    unit: int = 0

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `Part(**mapping)` reads it back."""
        return {name: getattr(self, name) for name in Part.__slots__}


@dataclass(frozen=True, slots=True)
class Table:
    """A version of a relation, ready to be probed.

    Args:
        version: its number.
        columns: the stored ones, without those of the engine.
        segments, lows, highs: in the order of the first key; int64 of shape (segments,).
        units: by segment, which unit reads it, where each has a part of the relation; its rows are in no order then.
        files: by segment, where it is mapped; none where rows are in memory.
    """

    version: int
    columns: pa.Schema
    segments: tuple[Segment, ...]
    lows: np.ndarray
    highs: np.ndarray
    units: tuple[int, ...] = ()
    files: tuple[MappedFile, ...] = ()

    @staticmethod
    def of(
        version: int,
        columns: pa.Schema,
        parts: Sequence[tuple[Part, pa.RecordBatch]],
        layout: IndexLayout,
        files: Sequence[MappedFile] = (),
    ) -> Table:
        """A table over rows that are sorted already, without copying."""
        segments = tuple(
            Segment.attach(rows, SegmentInfo(part.file, part.rows, part.bytes, 0, 0, 0), (layout,))
            for part, rows in parts
        )
        lows, highs = (
            np.array([part.low for part, _ in parts], np.int64),
            np.array([part.high for part, _ in parts], np.int64),
        )
        return Table(version, columns, segments, lows, highs, tuple(part.unit for part, _ in parts), tuple(files))

    def of_unit(self, unit: int) -> list[pa.RecordBatch]:
        """The rows that a unit reads, as they came, where each has a part of the relation."""
        return [segment.rows for segment, of in zip(self.segments, self.units, strict=True) if of == unit]

    def probe(
        self, probes: Probes, layout: IndexLayout, counts: ProbeCounts
    ) -> Iterator[tuple[Segment, np.ndarray, np.ndarray]]:
        """(segment, row numbers in the probing block, row numbers in the segment), in parts of bounded size.

        Cost: two binary searches a segment, then as `Segment.probe` for the probes that may meet it.
        """
        for number, segment in enumerate(self.segments):
            chosen = _meeting(probes, int(self.lows[number]), int(self.highs[number]))
            if chosen.rows.size:
                if self.files:
                    self.files[number].expect(chosen.rows.size)
                for probe_rows, stored_rows in segment.probe(0, chosen, layout, counts):
                    yield segment, probe_rows, stored_rows


def first_key(rows: pa.RecordBatch) -> np.ndarray:
    """What rows are sorted by first, int64 of shape (n,); empty where nothing is indexed."""
    cells = column_of(rows, CELL)
    return cells if cells.size else column_of(rows, KEY)


def _meeting(probes: Probes, low: int, high: int) -> Probes:
    """The probes, still sorted, that may meet rows whose first keys are `low` to `high`."""
    if probes.cells.size:
        first, past = np.searchsorted(probes.cells, low, "left"), np.searchsorted(probes.cells, high, "right")
        return _taken(probes, slice(first, past))
    if probes.lows.size:
        return _taken(probes, np.nonzero((probes.lows <= high) & (probes.highs >= low))[0])
    return probes


def _taken(probes: Probes, chosen: slice | np.ndarray) -> Probes:
    def of(values: np.ndarray) -> np.ndarray:
        return values[chosen] if values.size else values

    changed: Mapping[str, np.ndarray] = {name: of(getattr(probes, name)) for name in Probes.__slots__}
    return replace(probes, **changed)
