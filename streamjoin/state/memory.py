"""States of units that need not outlive this process: what `StateStore` keeps in files, kept in memory."""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pyarrow as pa

from streamjoin.engine.state import Opened, UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import StateError
from streamjoin.index.segment import SegmentInfo

_KEPT_VERSIONS = 2
"""The one that a batch reads, which units of a chain read of each other, and the one that it writes."""


@dataclass(slots=True)
class MemoryStates:
    """The last two versions of every unit's state. Segments are the very columns that they were made of."""

    _states: dict[tuple[int, int], UnitState] = field(default_factory=dict)
    _segments: dict[str, pa.RecordBatch] = field(default_factory=dict)

    def load(self, unit: int, version: int) -> UnitState:
        """See `States`."""
        if version == 0:
            return UnitState(0)
        if (state := self._states.get((unit, version))) is None:
            raise StateError(f"unit {unit} has no state of version {version} in memory")
        return state

    def check_units(self, units: int, version: int) -> None:
        """See `States`."""
        if more := [unit for unit, of in self._states if unit >= units and of == version]:
            raise StateError(f"there is a state of unit {max(more)}, and units of this operator end before {units}")

    def open_segment(self, unit: int, info: SegmentInfo) -> pa.RecordBatch:
        """See `States`."""
        return self._segments[_name(unit, info)]

    def prepare(self, units: Collection[int], version: int, opened: Opened = UnitState.named) -> None:
        """All of it is here."""

    def writer(self, unit: int, version: int) -> MemoryWriter:
        """See `States`."""
        return MemoryWriter(self._segments, unit, version)

    def commit(self, unit: int, state: UnitState, report: UnitReport) -> None:
        """See `States`."""
        self._states[unit, state.version] = state

    def settle(self) -> None:
        """There is nothing to wait for."""

    def collect(self, unit: int, version: int) -> None:
        """Forget the version before the kept ones, and segments that no kept version of any unit names."""
        self._states.pop((unit, version - _KEPT_VERSIONS), None)
        live = {_name(unit, info) for (unit, _), state in self._states.items() for info in state.named()}
        for name in self._segments.keys() - live:
            del self._segments[name]

    def collect_left(self, units: Collection[int], version: int) -> None:
        """See `States`."""
        for unit in {unit for unit, _ in self._states} - set(units):
            self.collect(unit, version)

    def detach_except(self, unit: int, state: UnitState) -> None:
        """There is nothing to let go that `collect` has not."""


def _name(unit: int, info: SegmentInfo) -> str:
    """A segment that another unit wrote is named from its new unit's place, as a file is."""
    return posixpath.normpath(f"{unit}/{info.file}")


@dataclass(slots=True)
class MemoryWriter:
    """One unit's new segments of a batch."""

    segments: dict[str, pa.RecordBatch]
    unit: int
    version: int
    written: int = 0

    def save(self, rows: pa.RecordBatch, info: SegmentInfo) -> SegmentInfo:
        """See `Writer`."""
        named = replace(info, file=f"{self.version}-{self.written}", bytes=rows.nbytes)
        self.written += 1
        self.segments[_name(self.unit, named)] = rows
        return named

    def finish(self) -> None:
        """There is nothing to make durable."""
