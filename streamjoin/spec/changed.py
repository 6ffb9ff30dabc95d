"""A bound join otherwise: by another operator, or in another order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamjoin.operators import registry
from streamjoin.plan.in_rounds import tree_plan
from streamjoin.spec.order import Order
from streamjoin.spec.prepare import Bound, ready


def in_order(bound: Bound, order: Order) -> Bound:
    """The same join in an order that `auto` chose before its first start.

    Raises:
        InputError: a knob of the join file is not for it.
    """
    return ready(bound.file, tree_plan(bound.plan), order, anew=True)


def with_operator(bound: Bound, name: str) -> Bound:
    """The same join by another operator, with that operator's own defaults."""
    operator = bound.file.operator
    knobs = operator.knobs if bound.operator == name else {}
    changed = operator.model_copy(update={"name": name})
    if not knobs:
        changed = type(operator)(
            name=name,
            archive_period=_span(operator.archive_period),
            index=operator.index,
            ordering=operator.ordering,
            main=operator.main,
            tree=operator.tree,
        )
    plan = bound.plan
    if name != bound.operator and plan.shared is not None:
        plan = plan.shared.anew()  # what lasts of a job is for its own operator
    elif name != bound.operator:
        plan = registry.planned(name, changed.knobs, plan, bound.file.slots)
    return replace(
        bound, file=bound.file.model_copy(update={"operator": changed}), operator=registry.entry(name).name, plan=plan
    )


def _span(us: int | None) -> Any:
    return None if us is None else f"{us}us"
