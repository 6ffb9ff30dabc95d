"""What stages that are no joins of two have in common, where it says what a `JoinPlan` says."""

from __future__ import annotations

from typing import Self

from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.ordering import InNoOrder


class Lone(InNoOrder):
    """A stage for one query that decides on no row of its input, and whose results leave in no order."""

    @property
    def queries(self) -> tuple[Self, ...]:
        """The queries of a job that runs this plan: this one."""
        return (self,)

    @property
    def asof(self) -> None:
        """It is no join of two."""

    @property
    def bits(self) -> int:
        """See `JoinPlan`."""
        return 1

    @property
    def kind(self) -> JoinKind:
        """No row is decided on."""
        return JoinKind.INNER

    @property
    def counts_tuples(self) -> bool:
        """No tuple needs its place in its stream."""
        return False
