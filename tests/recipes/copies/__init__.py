"""An operator for tests: each unit has a copy of the first stream and its share of the second. All of its rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamjoin.engine.operator import Operator
from streamjoin.engine.routing import PROBE, STORE, Route, Tuples, UnitSpec, split, unit_of
from streamjoin.plan.window import R, S


@dataclass(frozen=True)
class Copies(Operator):
    """A tuple of R is stored and joined by every unit, and one of S by one of them: there the two meet, and once."""

    copies: int
    name: str = "copies"

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """See `Operator`. Late tuples of R count in the first one."""
        return tuple(
            UnitSpec(unit, f"copy {unit}", (R, S), (R, S) if unit == 0 else (S,)) for unit in range(self.copies)
        )

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """See `Operator`."""
        if side == R:
            everywhere = tuple((unit, STORE | PROBE) for unit in range(self.copies))
            return [Route(np.arange(len(tuples.identity)), everywhere)]
        return [Route(rows, ((unit, STORE | PROBE),)) for unit, rows in split(unit_of(tuples.identity, self.copies))]
