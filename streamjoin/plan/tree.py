"""From a tree of joins to stages: what each checks, what it may drop before, and what flows on.

A condition goes down the tree as far as it says the same there. ON decides who matches, so on a side whose unmatched
rows are given it drops nothing; WHERE filters what comes out, so it never sinks into a side that may be NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from streamjoin.flow.block import TS
from streamjoin.plan.asof import AsOf
from streamjoin.plan.coercion import call
from streamjoin.plan.expression import Call, Column, Expression, Literal, columns_of, conjunction, renamed, streams_of
from streamjoin.plan.join import JoinPlan, ResultKey
from streamjoin.plan.kinds import Join, JoinKind, Tree, streams_in
from streamjoin.plan.parted import in_order, parted, place_of, streams_first
from streamjoin.plan.predicate import JoinPredicate, analyse
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.plan.stages import UNTIL, Cascade, Flow, Input, Stage, Table
from streamjoin.plan.types import BOOL, INT64
from streamjoin.plan.window import FullHistory, R, Reaches, S, TimeWindow


def cascade(
    streams: Sequence[StreamSchema],
    names: Sequence[str],
    conditions: Sequence[Expression],
    select: Sequence[tuple[str, Expression]],
    window: TimeWindow | FullHistory | Reaches,
    common: Callable[..., JoinPlan],
    text: str = "",
    tree: Tree | None = None,
    key: ResultKey | None = None,
) -> Cascade:
    """A query as a tree of joins.

    Args:
        conditions: all that must hold of a result, over any of the streams; each is checked as early as may be.
        window: of two equal sides, the reach of every stream; or the reach of each; or full history.
        common: `JoinPlan` with what all stages share.
        tree: what is joined with what, all streams by their numbers; in the order in which they are written unless
            given.
        key: what results are looked up by, in the names of the query, if not by what the last join compares.
    """
    reaches_us: Sequence[int] | None = None
    if isinstance(window, Reaches):
        reaches_us = window.spans_us
    elif isinstance(window, TimeWindow):
        reaches_us = [window.after_us] * len(streams)
    building = _Building(streams, names, select, common, reaches_us, key)
    read = parted(streams, names)
    whole = streams_first(tree if tree is not None else in_order(streams, names, conditions), streams)
    assert isinstance(whole, Join)
    building.joined(whole, list(conditions), None)
    stages = tuple(building.stages)
    return Cascade(
        read.streams, read.names, stages, window, text, tuple(select), whole, tuple(conditions), read.relations,
        read.relation_names, tuple(names), key=building.key,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the conditions of one join belong.

    Args:
        alone: of R and of S, what their rows must fulfil to be looked at.
        eligible: of R and of S, what their rows must fulfil to be matched; others are unmatched.
        joint: over both sides: who matches.
        filter: what a row that comes out must fulfil.
    """

    alone: tuple[list[Expression], list[Expression]]
    eligible: tuple[list[Expression], list[Expression]]
    joint: list[Expression]
    filter: list[Expression]

    def predicate(self, names: tuple[str, str]) -> JoinPredicate:
        """What units check, once nothing of `alone` has gone further down."""
        joint = analyse(conjunction(self.joint), names)
        r, s = self.alone
        return replace(
            joint,
            selections=(conjunction(r), conjunction(s)),
            eligible=(conjunction(self.eligible[R]), conjunction(self.eligible[S])),
        )


def parts_of(
    kind: JoinKind,
    on: Sequence[Expression],
    where: Sequence[Expression],
    reads: tuple[frozenset[str], frozenset[str]],
    *,
    as_of: bool = False,
) -> Parts:
    """Sort the conditions of a join by where they may be checked.

    Args:
        where: what rows that come out must fulfil.
        reads: the streams of R and of S.
        as_of: each row of R has one of S at most, and what WHERE asks of S changes nothing about which one.
    """
    found = Parts(([], []), ([], []), [], [])
    inner = kind is JoinKind.INNER and not as_of
    nullable = (S,) if as_of else kind.nullable
    for part in on:
        side = _side(part, reads)
        if side is None:
            # Without any column it holds for all rows or for none.
            side = (R if inner or R not in kind.preserved else S) if not streams_of(part) else None
        if side is None:
            found.joint.append(part)
        elif side in kind.preserved:
            found.eligible[side].append(part)
        else:
            found.alone[side].append(part)
    for part in where:
        side = _side(part, reads)
        if side is None and not streams_of(part):
            side = R
        if side is not None and side not in nullable:
            found.alone[side].append(part)
        elif inner:
            found.joint.append(part)
        else:
            found.filter.append(part)
    return found


def _side(part: Expression, reads: tuple[frozenset[str], frozenset[str]]) -> int | None:
    """The side that a condition reads; None where it reads both or none."""
    used = streams_of(part)
    return next((side for side in (R, S) if used and used <= reads[side]), None)


@dataclass(slots=True)
class _Building:
    """A cascade while it is built.

    Args:
        key: see `cascade`; of one that is built, what its results are looked up by.
    """

    streams: Sequence[StreamSchema]
    names: Sequence[str]
    select: Sequence[tuple[str, Expression]]
    common: Callable[..., JoinPlan]
    reaches_us: Sequence[int] | None
    key: ResultKey | None = None
    stages: list[Stage] = field(default_factory=list)

    def side(self, tree: Tree, where: list[Expression], wanted: Sequence[Expression]) -> _Side:
        """What a part of the tree gives; of a stream nothing is dropped here.

        Args:
            where: what it must fulfil, where it is a join.
            wanted: what reads its columns.
        """
        if isinstance(tree, int):
            number, is_relation = place_of(self.streams, tree)
            reach_us = None if is_relation or self.reaches_us is None else self.reaches_us[number]
            read = Table(number) if is_relation else number
            own = frozenset([self.names[tree]])
            timed_by = frozenset() if is_relation else own
            return _Side(self.streams[tree], self.names[tree], read, own, reach_us, timed_by=timed_by)
        return self.joined(tree, where, wanted)

    def joined(self, tree: Join, where: list[Expression], wanted: Sequence[Expression] | None) -> _Side:
        """What a join gives, with the stages that it takes; `wanted` is None of the one that answers the query."""
        r_reads, s_reads = (frozenset(self.names[at] for at in streams_in(part)) for part in (tree.left, tree.right))
        parts = parts_of(tree.kind, tree.on, where, (r_reads, s_reads), as_of=tree.asof is not None)
        below = zip((tree.left, tree.right), parts.alone, strict=True)
        # By identity: what sinks as a part of WHERE may be checked here as well, as a part of ON.
        sunk = {id(part) for branch, alone in below if isinstance(branch, Join) for part in alone}
        checked = [part for part in (*tree.on, *where) if id(part) not in sunk]
        later = self._read_last() if wanted is None else wanted
        at = [] if tree.asof is None or tree.asof.at is None else [tree.asof.at]
        left, right = (
            self.side(part, parts.alone[side], [*later, *checked, *at])
            for side, part in enumerate((tree.left, tree.right))
        )
        left = _named_apart(left, right.name)
        right = _named_apart(right, left.name)
        columns = {**(left.columns or {}), **(right.columns or {})}
        r, s = (
            [] if side.columns is not None else alone for side, alone in zip((left, right), parts.alone, strict=True)
        )
        here = _renamed_parts(replace(parts, alone=(r, s)), columns)
        predicate = here.predicate((left.name, right.name))
        predicate = _meeting(predicate, left, right) if tree.asof is None else predicate
        carried = _carried(left, right, later, tree)
        chosen = tuple((name, renamed(expression, columns)) for name, expression in self.select)
        plan = self.common(
            streams=(left.schema, right.schema), names=(left.name, right.name), predicate=predicate,
            window=_window(left, right), select=chosen if wanted is None else carried.select, feeds=wanted is not None,
            kind=tree.kind, filter=conjunction(here.filter),
            untils=(left.until_column, right.until_column),
        )  # fmt: skip
        if tree.asof is not None:
            plan = self._as_of(plan, tree.asof, left, right)
        plan = self._looked_up(plan, columns) if wanted is None else plan
        number = len(self.stages)
        self.stages.append(Stage(number, (left.read, right.read), plan, tuple(checked)))
        if wanted is None:
            return left
        given = (left, right) if tree.kind.gives_pairs else (left,)
        flow = _flow(given, Flow(number), plan, carried, self.names)
        # What came as of a row goes where that row goes, and when.
        return flow if tree.asof is None else replace(flow, timed_by=left.timed_by, reach_us=left.reach_us)

    def _read_last(self) -> list[Expression]:
        """What the stage that answers the query reads."""
        chosen = [expression for _, expression in self.select]
        return chosen if self.key is None or self.key.value is None else [*chosen, self.key.value]

    def _looked_up(self, plan: JoinPlan, columns: Columns) -> JoinPlan:
        """The last plan with the key of the query, or the key of the query from the last plan."""
        key = self.key
        if key is not None:
            return replace(plan, looked_up_by=replace(key, value=key.value and renamed(key.value, columns)))
        of_query = {(one.stream, one.name): Column(stream, name, one.type) for (stream, name), one in columns.items()}
        own = plan.result_key
        self.key = ResultKey(own and renamed(own, of_query), plan.has_equal_keys, plan.key_name)
        return plan

    def _as_of(self, plan: JoinPlan, asof: AsOf, left: _Side, right: _Side) -> JoinPlan:
        """The plan of an as-of join, which has one way to run, and looks by the time of any part of its left rows."""
        at, lags_us = None, None
        if asof.at is not None and left.timed_by != {asof.at.stream}:
            at = left.own[asof.at.stream, asof.at.name]
            number, _ = place_of(self.streams, self.names.index(asof.at.stream))
            lags_us = None if self.reaches_us is None else self.reaches_us[number]
        window = FullHistory() if right.reach_us is None else TimeWindow(right.reach_us, 0)
        asof = replace(asof, at=at, at_lags_us=lags_us)
        return replace(plan, window=window, index="auto", archive_period_us=None, asof=asof)


Columns = Mapping[tuple[str, str], Column]
"""By stream and name, where a flow has a column of a stream."""


@dataclass(frozen=True, slots=True)
class _Side:
    """What a stage reads on one side.

    Args:
        reach_us: no tuple meets one that is newer by more; None for full history.
        columns: those of a flow, and None of a stream.
        timed_by: the streams of which the newest part of a tuple may be.
    """

    schema: StreamSchema
    name: str
    read: Input
    reads: frozenset[str]
    reach_us: int | None
    columns: Columns | None = None
    timed_by: frozenset[str] = frozenset()

    @property
    def own(self) -> Columns:
        """Where the columns of its streams are."""
        if self.columns is not None:
            return self.columns
        fields = zip(self.schema.columns.names, self.schema.columns.types, strict=True)
        own = {(self.name, name): Column(self.name, name, kind) for name, kind in fields}
        return own if self.schema.is_relation else {**own, (self.name, TS): self.time}

    @property
    def until_column(self) -> Column | None:
        """Of a flow, the column that says up to when its tuples meet others; None over full history."""
        return None if self.columns is None or self.reach_us is None else Column(self.name, UNTIL, INT64)

    @property
    def until(self) -> Expression:
        """Up to when its tuples meet others, in us; only where they have a reach."""
        assert self.reach_us is not None
        return self.until_column or call("add", self.time, Literal(self.reach_us, INT64))

    @property
    def time(self) -> Column:
        """The event time of its tuples, in us."""
        return Column(self.name, TS, INT64)


def _window(left: _Side, right: _Side) -> TimeWindow | FullHistory:
    """A window that is wide enough for a stage."""
    if left.reach_us is None or right.reach_us is None:
        return FullHistory()
    return TimeWindow(right.reach_us, left.reach_us)


def _meeting(predicate: JoinPredicate, left: _Side, right: _Side) -> JoinPredicate:
    """A flow's window is that of its part with the longest reach; `until` says the rest."""
    if left.reach_us is None or right.reach_us is None:
        return predicate
    met = tuple(
        Call("le", (other.time, flow.until), BOOL)
        for flow, other in ((left, right), (right, left))
        if flow.columns is not None
    )
    return replace(predicate, residual=(*predicate.residual, *met))


@dataclass(frozen=True, slots=True)
class _Carried:
    """What a stage's output has: its select list, and by stream and name which of it is a column of a stream."""

    select: tuple[tuple[str, Expression], ...]
    names: Mapping[tuple[str, str], str]


def _carried(left: _Side, right: _Side, later: Sequence[Expression], join: Join) -> _Carried:
    """The columns that later stages read, and `until`."""
    wanted = {pair for expression in later for pair in columns_of(expression)}
    select: dict[str, Expression] = {}
    names: dict[tuple[str, str], str] = {}
    for side in (left, right) if join.kind.gives_pairs else (left,):
        for pair, column in side.own.items():
            if pair in wanted:
                name = ".".join(pair)
                while name in select:  # names with dots in them may come out alike
                    name += "."
                select[name], names[pair] = column, name
    if left.reach_us is not None:
        is_lefts = right.schema.is_relation or join.asof is not None
        select[UNTIL] = left.until if is_lefts else _until(left.until, right.until, join.kind)
    elif not select:
        select[UNTIL] = Literal(0, INT64)  # whoever reads none of them: there must be a column
    return _Carried(tuple(select.items()), names)


def _until(left: Expression, right: Expression, kind: JoinKind) -> Expression:
    """Up to when what comes out of a join meets others: the least of its parts that are there."""
    if not kind.gives_pairs:
        return left
    r = call("coalesce", left, right) if R in kind.nullable else left
    s = call("coalesce", right, left) if S in kind.nullable else right
    return call("least", r, s)


def _flow(given: Sequence[_Side], read: Flow, plan: JoinPlan, carried: _Carried, names: Sequence[str]) -> _Side:
    """A stage's output as another one reads it; its newest part may be that with the longest reach."""
    reads = frozenset().union(*(side.reads for side in given))
    with_time = [side for side in given if not side.schema.is_relation]
    reaches_us = [side.reach_us for side in with_time if side.reach_us is not None]
    reach_us = max(reaches_us) if len(reaches_us) == len(with_time) else None
    name = f"({', '.join(stream for stream in names if stream in reads)})"
    kinds = {output.name: output.type for output in plan.output}
    columns = {pair: Column(name, own, kinds[own]) for pair, own in carried.names.items()}
    timed_by = frozenset().union(*(side.timed_by for side in given))
    return _Side(StreamSchema(name, plan.output, ARRIVAL), name, read, reads, reach_us, columns, timed_by)


def _named_apart(side: _Side, other: str) -> _Side:
    """A side as a stage reads it: a flow goes by another name where the query calls the stream beside it alike."""
    if side.columns is None or side.name != other:
        return side
    name = f"({side.name})"
    columns = {pair: replace(column, stream=name) for pair, column in side.columns.items()}
    return replace(side, name=name, schema=replace(side.schema, name=name), columns=columns)


def _renamed_parts(parts: Parts, columns: Columns) -> Parts:
    def of(found: Sequence[Expression]) -> list[Expression]:
        return [renamed(part, columns) for part in found]

    (r, s), (u, v) = parts.alone, parts.eligible
    return Parts((of(r), of(s)), (of(u), of(v)), of(parts.joint), of(parts.filter))
