"""Units that look rows of a stream up in a relation, which those of a machine share; nothing of the stream stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from streamjoin.engine.operator import Capabilities, Operator
from streamjoin.engine.routing import PROBE, Route, Tuples, UnitSpec, split, unit_of
from streamjoin.engine.state import UnitState, totals_of
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import InputError
from streamjoin.operators.lookup.step import LookupStep
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.window import R


@dataclass(frozen=True)
class Lookup(Operator):
    """Each row goes to one of some equal units, by its identity, so that a hot key does not matter.

    Args:
        lookups: how many units, at least 1.
    """

    lookups: int
    name: str = "lookup"

    def __post_init__(self) -> None:
        if self.lookups < 1:
            raise InputError("at least one unit must look rows up", field="operator.units")

    def __str__(self) -> str:
        return "1 unit looks rows up" if self.lookups == 1 else f"{self.lookups} units look rows up"

    @property
    def lasting(self) -> str:
        """All but its number of units, which may change."""
        return self.name

    @property
    def capabilities(self) -> Capabilities:
        """Units store nothing, so there may be more or fewer of them at any time."""
        return Capabilities(resizes=True)

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """All alike. A late row is looked up as any other, so none is counted."""
        return tuple(UnitSpec(number, f"L{number}", (), ()) for number in range(self.lookups))

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """See `Operator`; only the stream's rows are routed."""
        assert side == R
        return [Route(rows, ((unit, PROBE),)) for unit, rows in split(unit_of(tuples.identity, self.lookups))]

    def step(self, work: Work) -> Step:
        """See `Operator`."""
        return LookupStep(work)

    def stored_columns(self, plan: Pairs, side: int) -> tuple[str, ...]:
        """None: units store nothing."""
        return ()

    def with_units(self, units: int) -> Lookup:
        """See `Operator`."""
        return replace(self, lookups=units)

    def resized(self, states: Mapping[int, UnitState]) -> dict[int, UnitState]:
        """All have come equally far; the first one keeps what they counted."""
        any_one = states[0]
        return {
            unit: replace(any_one, totals=totals_of(states.values()) if unit == 0 else {}, dropped=())
            for unit in range(self.lookups)
        }
