"""biclique, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

import math
from typing import Annotated

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.operators import costs
from streamjoin.operators.biclique.router import Biclique, Routing
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.kind import OperatorKind
from streamjoin.plan.sharing import Plan
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Choice, Keys, Units

_ROOT = "the root of these units, rounded down"


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


def build(settings: BicliqueSettings, plan: Plan, slots: int) -> Biclique:
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


def _bounds(settings: BicliqueSettings, plan: Plan, d: int, e: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
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


BICLIQUE = OperatorKind("biclique", "join-biclique, BiStream (SIGMOD 2015)", BicliqueSettings, build, predict=_predict)
