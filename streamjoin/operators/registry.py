"""All operators by name. Adding one is its folder, with a `kind.py`, and its place in `KINDS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from streamjoin.engine.operator import Operator
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.operators.biclique.kind import BICLIQUE
from streamjoin.operators.costs import Prediction, StreamStatistics, UnitCosts
from streamjoin.operators.handshake.kind import HANDSHAKE
from streamjoin.operators.kind import CommonSettings, OperatorKind
from streamjoin.operators.matrix.kind import MATRIX
from streamjoin.operators.splitjoin.kind import SPLITJOIN
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.sharing import Plan
from streamjoin.plan.stages import AnyPlan, Cascade, stages_of
from streamjoin.plan.window import CountWindow, FullHistory
from streamjoin.settings.mistakes import first_error
from streamjoin.settings.setting import Settings

AUTO = "auto"
SPARK = "spark"


def _spark_refuses(plan: AnyPlan) -> str | None:
    if isinstance(plan, Cascade):
        return "Spark's stream-stream join is of two streams here"
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


SPARKS_OWN = OperatorKind(SPARK, "Spark's own stream-stream join", Settings, None, _spark_refuses)
KINDS = (BICLIQUE, MATRIX, SPLITJOIN, HANDSHAKE, SPARKS_OWN)
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


def choose(plan: AnyPlan | None = None) -> str:
    """The operator that `auto` stands for: the cheapest in memory and messages that runs any predicate."""
    return BICLIQUE.name


def check(name: str, plan: AnyPlan) -> None:
    """Refuse a plan that an operator cannot run.

    Raises:
        UnsupportedError: the reason.
    """
    if reason := entry(name).refuses(plan):
        raise UnsupportedError(reason, field="operator.name")


def build_all(name: str, knobs: Mapping[str, Any], plan: AnyPlan, slots: int) -> tuple[Operator, ...]:
    """An operator for each stage of a plan, all with the same knobs.

    Raises:
        InputError, UnsupportedError: as `build`; the message names the stage where there are several.
    """
    built = []
    for stage in stages_of(plan):
        try:
            built.append(build(name, knobs, stage.plan, slots))
        except InputError as wrong:
            if isinstance(plan, Cascade):
                wrong.message = f"stage {stage.number + 1}: {wrong.message}"
            raise
    return tuple(built)


def build(name: str, knobs: Mapping[str, Any], plan: Plan, slots: int) -> Operator:
    """An operator with units, for a join of two.

    Raises:
        InputError: a knob is unknown or wrong.
        UnsupportedError: the operator cannot run the query.
    """
    chosen = entry(choose(plan) if name == AUTO else name)
    settings = settings_of(chosen, knobs)
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
        if kind.build is None:
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


def keeps_everything(plan: AnyPlan) -> bool:
    """Whether state grows without end."""
    return isinstance(plan.window, FullHistory)
