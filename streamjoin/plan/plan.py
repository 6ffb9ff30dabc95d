"""The plan of a job, whatever it was made from: the one type that all who run, explain or keep a job look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.cascade import Query, Stage
from streamjoin.plan.expression import Expression
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import Tree
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.predicate import JoinPredicate
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.sharing import Pairs, SharedJoin
from streamjoin.plan.stage import PartOf
from streamjoin.plan.window import Reaches, Window


class Plan(Protocol):
    """What a job runs: what it reads, its stages, and the queries that the last of these answer.

    One query is a list of one. There are several ways to make a plan, and nobody who has one need know which it was:
    a join of two streams (`JoinPlan`), of one that several queries share (`SharedJoin`), a query of stages
    (`Cascade`), queries with stages of their own (`Bundle`).
    """

    @property
    def streams(self) -> tuple[StreamSchema, ...]:
        """The streams that are read; other places know them by their numbers here."""

    @property
    def names(self) -> tuple[str, ...]:
        """What people call the streams."""

    @property
    def relations(self) -> tuple[StreamSchema, ...]:
        """The relations that are read, likewise."""

    @property
    def relation_names(self) -> tuple[str, ...]:
        """What people call the relations."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """In the order in which data reaches them; two streams are one stage."""

    @property
    def floors(self) -> tuple[tuple[Stage, ...], ...]:
        """The stages that run side by side, floor by floor: what one finds goes to a later floor."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Which stages answer which queries."""

    @property
    def all_parts(self) -> tuple[Part, ...]:
        """The same with parts whose queries have ended; these keep the numbers of their stages."""

    @property
    def every_name(self) -> tuple[str, ...]:
        """The names of all queries that it has or had, in the order in which their stages are numbered."""

    @property
    def resting(self) -> frozenset[int]:
        """The stages that are of no query any more, by their numbers: nothing is sent to them."""

    def since_of(self, name: str) -> int:
        """Which start a query with stages of its own began with; 0 for the job's first one."""

    @property
    def begun(self) -> Plan:
        """That of the job's first start, with the same numbers of streams and stages."""

    @property
    def queries(self) -> tuple[Query, ...]:
        """What leaves the stages that answer queries."""

    @property
    def names_of_queries(self) -> tuple[str, ...]:
        """What people call the queries; one without a name is the only one."""

    @property
    def pair(self) -> Pairs | None:
        """The join of two streams that is all there is, and was so before there were stages; None of any other plan."""

    @property
    def shared(self) -> SharedJoin | None:
        """The same of several queries, which may come and go; None where they stay."""

    @property
    def last_join(self) -> JoinPlan | None:
        """The last join of the only query; None where it joins nothing, or where there are several queries."""

    @property
    def select(self) -> tuple[tuple[str, Expression], ...]:
        """The output columns of the only query, (name, expression), by its names; of groups, what they are made of."""

    @property
    def where(self) -> tuple[Expression, ...]:
        """What every result of the only query must fulfil, by its names, where `tree` says what is joined."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the only query calls all that it reads, in the order of FROM, by which `tree` numbers it."""

    @property
    def tree(self) -> Tree | None:
        """How the only query joins what it reads; None where there is one way, or where there are several queries."""

    @property
    def rounds(self) -> RoundPlan | None:
        """The first round, where the only query joins all streams at once."""

    @property
    def groups(self) -> AggregatePlan | None:
        """What the only query makes groups by, if it does."""

    @property
    def text(self) -> str:
        """The queries as written."""

    @property
    def shape(self) -> str:
        """What each part joins with what."""

    @property
    def predicate(self) -> JoinPredicate:
        """What all queries ask for alike, of the last join of theirs."""

    @property
    def predicates(self) -> Mapping[str, Callable[..., Any]]:
        """The registered predicates that any query calls."""

    @property
    def window(self) -> Window | Reaches:
        """The longest window, or that of the first query where each part has its own."""

    @property
    def index(self) -> str:
        """The index that was set for all, or auto."""

    @property
    def archive_period_us(self) -> int | None:
        """What was set for all."""

    @property
    def main(self) -> str | None:
        """The main conjunct that was set."""

    @property
    def ordering(self) -> Ordering:
        """What is promised of the order of results."""

    @property
    def gathered(self) -> bool:
        """See `JoinPlan`."""


Part = PartOf[Plan]
"""Stages of a plan, and the queries that the last of them answers."""
