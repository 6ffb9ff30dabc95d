"""How a join of three streams and more is run, stage by stage, for people and for the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamjoin.engine.operator import Operator
from streamjoin.explain.asof import stage_as_of
from streamjoin.explain.rounds import round_lines, stored_words
from streamjoin.index.layout import layout_of
from streamjoin.operators import registry
from streamjoin.plan.aggregate import GROUPS, AggregatePlan
from streamjoin.plan.changing import Runs
from streamjoin.plan.expression import TRUE, Column, Expression, conjuncts, walk
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind, Tree
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.schema import type_name
from streamjoin.plan.stages import (
    Flow,
    Input,
    Plan,
    Query,
    Stage,
    Table,
    answered_by,
    asof_stages,
    decided_stages,
    is_divided,
    running,
)
from streamjoin.plan.window import R, S, format_us

Lines = list[tuple[str, str]]


def stages_to_json(plan: Plan, operators: Sequence[Operator | None]) -> list[dict[str, Any]]:
    """Every stage: what it reads, what it checks, what it finds it by, and its units.

    Inputs are streams by name and stages by number, from 1; `conditions` are those of a join of more than two streams,
    each where all its streams are. `kind` is that of the join, and `groups` says what groups are made by, at a stage
    that makes them. `queries` are the names of those that it answers, of a job whose queries have stages of their own.
    """
    return [
        {
            "stage": stage.number + 1,
            "inputs": [_input_to_json(plan, read) for read in stage.inputs],
            "kind": _kind(stage),
            "queries": _answered(plan, stage),
            "conditions": [str(condition) for condition in stage.conditions],
            "index": _indexes(stage),
            "groups": _made_by(stage),
            "operator": None if operator is None else str(operator),
            "units": 0 if operator is None else len(operator.units),
        }
        for stage, operator in zip(plan.stages, operators, strict=True)
        if stage.number not in plan.resting
    ]


def stage_inputs(plan: Plan) -> dict[int, dict[str, Any]]:
    """By number from 1, what a running job tells of its plan: of each stage what `stages_to_json` does, in part."""
    return {
        stage.number + 1: {
            "inputs": [_input_to_json(plan, read) for read in stage.inputs],
            "kind": _kind(stage),
            "queries": _answered(plan, stage),
        }
        for stage in running(plan)
    }


def _answered(plan: Plan, stage: Stage) -> list[str]:
    """The names of the queries that a stage answers, where each has stages of its own."""
    if not is_divided(plan):
        return []
    return [plan.names_of_queries[query] for query in answered_by(plan, stage.number)]


def _kind(stage: Stage) -> str | None:
    """The kind of a stage's join; None of one that makes groups."""
    if isinstance(stage.plan, AggregatePlan):
        return None
    return str(stage.plan.queries[0].kind if stage.asof is None else stage.asof.kind)


def _indexes(stage: Stage) -> list[str]:
    """How what a stage stores of each input is found."""
    if isinstance(stage.plan, RoundPlan):
        return stored_words(stage.plan) if stage.plan.is_first else []
    return [_layout(stage, side) for side in (R, S)] if len(stage.inputs) > 1 else []


def stage_lines(plan: Plan, operators: Sequence[Operator | None]) -> Lines:
    """What `explain` prints of them."""
    output = ", ".join(f"{field.name} {type_name(field.type)}" for field in plan.queries[0].output)
    lines: Lines = [("output", output)]
    for stage, operator in zip(plan.stages, operators, strict=True):
        names = [_name(plan, read) for read in stage.inputs]
        run_by = f", {operator}" if operator else ""
        further = " further" if stage.keeps is not None else ""
        lines += [
            ("", ""),
            (f"stage {stage.number + 1}", f"{joined_words(stage.plan.queries[0], names)}{further}{run_by}"),
        ]
        lines += _selected(plan, stage)
        if isinstance(stage.plan, AggregatePlan):
            lines += _group_lines(stage.plan)
            continue
        if isinstance(stage.plan, RoundPlan):
            lines += round_lines(stage.plan, plan.names, stage.conditions, _selections(stage))
            continue
        (query,) = stage.plan.queries
        joined = [condition for condition in stage.conditions if str(condition) not in _selections(stage)]
        filtered = conjuncts(query.filter)
        kept = joined[: len(joined) - len(filtered)]  # what comes out is filtered by the last ones
        if isinstance(query, JoinPlan) and query.asof is not None:
            lines += stage_as_of(query, names, kept, joined[len(kept) :])
            continue
        lines.append(("where", " AND ".join(map(str, kept)) or "nothing: every pair in the window"))
        stored = (R, S) if stage.table is None else (S,)
        for side in stored:
            name = _name(plan, stage.inputs[side])
            lines.append(("index" if side == stored[0] else "", f"{name} by {_layout(stage, side)}"))
        if isinstance(query, JoinPlan):
            lines += unmatched_lines(query, names, joined[len(kept) :], waits=stage.table is None)
    return lines


def by_stage(plan: Plan, name: str) -> str | None:
    """Which operator runs which stages, where `name` is the plan's; None where one stage joins at most."""
    joins = [stage for stage in plan.stages if len(stage.inputs) > 1]
    if len(joins) < 2:
        return None
    own = dict.fromkeys(registry.operator_of(stage, name) for stage in joins) if asof_stages(plan) else {}
    return f"{' and '.join(own)}, by stage" if len(own) > 1 else f"{name} at every stage"


def joined_words(query: Query, names: Sequence[str]) -> str:
    """What a stage does to its inputs, by the names that people know them by."""
    if isinstance(query, JoinPlan) and query.asof is not None:
        return f" {query.asof} ".join(names)
    return (" with " if query.kind is JoinKind.INNER else f" {query.kind} JOIN ").join(names)


def joined_streams(plan: Plan) -> str:
    """Which streams are joined; with the kinds of their joins, where not all are inner and none is with a relation."""
    if not (decided_stages(plan) or asof_stages(plan)) or plan.relations:
        first, *others = plan.names
        return f"{first} joins {', '.join(others)}"
    if plan.tree is None:  # two streams
        return joined_words(plan.stages[0].plan.queries[0], plan.names)
    return _tree_words(plan.tree, plan.names)


def _tree_words(tree: Tree, names: Sequence[str]) -> str:
    if isinstance(tree, int):
        return names[tree]
    right = _tree_words(tree.right, names)
    right = right if isinstance(tree.right, int) else f"({right})"
    return f"{_tree_words(tree.left, names)} {tree.words} {right}"


def unmatched_lines(
    query: JoinPlan, names: Sequence[str], filtered: Sequence[Expression] = (), *, waits: bool = True
) -> Lines:
    """What becomes of the rows that a join decides on.

    Args:
        names: what people call its inputs.
        filtered: the conjuncts of its filter, in the names of the query; as the plan has them unless given.
        waits: more rows may come that match; not of a relation, whose rows are all there.
    """
    lines: Lines = []
    kind = query.kind
    for side in kind.decided:
        one, other = names[side], names[1 - side]
        if kind is JoinKind.SEMI:
            lines.append(("gives", f"each row of {one} once, when a row of {other} matches it"))
        else:
            null = "" if kind is JoinKind.ANTI else f", with NULL for the columns of {other}"
            when = f", once no row of {other} can come that matches them" if waits else ", at once"
            lines.append(("unmatched", f"rows of {one} leave{null}{when}"))
        if (eligible := query.predicate.eligible[side]) != TRUE:
            lines.append(("", f"at once where {eligible} does not hold, or a key is NULL"))
    if query.filter != TRUE:
        lines.append(("then keep", " AND ".join(map(str, filtered or conjuncts(query.filter)))))
    return lines


def _selected(plan: Plan, stage: Stage) -> Lines:
    """What intake lets through of the streams that enter at a stage."""
    lines: Lines = []
    for side, read in enumerate(stage.inputs):
        if not isinstance(read, Flow) and (chosen := stage.plan.queries[0].predicate.selections[side]) != TRUE:
            lines.append(("keep", f"{_name(plan, read)} where {chosen}"))
    return lines


def shown(expression: Expression) -> str:
    """An expression over groups as people write it: what is computed of a group has no stream."""
    text = str(expression)
    for part in walk(expression):
        if isinstance(part, Column) and part.stream == GROUPS:
            text = text.replace(str(part), part.name)
    return text


def _made_by(stage: Stage) -> str | None:
    """What the groups of a stage are made by; None of one that joins."""
    if not isinstance(stage.plan, AggregatePlan):
        return None
    if isinstance(stage.plan.windows, Runs):
        return str(stage.plan.windows)
    return ", ".join([*(shown(key.shown) for key in stage.plan.keys), str(stage.plan.windows)])


def _group_lines(plan: AggregatePlan) -> Lines:
    keys = ", ".join(shown(key.shown) for key in plan.keys)
    if isinstance(plan.windows, Runs):
        return [("distinct", f"{plan.windows}, {plan.windows.given}"), ("sent", "each different row, not every row")]
    lines = [("groups", f"{keys or 'one'} {'over' if plan.identity else 'in'} {plan.windows}, {plan.windows.given}")]
    if plan.having != TRUE:
        lines.append(("having", shown(plan.having)))
    return [*lines, ("sent", f"what is known of each group and {format_us(plan.windows.pane_us)}, not every row")]


def _selections(stage: Stage) -> set[str]:
    chosen = stage.plan.queries[0].predicate.selections
    return {str(part) for selection in chosen for part in conjuncts(selection)}


def _layout(stage: Stage, side: int) -> str:
    """How a side is laid out, in the names of the query: a flow has the columns of its streams."""
    query = stage.plan.queries[0]
    assert isinstance(query, JoinPlan)
    flow = f"{query.names[side]}." if isinstance(stage.inputs[side], Flow) else None
    text = str(layout_of(query, side))
    return text.replace(flow, "") if flow else text


def _name(plan: Plan, read: Input) -> str:
    if isinstance(read, Table):
        return plan.relation_names[read.number]
    return f"stage {read.stage + 1}" if isinstance(read, Flow) else plan.names[read]


def _input_to_json(plan: Plan, read: Input) -> dict[str, Any]:
    if isinstance(read, Table):
        return {"relation": plan.relation_names[read.number]}
    return {"stage": read.stage + 1} if isinstance(read, Flow) else {"stream": plan.names[read]}
