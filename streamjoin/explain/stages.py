"""How a join of three streams and more is run, stage by stage, for people and for the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamjoin.engine.operator import Operator
from streamjoin.index.layout import layout_of
from streamjoin.plan.expression import TRUE, conjuncts
from streamjoin.plan.schema import type_name
from streamjoin.plan.stages import AnyPlan, Cascade, Flow, Input, Stage, stages_of
from streamjoin.plan.window import R, S

Lines = list[tuple[str, str]]


def stages_to_json(plan: AnyPlan, operators: Sequence[Operator | None]) -> list[dict[str, Any]]:
    """Every stage: what it reads, what it checks, what it finds it by, and its units.

    Inputs are streams by name and stages by number, from 1; `conditions` are those of a join of more than two streams,
    each where all its streams are.
    """
    return [
        {
            "stage": stage.number + 1,
            "inputs": [_input_to_json(plan, read) for read in stage.inputs],
            "conditions": [str(condition) for condition in stage.conditions],
            "index": [_layout(stage, side) for side in (R, S)],
            "operator": None if operator is None else str(operator),
            "units": 0 if operator is None else len(operator.units),
        }
        for stage, operator in zip(stages_of(plan), operators, strict=True)
    ]


def stage_inputs(plan: AnyPlan) -> dict[int, dict[str, Any]]:
    """By number from 1, what each stage reads, as `stages_to_json` has it: what a running job tells of its plan."""
    return {
        stage.number + 1: {"inputs": [_input_to_json(plan, read) for read in stage.inputs]} for stage in stages_of(plan)
    }


def stage_lines(plan: Cascade, operators: Sequence[Operator | None]) -> Lines:
    """What `explain` prints of them."""
    output = ", ".join(f"{field.name} {type_name(field.type)}" for field in plan.answering.output)
    lines: Lines = [("output", output)]
    for stage, operator in zip(stages_of(plan), operators, strict=True):
        r, s = (_name(plan, read) for read in stage.inputs)
        lines += [("", ""), (f"stage {stage.number + 1}", f"{r} with {s}" + (f", {operator}" if operator else ""))]
        lines += _selected(plan, stage)
        joined = [condition for condition in stage.conditions if str(condition) not in _selections(stage)]
        lines.append(("where", " AND ".join(map(str, joined)) or "nothing: every pair in the window"))
        for side in (R, S):
            name = _name(plan, stage.inputs[side])
            lines.append(("index" if side == R else "", f"{name} by {_layout(stage, side)}"))
    return lines


def _selected(plan: Cascade, stage: Stage) -> Lines:
    """What intake lets through of the streams that enter at a stage."""
    lines: Lines = []
    for side, read in enumerate(stage.inputs):
        if not isinstance(read, Flow) and (chosen := stage.plan.queries[0].predicate.selections[side]) != TRUE:
            lines.append(("keep", f"{plan.names[read]} where {chosen}"))
    return lines


def _selections(stage: Stage) -> set[str]:
    chosen = stage.plan.queries[0].predicate.selections
    return {str(part) for selection in chosen for part in conjuncts(selection)}


def _layout(stage: Stage, side: int) -> str:
    """How a side is laid out, in the names of the query: a flow has the columns of its streams."""
    query = stage.plan.queries[0]
    flow = f"{query.names[side]}." if isinstance(stage.inputs[side], Flow) else None
    text = str(layout_of(query, side))
    return text.replace(flow, "") if flow else text


def _name(plan: Cascade, read: Input) -> str:
    return f"stage {read.stage + 1}" if isinstance(read, Flow) else plan.names[read]


def _input_to_json(plan: AnyPlan, read: Input) -> dict[str, Any]:
    return {"stage": read.stage + 1} if isinstance(read, Flow) else {"stream": plan.names[read]}
