"""The handshake chain as an operator: its units and its routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from streamjoin.engine.operator import Capabilities, Operator
from streamjoin.engine.routing import PROBE, STORE, Route, Tuples, UnitSpec
from streamjoin.engine.state import Rewritten, UnitState
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import InputError
from streamjoin.operators.handshake.counted import stored_columns
from streamjoin.operators.handshake.line import Line
from streamjoin.operators.handshake.resize import resized
from streamjoin.operators.handshake.state import requeried
from streamjoin.operators.handshake.step import ChainStep
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.window import R, S


@dataclass(frozen=True)
class Handshake(Line, Operator):
    """A chain of workers; see `Line`."""

    name: str = "handshake"

    def __post_init__(self) -> None:
        for field, least in (("workers", 1), ("block", 1), ("threshold", 0)):
            value = getattr(self, field)
            if value is not None and value < least:
                raise InputError(f"{value} is too few; {least} is the least", field=f"operator.{field}")

    def __str__(self) -> str:
        blocks = "blocks of half a fair share" if self.block is None else f"blocks of {self.block:,}"
        return f"{self.workers} workers in a line, {blocks}" + ("" if self.balance else ", fixed shares")

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """The workers, left to right. A stream's head counts its late tuples."""
        return tuple(
            UnitSpec(
                worker, f"worker {worker}", (R, S), tuple(side for side in (R, S) if self.position(side, worker) == 0)
            )
            for worker in range(self.workers)
        )

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """Every tuple to its stream's head."""
        return [Route(np.arange(len(tuples), dtype=np.int64), ((self.worker(side, 0), STORE | PROBE),))]

    @property
    def capabilities(self) -> Capabilities:
        """Workers hand tuples on, along a line of any length."""
        return Capabilities(resizes=True, hands_on=True)

    @property
    def drain_batches(self) -> int:
        """In the first all tuples set out, and then they go one hop a batch."""
        return self.workers if self.workers > 1 else 0

    @property
    def lasting(self) -> str:
        """Everything may change: the chain's length and what is sent on when are about balance, not about results."""
        return self.name

    def with_units(self, units: int) -> Handshake:
        """See `Operator`."""
        return replace(self, workers=units)

    def resized(self, states: Mapping[int, UnitState]) -> dict[int, UnitState]:
        """See the module `resize`."""
        return resized(states, self.workers)

    def requeried(self, state: UnitState, change: Rewritten) -> UnitState:
        """See `Operator`."""
        return requeried(state, change)

    def stored_columns(self, plan: Pairs, side: int) -> tuple[str, ...]:
        """See `Operator`."""
        return stored_columns(plan, side)

    def step(self, work: Work) -> Step:
        """See `Operator`."""
        return ChainStep(self, work)
