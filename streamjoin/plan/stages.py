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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.asof import AsOf
from streamjoin.plan.expression import Expression
from streamjoin.plan.join import JoinPlan, ResultKey
from streamjoin.plan.kinds import Tree
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.predicate import JoinPredicate
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.sharing import Plan
from streamjoin.plan.window import R, Reaches, S, TimeWindow, Window

STREAMS_MAX = 9
UNTIL = "until"
"""Column of a flow: up to when its tuples meet others, in us. No other column of a flow has a name without a dot."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The output of a stage, as an input of another one."""

    stage: int


@dataclass(frozen=True, slots=True)
class Table:
    """A relation as an input of a stage, where it is S; by its number among the query's relations."""

    number: int


Input = int | Flow | Table
"""What a stage reads on one side: a stream, by its number among the query's, a flow, or a relation."""

Query = JoinPlan | AggregatePlan | RoundPlan
"""What answers a query."""

StagePlan = Plan | AggregatePlan | RoundPlan
"""What one stage does."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One join of a plan, a round of a join of many streams, or what makes groups of its input.

    Args:
        number: stages are numbered in the order in which data reaches them.
        inputs: what R and S are; of groups the only input, of a first round all streams, and of the others what the
            round before found.
        plan: the join of the two, the round, or the groups.
        conditions: what it checks, in the names of the query; a round, for some of its origins.
        keeps: the stage that keeps the tuples which this one looks at; None where it keeps its own.
    """

    number: int
    inputs: tuple[Input, ...]
    plan: StagePlan
    conditions: tuple[Expression, ...] = ()
    keeps: int | None = None

    @property
    def fed_by(self) -> tuple[int, ...]:
        """The stages whose output it joins further."""
        return tuple(read.stage for read in self.inputs if isinstance(read, Flow))

    @property
    def table(self) -> int | None:
        """The relation that it joins a stream or a flow with, by its number; None where it joins two of these."""
        read = self.inputs[-1]
        return read.number if isinstance(read, Table) else None

    @property
    def asof(self) -> AsOf | None:
        """What it is, if it is an as-of join."""
        return self.plan.asof if isinstance(self.plan, JoinPlan) else None

    @property
    def keeper(self) -> int:
        """The stage that keeps the tuples which it looks at."""
        return self.number if self.keeps is None else self.keeps

    def side_of(self, read: Input) -> int | None:
        """The side on which an input enters; None where it does not."""
        return self.inputs.index(read) if read in self.inputs else None


@dataclass(frozen=True)
class Cascade:
    """A query over three streams and more, over streams and relations, or with groups, as stages.

    Args:
        streams, names: the streams that are read, in the order of FROM, and what the query calls them.
        relations: the relations that are read, likewise; `relation_names` is what the query calls them.
        stages: in the order in which data reaches them; the last one answers the query.
        window: WITHIN; where nothing is joined, the windows of the groups.
        select: output columns, (name, expression), in the names of the query; of groups, what they are made of.
        tree: what is joined with what, and how; None where nothing is joined.
        where: what every result must fulfil, in the names of the query.
        inputs: what the query calls all that it reads, in the order of FROM, by which `tree` numbers it.
        as_tree: where all streams are joined at once, the same query as joins of two.
        key: what results are looked up by, in the names of the query.
    """

    streams: tuple[StreamSchema, ...]
    names: tuple[str, ...]
    stages: tuple[Stage, ...]
    window: Window | Reaches
    text: str = ""
    select: tuple[tuple[str, Expression], ...] = ()
    tree: Tree | None = None
    where: tuple[Expression, ...] = ()
    relations: tuple[StreamSchema, ...] = ()
    relation_names: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    as_tree: JoinPlan | Cascade | None = None
    key: ResultKey | None = None

    @cached_property
    def answering(self) -> Query:
        """What the last stage does."""
        plan = self.stages[-1].plan
        assert isinstance(plan, Query)
        return plan

    @cached_property
    def last_join(self) -> JoinPlan | None:
        """The join of the last stage that joins; None where nothing is joined."""
        for stage in reversed(self.stages):
            join = stage.plan.answer if isinstance(stage.plan, RoundPlan) else stage.plan
            if isinstance(join, JoinPlan):
                return join
        return None

    @property
    def rounds(self) -> RoundPlan | None:
        """The first round, where all streams are joined at once."""
        first = self.stages[0].plan
        return first if isinstance(first, RoundPlan) else None

    @property
    def groups(self) -> AggregatePlan | None:
        """What the last stage makes groups by, if it does."""
        return self.answering if isinstance(self.answering, AggregatePlan) else None

    @property
    def queries(self) -> tuple[Query, ...]:
        """What leaves the last stage, as the plan of one query."""
        return (self.answering,)

    @property
    def shape(self) -> str:
        """What is joined with what, in the names of the query, such as `((a, b), c)`."""
        shown: dict[Input, str] = {
            **dict(enumerate(self.names)),
            **{Table(number): name for number, name in enumerate(self.relation_names)},
        }
        for stage in self.stages:
            parts = [shown[read] for read in stage.inputs]
            shown[Flow(stage.number)] = f"({', '.join(parts)})" if len(parts) > 1 else parts[0]
        return shown[Flow(self.stages[-1].number)]

    def between(self, one: int, other: int) -> TimeWindow | None:
        """How near rows of two streams, by their numbers, must be in time; None for full history."""
        match self.window:
            case Reaches() as reaches:
                return reaches.between(one, other)
            case TimeWindow() as window:
                return window
            case _:
                return None

    @property
    def predicate(self) -> JoinPredicate:
        """The condition of the last join, or what is selected where nothing is joined."""
        return (self.last_join or self.answering).predicate

    @property
    def predicates(self) -> Mapping[str, Callable[..., Any]]:
        """The registered predicates that the query calls."""
        return {name: function for stage in self.stages for name, function in stage.plan.predicates.items()}

    @property
    def index(self) -> str:
        """The index that all stages are to use, or auto."""
        return self._as_set.index

    @property
    def archive_period_us(self) -> int | None:
        """What was set for all stages."""
        return self._as_set.archive_period_us

    @property
    def _as_set(self) -> Query:
        """A stage that has what was set for all of them, which an as-of join needs nothing of."""
        joins = [stage.plan for stage in self.stages if isinstance(stage.plan, JoinPlan) and stage.asof is None]
        return joins[-1] if joins else self.last_join or self.answering

    @property
    def main(self) -> str | None:
        """Each stage has its own best one."""
        return None

    @property
    def ordering(self) -> Ordering:
        """Results of several stages leave as they are found."""
        return Ordering.NONE

    @property
    def gathered(self) -> bool:
        """See `JoinPlan`."""
        return False

    def keyed(self) -> Cascade:
        """The same, with results that leave with their time and key."""
        last = self.stages[-1]
        assert not isinstance(self.answering, RoundPlan)  # made of a plan whose results have their keys already
        return replace(self, stages=(*self.stages[:-1], replace(last, plan=replace(self.answering, keyed=True))))


AnyPlan = Plan | Cascade
"""What a job runs."""


def stages_of(plan: AnyPlan) -> tuple[Stage, ...]:
    """The stages of any plan; two streams are one stage."""
    return plan.stages if isinstance(plan, Cascade) else (Stage(0, (R, S), plan),)


def joins_relation(stage: Stage) -> bool:
    """Whether a stage joins a relation."""
    return isinstance(stage.plan, JoinPlan) and stage.plan.streams[S].is_relation


def joins_relations_only(plan: AnyPlan) -> bool:
    """Whether every stage joins a relation, so that no operator of streams has anything to do."""
    joins = [stage for stage in stages_of(plan) if not isinstance(stage.plan, AggregatePlan)]
    return bool(joins) and all(map(joins_relation, joins))


def joins_as_of_only(plan: AnyPlan) -> bool:
    """Whether streams are joined, and all of them as of each other."""
    joins = [stage for stage in stages_of(plan) if not isinstance(stage.plan, AggregatePlan)]
    of_streams = [stage for stage in joins if not joins_relation(stage)]
    return bool(of_streams) and all(stage.asof is not None for stage in of_streams)


def asof_stages(plan: AnyPlan) -> tuple[Stage, ...]:
    """The stages of a plan that are as-of joins."""
    return tuple(stage for stage in stages_of(plan) if stage.asof is not None)


def decided_stages(plan: AnyPlan) -> int:
    """How many stages say of rows whether they were matched."""
    stages = [stage for stage in stages_of(plan) if stage.table is None]  # a row that is looked up is decided at once
    return sum(bool(query.kind.decided) for stage in stages for query in stage.plan.queries)


def entry_of(plan: AnyPlan, read: Input) -> tuple[Stage, int]:
    """Where a stream, or the output of a stage, enters: the stage, and its side there."""
    for stage in stages_of(plan):
        if (side := stage.side_of(read)) is not None:
            return stage, side
    raise ValueError(f"nothing reads {read}")
