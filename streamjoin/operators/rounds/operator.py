"""What operators have alike that run a query in rounds: the round of each stage, and its streams."""

from __future__ import annotations

from abc import ABC
from dataclasses import replace
from typing import Any, Self, cast

from streamjoin.engine.operator import Operator
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.stages import StagePlan
from streamjoin.plan.window import R


class RoundsOperator(Operator, ABC):
    """A dataclass with a field `round`: what is done in a stage of the plan that `planned` gives; None before."""

    round: RoundPlan | None

    def at(self, plan: StagePlan) -> Self:
        """See `Operator`."""
        assert isinstance(plan, RoundPlan)
        return cast(Self, replace(cast(Any, self), round=plan))

    @property
    def plan(self) -> RoundPlan:
        """The round that it runs, or all of them where these are one stage."""
        assert self.round is not None, "`planned` gives a plan of rounds, and `at` the operator of each"
        return self.round

    @property
    def streams(self) -> tuple[str, ...]:
        """What the query calls its streams."""
        return tuple(steps[0].names[R] for steps in self.plan.steps)
