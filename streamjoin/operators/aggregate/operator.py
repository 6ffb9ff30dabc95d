"""Units that each make groups of their own, and how what goes to them is folded on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamjoin.engine.operator import Capabilities, Operator
from streamjoin.engine.routing import STORE, Route, Tuples, UnitSpec, split
from streamjoin.engine.unit import Step, Work
from streamjoin.index.kernels import mix
from streamjoin.operators.aggregate.changing import ChangingStep
from streamjoin.operators.aggregate.runs import RunsStep
from streamjoin.operators.aggregate.step import AggregateStep
from streamjoin.operators.aggregate.views import Folding
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.changing import Changing, Runs


@dataclass(frozen=True)
class Aggregate(Operator):
    """Groups by the hash of their keys; those without keys are all in one unit."""

    plan: AggregatePlan
    count: int
    name = "aggregate"

    @property
    def capabilities(self) -> Capabilities:
        """See `Operator`."""
        return Capabilities(waits=True)

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """See `Operator`."""
        return tuple(UnitSpec(number, f"G{number}", (0,), (0,)) for number in range(self.count))

    @property
    def lasting(self) -> str:
        """See `Operator`; what is computed is the query's, which a checkpoint knows."""
        return f"Aggregate(units={self.count})"

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """See `Operator`."""
        if tuples.equal is None:
            units = np.zeros(len(tuples), np.int64)
        else:
            units = (mix(tuples.equal) & np.int64(2**62 - 1)) % self.count
        return [Route(rows, ((unit, STORE),)) for unit, rows in split(units)]

    def folding(self, side: int) -> Folding:
        """See `Operator`."""
        return Folding(self.plan)

    def step(self, work: Work) -> Step:
        """See `Operator`."""
        match self.plan.windows:
            case Changing():
                return ChangingStep(self.plan, work)
            case Runs():
                return RunsStep(self.plan, work)
        return AggregateStep(self.plan, work)

    def stored_columns(self, plan: object, side: int) -> tuple[str, ...]:
        """See `Operator`; views, and no tuples."""
        return ()

    def __str__(self) -> str:
        return f"{self.count} unit{'' if self.count == 1 else 's'}, each with groups of its own"
