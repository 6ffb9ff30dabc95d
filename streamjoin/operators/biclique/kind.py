"""biclique, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.operators import costs
from streamjoin.operators.adapting.settings import ROUNDS_MAX, SHARE, check_adapts, check_range
from streamjoin.operators.biclique.adaptive import AdaptiveBiclique
from streamjoin.operators.biclique.router import Biclique, Routing
from streamjoin.operators.biclique.scaling import Limits
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.costs.growth import LayoutOf
from streamjoin.operators.costs.slots import contrand_layout, hash_layout, random_layout
from streamjoin.operators.kind import OperatorKind
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.window import FullHistory
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import UNITS_MAX, Choice, Flag, Keys, Span, Units, Whole

_ROOT = "the root of these units, rounded down"
_MIB, _MIB_MAX = 1 << 20, 1 << 24
_LIMITS = (
    "capacity", "min_units", "max_units", "add_above", "drain_below", "target", "check_every", "confirmations",
)  # fmt: skip


class BicliqueSettings(Settings):
    """Units of R and of S, and which of them a tuple goes to."""

    routing: Annotated[
        Annotated[Routing, Choice("routing")] | None,
        setting(
            "which units a tuple goes to",
            unset="hash where there is an equality, else random",
            label="Routing",
            compared=True,
        ),
    ] = None
    r_units: Annotated[
        Units | None,
        setting(
            "units that store the first stream (m)", unset="one per slot", label="Units of R",
            counts_units=True, compared=True,
        ),
    ] = None  # fmt: skip
    s_units: Annotated[
        Units | None,
        setting(
            "units that store the second stream (n)", unset="one per slot", label="Units of S",
            counts_units=True, compared=True,
        ),
    ] = None  # fmt: skip
    r_groups: Annotated[
        Units | None,
        setting("contrand: subgroups of r_units (d), at most as many as units", unset=_ROOT),
    ] = None
    s_groups: Annotated[
        Units | None,
        setting("contrand: subgroups of s_units (e), at most as many as units", unset=_ROOT),
    ] = None
    r_bounds: Annotated[
        Keys | None,
        setting(
            "contrand on a band alone: the d - 1 keys at which R's next subgroup begins, rising",
            unset="none",
        ),
    ] = None
    s_bounds: Annotated[
        Keys | None,
        setting(
            "contrand on a band alone: the e - 1 keys at which S's next subgroup begins, rising",
            unset="none",
        ),
    ] = None
    adaptive: Annotated[Flag, setting("units are added and taken away while the job runs, by how much is stored")] = (
        False
    )
    capacity: Annotated[
        Annotated[float, Field(ge=2**-20, le=_MIB_MAX, strict=True)] | None,
        setting(
            "adaptive: MiB that a unit is to store at most (C)",
            unset="1024",
            label="Capacity (MiB)",
            keeps_state=True,
        ),
    ] = None
    min_units: Annotated[
        Units | None, setting("adaptive: units of each stream that stay", unset="1", keeps_state=True)
    ] = None
    max_units: Annotated[
        Units | None,
        setting("adaptive: units of each stream at most", unset="four times as many as at first", keeps_state=True),
    ] = None
    add_above: Annotated[
        Annotated[float, SHARE] | None,
        setting("adaptive: above this share of its capacity a subgroup asks for units", unset="0.8", keeps_state=True),
    ] = None
    drain_below: Annotated[
        Annotated[float, SHARE] | None,
        setting(
            "adaptive: below this share of its capacity a subgroup gives units away", unset="0.3", keeps_state=True
        ),
    ] = None
    target: Annotated[
        Annotated[float, SHARE] | None,
        setting("adaptive: the share of its capacity that a subgroup is to have then", unset="0.6", keeps_state=True),
    ] = None
    check_every: Annotated[
        Span | None,
        setting(
            "adaptive: how often units are asked what they store; at most once a batch", unset="1min", keeps_state=True
        ),
    ] = None
    confirmations: Annotated[
        Annotated[int, Whole(1, ROUNDS_MAX)] | None,
        setting("adaptive: how many times in a row the answer must be the same", unset="3", keeps_state=True),
    ] = None


def build(settings: BicliqueSettings, plan: Pairs, slots: int) -> Biclique:
    """The biclique of a plan.

    Raises:
        InputError: settings do not go together.
        UnsupportedError: the routing needs what the query does not have.
    """
    routing = settings.routing or (Routing.HASH if plan.predicate.equalities else Routing.RANDOM)
    grouped = settings.model_fields_set & {"r_groups", "s_groups", "r_bounds", "s_bounds"}
    if grouped and routing is not Routing.CONTRAND:
        raise InputError(
            f"only contrand routing has subgroups, and this is {routing}", field=f"operator.{sorted(grouped)[0]}"
        )
    r_units, s_units = settings.r_units or slots, settings.s_units or slots
    limits = _limits(settings, plan, r_units, s_units)
    found = _built(settings, plan, routing, r_units, s_units)
    if limits is None:
        return found
    at_first = found.r_units, found.s_units, found.routing, found.r_groups, found.s_groups, found.bounds
    return AdaptiveBiclique(*at_first, limits=limits)


def _built(settings: BicliqueSettings, plan: Pairs, routing: Routing, r_units: int, s_units: int) -> Biclique:
    if routing is Routing.HASH and not plan.predicate.equalities:
        raise UnsupportedError(
            "hash routing sends equal keys to one unit, and "
            + (
                "this query has no equality between its streams; use routing: random, or contrand on a band"
                if len(plan.queries) == 1
                else "these queries have no equality in common; use routing: random"
            ),
            field="operator.routing",
        )
    if routing is not Routing.CONTRAND:
        return Biclique(r_units, s_units, routing)
    r_groups = settings.r_groups or max(math.isqrt(r_units), 1)
    s_groups = settings.s_groups or max(math.isqrt(s_units), 1)
    bounds = None if plan.predicate.equalities else _bounds(settings, plan, r_groups, s_groups)
    return Biclique(r_units, s_units, routing, r_groups, s_groups, bounds)


def _limits(settings: BicliqueSettings, plan: Pairs, r_units: int, s_units: int) -> Limits | None:
    """When units are added and taken away; None where they are not."""
    if not settings.adaptive:
        check_adapts(settings, _LIMITS, "units")
        return None
    found = Limits(
        round((settings.capacity or 1024) * _MIB),
        settings.min_units or 1,
        settings.max_units or max(min(max(r_units, s_units) * 4, UNITS_MAX), settings.min_units or 1),
        settings.add_above or 0.8,
        settings.drain_below or 0.3,
        settings.target or 0.6,
        settings.confirmations or 3,
        60_000_000 if settings.check_every is None else settings.check_every,
        not isinstance(plan.window, FullHistory),
    )
    if not found.low < found.target < found.high:
        raise InputError(
            f"the target {found.target} must be above drain_below {found.low} and below add_above {found.high}",
            field="operator.target",
        )
    check_range(found.least, found.most, "units")
    return found


def _bounds(settings: BicliqueSettings, plan: Pairs, d: int, e: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not any(found.is_band for found in plan.predicate.ranges):
        raise UnsupportedError(
            "contrand routing needs an equality or a band between the streams; otherwise use routing: random",
            field="operator.routing",
        )
    return _rising("r_bounds", settings.r_bounds, d), _rising("s_bounds", settings.s_bounds, e)


def _rising(name: str, keys: list[int] | None, groups: int) -> tuple[int, ...]:
    if keys is None:
        raise InputError(
            f"contrand on a band needs the {groups - 1} keys at which its next subgroup begins, in rising order",
            field=f"operator.{name}",
        )
    if len(keys) != groups - 1 or keys != sorted(set(keys)):
        raise InputError(f"{groups} subgroups need {groups - 1} rising keys, not {keys}", field=f"operator.{name}")
    return tuple(keys)


def _predict(
    operator: Biclique, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    d, e = (len(groups) for groups in operator.groups)
    return costs.biclique(r, s, operator.r_units, operator.s_units, d, e, delay_s)


def _layout(operator: Biclique) -> LayoutOf:
    return {Routing.HASH: hash_layout, Routing.CONTRAND: contrand_layout, Routing.RANDOM: random_layout}[
        operator.routing
    ]


BICLIQUE = OperatorKind(
    "biclique", "join-biclique, BiStream (SIGMOD 2015)", BicliqueSettings, build, predict=_predict, layout=_layout
)
