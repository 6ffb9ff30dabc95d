"""All operators by name: what they are, their knobs, and when they cannot run a query. Rules as data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from streamjoin.engine.operator import Operator
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.operators import costs, handshake
from streamjoin.operators.biclique import Biclique, Routing
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.costs.handshake import handshake as chain
from streamjoin.operators.costs.splitjoin import splitjoin
from streamjoin.operators.knobs import Knobs, whole
from streamjoin.operators.matrix import Matrix
from streamjoin.operators.splitjoin import SplitJoin
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.sharing import Plan
from streamjoin.plan.window import CountWindow, FullHistory

AUTO = "auto"
SPARK = "spark"

TURN_TUPLES_MAX = 1 << 20

Predict = Callable[[Operator, StreamStatistics, StreamStatistics, float, UnitCosts | None], Prediction]


@dataclass(frozen=True, slots=True)
class Entry:
    """An operator as the command line and the API know it.

    Args:
        knobs: name -> what it does and its default.
        build: knobs, plan and slots -> the operator; None for Spark's own join, which has no units of ours.
        refuses: why it cannot run a plan, or None if it can.
        predict: the operator, both streams' statistics, D in seconds, what steps take -> the paper's formulas.
    """

    name: str
    system: str
    knobs: Mapping[str, str]
    build: Callable[[Knobs, Plan, int], Operator] | None
    refuses: Callable[[Plan], str | None]
    predict: Predict | None


def _build_biclique(knobs: Knobs, plan: Plan, slots: int) -> Operator:
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
    r_units, s_units = whole(knobs, "r_units", slots), whole(knobs, "s_units", slots)
    r_groups = whole(knobs, "r_groups", max(math.isqrt(r_units), 1))
    s_groups = whole(knobs, "s_groups", max(math.isqrt(s_units), 1))
    bounds = None
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
    if routing is Routing.CONTRAND:
        if not plan.predicate.equalities:
            bounds = _bounds(knobs, plan, r_groups, s_groups)
        return Biclique(r_units, s_units, routing, r_groups, s_groups, bounds)
    return Biclique(r_units, s_units, routing)


def _bounds(knobs: Knobs, plan: Plan, d: int, e: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
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


def _build_matrix(knobs: Knobs, plan: Plan, slots: int) -> Operator:
    # As many cells as the biclique has units, so that the two compare.
    side = max(math.isqrt(2 * slots), 1)
    return Matrix(whole(knobs, "rows", side), whole(knobs, "columns", side))


def _build_splitjoin(knobs: Knobs, plan: Plan, slots: int) -> Operator:
    return SplitJoin(whole(knobs, "cores", slots), whole(knobs, "turn_tuples", 1, most=TURN_TUPLES_MAX))


def _predict_biclique(
    operator: Operator, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    assert isinstance(operator, Biclique)
    d, e = (len(groups) for groups in operator.groups)
    return costs.biclique(r, s, operator.r_units, operator.s_units, d, e, delay_s)


def _predict_matrix(
    operator: Operator, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    assert isinstance(operator, Matrix)
    return costs.matrix(r, s, operator.rows, operator.columns)


def _predict_splitjoin(
    operator: Operator, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    assert isinstance(operator, SplitJoin)
    # One shuffle hands tuples to all cores, and one gathers results: trees as wide as there are cores.
    fan_out = max(operator.cores, 2)
    return splitjoin(r, s, operator.cores, fan_out, fan_out, unit_costs)


def _predict_handshake(
    operator: Operator, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None
) -> Prediction:
    assert isinstance(operator, handshake.Handshake)
    found = chain(r, s, operator.workers)
    sets_block = operator.balance and operator.block is None
    return found if sets_block else replace(found, block=None)


def _spark_refuses(plan: Plan) -> str | None:
    if len(plan.queries) > 1:
        return "Spark's stream-stream join runs one query a job"
    if not plan.predicate.equalities:
        return "Spark's stream-stream join needs an equality between the two streams"
    if isinstance(plan.window, CountWindow):
        return "Spark has no windows of n rows"
    if plan.predicates:
        return "Spark does not know the registered predicates"
    if plan.ordering is not Ordering.NONE:
        return "Spark's stream-stream join gives its results in no order"
    return None


def _always(plan: Plan) -> None:
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
    "splitjoin": Entry(
        "splitjoin",
        "SplitJoin (USENIX ATC 2016)",
        {
            "cores": "join cores; one a slot",
            "turn_tuples": "tuples of a stream that a core stores in a row; 1",
        },
        _build_splitjoin,
        _always,
        _predict_splitjoin,
    ),
    "handshake": Entry(
        "handshake",
        "handshake chain, ESJ",
        {
            "workers": "workers in the line (m); one a slot",
            "block": "tuples that are sent on together, or auto: half of a worker's fair share",
            "balance": "true, or false: each worker keeps tuples of a fixed age, an equal part of the window",
            "threshold": "how many tuples more than its successor a worker must have before it sends any on; 0",
        },
        handshake.build,
        _always,
        _predict_handshake,
    ),
    SPARK: Entry(SPARK, "Spark's own stream-stream join", {}, None, _spark_refuses, None),
}

COMMON_KNOBS = {
    "archive_period": "how much time one segment of the chained index covers; a tenth of the window",
    "index": "auto, hash, tree or scan",
    "main": "the conjunct of the query that is indexed; the best one unless set",
    "ordering": "none, outer, inner or total: the order in which results leave",
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


def choose(plan: Plan) -> str:
    """The operator that `auto` stands for: the cheapest in memory and messages that runs any predicate."""
    return "biclique"


def check(name: str, plan: Plan) -> None:
    """Refuse a plan that an operator cannot run.

    Raises:
        UnsupportedError: the reason.
    """
    if reason := entry(name).refuses(plan):
        raise UnsupportedError(reason, field="operator.name")


def build(name: str, knobs: Knobs, plan: Plan, slots: int) -> Operator:
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
    check(chosen.name, plan)
    if chosen.build is None:
        raise UnsupportedError(f"{chosen.name} has no units of StreamJoin's", field="operator.name")
    return chosen.build(knobs, plan, slots)


def predict(
    operator: Operator, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None = None
) -> Prediction | None:
    """The formulas for an operator; None where its paper gives none."""
    found = REGISTRY[operator.name].predict
    return found(operator, r, s, delay_s, unit_costs) if found else None


def keeps_everything(plan: Plan) -> bool:
    """Whether state grows without end."""
    return isinstance(plan.window, FullHistory)
