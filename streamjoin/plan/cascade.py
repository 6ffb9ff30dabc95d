"""The stages of one query, and what they read: the words of `plan.stages`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.expression import Expression
from streamjoin.plan.join import JoinPlan, ResultKey
from streamjoin.plan.kinds import Tree
from streamjoin.plan.predicate import JoinPredicate
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stage import ManyStages, PartOf, StageOf, Throughout, shape
from streamjoin.plan.window import Reaches, Window

STREAMS_MAX = 9
UNTIL = "until"
"""Column of a flow: up to when its tuples meet others, in us. No other column of a flow has a name without a dot."""


Query = JoinPlan | AggregatePlan | RoundPlan
"""What answers a query."""

StagePlan = Pairs | AggregatePlan | RoundPlan
"""What one stage does."""

Stage = StageOf[StagePlan]
"""A stage of a plan."""


@dataclass(frozen=True)
class Cascade(ManyStages, Throughout):
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
    def names_of_queries(self) -> tuple[str, ...]:
        """One query alone needs no name."""
        return ("",)

    @property
    def parts(self) -> tuple[PartOf[Cascade], ...]:
        """It alone."""
        return (PartOf(("",), self, tuple(range(len(self.streams))), tuple(range(len(self.stages)))),)

    @property
    def floors(self) -> tuple[tuple[Stage, ...], ...]:
        """One stage after the other."""
        return tuple((stage,) for stage in self.stages)

    @property
    def queries(self) -> tuple[Query, ...]:
        """What leaves the last stage, as the plan of one query."""
        return (self.answering,)

    @property
    def shape(self) -> str:
        """What is joined with what, in the names of the query, such as `((a, b), c)`."""
        return shape(self.names, self.relation_names, self.stages)

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

    def keyed(self) -> Cascade:
        """The same, with results that leave with their time and key."""
        last = self.stages[-1]
        assert not isinstance(self.answering, RoundPlan)  # made of a plan whose results have their keys already
        return replace(self, stages=(*self.stages[:-1], replace(last, plan=replace(self.answering, keyed=True))))
