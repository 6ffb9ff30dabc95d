"""The tables of units that store tuples and answer probes: one for each stream, named as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamjoin.engine.state import Table, UnitState
from streamjoin.index.segment import SegmentInfo

NAMES = ("R", "S")


def stored(state: UnitState, side: int) -> tuple[SegmentInfo, ...]:
    """What a unit stores of `side`."""
    return state.segments(NAMES[side])


def tables(kept: Mapping[int, Iterable[SegmentInfo]]) -> dict[str, Table]:
    """Segments by side as a state has them."""
    return {NAMES[side]: Table(side, tuple(infos)) for side, infos in kept.items()}
