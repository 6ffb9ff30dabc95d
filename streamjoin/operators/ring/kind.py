"""ring, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from streamjoin.errors import InputError
from streamjoin.operators.adapting.settings import ROUNDS_MAX, SHARE, check_adapts, check_range
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts, psp
from streamjoin.operators.costs.psp import StepTimes
from streamjoin.operators.costs.several import TIMES
from streamjoin.operators.kind import OperatorKind
from streamjoin.operators.ring.adaptive import AdaptiveRing
from streamjoin.operators.ring.planning import Objective, RingLimits
from streamjoin.operators.ring.ring import Ring
from streamjoin.operators.rounds.settings import Orders
from streamjoin.plan.in_rounds import rounds_refusal
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.stages import Plan
from streamjoin.settings.orders import LengthsSetting
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import UNITS_MAX, Choice, Flag, Span, Units, Whole

_TIME_MAX_US = 1e9
_TIME = Field(ge=1e-3, le=_TIME_MAX_US, strict=True)
_MEASURED = "measured; {:g} until it is"
_LIMITS = (
    "min_nodes", "max_nodes", "add_above", "target", "check_every", "confirmations", "smoothing", "objective",
    "pair_us", "send_us", "hop_us",
)  # fmt: skip


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
    adaptive: Annotated[
        Flag, setting("nodes are added and taken away while the job runs, and slices follow the rates")
    ] = False
    min_nodes: Annotated[Units | None, setting("adaptive: nodes that stay", unset="1", keeps_state=True)] = None
    max_nodes: Annotated[
        Units | None, setting("adaptive: nodes at most", unset="four times as many as at first", keeps_state=True)
    ] = None
    add_above: Annotated[
        Annotated[float, SHARE] | None,
        setting("adaptive: nodes that work a larger share of their time are too few", unset="0.8", keeps_state=True),
    ] = None
    target: Annotated[
        Annotated[float, SHARE] | None,
        setting("adaptive: the share of their time that nodes are to work then", unset="0.6", keeps_state=True),
    ] = None
    check_every: Annotated[
        Span | None,
        setting("adaptive: how often rates are looked at; at most once a batch", unset="1min", keeps_state=True),
    ] = None
    confirmations: Annotated[
        Annotated[int, Whole(1, ROUNDS_MAX)] | None,
        setting("adaptive: how many times in a row the answer must be the same", unset="3", keeps_state=True),
    ] = None
    smoothing: Annotated[
        Annotated[float, SHARE] | None,
        setting("adaptive: the weight of the newest look in the mean of all", unset="0.3", keeps_state=True),
    ] = None
    objective: Annotated[
        Annotated[Objective, Choice("objective")] | None,
        setting(
            "adaptive: what the number of nodes is chosen for: latency (N*), or output rate (all nodes there may be)",
            unset="latency", keeps_state=True,
        ),
    ] = None  # fmt: skip
    pair_us: Annotated[
        Annotated[float, _TIME] | None,
        setting(
            "adaptive: microseconds to compare a pair (T_j)", unset=_MEASURED.format(TIMES.join * 1e6), keeps_state=True
        ),
    ] = None
    send_us: Annotated[
        Annotated[float, Field(ge=0, le=_TIME_MAX_US, strict=True)] | None,
        setting(
            "adaptive: microseconds to send and receive a row (T_s)",
            unset=_MEASURED.format(TIMES.send * 1e6),
            keeps_state=True,
        ),
    ] = None
    hop_us: Annotated[
        Annotated[float, _TIME] | None,
        setting(
            "adaptive: microseconds from a node to the next (T_n)", unset=_MEASURED.format(TIMES.hop * 1e6),
            keeps_state=True,
        ),
    ] = None  # fmt: skip


def _ring(settings: RingSettings, slots: int) -> Ring:
    nodes, orders = settings.nodes or slots, settings.orders or {}
    if (limits := _limits(settings, nodes)) is not None:
        return AdaptiveRing(nodes, orders=orders, limits=limits)
    return Ring(nodes, settings.lengths or {}, orders)


def _limits(settings: RingSettings, nodes: int) -> RingLimits | None:
    """When nodes are added and taken away; None where they are not.

    Raises:
        InputError: settings do not go together.
    """
    if not settings.adaptive:
        check_adapts(settings, _LIMITS, "nodes")
        return None
    if settings.lengths:
        raise InputError(
            "lengths says how many nodes keep a stream, and adaptive: true decides it for all of them while the job "
            "runs; leave one of the two out",
            field="operator.lengths",
        )
    found = RingLimits(
        settings.min_nodes or 1,
        settings.max_nodes or min(max(nodes, settings.min_nodes or 1) * 4, UNITS_MAX),
        _times(settings),
        settings.add_above or 0.8,
        settings.target or 0.6,
        settings.confirmations or 3,
        60_000_000 if settings.check_every is None else settings.check_every,
        settings.smoothing or 0.3,
        frozenset(_given_s(settings)),
        settings.objective or Objective.LATENCY,
    )
    if not found.target < found.high:
        raise InputError(f"the target {found.target} must be below add_above {found.high}", field="operator.target")
    check_range(found.least, found.most, "nodes")
    return found


def _times(settings: RingSettings) -> StepTimes:
    """What single steps take, as set or assumed, in seconds."""
    return replace(TIMES, **_given_s(settings))


def _given_s(settings: RingSettings) -> dict[str, float]:
    """What is set of it."""
    given = {"join": settings.pair_us, "send": settings.send_us, "hop": settings.hop_us}
    return {name: us / 1e6 for name, us in given.items() if us is not None}


def plans(settings: RingSettings, plan: Plan, slots: int) -> Plan:
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
