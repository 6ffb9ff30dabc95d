"""Storing and processing apart: all cores process a tuple, and one stores it because it is its turn.

    r -> every core: right region stores r iff it is this core's turn, left region joins r with its share of S
    s -> every core: left region stores s iff it is this core's turn, right region joins s with its share of R

All cores see the same tuples in the same order, so each counts them and knows its turns from its position alone: no
coordinator, no message between cores, and shares that differ by one turn at most. Source: SplitJoin, "SplitJoin
overview" and Algorithms 1 and 2. The paper's distribution tree is one shuffle here: a block is sent once to each slot,
however many cores the slot has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from streamjoin.engine.operator import Capabilities, Operator
from streamjoin.engine.routing import PROBE, STORE, Route, Tuples, Turn, UnitSpec
from streamjoin.engine.state import UnitState
from streamjoin.errors import InputError
from streamjoin.operators.splitjoin.spread import spread
from streamjoin.plan.window import R, S


@dataclass(frozen=True)
class SplitJoin(Operator):
    """k cores.

    Args:
        cores: k, at least 1.
        turn_tuples: how many tuples of a stream a core stores in a row before it is the next one's turn.
    """

    cores: int
    turn_tuples: int = 1
    name: str = "splitjoin"

    def __post_init__(self) -> None:
        for field in ("cores", "turn_tuples"):
            if getattr(self, field) < 1:
                raise InputError(f"{getattr(self, field)} is too few; 1 is the least", field=f"operator.{field}")

    def __str__(self) -> str:
        runs = "one by one" if self.turn_tuples == 1 else f"in runs of {self.turn_tuples:,}"
        return f"{self.cores} cores, tuples stored in turn {runs}"

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """The cores. A tuple is stored in one of them, which also counts it if it is late."""
        return tuple(
            UnitSpec(core, f"core {core}", (R, S), (R, S), Turn(core, self.cores, self.turn_tuples))
            for core in range(self.cores)
        )

    @property
    def capabilities(self) -> Capabilities:
        """All cores see every tuple, so any number of them may."""
        return Capabilities(resizes=True)

    @property
    def lasting(self) -> str:
        """Everything may change: whose turn it is matters to balance only, since all cores process each tuple."""
        return self.name

    def with_units(self, units: int) -> SplitJoin:
        """See `Operator`."""
        return replace(self, cores=units)

    def resized(self, states: Mapping[int, UnitState]) -> dict[int, UnitState]:
        """See `spread`."""
        return spread(states, self.cores)

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """Every tuple to every core."""
        targets = tuple((core, STORE | PROBE) for core in range(self.cores))
        return [Route(np.arange(len(tuples), dtype=np.int64), targets)]
