"""All operators by name. Adding one is its folder, with a `kind.py`, and its place in `KINDS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from streamjoin.engine.operator import Operator
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.operators.aggregate import Aggregate
from streamjoin.operators.aligned.kind import ALIGNED
from streamjoin.operators.asof.kind import ASOF
from streamjoin.operators.biclique.kind import BICLIQUE
from streamjoin.operators.choosing import Candidates, Choice, Given, choice
from streamjoin.operators.coordinated.kind import COORDINATED
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.costs.growth import Growth, growth
from streamjoin.operators.handshake.kind import HANDSHAKE
from streamjoin.operators.kind import CommonSettings, Joins, OperatorKind
from streamjoin.operators.lookup.kind import LOOKUP
from streamjoin.operators.matrix.kind import MATRIX
from streamjoin.operators.meshjoin.kind import MESHJOIN
from streamjoin.operators.ring.kind import RING
from streamjoin.operators.sparks import SPARK_BROADCAST, SPARK_SHUFFLED, SPARKS_OWN
from streamjoin.operators.splitjoin.kind import SPLITJOIN
from streamjoin.operators.ssbj.kind import SSBJ
from streamjoin.plan.aggregate import AggregatePlan, Hopping
from streamjoin.plan.in_rounds import tree_plan
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import (
    Plan,
    Stage,
    asof_stages,
    joins_as_of_only,
    joins_nothing,
    joins_relation,
    joins_relations_only,
)
from streamjoin.plan.window import FullHistory
from streamjoin.settings.mistakes import first_error
from streamjoin.settings.setting import Settings

AUTO = "auto"
KINDS = (
    BICLIQUE, MATRIX, SPLITJOIN, HANDSHAKE, RING, ALIGNED, COORDINATED, ASOF, LOOKUP, SSBJ, MESHJOIN, SPARKS_OWN,
    SPARK_BROADCAST, SPARK_SHUFFLED,
)  # fmt: skip
CANDIDATES = Candidates(streams=BICLIQUE, as_of=ASOF, sorts=LOOKUP, reads_in_parts=SSBJ)
"""What `auto` chooses from."""
OF_RELATIONS = tuple(kind.name for kind in KINDS if kind.joins is Joins.RELATION and not kind.is_sparks)
"""Those with units that join a relation."""
COMPARED = {
    Joins.STREAMS: (BICLIQUE.name, MATRIX.name, SPARKS_OWN.name),
    Joins.RELATION: (LOOKUP.name, SPARK_BROADCAST.name, SPARK_SHUFFLED.name),
}
"""Which operators are compared unless somebody names others."""
REGISTRY: dict[str, OperatorKind] = {kind.name: kind for kind in KINDS}
COMMON_KNOBS = tuple(CommonSettings.model_fields)
"""Settings that every operator with units takes."""


def entry(name: str) -> OperatorKind:
    """The operator called `name`.

    Raises:
        InputError: there is none; the message lists those there are.
    """
    if name in REGISTRY:
        return REGISTRY[name]
    raise InputError(
        f'there is no operator "{name}"; operators are {", ".join([*REGISTRY, AUTO])}', field="operator.name"
    )


def is_sparks(name: str) -> bool:
    """Whether one of Spark's own joins has this name; what joins nothing is run by no operator that is listed here."""
    return name in REGISTRY and REGISTRY[name].is_sparks


def choose(plan: Plan | None = None, given: Given | None = None) -> str:
    """The operator that `auto` stands for."""
    return usual(Joins.STREAMS) if plan is None else chosen(plan, given).operator


def chosen(plan: Plan, given: Given | None = None) -> Choice:
    """The same, and why; see `choosing`."""
    return choice(plan, given or Given(), CANDIDATES)


def usual(joins: Joins) -> str:
    """The first of the operators of a sort, which runs what another cannot."""
    return next(kind.name for kind in KINDS if kind.joins is joins)


def offered(plan: Plan) -> tuple[str, ...]:
    """The operators to look at for a plan, whether they can run it or not.

    An as-of join has one of its own, and so have relations.
    """
    sorts = {Joins.AS_OF} if asof_stages(plan) else set()
    if any(map(joins_relation, plan.stages)):
        sorts.add(Joins.RELATION)
    if not joins_as_of_only(plan):
        sorts.add(Joins.STREAMS)
    return tuple(kind.name for kind in KINDS if kind is SPARKS_OWN or kind.joins in sorts)


def compared(plan: Plan) -> tuple[str, ...]:
    """The operators that are compared unless somebody names others."""
    return COMPARED[Joins.RELATION if joins_relations_only(plan) else Joins.STREAMS]


def refusal(name: str, plan: Plan) -> str | None:
    """Why an operator cannot run a plan, or None if it can; those of streams leave stages with a relation to others."""
    kind = entry(name)
    if kind.joins is Joins.STREAMS and joins_as_of_only(plan):
        return (
            f"{kind.name} gives pairs, and ASOF JOIN gives each row one partner at most; leave operator.name out, or "
            "write asof"
        )
    if not kind.is_sparks and kind.joins is not Joins.RELATION and joins_relations_only(plan):
        *others, last = OF_RELATIONS
        return f"{name} joins streams; a stream is joined with a relation by {', '.join(others)} or {last}"
    return kind.refuses(plan)


def check(name: str, plan: Plan) -> None:
    """Refuse a plan that an operator cannot run.

    Raises:
        UnsupportedError: the reason.
    """
    if reason := refusal(name, plan):
        raise UnsupportedError(reason, field="operator.name")


def planned(name: str, knobs: Mapping[str, Any], plan: Plan, slots: int) -> Plan:
    """A plan as an operator runs it, whichever one it was planned for before.

    Raises:
        InputError: a knob is unknown or wrong.
        UnsupportedError: the operator cannot run the query.
    """
    kind, plan = entry(name), tree_plan(plan)
    if kind.plans is None:
        return plan
    check(name, plan)
    return kind.plans(settings_of(kind, knobs), plan, slots)


def build_all(name: str, knobs: Mapping[str, Any], plan: Plan, slots: int) -> tuple[Operator, ...]:
    """An operator for each stage of a plan: one of relations where it joins one, all others with the same knobs.

    Raises:
        InputError, UnsupportedError: as `build`; the message names the stage where there are several.
    """
    if name in REGISTRY:
        check(name, plan)
    built: list[Operator] = []
    for stage in plan.stages:
        if isinstance(stage.plan, AggregatePlan):
            built.append(Aggregate(stage.plan, slots))
            continue
        try:
            own = operator_of(stage, name)
            built.append(build(own, knobs if own == name else {}, stage.plan, slots))
        except InputError as wrong:
            if plan.pair is None:
                wrong.message = f"stage {stage.number + 1}: {wrong.message}"
            raise
    return tuple(built)


def operator_of(stage: Stage, name: str) -> str:
    """Which operator runs a stage of a plan whose operator is `name`."""
    joins = REGISTRY[name].joins if name in REGISTRY else None
    if stage.table is not None:
        return name if joins is Joins.RELATION else usual(Joins.RELATION)
    if stage.asof is not None:
        return usual(Joins.AS_OF)
    return usual(Joins.STREAMS) if joins in (Joins.RELATION, Joins.AS_OF) else name


def build(name: str, knobs: Mapping[str, Any], plan: Pairs | RoundPlan, slots: int) -> Operator:
    """An operator with units, for a join of two or a round of a ring.

    Raises:
        InputError: a knob is unknown or wrong.
        UnsupportedError: the operator cannot run the query.
    """
    chosen = entry(choose(None if isinstance(plan, RoundPlan) else plan) if name == AUTO else name)
    settings = settings_of(chosen, knobs)
    if not isinstance(plan, RoundPlan):  # which is a part of a plan that was checked
        check(chosen.name, plan)
    if chosen.build is None:
        raise UnsupportedError(f"{chosen.name} has no units of StreamJoin's", field="operator.name")
    return chosen.build(settings, plan, slots)


def settings_of(kind: OperatorKind, knobs: Mapping[str, Any]) -> Settings:
    """An operator's own settings, as a join file gives them.

    Raises:
        InputError: one is unknown or wrong.
    """
    for knob in knobs:
        if kind.is_sparks:
            raise InputError(f"{kind.name} has no knobs", field=f"operator.{knob}")
        if knob not in kind.knobs and knob not in COMMON_KNOBS:
            known = ", ".join([*kind.knobs, *COMMON_KNOBS])
            raise InputError(f"{kind.name} has no such knob; its knobs are {known}", field=f"operator.{knob}")
    try:
        return kind.settings.model_validate({name: knobs[name] for name in knobs if name in kind.knobs})
    except ValidationError as wrong:
        mistake = first_error(wrong, kind.settings)
        raise InputError(mistake.message, field=f"operator.{mistake.field}") from None


def predict(
    operator: Operator, r: StreamStatistics, s: StreamStatistics, delay_s: float, unit_costs: UnitCosts | None = None
) -> Prediction | None:
    """The formulas for an operator; None where its paper gives none."""
    found = REGISTRY[operator.name].predict
    return found(operator, r, s, delay_s, unit_costs) if found else None


def grows(operator: Operator) -> Growth | None:
    """How many slots are useful to an operator's kind of layout, with as many units as slots; None without a model."""
    found = REGISTRY[operator.name].layout
    return growth(found(operator)) if found else None


def keeps_everything(plan: Plan) -> bool:
    """Whether state grows without end."""
    if joins_nothing(plan):
        # Tuples are not kept, and groups that no window ends are.
        groups = [stage.plan.windows for stage in plan.stages if isinstance(stage.plan, AggregatePlan)]
        return any(not isinstance(windows, Hopping) and windows.ends is None for windows in groups)
    kept = isinstance(plan.window, FullHistory) and not joins_as_of_only(plan)
    return kept and not joins_relations_only(plan)
