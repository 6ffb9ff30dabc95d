"""All operators by name: what they are, their knobs, and when they cannot run a query. Rules as data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.operators import costs
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.costs import Prediction, StreamStatistics
from streamjoin.operators.matrix import Matrix
from streamjoin.operators.operator import Operator
from streamjoin.plan import JoinPlan
from streamjoin.window import CountWindow, FullHistory

AUTO = "auto"
SPARK = "spark"

Knobs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """An operator as the command line and the API know it.

    Args:
        knobs: name -> what it does and its default.
        build: knobs, plan and slots -> the operator; None for Spark's own join, which has no units of ours.
        refuses: why it cannot run a plan, or None if it can.
        predict: the operator and both streams' statistics -> the paper's formulas.
    """

    name: str
    system: str
    knobs: Mapping[str, str]
    build: Callable[[Knobs, JoinPlan, int], Operator] | None
    refuses: Callable[[JoinPlan], str | None]
    predict: Callable[[Operator, StreamStatistics, StreamStatistics, float], Prediction] | None


def _build_biclique(knobs: Knobs, plan: JoinPlan, slots: int) -> Operator:
    routing = knobs.get("routing")
    if routing is None:
        routing = "hash" if plan.predicate.equalities else "random"
    if routing not in list(Routing):
        raise InputError(f'"{routing}" is no routing; use {", ".join(Routing)}', field="operator.routing")
    routing = Routing(routing)
    grouped = {name for name in ("r_groups", "s_groups", "r_bounds", "s_bounds") if name in knobs}
    if grouped and routing is not Routing.CONTRAND:
        raise InputError(
            f"only contrand routing has subgroups, and this is {routing}", field=f"operator.{sorted(grouped)[0]}"
        )
    r_units, s_units = _whole(knobs, "r_units", slots), _whole(knobs, "s_units", slots)
    r_groups = _whole(knobs, "r_groups", max(math.isqrt(r_units), 1))
    s_groups = _whole(knobs, "s_groups", max(math.isqrt(s_units), 1))
    bounds = None
    if routing is Routing.HASH and not plan.predicate.equalities:
        raise UnsupportedError(
            "hash routing sends equal keys to one unit, and this query has no equality between its streams; "
            "use routing: random, or contrand on a band",
            field="operator.routing",
        )
    if routing is Routing.CONTRAND:
        if not plan.predicate.equalities:
            bounds = _bounds(knobs, plan, r_groups, s_groups)
        return Biclique(r_units, s_units, routing, r_groups, s_groups, bounds)
    return Biclique(r_units, s_units, routing)


def _bounds(knobs: Knobs, plan: JoinPlan, d: int, e: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not any(found.is_band for found in plan.predicate.ranges):
        raise UnsupportedError(
            "contrand routing needs an equality or a band between the streams; otherwise use routing: random",
            field="operator.routing",
        )
    found = []
    for name, groups in (("r_bounds", d), ("s_bounds", e)):
        values = knobs.get(name)
        if values is None:
            raise InputError(
                f"contrand on a band needs the {groups - 1} keys at which its next subgroup begins, in rising order",
                field=f"operator.{name}",
            )
        if not isinstance(values, list):
            raise InputError(f"{values!r} is no list of whole numbers", field=f"operator.{name}")
        keys = tuple(int(value) for value in values)
        if len(keys) != groups - 1 or list(keys) != sorted(set(keys)):
            raise InputError(
                f"{groups} subgroups need {groups - 1} rising keys, not {list(values)}", field=f"operator.{name}"
            )
        found.append(keys)
    return found[0], found[1]


def _build_matrix(knobs: Knobs, plan: JoinPlan, slots: int) -> Operator:
    # As many cells as the biclique has units, so that the two compare.
    side = max(math.isqrt(2 * slots), 1)
    return Matrix(_whole(knobs, "rows", side), _whole(knobs, "columns", side))


def _whole(knobs: Knobs, name: str, default: int) -> int:
    value = knobs.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4096:
        raise InputError(f"{value!r} is not a whole number from 1 to 4096", field=f"operator.{name}")
    return value


def _predict_biclique(operator: Operator, r: StreamStatistics, s: StreamStatistics, delay_s: float) -> Prediction:
    assert isinstance(operator, Biclique)
    d, e = (len(groups) for groups in operator.groups)
    return costs.biclique(r, s, operator.r_units, operator.s_units, d, e, delay_s)


def _predict_matrix(operator: Operator, r: StreamStatistics, s: StreamStatistics, delay_s: float) -> Prediction:
    assert isinstance(operator, Matrix)
    return costs.matrix(r, s, operator.rows, operator.columns)


def _spark_refuses(plan: JoinPlan) -> str | None:
    if not plan.predicate.equalities:
        return "Spark's stream-stream join needs an equality between the two streams"
    if isinstance(plan.window, CountWindow):
        return "Spark has no windows of n rows"
    if plan.predicates:
        return "Spark does not know the registered predicates"
    return None


def _always(plan: JoinPlan) -> None:
    return None


REGISTRY: dict[str, Entry] = {
    "biclique": Entry(
        "biclique",
        "join-biclique, BiStream (SIGMOD 2015)",
        {
            "routing": "random, hash or contrand; hash where there is an equality, else random",
            "r_units": "units that store the first stream; one a slot",
            "s_units": "units that store the second stream; one a slot",
            "r_groups": "contrand: subgroups of the first stream's units (d)",
            "s_groups": "contrand: subgroups of the second stream's units (e)",
            "r_bounds": "contrand on a band: keys at which the first stream's next subgroup begins",
            "s_bounds": "contrand on a band: keys at which the second stream's next subgroup begins",
        },
        _build_biclique,
        _always,
        _predict_biclique,
    ),
    "matrix": Entry(
        "matrix",
        "join-matrix, BiStream's baseline",
        {"rows": "partitions of the first stream", "columns": "partitions of the second stream"},
        _build_matrix,
        _always,
        _predict_matrix,
    ),
    SPARK: Entry(SPARK, "Spark's own stream-stream join", {}, None, _spark_refuses, None),
}

COMMON_KNOBS = {
    "archive_period": "how much time one segment of the chained index covers; a tenth of the window",
    "index": "auto, hash, tree or scan",
}
"""Knobs that every operator with units takes."""


def entry(name: str) -> Entry:
    """The operator called `name`.

    Raises:
        InputError: there is none; the message lists those there are.
    """
    if name in REGISTRY:
        return REGISTRY[name]
    raise InputError(f'"{name}" is no operator; operators are {", ".join([*REGISTRY, AUTO])}', field="operator.name")


def choose(plan: JoinPlan) -> str:
    """The operator that `auto` stands for: the cheapest in memory and messages that runs any predicate."""
    return "biclique"


def build(name: str, knobs: Knobs, plan: JoinPlan, slots: int) -> Operator:
    """An operator with units, for a plan.

    Raises:
        InputError: a knob is unknown or wrong.
        UnsupportedError: the operator cannot run the query.
    """
    chosen = entry(choose(plan) if name == AUTO else name)
    for knob in knobs:
        if knob not in chosen.knobs and knob not in COMMON_KNOBS:
            known = ", ".join([*chosen.knobs, *COMMON_KNOBS]) or "none"
            raise InputError(f"{chosen.name} has no such knob; its knobs are {known}", field=f"operator.{knob}")
    if reason := chosen.refuses(plan):
        raise UnsupportedError(reason, field="operator.name")
    if chosen.build is None:
        raise UnsupportedError(f"{chosen.name} has no units of StreamJoin's", field="operator.name")
    return chosen.build(knobs, plan, slots)


def predict(operator: Operator, r: StreamStatistics, s: StreamStatistics, delay_s: float) -> Prediction | None:
    """The formulas for an operator; None where its paper gives none."""
    found = REGISTRY[operator.name].predict
    return found(operator, r, s, delay_s) if found else None


def keeps_everything(plan: JoinPlan) -> bool:
    """Whether state grows without end."""
    return isinstance(plan.window, FullHistory)
