"""Queries of any kind in one job: they share what comes in, and each has its own stages behind it.

Every stream is read, decoded and stamped once, whatever queries read it, and each stage takes of it what its query
selects. Queries of pairs over the same two streams share their stored tuples beside that, as a `SharedJoin` does; they
are one part of the bundle. Parts share a stage that several of them feed on, if its joins, conditions and reaches are
the same in all. Nothing else is shared: what a stage stores, its marks and its matched rows are its query's.

A part whose queries have ended keeps the numbers of its stages, by which the others' state is found. A stage that none
but such parts have rests: nothing is sent to it, and nothing is stored for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from streamjoin.errors import InputError
from streamjoin.plan.cascade import Query, Stage
from streamjoin.plan.expression import TRUE, Expression
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.plan import Part, Plan
from streamjoin.plan.predicate import JoinPredicate
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.sharing import QUERIES_MAX, Lasting, SharedJoin
from streamjoin.plan.stage import Flow, Input, ManyStages, PartOf, Table, Unsaid
from streamjoin.plan.window import Reaches, Window


@dataclass(frozen=True)
class Bundle(ManyStages, Unsaid):
    """Queries of any kind in one job: each stream is read once for all of them, and each part has its own stages.

    Args:
        plans: the names of all queries that a part has had, and the plan of those that are left, or of all where none
            is; queries are numbered in this order.
        ended: the names of queries that have ended.
        since: queries that started while the job went on, each with the number of that start, from 1. They share
            stages with queries of the same start alone: what others store may have fewer columns.
    Raises:
        InputError: they cannot share one job; `field` is the query that does not fit.
    """

    plans: tuple[tuple[tuple[str, ...], Plan], ...]
    ended: frozenset[str] = frozenset()
    since: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if len(self.names_of_queries) > QUERIES_MAX:
            raise InputError(f"{len(self.names_of_queries)} queries are too many for one job; {QUERIES_MAX} at most",
                             field="queries")  # fmt: skip
        for names, plan in reversed(self.plans):  # of two it is the later one that does not fit
            mine = {stream.name for stream in plan.streams}
            others = [other for known, other in self.plans if known != names]
            # Several queries of one part share what they read with each other.
            if (
                others
                and len(names) == 1
                and not any(stream.name in mine for other in others for stream in other.streams)
            ):
                raise InputError(
                    f"this reads {' and '.join(sorted(mine))}, which no other query of the job reads, so there is "
                    "nothing to share; run it as a job of its own, with query:",
                    field=f"queries.{names[0]}.query",
                )

    @cached_property
    def _laid_out(self) -> tuple[tuple[Part, ...], tuple[Stage, ...]]:
        streams, relations = ([one.name for one in found] for found in (self.streams, self.relations))
        parts: list[Part] = []
        stages: list[Stage] = []
        likes: list[tuple[int, frozenset[int]]] = []
        first_query = 0
        for names, plan in self.plans:
            mine = tuple(streams.index(stream.name) for stream in plan.streams)
            tables = tuple(relations.index(one.name) for one in plan.relations)
            numbers: list[int] = []
            for stage in plan.stages:
                placed = replace(
                    stage,
                    number=len(stages),
                    inputs=tuple(_read(read, mine, tables, numbers) for read in stage.inputs),
                    keeps=None if stage.keeps is None else numbers[stage.keeps],
                )
                like = self.since_of(names[0]), _heard(plan, mine, placed)
                for number, there in enumerate(stages):
                    if likes[number] == like and (both := _both(there, placed)) is not None:
                        stages[number] = both
                        numbers.append(number)
                        break
                else:
                    numbers.append(placed.number)
                    stages.append(placed)
                    likes.append(like)
            left = tuple(name for name in names if name not in self.ended) or names
            parts.append(PartOf(left, plan, mine, tuple(numbers), first_query))
            first_query += 0 if self.ended.issuperset(names) else len(left)
        return tuple(parts), tuple(stages)

    def since_of(self, name: str) -> int:
        """Which start a query began with; 0 for the job's first one."""
        return dict(self.since).get(name, 0)

    @cached_property
    def begun(self) -> Bundle:
        """That of the job's first start, of the same streams."""
        return Bundle(tuple((names, plan) for names, plan in self.plans if not self.since_of(names[0])))

    @property
    def every_name(self) -> tuple[str, ...]:
        """Those of its queries, and of those that have ended."""
        return tuple(name for names, _ in self.plans for name in names)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Its plans with their places, without those that have ended."""
        return tuple(part for part in self.all_parts if not self.ended.issuperset(part.names))

    @property
    def all_parts(self) -> tuple[Part, ...]:
        """Its plans with their places."""
        return self._laid_out[0]

    @cached_property
    def resting(self) -> frozenset[int]:
        """The stages that are of no query any more."""
        running = {number for part in self.parts for number in part.numbers}
        return frozenset(stage.number for stage in self.stages if stage.number not in running)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Of all parts; what several of them ask for alike is one stage."""
        return self._laid_out[1]

    @cached_property
    def streams(self) -> tuple[StreamSchema, ...]:
        """All that are read, each once."""
        return tuple({stream.name: stream for _, plan in self.plans for stream in plan.streams}.values())

    @cached_property
    def relations(self) -> tuple[StreamSchema, ...]:
        """All that are read, each once."""
        return tuple({one.name: one for _, plan in self.plans for one in plan.relations}.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Streams are called as they are registered: each query has names of its own for them."""
        return tuple(stream.name for stream in self.streams)

    @property
    def relation_names(self) -> tuple[str, ...]:
        """Relations likewise."""
        return tuple(one.name for one in self.relations)

    @property
    def names_of_queries(self) -> tuple[str, ...]:
        """What people call the queries."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def queries(self) -> tuple[Query, ...]:
        """What leaves the stages that answer queries."""
        return tuple(query for part in self.parts for query in part.plan.queries)

    @property
    def shape(self) -> str:
        """What each part joins with what."""
        return "; ".join(plan.shape for _, plan in self.plans)

    @cached_property
    def floors(self) -> tuple[tuple[Stage, ...], ...]:
        """The stages that run side by side, floor by floor: what one finds goes to a later floor."""
        floors: list[list[Stage]] = []
        at: dict[int, int] = {}
        for stage in self.stages:
            if stage.number in self.resting:
                continue
            at[stage.number] = max((at[before] + 1 for before in stage.fed_by), default=0)
            floors += [[] for _ in range(at[stage.number] + 1 - len(floors))]
            floors[at[stage.number]].append(stage)
        return tuple(map(tuple, floors))

    @property
    def select(self) -> tuple[tuple[str, Expression], ...]:
        """Each query has its own."""
        return ()

    @property
    def text(self) -> str:
        """All queries, as written."""
        return "; ".join(part.plan.text for part in self.parts)

    @property
    def predicates(self) -> Mapping[str, Callable[..., Any]]:
        """The registered predicates that any query calls."""
        return {name: function for _, plan in self.plans for name, function in plan.predicates.items()}

    @property
    def predicate(self) -> JoinPredicate:
        """Nothing is asked of all alike."""
        return JoinPredicate((TRUE, TRUE), (), (), ())

    @property
    def window(self) -> Window | Reaches:
        """That of the first query; each part has its own."""
        return self.plans[0][1].window

    @property
    def index(self) -> str:
        """What was set for all."""
        return self.plans[0][1].index

    @property
    def archive_period_us(self) -> int | None:
        """What was set for all."""
        return self.plans[0][1].archive_period_us


def ending(plan: Plan, names: Collection[str]) -> Plan:
    """The same plan of queries with stages of their own, where these have ended as well."""
    assert isinstance(plan, Bundle)
    return replace(plan, ended=frozenset(names) | plan.ended)


def together(
    queries: Mapping[str, Plan], lasting: Lasting | None = None, started: frozenset[str] = frozenset()
) -> Plan:
    """The plan of queries that share the stored tuples of two streams, by their names; each is one of pairs.

    Args:
        lasting, started: of a job that has run before.
    Raises:
        InputError: they cannot share one job; `field` is the query that does not fit.
    """
    joins = tuple(join for plan in queries.values() if plan.pair is not None for join in plan.pair.queries)
    return SharedJoin(tuple(queries), joins, lasting, started)


def _read(read: Input, streams: Sequence[int], relations: Sequence[int], numbers: Sequence[int]) -> Input:
    """What a part's stage reads, by the bundle's numbers."""
    match read:
        case Flow(stage):
            return Flow(numbers[stage])
        case Table(number):
            return Table(relations[number])
        case number:
            return streams[number]


def _heard(plan: Plan, streams: Sequence[int], stage: Stage) -> frozenset[int]:
    """The streams of a part whose silence a stage must know of though it does not read them; see `plan.hearing`."""
    if all(stream.idle_us is None for stream in plan.streams):
        return frozenset()
    return frozenset(streams) - {read for read in stage.inputs if isinstance(read, int)}


def _both(one: Stage, other: Stage) -> Stage | None:
    """A stage that feeds what both feed, with the columns of both; None unless they find the same.

    That is so with equal joins, conditions and reaches. These are in what a stage selects, too, as `UNTIL`: what is
    found within 10 seconds gives a query of 5 false rows even if it is looked at again pair by pair.
    """
    plan, more = one.plan, other.plan
    if not isinstance(plan, JoinPlan) or not isinstance(more, JoinPlan) or one.inputs != other.inputs:
        return None
    if not (plan.feeds and more.feeds) or plan.kind is not JoinKind.INNER or one.table is not None:
        return None
    if replace(plan, select=(), text="") != replace(more, select=(), text=""):
        return None
    select = dict(plan.select)
    if any(select.setdefault(name, expression) != expression for name, expression in more.select):
        return None
    return replace(one, plan=replace(plan, select=tuple(select.items())))
