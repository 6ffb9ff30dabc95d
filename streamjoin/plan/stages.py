"""Joins of three streams and more, as a tree of stages: what a stage finds flows into the next one like a stream.

A tuple of a flow carries two times: that of its newest part, `hi`, which is its event time, and `until`, the least over
its parts of (event time + reach of the part's stream). Two tuples p and q meet iff

    max(p.hi, q.hi) <= min(p.until, q.until)

and what they make has hi = max(p.hi, q.hi) and until = min(p.until, q.until). For tuples of streams both follow from
the event time. The rule is associative and commutative, so every tree of the same streams gives the same rows.

Units know nothing of this. A stage is a binary join with a time window that is wide enough, and with `until` as a
column that its condition reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.bundle import Bundle, ending, together
from streamjoin.plan.cascade import STREAMS_MAX, UNTIL, Cascade, Query, Stage, StagePlan
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.plan import Part, Plan
from streamjoin.plan.stage import Flow, Input, Table
from streamjoin.plan.window import S

__all__ = [
    "STREAMS_MAX", "UNTIL", "Bundle", "Cascade", "Flow", "Input", "Part", "Plan", "Query", "Stage", "StagePlan",
    "Table", "answered_by", "answering", "asof_stages", "decided_stages", "ending", "entries_of", "entry_of",
    "is_divided", "joins_as_of_only", "joins_nothing", "joins_relation", "joins_relations_only", "parts_at",
    "running", "together",
]  # fmt: skip


def is_divided(plan: Plan) -> bool:
    """Whether its queries have stages of their own, so that one is looked at after the other."""
    return plan.parts[0].plan is not plan


def running(plan: Plan) -> Iterator[Stage]:
    """The stages that are of some query, in their order; the others rest."""
    return (stage for stage in plan.stages if stage.number not in plan.resting)


def parts_at(plan: Plan, stage: int) -> tuple[Part, ...]:
    """The parts that a stage is of."""
    return tuple(part for part in plan.parts if stage in part.numbers)


def answered_by(plan: Plan, stage: int) -> tuple[int, ...]:
    """The numbers of the queries that a stage answers; none where other stages take what it finds."""
    part = next((part for part in plan.parts if part.numbers[-1] == stage), None)
    return () if part is None else tuple(range(part.first_query, part.first_query + len(part.names)))


def answering(plan: Plan, query: int) -> tuple[int, tuple[int, ...]]:
    """The stage that answers a query, by its number, and the streams that it reads, by theirs."""
    part = next(part for part in reversed(plan.parts) if part.first_query <= query)
    return part.numbers[-1], part.streams


def joins_relation(stage: Stage) -> bool:
    """Whether a stage joins a relation."""
    return isinstance(stage.plan, JoinPlan) and stage.plan.streams[S].is_relation


def joins_relations_only(plan: Plan) -> bool:
    """Whether every stage joins a relation, so that no operator of streams has anything to do."""
    joins = [stage for stage in plan.stages if not isinstance(stage.plan, AggregatePlan)]
    return bool(joins) and all(map(joins_relation, joins))


def joins_as_of_only(plan: Plan) -> bool:
    """Whether streams are joined, and all of them as of each other."""
    joins = [stage for stage in plan.stages if not isinstance(stage.plan, AggregatePlan)]
    of_streams = [stage for stage in joins if not joins_relation(stage)]
    return bool(of_streams) and all(stage.asof is not None for stage in of_streams)


def joins_nothing(plan: Plan) -> bool:
    """Whether no stage joins anything, as of groups of one stream."""
    return all(isinstance(stage.plan, AggregatePlan) for stage in plan.stages)


def asof_stages(plan: Plan) -> tuple[Stage, ...]:
    """The stages of a plan that are as-of joins."""
    return tuple(stage for stage in plan.stages if stage.asof is not None)


def decided_stages(plan: Plan) -> int:
    """How many stages say of rows whether they were matched."""
    stages = [stage for stage in plan.stages if stage.table is None]  # a row that is looked up is decided at once
    return sum(bool(query.kind.decided) for stage in stages for query in stage.plan.queries)


def entries_of(plan: Plan, read: int | Flow) -> tuple[tuple[Stage, int], ...]:
    """Where a stream, by its number, or what a stage finds, enters: each stage and side; one but in a bundle.

    None where all that read it have ended.
    """
    return tuple(
        (stage, side)
        for stage in running(plan)
        for side, found in enumerate(stage.inputs)
        if type(found) is type(read) and found == read
    )


def entry_of(plan: Plan, read: Input) -> tuple[Stage, int]:
    """Where a stream, or the output of a stage, enters first: the stage, and its side there.

    A stage that rests is named only if no other reads it.
    """
    for stage in sorted(plan.stages, key=lambda stage: stage.number in plan.resting):
        if (side := stage.side_of(read)) is not None:
            return stage, side
    raise ValueError(f"nothing reads {read}")
