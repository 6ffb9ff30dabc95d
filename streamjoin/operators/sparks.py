"""Spark's own joins, as the registry has them: what others are compared with. They have no units of ours."""

from __future__ import annotations

from collections.abc import Callable

from streamjoin.operators.kind import Joins, OperatorKind
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.stages import Plan, asof_stages, joins_relation, joins_relations_only
from streamjoin.plan.window import CountWindow, S
from streamjoin.settings.setting import Settings

SPARK = "spark"
BROADCAST, SHUFFLED = "spark-broadcast", "spark-shuffled"
_NO_PREDICATES = "Spark does not know the registered predicates"


def _streams_refused(plan: Plan) -> str | None:
    if plan.groups:
        return "Spark's stream-stream join is of pairs here, without groups"
    if plan.pair is None:
        others = f"; a relation is joined by {BROADCAST} and {SHUFFLED}" if joins_relations_only(plan) else ""
        return f"Spark's stream-stream join is of two streams here, and of no relation{others}"
    if plan.queries[0].kind is JoinKind.ANTI:
        return "Spark's stream-stream join has no LEFT ANTI JOIN"
    if asof_stages(plan):
        return "Spark has no as-of join of streams"
    if len(plan.queries) > 1:
        return "Spark's stream-stream join runs one query a job"
    if not plan.predicate.equalities:
        return "Spark's stream-stream join needs an equality between the two streams"
    if isinstance(plan.window, CountWindow):
        return "Spark has no windows of n rows"
    if plan.predicates:
        return _NO_PREDICATES
    if plan.ordering is not Ordering.NONE:
        return "Spark's stream-stream join gives its results in no order"
    return None


def _relation_refused(name: str, *, needs_equality: bool) -> Callable[[Plan], str | None]:
    """Why Spark cannot join a plan's stream with its relation."""

    def refuses(plan: Plan) -> str | None:
        stages = plan.stages
        if not any(map(joins_relation, stages)):
            return f"{name} joins a stream with a relation, and this query reads none"
        if plan.groups:
            return f"{name} gives pairs here, without groups"
        join = stages[0].plan
        if len(stages) > 1 or not isinstance(join, JoinPlan):
            return f"{name} joins one stream with one relation here, and this query reads more"
        if join.streams[S].has_version:
            return f"Spark's tables have no versions; leave VERSION({join.names[S]}) out"
        if join.predicates:
            return _NO_PREDICATES
        if needs_equality and not join.predicate.equalities:
            return f"Spark shuffles rows by equal keys, and this condition has no equality; {BROADCAST} needs none"
        return None

    return refuses


SPARKS_OWN = OperatorKind(SPARK, "Spark's own stream-stream join", Settings, None, _streams_refused)
SPARK_BROADCAST = OperatorKind(
    BROADCAST, "Spark's own stream-static join, with the relation broadcast", Settings, None,
    _relation_refused(BROADCAST, needs_equality=False), joins=Joins.RELATION, hint="broadcast",
)  # fmt: skip
SPARK_SHUFFLED = OperatorKind(
    SHUFFLED, "Spark's own stream-static join, with both sides shuffled and merged", Settings, None,
    _relation_refused(SHUFFLED, needs_equality=True), joins=Joins.RELATION, hint="merge",
)  # fmt: skip
