"""Routing of the as-of join: both streams go to one unit by their equal keys."""

from __future__ import annotations

from dataclasses import dataclass

from streamjoin.engine.operator import Capabilities, Operator, RoutesBy
from streamjoin.engine.routing import STORE, Route, Tuples, UnitSpec, split, unit_of
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import InputError
from streamjoin.index.columns import routed_columns
from streamjoin.index.kernels import mix
from streamjoin.operators.asof.step import AsOfStep
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.window import R, S


@dataclass(frozen=True)
class AsOfJoin(Operator):
    """k units; each has all tuples of its keys, of both streams."""

    count: int
    name: str = "asof"

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError("there must be at least one unit", field="operator.units")

    def __str__(self) -> str:
        return f"{self.count} unit{'' if self.count == 1 else 's'}, by equal keys"

    @property
    def capabilities(self) -> Capabilities:
        """Tuples are where their keys send them."""
        return Capabilities(RoutesBy.EQUALITY, units_by_key=(self.count, self.count))

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """All alike."""
        return tuple(UnitSpec(number, f"A{number}", (R, S), (R, S)) for number in range(self.count))

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """A tuple goes to one unit, by its key."""
        assert tuples.equal is not None
        units = unit_of(mix(tuples.equal), self.count)
        return [Route(rows, ((number, STORE),)) for number, rows in split(units)]

    def step(self, work: Work) -> Step:
        """See `AsOfStep`."""
        return AsOfStep(work)

    def stored_columns(self, plan: Pairs, side: int) -> tuple[str, ...]:
        """With those of the keys, by which versions are told apart."""
        return routed_columns(plan, side)

    @property
    def drain_batches(self) -> int:
        """At the end of input the rows that wait are answered with what is there."""
        return 1
