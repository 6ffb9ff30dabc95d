"""A unit's step whose next state also says what an operator has decided by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from streamjoin.engine.state import DRAINS, NUMBERS
from streamjoin.engine.unit import Step

PLAN = "units"
"""In the values of unit 0: which units the next batch has."""


class UnitsPlan(Protocol):
    """The units of a batch, as the state has them."""

    @property
    def numbers(self) -> Sequence[int]:
        """Of all units, also of those that drain."""

    def to_json(self) -> dict[str, Any]:
        """A plain mapping."""


class Noting:
    """See `Step`: as it is, with further values in the state that it leaves.

    Args:
        drains: the unit stores nothing new.
        plan: which units the next batch has, of the unit that decides.
        also: further values, asked for once the results are there.
    """

    def __init__(
        self,
        step: Step,
        *,
        drains: bool,
        plan: UnitsPlan | None = None,
        also: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._step = step
        self._noted: dict[str, Any] = {DRAINS: True} if drains else {}
        if plan is not None:
            self._noted |= {PLAN: plan.to_json(), NUMBERS: list(plan.numbers)}
        self._also = also
        self.span = step.span
        self.report = step.report
        self.state = step.state

    @property
    def query(self) -> int:
        """See `Step`."""
        return self._step.query

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        yield from self._step.results()
        state = self._step.state
        self.state = replace(state, values={**state.values, **self._noted, **self._also()})
