"""Two-phase scaling of a biclique under a load that changes: many units, minutes and hours in a moment.

Each step of time brings tuples of both streams, whose units the job's own router chooses, and what is older than the
window expires. Once a step units are asked what they store, and the job's own code decides. What is not simulated: the
tuples' contents, and how long anything takes.

Source: BiStream (SIGMOD 2015), sections 5 and 6.4, figure 12.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from streamjoin.engine.routing import STORE, Tuples
from streamjoin.index.kernels import mix
from streamjoin.operators.adapting.members import Decision, Load
from streamjoin.operators.biclique.adaptive import AdaptiveBiclique
from streamjoin.operators.biclique.scaling import UnitPlan
from streamjoin.plan.window import R, S


@dataclass(frozen=True, slots=True)
class Step:
    """What was so after a step.

    Args:
        storing, draining: units of R and of S.
        load: what all units of a side store, as a share of the capacity of those that store; of R and of S.
        fullest: the share of its capacity that the fullest unit stores.
        decisions: what was decided in it.
    """

    storing: tuple[int, int]
    draining: tuple[int, int]
    load: tuple[float, float]
    fullest: float
    decisions: tuple[Decision, ...]


@dataclass(slots=True)
class Elastic:
    """A biclique that is asked once a step, of `step_us` each.

    Args:
        window: how many steps a tuple is kept.
        tuple_bytes: the size of a tuple of either stream.
        keys: how many join values there are.
    """

    operator: AdaptiveBiclique
    window: int
    tuple_bytes: int
    keys: int = 1 << 20
    step_us: int = 60_000_000
    stored: dict[int, deque[int]] = field(default_factory=dict)
    done: int = 0
    sent: int = 0

    def run(self, rates: Sequence[int]) -> Iterator[Step]:
        """Steps that bring so many tuples of each stream."""
        for rate in rates:
            plan = self.operator.plan
            loads = {unit: Load(sum(rows), sum(rows) * self.tuple_bytes) for unit, rows in self._stored(plan).items()}
            after = self.operator.decide(self.done, self.done * self.step_us, loads)
            self._bring(rate)
            yield self._told(plan, after)
            self.operator = replace(self.operator, now=after)
            self.done += 1

    def _stored(self, plan: UnitPlan) -> dict[int, deque[int]]:
        members = [member.number for side in (R, S) for member in plan.members(side)]
        self.stored = {unit: self.stored.get(unit, deque([0], self.window)) for unit in members}
        return self.stored

    def _bring(self, rate: int) -> None:
        for rows in self.stored.values():
            rows.append(0)
        for side in (R, S):
            names = mix(np.arange(self.sent, self.sent + rate, dtype=np.int64))
            self.sent += rate
            for route in self.operator.route(side, Tuples(mix(names), mix(names % self.keys))):
                for unit, role in route.targets:
                    if role == STORE:
                        self.stored[unit][-1] += route.rows.size

    def _told(self, plan: UnitPlan, after: UnitPlan) -> Step:
        capacity, size = self.operator.limits.capacity_bytes, self.tuple_bytes
        sides = [plan.members(side) for side in (R, S)]
        storing = [sum(not member.drains for member in members) for members in sides]
        loads = [
            sum(sum(self.stored[member.number]) for member in members) * size / (count * capacity)
            for members, count in zip(sides, storing, strict=True)
        ]
        return Step(
            (storing[R], storing[S]),
            (len(sides[R]) - storing[R], len(sides[S]) - storing[S]),
            (loads[R], loads[S]),
            max(sum(rows) for rows in self.stored.values()) * size / capacity,
            tuple(one for one in after.decisions if one.plan > plan.number),
        )
