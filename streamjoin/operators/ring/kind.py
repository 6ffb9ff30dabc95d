"""ring, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from typing import Annotated

from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts, psp
from streamjoin.operators.kind import OperatorKind
from streamjoin.operators.ring.ring import Ring
from streamjoin.operators.rounds.settings import Orders
from streamjoin.plan.in_rounds import rounds_refusal
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.stages import AnyPlan
from streamjoin.settings.orders import LengthsSetting
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Units


class RingSettings(Settings):
    """How many nodes there are, what each keeps, and in which order streams are met."""

    nodes: Annotated[
        Units | None,
        setting(
            "nodes in the ring (N), each with a slice of every stream's window", unset="one per slot", label="Nodes",
            keeps_state=True, counts_units=True, compared=True,
        ),
    ] = None  # fmt: skip
    lengths: Annotated[
        LengthsSetting,
        setting(
            "for streams with little to keep, how many nodes share their window, such as {a: 1}", unset="all nodes"
        ),
    ] = None
    orders: Orders = None


def _ring(settings: RingSettings, slots: int) -> Ring:
    return Ring(settings.nodes or slots, settings.lengths or {}, settings.orders or {})


def plans(settings: RingSettings, plan: AnyPlan, slots: int) -> AnyPlan:
    """The rounds of a plan.

    Raises:
        InputError: `orders` or `lengths` name a stream that the query has not, or `orders` leaves out or repeats one.
    """
    return _ring(settings, slots).planned(plan)


def build(settings: RingSettings, plan: RoundPlan, slots: int) -> Ring:
    """The ring of a round."""
    return _ring(settings, slots).at(plan)


def _predict(
    operator: Ring, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    return psp.ring(r, s, operator.lengths_by_stream)


RING = OperatorKind(
    "ring", "ring of state slices, PSP (EDBT 2009)", RingSettings, build, rounds_refusal, _predict, plans
)
