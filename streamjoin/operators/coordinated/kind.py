"""coordinated, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from streamjoin.operators.coordinated.coordinated import Coordinated
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.costs.replicated import coordinated, cover_hosts, of_two
from streamjoin.operators.costs.several import Cost, Several
from streamjoin.operators.kind import OperatorKind
from streamjoin.operators.rounds.settings import Orders
from streamjoin.plan.in_rounds import COORDINATED as SYSTEM
from streamjoin.plan.in_rounds import rounds_refusal
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.stages import Plan
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Span, Units


class CoordinatedSettings(Settings):
    """How many nodes there are, how many have a tuple, and how the streams are cut."""

    nodes: Annotated[
        Units | None,
        setting("nodes (N) that have segments", unset="one per slot", label="Nodes", counts_units=True, compared=True),
    ] = None
    copies: Annotated[
        Units | None,
        setting("on how many nodes each row is stored (c)", unset="2, or 1 on a single node", label="Copies",
                compared=True),
    ] = None  # fmt: skip
    segment: Annotated[
        Span | None,
        setting("how much event time a segment covers (L)", unset="half of the longest reach"),
    ] = None
    orders: Orders = None


def _coordinated(settings: CoordinatedSettings, slots: int) -> Coordinated:
    return Coordinated(settings.nodes or slots, settings.copies, settings.segment, settings.orders or {})


def plans(settings: CoordinatedSettings, plan: Plan, slots: int) -> Plan:
    """The hops of a plan.

    Raises:
        InputError: there are more copies than nodes, or `orders` leaves out or repeats a stream.
    """
    return _coordinated(settings, slots).planned(plan)


def build(settings: CoordinatedSettings, plan: RoundPlan, slots: int) -> Coordinated:
    """The nodes of a hop."""
    return _coordinated(settings, slots).at(plan)


def _hosts(operator: Coordinated) -> list[float]:
    """By stream, how many cover it."""
    copies, length_us = operator.stored_copies, operator.length_us
    return [cover_hosts(reach, length_us, operator.nodes, copies) for reach in operator.plan.reaches_us]


def _predict(
    operator: Coordinated, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    copies, hosts = float(operator.stored_copies), _hosts(operator)
    received = [max(hosts[1 - stream], copies) for stream in range(2)]
    return of_two(r, s, [copies] * 2, received, copies / operator.nodes)


def _several(operator: Coordinated, known: Several) -> Cost:
    return coordinated(known, operator.plan.orders, _hosts(operator), operator.stored_copies)


COORDINATED = OperatorKind(
    "coordinated", "coordinated tuple routing, CTR (baseline of PSP, EDBT 2009)", CoordinatedSettings, build,
    partial(rounds_refusal, system=SYSTEM), _predict, plans, several=_several,
)  # fmt: skip
