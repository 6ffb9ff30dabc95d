"""What must not change while a checkpoint is used, so that what is stored stays what the job would have stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamjoin.plan.join import JoinPlan
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.stages import AnyPlan, Cascade, stages_of
from streamjoin.plan.window import S
from streamjoin.spec.job import RELATION_COLUMNS, Job
from streamjoin.spec.relations import columns_read
from streamjoin.state.manifest import FORMAT


def identity(job: Job) -> dict[str, Any]:
    """What must not change while a checkpoint is used.

    Slots may, units of an operator that resizes, and queries where the job says what becomes of them.
    """
    plan = job.plan
    joins = [stage.plan for stage in stages_of(plan) if isinstance(stage.plan, JoinPlan)]
    ending = {join.names[S] for join in joins if join.asof is not None and join.asof.values}
    return {
        **({"tree": plan.shape} if isinstance(plan, Cascade) else {}),
        **({"relations": _relations(plan), RELATION_COLUMNS: _relation_columns(job)} if job.relations else {}),
        "format": FORMAT,
        "streams": {
            name: {
                "columns": str(stream.columns),
                "time": stream.time,
                "delay_us": stream.delay_us,
                **({"key": list(stream.key)} if name in ending else {}),
            }
            for name, stream in zip(plan.names, plan.streams, strict=True)
        },
        "index": plan.index,
        "archive_period_us": plan.archive_period_us,
        "main predicate": plan.main,
        "operator": " | ".join(operator.lasting for operator in job.operators),
        # What the order is may change; stored tuples have their sequence numbers or have them not.
        "ordered results": plan.ordering is not Ordering.NONE,
    }


def _relations(plan: AnyPlan) -> dict[str, str]:
    """By the names of the query, which relations are joined; a later version may have other columns beside these."""
    assert isinstance(plan, Cascade)
    return dict(zip(plan.relation_names, (relation.name for relation in plan.relations), strict=True))


def _relation_columns(job: Job) -> dict[str, dict[str, str]]:
    """The types of what is read of each relation, by which rows are compared and stored."""
    return {name: {one.name: str(one.type) for one in columns_read(job, name)} for name in job.relations}


def retyped(was: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> str | None:
    """What a column of a relation was and is now, for people; None where none has changed."""
    for relation, columns in now.items():
        for name, kind in columns.items():
            if (before := was.get(relation, {}).get(name, kind)) != kind:
                return f'column "{name}" of relation {relation} was {before} and is {kind} now'
    return None
