"""The plan of one binary join: everything a router and a unit need to know, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streamjoin.plan.asof import AsOf
from streamjoin.plan.coercion import cast
from streamjoin.plan.expression import TRUE, Column, Expression
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.ordering import NEWER, OLDER, Ordering
from streamjoin.plan.predicate import JoinPredicate, Range, equality_keys
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stage import OneStage
from streamjoin.plan.types import column_type
from streamjoin.plan.window import CountWindow, FullHistory, R, TimeWindow, Window

RESULT_TIME = "__time"
"""Engine column of a result: the latest event time among its tuples, in us."""
RESULT_KEY = "__key"
"""Engine column of a result: what it is looked up by."""
ENGINE_COLUMNS = (RESULT_TIME, RESULT_KEY, NEWER, OLDER)
"""What a result may have besides its output columns, in this order."""
ARCHIVE_PERIODS_A_WINDOW = 10
"""P is a tenth of the window unless set, as in BiStream, section 6.2."""


@dataclass(frozen=True, slots=True)
class ResultKey:
    """What results are looked up by, where the query says it and not the join that makes them.

    Args:
        value: None where results are looked up by nothing.
        is_equality: an equality compares it.
        name: what it is, for people.
    """

    value: Expression | None
    is_equality: bool
    name: str | None


@dataclass(frozen=True, slots=True)
class JoinPlan(OneStage):
    """A bound SELECT ONLINE over two streams: what a stage does, and all that a job runs of one such query.

    Args:
        streams: (R, S), in the order of FROM.
        names: what the query calls them; a self-join has two names for one stream.
        predicate: the WHERE clause, taken apart.
        window: WITHIN.
        select: output columns, (name, expression), in order.
        index: the index the user insists on, or auto.
        archive_period_us: P of a time window, or None for the default.
        predicates: registered vectorised predicates by name.
        text: the query as written.
        keyed: rows leave the units with their time and key, as result stores need them.
        ordering: what is promised of the order of results; unless none, rows leave the units with the sequence numbers
            of their two tuples.
        main: the conjunct that the user wants as the main one, as text.
        feeds: rows leave the units with their time, because another stage joins them further.
        kind: which rows leave besides pairs.
        filter: what rows that leave must fulfil; whether they do changes nothing about who is matched.
        untils: of an input that is a flow, the column that says up to when its tuples meet others.
        asof: each row of R has one row of S at most, the latest of its key; None for pairs.
        looked_up_by: what results are looked up by, if not by R's side of the main predicate.
    """

    streams: tuple[StreamSchema, StreamSchema]
    names: tuple[str, str]
    predicate: JoinPredicate
    window: Window
    select: tuple[tuple[str, Expression], ...]
    index: str = "auto"
    archive_period_us: int | None = None
    predicates: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    text: str = ""
    keyed: bool = False
    ordering: Ordering = Ordering.NONE
    main: str | None = None
    feeds: bool = False
    kind: JoinKind = JoinKind.INNER
    filter: Expression = TRUE
    untils: tuple[Column | None, Column | None] = (None, None)
    asof: AsOf | None = None
    looked_up_by: ResultKey | None = None

    @property
    def queries(self) -> tuple[JoinPlan, ...]:
        """The queries of a job that runs this plan: this one."""
        return (self,)

    @property
    def names_of_queries(self) -> tuple[str, ...]:
        """One query alone needs no name."""
        return ("",)

    @property
    def last_join(self) -> JoinPlan:
        """The only one."""
        return self

    @property
    def shared(self) -> None:
        """One query shares its tuples with no other."""

    def asking(self, queries: Sequence[JoinPlan]) -> JoinPlan:
        """The same with another query in place of each."""
        (query,) = queries
        return query

    @property
    def bits(self) -> int:
        """How many bits a tuple carries to say which queries it is for; one query needs none said."""
        return 1

    def before_bit(self, query: int) -> None:
        """See `SharedJoin`; one query alone is there from the start."""

    def equality_keys(self, side: int) -> tuple[Expression, ...]:
        """What equal keys are routed by."""
        return equality_keys(self.predicate, side)

    @property
    def main_range(self) -> Range:
        """The range that content-sensitive routing looks at: the first band, else the first range."""
        return next((found for found in self.predicate.ranges if found.is_band), self.predicate.ranges[0])

    @property
    def archive_period(self) -> int | None:
        """P in the window's coordinate: us, or rows for a count window; None for full history."""
        match self.window:
            case TimeWindow(before_us, after_us):
                tenth = (before_us + after_us) // 2 // ARCHIVE_PERIODS_A_WINDOW
                return self.archive_period_us or max(tenth, 1)
            case CountWindow(rows):
                return max(rows // ARCHIVE_PERIODS_A_WINDOW, 1)
            case FullHistory():
                return None

    @property
    def output(self) -> pa.Schema:
        """Names and types of the result columns."""
        return pa.schema([pa.field(name, expression.type) for name, expression in self.select])

    @property
    def result_key(self) -> Expression | None:
        """What results are looked up by: R's side of the main predicate; None where nothing is indexed."""
        return self.key_of(R)

    def key_of(self, side: int) -> Expression | None:
        """What an unmatched row of a side is looked up by: its own side of the main predicate, in the type of R's."""
        if self.looked_up_by is not None:
            return self.looked_up_by.value
        if self.predicate.equalities:
            keys = self.predicate.equalities[0].keys
        elif self.predicate.ranges:
            keys = self.main_range.keys
        else:
            return None
        return cast(keys[side], column_type(keys[R].type))

    @property
    def has_equal_keys(self) -> bool:
        """Whether results are looked up by what an equality compares."""
        if self.looked_up_by is not None:
            return self.looked_up_by.is_equality
        return bool(self.predicate.equalities)

    @property
    def key_name(self) -> str | None:
        """What results are looked up by, for people."""
        if self.looked_up_by is not None:
            return self.looked_up_by.name
        return None if self.result_key is None else str(self.result_key)

    @property
    def emitted(self) -> pa.Schema:
        """What leaves the units: the result columns, time (us) and key if they are `keyed`, numbers if `ordered`."""
        fields = list(self.delivered)
        if self.ordering is not Ordering.NONE:
            fields += [pa.field(NEWER, pa.int64()), pa.field(OLDER, pa.int64())]
        return pa.schema(fields)

    @property
    def delivered(self) -> pa.Schema:
        """What results have once they are in order: the result columns, and time and key if they are `keyed`."""
        fields = list(self.output)
        if self.timed:
            fields.append(pa.field(RESULT_TIME, pa.int64()))
            if self.keyed and self.result_key is not None:
                fields.append(pa.field(RESULT_KEY, self.result_key.type))
        return pa.schema(fields)

    @property
    def timed(self) -> bool:
        """Whether rows leave the units with their time."""
        return self.keyed or self.feeds

    @property
    def gathered(self) -> bool:
        """Whether results are put in order before they leave; those of a store are put in order when they are read."""
        return self.ordering is not Ordering.NONE and not self.keyed

    @property
    def counts_tuples(self) -> bool:
        """Whether each tuple needs its place in its stream."""
        return isinstance(self.window, CountWindow) or self.numbers_tuples

    @property
    def numbers_tuples(self) -> bool:
        """Whether stored tuples keep their sequence numbers: results have an order, or rows are decided on."""
        return self.ordering is not Ordering.NONE or bool(self.kind.decided)
