"""A ring whose nodes come and go, and whose slices change, while the job runs (PSP, section 6).

Which nodes there are in batch b, and where their slices end, is part of the state of version b, in the values of node
0. That node looks at all the others' states as the batch begins, and writes the plan of batch b + 1 beside its own. So
a batch that is repeated, by other slots, after a kill, in another process, has the nodes that it had before; see
`planning` for what is decided. Node 0 has the youngest slice, and always stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from streamjoin.engine.operator import Capabilities, Operator
from streamjoin.engine.routing import UnitSpec
from streamjoin.engine.state import NUMBERS, UnitState
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import InputError
from streamjoin.operators.adapting.step import PLAN, Noting
from streamjoin.operators.costs.psp import StepTimes
from streamjoin.operators.costs.several import TIMES
from streamjoin.operators.costs.watched import terms
from streamjoin.operators.ring.measured import Rates
from streamjoin.operators.ring.planning import AGGRESSIVE, RING, Objective, RingLimits, RingPlan, Seen, after
from streamjoin.operators.ring.ring import Ring
from streamjoin.operators.ring.seeing import MET, met, seen
from streamjoin.operators.ring.slices import Slices
from streamjoin.operators.ring.step import FirstRound, later_round
from streamjoin.operators.rounds.step import RoundStep

NO_LIMITS = RingLimits(1, 1, TIMES, rounds=1 << 62)
"""By these nothing is ever decided."""


@dataclass(frozen=True)
class AdaptiveRing(Ring):
    """As `Ring`, which says how many nodes there are at first.

    Args:
        limits: when nodes are added and taken away.
        now: the nodes of a batch; None before one is looked at.
    """

    limits: RingLimits = NO_LIMITS
    now: RingPlan | None = None

    def __str__(self) -> str:
        limits = self.limits
        return (
            f"{super().__str__()}; adaptive, from {limits.least} to {limits.most} nodes while it runs"
            f"{', all of them for the output rate' * (limits.objective is Objective.RATE)}, and slices follow the rates"
        )

    def check_first(self) -> None:
        """See `Operator`: limits may leave out the nodes at first of a job that has begun, and it comes inside."""
        limits = self.limits
        if not limits.least <= self.nodes <= limits.most:
            raise InputError(
                f"the ring is to stay between {limits.least} and {limits.most} nodes, and the job begins with "
                f"{self.nodes}; write other min_nodes, max_nodes or nodes",
                field="operator.min_nodes" if limits.least > self.nodes else "operator.max_nodes",
            )

    @property
    def lasting(self) -> str:
        """All but the limits: those may change while a checkpoint is used."""
        return f"{super().lasting}, {self.nodes} nodes at first, adaptive"

    @property
    def times_known(self) -> tuple[StepTimes, frozenset[str]]:
        """See `Ring`."""
        return self.limits.times, self.limits.given

    @property
    def objective(self) -> str:
        """See `Ring`."""
        return self.limits.objective

    @property
    def capabilities(self) -> Capabilities:
        """How many nodes there are follows from what happens, and not from a later start."""
        return replace(super().capabilities, resizes=False, adapts=True)

    @cached_property
    def nodes_now(self) -> RingPlan:
        """The nodes of the batch; those of the first one where none is looked at."""
        return self.now or RingPlan.first(self.nodes, self.plan.reaches_us)

    def in_batch(self, look: Callable[[int], UnitState]) -> Operator:
        """See `Operator`: as node 0 has written it down in the batch before."""
        known = look(0).values.get(PLAN)
        return replace(self, now=RingPlan.from_json(known) if known else None)

    @cached_property
    def units(self) -> tuple[UnitSpec, ...]:
        """By number; the first one counts late rows."""
        streams = tuple(range(len(self.plan.orders))) if self.plan.is_first else ()
        members = sorted(self.nodes_now.nodes, key=lambda one: one.number)
        return tuple(
            UnitSpec(one.number, f"node {one.number}", streams, () if one.number else streams, since=one.since)
            for one in members
        )

    @property
    def numbers_end(self) -> int:
        """See `Operator`."""
        return self.nodes_now.end

    @property
    def slices(self) -> Slices:
        """See `Ring`."""
        plan = self.nodes_now
        return Slices(plan.storing, plan.ends_us, plan.earlier_us, plan.changed_us)

    def keeping(self, stream: int) -> tuple[int, ...]:
        """See `Ring`."""
        return (*self.nodes_now.storing, *self.nodes_now.draining)

    def storing(self, stream: int) -> tuple[int, ...]:
        """See `Ring`."""
        return self.nodes_now.storing

    def decide(self, batch: int, now_us: int, seen: Seen, limits: RingLimits) -> RingPlan:
        """The nodes of the batch after this one; see `planning.after`."""
        return after(self.nodes_now, batch, now_us, seen, self.plan.reaches_us, limits)

    def step(self, work: Work) -> Step:
        """See `Operator`; node 0 also decides."""
        plan, batch = self.nodes_now, work.before.version
        drains = work.unit.number in plan.draining
        if not self.plan.is_first:
            later = later_round(work, self.plan)
            return Noting(later, drains=drains, also=lambda: _of_a_later_round(work, later))
        # In the first batch of nodes that came or went aggressively everything moves.
        recuts = plan.way == AGGRESSIVE and plan.since == batch
        step = FirstRound(work, self.plan, replace(self.slices, recuts=recuts))
        following = None
        if not work.unit.number:
            now, measured = seen(work, plan), work.measured()
            following = self.decide(batch, work.given.now_us, now, self.limits.knowing(measured))
            step.report.adapting = self._told(work.given.now_us, following, now, measured)
        return Noting(step, drains=drains, plan=following, also=lambda: {MET: met(step)})

    def _told(self, now_us: int, following: RingPlan, seen: Seen, measured: Mapping[str, float]) -> dict[str, Any]:
        """Which nodes the batch has, how busy they are, and what was decided in it."""
        plan, asked, rates = self.nodes_now, following.asked, following.rates
        asked_now = rates is not None and following.round_us != plan.round_us
        model = self._model(rates, seen, measured) if rates and asked_now else None
        return {
            "plan": plan.number,
            "at_us": now_us,
            "units": {RING: len(plan.storing)},
            "draining": {RING: len(plan.draining)},
            "best": model and model["best"],
            "model": model,
            "round": {RING: {"load": asked.load, "wish": asked.wish, "times": asked.times}} if asked_now else {},
            "decisions": [one for one in following.to_json()["decisions"] if one["plan"] > plan.number],
        }

    def _model(self, rates: Rates, seen: Seen, measured: Mapping[str, float]) -> dict[str, Any]:
        """What the formulas say by now, and what they were given."""
        limits = self.limits
        found = rates.terms(self.plan.orders, seen.tuple_bytes, limits.knowing(measured).times, limits.most)
        times = terms(limits.times, limits.given, measured)
        lengths = dict(zip(self.streams, found.lengths, strict=True))
        return {**asdict(found), "lengths": lengths, "times": [asdict(one) for one in times]}


def _of_a_later_round(work: Work, step: RoundStep) -> dict[str, Any]:
    """What a node notes there; its round has the nodes that the first one has decided on."""
    decided = work.kept().state.values
    return {MET: met(step), **({NUMBERS: decided[NUMBERS]} if NUMBERS in decided else {})}
