"""A biclique whose units come and go while the job runs, between two batches.

Which units there are in batch b is part of the state of version b, in the values of unit 0. That unit looks at all the
others' states as the batch begins, and writes the plan of batch b + 1 beside its own. So a batch that is repeated, by
other slots, after a kill, in another process, has the units that it had before; see `scaling` for what is decided.

Unit 0 is the first one of R's first subgroup, of which it is the last to stay: it never drains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from streamjoin.engine.operator import Capabilities, Operator
from streamjoin.engine.routing import UnitSpec
from streamjoin.engine.state import UnitState
from streamjoin.engine.storing import UnitStep
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import InputError
from streamjoin.operators.adapting.members import Load, Member
from streamjoin.operators.adapting.step import PLAN, Noting
from streamjoin.operators.biclique.router import Biclique
from streamjoin.operators.biclique.scaling import SIDES, Limits, UnitPlan, after
from streamjoin.plan.window import R, S

NO_LIMITS = Limits(1 << 62, 1, 1)
"""By these nothing is ever decided."""


@dataclass(frozen=True)
class AdaptiveBiclique(Biclique):
    """As `Biclique`, which says what units there are at first, and by which maps keys belong to subgroups.

    Args:
        limits: when units are added and taken away.
        now: the units of a batch; None before one is looked at.
    """

    limits: Limits = NO_LIMITS
    now: UnitPlan | None = None

    def __str__(self) -> str:
        limits = self.limits
        ways = (
            "added and taken away while it runs"
            if limits.shrinks
            else "added while it runs, and none is taken away without a window"
        )
        return (
            f"{super().__str__()}; adaptive, units are {ways}: {limits.least} to {limits.most} of each stream, of "
            f"{limits.capacity_bytes / 2**20:g} MiB each"
        )

    def check_first(self) -> None:
        """See `Operator`: limits may leave out the units at first of a job that has begun, and it comes inside."""
        limits, fewest, most = self.limits, min(self.r_units, self.s_units), max(self.r_units, self.s_units)
        if not limits.least <= fewest <= most <= limits.most:
            raise InputError(
                f"units of each stream are to stay between {limits.least} and {limits.most}, and the job begins with "
                f"{self.r_units} and {self.s_units}; write other min_units, max_units, r_units or s_units",
                field="operator.min_units" if limits.least > fewest else "operator.max_units",
            )

    @property
    def lasting(self) -> str:
        """All but the limits: those may change while a checkpoint is used."""
        return f"{self._at_first!r}, adaptive"

    @property
    def _at_first(self) -> Biclique:
        return Biclique(self.r_units, self.s_units, self.routing, self.r_groups, self.s_groups, self.bounds)

    @property
    def capabilities(self) -> Capabilities:
        """A subgroup may become larger, so no unit has all tuples of a key for good."""
        return replace(super().capabilities, units_by_key=None, adapts=True)

    @cached_property
    def plan(self) -> UnitPlan:
        """The units of the batch; those of the first one where none is looked at."""
        return self.now or UnitPlan.first(*self._at_first.groups)

    def in_batch(self, look: Callable[[int], UnitState]) -> Operator:
        """See `Operator`: as unit 0 has written it down in the batch before."""
        known = look(0).values.get(PLAN)
        return replace(self, now=UnitPlan.from_json(known) if known else None)

    @cached_property
    def groups(self) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """See `Biclique`."""
        r, s = (tuple(map(tuple, self.plan.storing(side))) for side in (R, S))
        return r, s

    @cached_property
    def probed(self) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """See `Biclique`."""
        r, s = (tuple(tuple(member.number for member in group) for group in self.plan.groups[side]) for side in (R, S))
        return r, s

    @cached_property
    def units(self) -> tuple[UnitSpec, ...]:
        """By number: R's and S's first ones, and those that came later."""
        every = [(member, side) for side in (R, S) for member in self.plan.members(side)]
        return tuple(self._unit(member, side) for member, side in sorted(every, key=lambda one: one[0].number))

    def _unit(self, member: Member, side: int) -> UnitSpec:
        number = member.number
        place = number - self.r_units if side == S and number < self.r_units + self.s_units else number
        return UnitSpec(number, f"{SIDES[side]}{place}", (side,), (side,), since=member.since)

    @property
    def numbers_end(self) -> int:
        """See `Operator`."""
        return self.plan.end

    def decide(self, batch: int, now_us: int, loads: Mapping[int, Load | None]) -> UnitPlan:
        """The units of the batch after this one; see `scaling.after`."""
        return after(self.plan, batch, now_us, loads, self.limits)

    def step(self, work: Work) -> Step:
        """See `Operator`; unit 0 also decides."""
        step, drains = UnitStep(work), work.unit.number in self.plan.draining
        if work.unit.number:
            return Noting(step, drains=drains)
        loads = {number: _load(work.look(number)) for number in work.numbers}
        following = self.decide(work.before.version, work.given.now_us, loads)
        step.report.adapting = self._told(work.given.now_us, following)
        return Noting(step, drains=drains, plan=following)

    def _told(self, now_us: int, following: UnitPlan) -> dict[str, Any]:
        """Which units the batch has, what each stored before it, and what was decided in it."""
        plan = self.plan
        asked_now = following.round_us != plan.round_us
        return {
            "plan": plan.number,
            "at_us": now_us,
            "units": {SIDES[side]: sum(map(len, plan.storing(side))) for side in (R, S)},
            "draining": {SIDES[side]: sum(member.drains for member in plan.members(side)) for side in (R, S)},
            "round": {
                f"{SIDES[side]} {group}": {"load": asked.load, "wish": asked.wish, "times": asked.times}
                for side in (R, S)
                for group, asked in enumerate(following.asked[side])
            }
            if asked_now
            else {},
            "decisions": [one for one in following.to_json()["decisions"] if one["plan"] > plan.number],
        }


def _load(state: UnitState) -> Load:
    infos = list(state.tuples())
    return Load(sum(info.rows for info in infos), sum(info.bytes for info in infos))
