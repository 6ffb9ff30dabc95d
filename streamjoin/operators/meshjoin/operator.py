"""Units that read a relation again and again, each its own part of it, by the join value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from streamjoin.engine.operator import Capabilities, Operator, RoutesBy
from streamjoin.engine.routing import PROBE, Route, Tuples, UnitSpec, split, unit_of
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import InputError
from streamjoin.index.columns import routed_columns
from streamjoin.index.kernels import mix
from streamjoin.index.segment import SegmentInfo
from streamjoin.index.table import Part
from streamjoin.operators.meshjoin.scan import Scan
from streamjoin.operators.meshjoin.step import BUFFER, MeshStep
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.window import R

FILES_AHEAD = 8
"""So many files of tuples that wait outside are fetched as a batch begins, where they are in an object store."""


@dataclass(frozen=True)
class MeshJoin(Operator):
    """Tuples go to the unit that reads the rows of their join value.

    Args:
        count: how many units, at least 1.
    """

    count: int
    scan: Scan = field(default_factory=Scan)
    name: str = "meshjoin"

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError("at least one unit must read the relation", field="operator.units")

    def __str__(self) -> str:
        many = "1 unit reads" if self.count == 1 else f"{self.count} units read"
        parts = "parts" if self.scan.partitions is None else f"{self.scan.partitions} parts"
        rate = "" if self.scan.rate_per_s is None else f", for {self.scan.rate_per_s:,g} tuples/s"
        return f"{many} the relation in {parts}, again and again{rate}"

    @property
    def lasting(self) -> str:
        """How the relation is dealt out to units."""
        return f"{self.name}, {self.count} units"

    @property
    def capabilities(self) -> Capabilities:
        """Tuples are where their join values send them."""
        return Capabilities(RoutesBy.EQUALITY, units_by_key=(self.count, self.count), reads_parts=True)

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """All alike. A late row is joined as any other, so none is counted."""
        return tuple(UnitSpec(number, f"M{number}", (), ()) for number in range(self.count))

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """See `Operator`; only the stream's rows are routed."""
        assert side == R and tuples.equal is not None
        return [Route(rows, ((unit, PROBE),)) for unit, rows in split(unit_of(mix(tuples.equal), self.count))]

    def step(self, work: Work) -> Step:
        """See `Operator`."""
        return MeshStep(work, self.scan)

    def opened(self, state: UnitState) -> Iterator[SegmentInfo]:
        """See `Operator`: of what waits outside only the beginning may enter."""
        later = {info.file for info in state.segments(BUFFER)[FILES_AHEAD:]}
        return (info for info in state.named() if info.file not in later)

    def stored_columns(self, plan: Pairs, side: int) -> tuple[str, ...]:
        """Tuples wait as they have come."""
        return routed_columns(plan, side)

    def check_relation(self, parts: Sequence[Part]) -> None:
        """See `Operator`."""
        self.scan.check(parts, self.count)

    @property
    def drain_batches(self) -> int:
        """A batch that brings nothing finishes all that waits."""
        return 1
