"""The same query with its inner joins in another order: the same rows, columns and names, and the same key.

The rule of times in `plan.stages` is associative and commutative, so trees of inner joins give the same rows. What
results are looked up by follows from the last join, and that would be another one: it is taken from the order in which
the query is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from streamjoin.plan.join import JoinPlan, ResultKey
from streamjoin.plan.kinds import JoinKind, Tree
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.parted import in_order, streams_first
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Cascade, Flow, Plan, Stage
from streamjoin.plan.tree import cascade
from streamjoin.plan.window import CountWindow


def is_free(tree: Tree) -> bool:
    """Whether every join of a tree is an inner one, so that all of them can be done in any order."""
    if isinstance(tree, int):
        return True
    own = tree.kind is JoinKind.INNER and tree.asof is None
    return own and is_free(tree.left) and is_free(tree.right)


def reordered(plan: Plan, tree: Tree) -> Plan:
    """The same query as another tree of joins; all joins of `plan` have to be inner ones."""
    assert isinstance(plan, Cascade) and plan.tree is not None and is_free(plan.tree)
    found = _built(plan, tree, None)
    return keyed(found) if plan.answering.keyed else found


def keyed(plan: Plan) -> Plan:
    """One query with results that leave with their time and key: that of the order in which it is written."""
    if isinstance(plan, JoinPlan):
        return replace(plan, keyed=True)
    assert isinstance(plan, Cascade)
    if plan.groups is None and plan.tree is not None and is_free(plan.tree):
        written = _written(plan)
        if plan.tree != written:
            plan = _built(plan, plan.tree, _built(plan, written, None).key)
    return plan.keyed()


def ordered(plan: Plan, ordering: Ordering) -> Plan:
    """A join of two streams whose results leave in this order; those of any other plan have none."""
    assert isinstance(plan, JoinPlan)
    return replace(plan, ordering=ordering)


def written_key(plan: Plan) -> ResultKey | None:
    """What results are looked up by, whatever is joined first; in the names of the query."""
    if isinstance(plan, JoinPlan):
        return ResultKey(plan.result_key, plan.has_equal_keys, plan.key_name)
    assert isinstance(plan, Cascade)
    return _built(plan, _written(plan), None).key


def _inputs(plan: Cascade) -> list[StreamSchema]:
    """Streams and relations in the order of FROM."""
    read = dict(zip((*plan.names, *plan.relation_names), (*plan.streams, *plan.relations), strict=True))
    return [read[name] for name in plan.inputs]


def _written(plan: Cascade) -> Tree:
    inputs = _inputs(plan)
    return streams_first(in_order(inputs, plan.inputs, plan.where), inputs)


def _built(plan: Cascade, tree: Tree, key: ResultKey | None) -> Cascade:
    """The tree of joins, and the groups of `plan` behind it."""
    common = partial(
        JoinPlan, index=plan.index, archive_period_us=plan.archive_period_us, predicates=plan.predicates,
        text=plan.text,
    )  # fmt: skip
    assert not isinstance(plan.window, CountWindow)  # which is of two streams
    found = cascade(_inputs(plan), plan.inputs, plan.where, plan.select, plan.window, common, plan.text, tree, key)
    return found if plan.groups is None else replace(found, stages=_grouped(found.stages, plan))


def _grouped(stages: Sequence[Stage], plan: Cascade) -> tuple[Stage, ...]:
    last, groups = stages[-1], plan.groups
    assert isinstance(last.plan, JoinPlan) and groups is not None
    flow = replace(groups.streams[0], columns=last.plan.output)
    stage = Stage(len(stages), (Flow(last.number),), replace(groups, streams=(flow,)))
    return (*stages[:-1], replace(last, plan=replace(last.plan, feeds=True)), stage)
