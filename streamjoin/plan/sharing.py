"""Several queries over one pair of streams in one job: one intake, and every tuple is stored once.

What is shared has room for all of them: intake lets through what any query selects, with the columns that any reads;
the window kept is the longest. Each query has its own selection, predicate, window, SELECT list, index and results.
Source: ESJ, "Join engine" (a task is a query; instances in a worker share its tuples).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.plan.expression import TRUE, Call, Column, Expression
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.predicate import Equality, JoinPredicate
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stage import OneStage
from streamjoin.plan.window import CountWindow, FullHistory, TimeWindow, Window

QUERIES_MAX = 64
"""A tuple carries a bit for each query."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """What stays of a job while its queries are started and stopped.

    Args:
        names: what the job calls its streams, from its first query on.
        equalities: those by which tuples are routed, as text; empty where the operator looks at no keys.
    """

    names: tuple[str, ...]
    equalities: tuple[str, ...] = ()


@dataclass(frozen=True)
class SharedJoin(OneStage):
    """The plans of several queries; what they share is said as a `JoinPlan` says it.

    Args:
        names_of_queries: what people call the queries.
        queries: at least one; all read the same two streams in the same order.
        lasting: of a job that has run before.
        started: the queries that were started over stored tuples; their results are the pairs whose later tuple came
            afterwards.
    Raises:
        InputError: they cannot share one job; `field` is the query that does not fit.
    """

    names_of_queries: tuple[str, ...]
    queries: tuple[JoinPlan, ...]
    lasting: Lasting | None = None
    started: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.bits > QUERIES_MAX:
            counted = " and one more for each that was started later" if self._started else ""
            raise InputError(f"{len(self.queries)} queries are too many for one job; a tuple has {QUERIES_MAX} bits, "
                             f"one for each query{counted}", field="queries")  # fmt: skip
        first = self.queries[0]
        for name, query in zip(self.names_of_queries, self.queries, strict=True):
            if query.streams != first.streams:
                theirs, ours = (" and ".join(stream.name for stream in plan.streams) for plan in (first, query))
                raise InputError(
                    f"this reads {ours} where {self.names_of_queries[0]} reads {theirs}; the queries of one job read "
                    "the same two streams, in the same order in FROM",
                    field=f"queries.{name}.query",
                )
            if isinstance(query.window, CountWindow) != isinstance(first.window, CountWindow):
                raise UnsupportedError(
                    f"this is {query.window} where {self.names_of_queries[0]} is {first.window}; the queries of one "
                    "job all have windows of rows, or none has",
                    field=f"queries.{name}.query",
                )
            if query.kind is not JoinKind.INNER:
                raise UnsupportedError(
                    f"{query.kind} JOIN says of each row whether it was matched, and cannot share a job with other "
                    "queries; run it as a job of its own",
                    field=f"queries.{name}.query",
                )
            if query.gathered != first.gathered:
                raise UnsupportedError(
                    "with operator.ordering, the results of all queries go into stores, or those of none do",
                    field=f"queries.{name}.results",
                )

    @property
    def streams(self) -> tuple[StreamSchema, StreamSchema]:
        """(R, S)."""
        return self.queries[0].streams

    @property
    def names(self) -> tuple[str, str]:
        """What the first query calls them."""
        if self.lasting is None:
            return self.queries[0].names
        r, s = self.lasting.names
        return r, s

    @property
    def select(self) -> tuple[tuple[str, Expression], ...]:
        """Each query has its own."""
        return ()

    @property
    def shared(self) -> SharedJoin:
        """Itself."""
        return self

    def asking(self, queries: Sequence[JoinPlan]) -> SharedJoin:
        """The same with another query in place of each."""
        return SharedJoin(self.names_of_queries, tuple(queries))

    def anew(self) -> SharedJoin:
        """The same queries in a job that has not run before."""
        return SharedJoin(self.names_of_queries, self.queries)

    @property
    def _started(self) -> list[str]:
        return [name for name in self.names_of_queries if name in self.started]

    @property
    def bits(self) -> int:
        """How many bits a tuple carries: one a query, and one more for each that was started later."""
        return len(self.queries) + len(self._started)

    def before_bit(self, query: int) -> int | None:
        """The bit of tuples that were there before a query was started; None for a query that was there before them.

        Two such tuples are no result of that query, wherever they meet.
        """
        name = self.names_of_queries[query]
        return len(self.queries) + self._started.index(name) if name in self.started else None

    @property
    def text(self) -> str:
        """All queries, as written."""
        return "; ".join(
            f"{name}: {query.text}" for name, query in zip(self.names_of_queries, self.queries, strict=True)
        )

    @property
    def index(self) -> str:
        """The index that all queries are to use, or auto."""
        return self.queries[0].index

    @property
    def archive_period_us(self) -> int | None:
        """What was set for all."""
        return self.queries[0].archive_period_us

    @property
    def main(self) -> str | None:
        """Each query has its own best one."""
        return None

    @property
    def ordering(self) -> Ordering:
        """The same for all."""
        return self.queries[0].ordering

    @property
    def gathered(self) -> bool:
        """See `JoinPlan`."""
        return self.queries[0].gathered

    @property
    def counts_tuples(self) -> bool:
        """See `JoinPlan`."""
        return self.queries[0].counts_tuples

    @property
    def numbers_tuples(self) -> bool:
        """See `JoinPlan`."""
        return self.queries[0].numbers_tuples

    @property
    def predicates(self) -> Mapping[str, Callable[..., Any]]:
        """The registered predicates that any query calls."""
        return {name: function for query in self.queries for name, function in query.predicates.items()}

    @cached_property
    def predicate(self) -> JoinPredicate:
        """What all queries ask for: the equalities that they have in common, by which tuples may be routed."""
        ours = [{found.keys: found for found in map(partial(named, self.names, query), query.predicate.equalities)}
                 for query in self.queries]  # fmt: skip
        common = [found for keys, found in ours[0].items() if all(keys in theirs for theirs in ours[1:])]
        if self.lasting is not None:
            by_text = {key_text(found): found for found in common}
            common = [by_text[text] for text in self.lasting.equalities if text in by_text]
        return JoinPredicate((TRUE, TRUE), tuple(common), (), ())

    @cached_property
    def window(self) -> Window:
        """The longest window: what stored tuples are kept for."""
        windows = [query.window for query in self.queries]
        counts = [window.rows for window in windows if isinstance(window, CountWindow)]
        times = [window for window in windows if isinstance(window, TimeWindow)]
        if counts:
            return CountWindow(max(counts))
        if len(times) < len(windows):
            return FullHistory()
        return TimeWindow(max(window.before_us for window in times), max(window.after_us for window in times))

    @cached_property
    def archive_period(self) -> int | None:
        """The longest P; None where no query has any."""
        return max((period for query in self.queries if (period := query.archive_period)), default=None)

    def equality_keys(self, side: int) -> tuple[Expression, ...]:
        """What equal keys are routed by."""
        return tuple(found.keys[side] for found in self.predicate.equalities)


def named(names: tuple[str, str], query: JoinPlan, found: Equality) -> Equality:
    """An equality with the names that another query gives its streams."""
    called = dict(zip(query.names, names, strict=True))
    keys = renamed(found.keys[0], called), renamed(found.keys[1], called)
    return Equality(keys, renamed(found.source, called))


def key_text(found: Equality) -> str:
    """By which an equality is known from one start to the next."""
    return f"{found.keys[0]} = {found.keys[1]}"


def renamed(expression: Expression, called: Mapping[str, str]) -> Expression:
    """An expression over streams of other names."""
    if isinstance(expression, Column):
        return replace(expression, stream=called[expression.stream])
    if isinstance(expression, Call):
        return replace(expression, args=tuple(renamed(arg, called) for arg in expression.args))
    return expression


Pairs = JoinPlan | SharedJoin
"""What joins two streams in one stage, for one query or for several."""
