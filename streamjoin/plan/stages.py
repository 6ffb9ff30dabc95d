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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from streamjoin.flow.block import TS
from streamjoin.plan.coercion import call
from streamjoin.plan.expression import Call, Column, Expression, Literal, columns_of, conjunction, streams_of
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.predicate import JoinPredicate, analyse
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.plan.sharing import Plan
from streamjoin.plan.types import BOOL, INT64
from streamjoin.plan.window import FullHistory, R, S, TimeWindow

STREAMS_MAX = 9
UNTIL = "until"
"""Column of a flow: up to when its tuples meet others, in us. No other column of a flow has a name without a dot."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The output of a stage, as an input of another one."""

    stage: int


Tree = int | tuple["Tree", "Tree"]
"""What is joined with what: a stream, by its number among the query's, or two trees."""

Input = int | Flow
"""What a stage reads on one side: a stream, by its number among the query's, or a flow."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One join of a plan.

    Args:
        number: stages are numbered in the order in which data reaches them.
        inputs: what R and S are.
        plan: the join of the two.
        conditions: what it checks, in the names of the query.
    """

    number: int
    inputs: tuple[Input, Input]
    plan: Plan
    conditions: tuple[Expression, ...] = ()

    @property
    def fed_by(self) -> tuple[int, ...]:
        """The stages whose output it joins further."""
        return tuple(read.stage for read in self.inputs if isinstance(read, Flow))

    def side_of(self, read: Input) -> int | None:
        """The side on which an input enters; None where it does not."""
        return self.inputs.index(read) if read in self.inputs else None


@dataclass(frozen=True)
class Cascade:
    """A query over three streams and more, as stages.

    Args:
        streams, names: what is read, in the order of FROM, and what the query calls it.
        stages: in the order in which data reaches them; the last one answers the query.
        window: WITHIN.
        select: output columns, (name, expression), in the names of the query.
    """

    streams: tuple[StreamSchema, ...]
    names: tuple[str, ...]
    stages: tuple[Stage, ...]
    window: TimeWindow | FullHistory
    text: str = ""
    select: tuple[tuple[str, Expression], ...] = ()

    @cached_property
    def answering(self) -> JoinPlan:
        """The join of the last stage."""
        plan = self.stages[-1].plan
        assert isinstance(plan, JoinPlan)
        return plan

    @property
    def queries(self) -> tuple[JoinPlan, ...]:
        """What leaves the last stage, as the plan of one query."""
        return (self.answering,)

    @property
    def shape(self) -> str:
        """What is joined with what, in the names of the query, such as `((a, b), c)`."""
        shown: dict[Input, str] = dict(enumerate(self.names))
        for stage in self.stages:
            shown[Flow(stage.number)] = f"({shown[stage.inputs[R]]}, {shown[stage.inputs[S]]})"
        return shown[Flow(self.stages[-1].number)]

    @property
    def predicate(self) -> JoinPredicate:
        """The condition of the last stage."""
        return self.answering.predicate

    @property
    def predicates(self) -> Mapping[str, Callable[..., Any]]:
        """The registered predicates that the query calls."""
        return self.answering.predicates

    @property
    def index(self) -> str:
        """The index that all stages are to use, or auto."""
        return self.answering.index

    @property
    def archive_period_us(self) -> int | None:
        """What was set for all stages."""
        return self.answering.archive_period_us

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
        return replace(self, stages=(*self.stages[:-1], replace(last, plan=replace(self.answering, keyed=True))))


AnyPlan = Plan | Cascade
"""What a job runs."""


def stages_of(plan: AnyPlan) -> tuple[Stage, ...]:
    """The stages of any plan; two streams are one stage."""
    return plan.stages if isinstance(plan, Cascade) else (Stage(0, (R, S), plan),)


def entry_of(plan: AnyPlan, read: Input) -> tuple[Stage, int]:
    """Where a stream, or the output of a stage, enters: the stage, and its side there."""
    for stage in stages_of(plan):
        if (side := stage.side_of(read)) is not None:
            return stage, side
    raise ValueError(f"nothing reads {read}")


def cascade(
    streams: Sequence[StreamSchema],
    names: Sequence[str],
    conditions: Sequence[Expression],
    select: Sequence[tuple[str, Expression]],
    window: TimeWindow | FullHistory,
    common: Callable[..., JoinPlan],
    text: str = "",
    tree: Tree | None = None,
) -> Cascade:
    """A query as a tree of joins.

    Args:
        conditions: all that must hold, over any of the streams; each is checked at the first stage where all the
            streams are that it reads.
        window: of two equal sides, the reach of every stream; or full history.
        common: `JoinPlan` with what all stages share.
        tree: what is joined with what, all streams by their numbers; in the order in which they are written unless
            given.
    """
    reach_us = window.after_us if isinstance(window, TimeWindow) else None
    building = _Building(streams, names, list(conditions), select, window, common, reach_us)
    building.joined(tree if tree is not None else in_order(len(streams)), is_last=True)
    return Cascade(tuple(streams), tuple(names), tuple(building.stages), window, text, tuple(select))


def in_order(streams: int) -> Tree:
    """Each stream with what the ones before it have become."""
    tree: Tree = 0
    for number in range(1, streams):
        tree = (tree, number)
    return tree


@dataclass(slots=True)
class _Building:
    """A cascade while it is built; `left` are the conditions that no stage checks yet."""

    streams: Sequence[StreamSchema]
    names: Sequence[str]
    left: list[Expression]
    select: Sequence[tuple[str, Expression]]
    window: TimeWindow | FullHistory
    common: Callable[..., JoinPlan]
    reach_us: int | None
    stages: list[Stage] = field(default_factory=list)

    def joined(self, tree: Tree, *, is_last: bool) -> _Side:
        """What a part of the tree gives, with the stages that it takes."""
        if isinstance(tree, int):
            return _Side(self.streams[tree], self.names[tree], tree, frozenset([self.names[tree]]))
        left, right = (self.joined(part, is_last=False) for part in tree)
        reads = left.reads | right.reads
        parts = [part for part in self.left if streams_of(part) <= reads]
        self.left = [part for part in self.left if part not in parts]
        columns = {**(left.columns or {}), **(right.columns or {})}
        predicate = _joined(left, right, [_renamed(part, columns) for part in parts], self.reach_us)
        later = [*self.left, *(expression for _, expression in self.select)]
        carried = _carried(left, right, later, self.reach_us)
        chosen = tuple((name, _renamed(expression, columns)) for name, expression in self.select)
        plan = self.common(
            streams=(left.schema, right.schema), names=(left.name, right.name), predicate=predicate,
            window=self.window, select=chosen if is_last else carried.select, feeds=not is_last,
        )  # fmt: skip
        number = len(self.stages)
        self.stages.append(Stage(number, (left.read, right.read), plan, tuple(parts)))
        return left if is_last else _flow(reads, Flow(number), plan, carried, self.names)


Columns = Mapping[tuple[str, str], Column]
"""By stream and name, where a flow has a column of a stream."""


@dataclass(frozen=True, slots=True)
class _Side:
    """What a stage reads on one side; `columns` are those of a flow, and None of a stream."""

    schema: StreamSchema
    name: str
    read: Input
    reads: frozenset[str]
    columns: Columns | None = None

    @property
    def own(self) -> Columns:
        """Where the columns of its streams are."""
        if self.columns is not None:
            return self.columns
        fields = zip(self.schema.columns.names, self.schema.columns.types, strict=True)
        return {(self.name, name): Column(self.name, name, kind) for name, kind in fields}

    def until(self, reach_us: int) -> Expression:
        """Up to when its tuples meet others, in us."""
        if self.columns is not None:
            return Column(self.name, UNTIL, INT64)
        return call("add", self.time, Literal(reach_us, INT64))

    @property
    def time(self) -> Column:
        """The event time of its tuples, in us."""
        return Column(self.name, TS, INT64)


def _joined(left: _Side, right: _Side, parts: Sequence[Expression], reach_us: int | None) -> JoinPredicate:
    """What a stage checks. The window of a flow is as wide as its newest part's; `until` says how wide it really is."""
    predicate = analyse(conjunction(parts), (left.name, right.name))
    if reach_us is None:
        return predicate
    met = tuple(
        Call("le", (other.time, flow.until(reach_us)), BOOL)
        for flow, other in ((left, right), (right, left))
        if flow.columns is not None
    )
    return replace(predicate, residual=(*predicate.residual, *met))


@dataclass(frozen=True, slots=True)
class _Carried:
    """What a stage's output has: its select list, and by stream and name which of it is a column of a stream."""

    select: tuple[tuple[str, Expression], ...]
    names: Mapping[tuple[str, str], str]


def _carried(left: _Side, right: _Side, later: Sequence[Expression], reach_us: int | None) -> _Carried:
    """The columns that later stages read, and `until`."""
    wanted = {pair for expression in later for pair in columns_of(expression)}
    select: dict[str, Expression] = {}
    names: dict[tuple[str, str], str] = {}
    for side in (left, right):
        for pair, column in side.own.items():
            if pair in wanted:
                name = ".".join(pair)
                while name in select:  # names with dots in them may come out alike
                    name += "."
                select[name], names[pair] = column, name
    if reach_us is not None:
        select[UNTIL] = call("least", left.until(reach_us), right.until(reach_us))
    elif not select:
        select[UNTIL] = Literal(0, INT64)  # whoever reads none of them: there must be a column
    return _Carried(tuple(select.items()), names)


def _flow(reads: frozenset[str], read: Flow, plan: JoinPlan, carried: _Carried, names: Sequence[str]) -> _Side:
    """A stage's output as another one reads it."""
    name = f"({', '.join(stream for stream in names if stream in reads)})"
    kinds = {output.name: output.type for output in plan.output}
    columns = {pair: Column(name, own, kinds[own]) for pair, own in carried.names.items()}
    return _Side(StreamSchema(name, plan.output, ARRIVAL), name, read, reads, columns)


def _renamed(expression: Expression, columns: Columns) -> Expression:
    """An expression over streams, over the flows that have their columns."""
    if isinstance(expression, Column):
        return columns.get((expression.stream, expression.name), expression)
    if isinstance(expression, Call):
        return replace(expression, args=tuple(_renamed(arg, columns) for arg in expression.args))
    return expression
