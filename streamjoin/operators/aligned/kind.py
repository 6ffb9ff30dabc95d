"""aligned, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from streamjoin.operators.aligned.aligned import Aligned
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.costs.replicated import aligned, of_two
from streamjoin.operators.costs.several import Cost, Several
from streamjoin.operators.kind import OperatorKind
from streamjoin.operators.rounds.settings import Orders
from streamjoin.plan.in_rounds import ALIGNED as SYSTEM
from streamjoin.plan.in_rounds import rounds_refusal
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.stages import Plan
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Span, Units


class AlignedSettings(Settings):
    """How many nodes there are, and how the streams are cut."""

    nodes: Annotated[
        Units | None,
        setting("nodes (N), which take segments in turn", unset="one per slot", label="Nodes", counts_units=True,
                compared=True),
    ] = None  # fmt: skip
    segment: Annotated[
        Span | None,
        setting(
            "how much event time a segment covers (L), far longer than a window", unset="five times the longest reach"
        ),
    ] = None
    master: Annotated[
        str | None,
        setting(
            "the stream whose rows go to one node each, as the query calls it",
            unset="the one with the shortest reach; of equals, the first of FROM",
        ),
    ] = None
    orders: Orders = None


def _aligned(settings: AlignedSettings, slots: int) -> Aligned:
    return Aligned(settings.nodes or slots, settings.segment, settings.master, settings.orders or {})


def plans(settings: AlignedSettings, plan: Plan, slots: int) -> Plan:
    """All rounds of a plan as one stage.

    Raises:
        InputError: the query has no such master stream, or `orders` leaves out or repeats a stream.
    """
    return _aligned(settings, slots).planned(plan)


def build(settings: AlignedSettings, plan: RoundPlan, slots: int) -> Aligned:
    """The nodes of a plan."""
    return _aligned(settings, slots).at(plan)


def _predict(
    operator: Aligned, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    copies = operator.segments.copies
    return of_two(r, s, copies, copies, 1.0)  # while a segment lasts, its node gets all there is


def _several(operator: Aligned, known: Several) -> Cost:
    cut = operator.segments
    return aligned(known, operator.plan.orders, cut.copies, cut.master)


ALIGNED = OperatorKind(
    "aligned", "aligned tuple routing, ATR (baseline of PSP, EDBT 2009)", AlignedSettings, build,
    partial(rounds_refusal, system=SYSTEM), _predict, plans,
    several=_several,
)  # fmt: skip
