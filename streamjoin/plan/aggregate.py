"""GROUP BY, as plain data: what a stage needs to know that makes groups of what it reads.

Tuples are folded into *views*: one row for each group and pane, with what is needed of its tuples and no more. A pane
is the longest span of which every window is made, so a window of any kind is some panes one after the other, and a view
says the same whatever else is in its window. Of groups that change, a view is of a first and a last moment; see
`plan/changing.py`. Views are added up in any order; from those of a window its row is
computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

from streamjoin.plan.changing import EMIT_TIME, OPERATION, Changing, Runs
from streamjoin.plan.expression import TRUE, Column, Expression, columns_of
from streamjoin.plan.join import RESULT_KEY, RESULT_TIME
from streamjoin.plan.lone import Lone
from streamjoin.plan.predicate import JoinPredicate
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.types import INT64, TIMESTAMP
from streamjoin.plan.window import FullHistory, format_us

GROUPS = ""
"""What expressions over groups call the stream of values that are computed for a group."""
WINDOW_START = Column(GROUPS, "window_start", TIMESTAMP)
WINDOW_END = Column(GROUPS, "window_end", TIMESTAMP)
PANES_MAX = 10_000
"""Panes of a window: each is looked at when the window ends."""


@dataclass(frozen=True, slots=True)
class Hopping:
    """Windows [n * slide, n * slide + size), counted from 1970 in UTC.

    Args:
        slide_us: from the start of one to that of the next; no longer than `size_us`, so every moment is in one.
        size_us: how long each is; a window that does not overlap others has the size of its slide.
    """

    slide_us: int
    size_us: int

    @property
    def pane_us(self) -> int:
        """The longest span of which every window is made."""
        return math.gcd(self.slide_us, self.size_us)

    @property
    def ends(self) -> None:
        """Rows leave no window again."""
        return

    @property
    def given(self) -> str:
        """When groups are given, for people."""
        return "given when the watermark reaches their end"

    @property
    def made(self) -> str:
        """What is made of rows, for people."""
        return f"groups of {self}"

    def __str__(self) -> str:
        every = "" if self.is_tumbling else f", one every {format_us(self.slide_us)}"
        return f"windows of {format_us(self.size_us)}{every}"

    @property
    def is_tumbling(self) -> bool:
        """Whether every moment is in one window only."""
        return self.slide_us == self.size_us


class Kind(StrEnum):
    """What a view knows of the values of its tuples."""

    ROWS = "rows"
    """How many tuples there are."""
    VALUES = "values"
    """How many values are not NULL."""
    INTEGERS = "integers"
    """The exact sum of integers."""
    DECIMALS = "decimals"
    """The exact sum of decimals."""
    FLOATS = "floats"
    """The exact sum of floats."""
    SQUARES = "squares"
    """The exact sum of the squares of floats."""
    LEAST = "least"
    """The least value."""
    GREATEST = "greatest"
    """The greatest value."""
    AT_LEAST = "at least"
    """Of two values, the first one where the second is the least; among several the least first one."""
    AT_GREATEST = "at greatest"
    """The same where the second is the greatest."""
    DISTINCT = "distinct"
    """Every value that there is."""
    REGISTERS = "registers"
    """A sketch of how many different values there are."""
    BUCKETS = "buckets"
    """A sketch of how floats are spread."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a view knows of its tuples.

    Args:
        args: expressions over the input; none for `ROWS`.
    """

    kind: Kind
    args: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function of the query, or several that are written alike.

    Args:
        function: its name in lower case, as `FUNCTIONS` of `query/aggregates.py` has it.
        parts: numbers of what it is computed from.
        result: the column that expressions over groups read.
        quantile: which one is asked for, from 0 to 1; None where none is.
    """

    function: str
    parts: tuple[int, ...]
    result: Column
    quantile: float | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """What is grouped by.

    Args:
        value: over the input.
        shown: the column that expressions over groups read.
    """

    value: Expression
    shown: Column


def _values(keys: Sequence[Key], parts: Sequence[Part], windows: Hopping | Changing | Runs) -> tuple[Expression, ...]:
    """What is read of a tuple, each once."""
    every = [key.value for key in keys] + [arg for part in parts for arg in part.args]
    return tuple(dict.fromkeys([*every, *([windows.ends] if windows.ends is not None else [])]))


@dataclass(frozen=True, slots=True)
class Groups:
    """What a query makes groups by and of; expressions of keys and parts are over its streams.

    Args:
        windows, keys, parts, aggregates, select, having: see `AggregatePlan`.
    """

    windows: Hopping | Changing | Runs
    keys: tuple[Key, ...]
    parts: tuple[Part, ...]
    aggregates: tuple[Aggregate, ...]
    select: tuple[tuple[str, Expression], ...]
    having: Expression

    @property
    def values(self) -> tuple[Expression, ...]:
        """What is read of a tuple, each once."""
        return _values(self.keys, self.parts, self.windows)


@dataclass(frozen=True)
class AggregatePlan(Lone):
    """A stage of one input that makes groups of it. Where it says what a `JoinPlan` says, it has the same name.

    Args:
        streams, names: the input.
        keys: what is grouped by, besides the window.
        windows: which windows there are, or that groups are given again as they change, or once a run.
        parts: what views know.
        aggregates: what is computed of them.
        select: output columns, (name, expression over groups), in order.
        having: which groups are given.
        selection: which tuples of a stream are looked at; those of a flow have been selected.
        predicates: registered vectorised predicates by name.
        text: the query as written.
        keyed: rows leave the units with their time and key, as result stores need them.
    """

    streams: tuple[StreamSchema]
    names: tuple[str]
    keys: tuple[Key, ...]
    windows: Hopping | Changing | Runs
    parts: tuple[Part, ...]
    aggregates: tuple[Aggregate, ...]
    select: tuple[tuple[str, Expression], ...]
    having: Expression = TRUE
    selection: Expression = TRUE
    predicates: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    text: str = ""
    keyed: bool = False

    @property
    def predicate(self) -> JoinPredicate:
        """What tuples are selected by; nothing is compared with anything."""
        return JoinPredicate((self.selection, TRUE), (), (), ())

    @property
    def window(self) -> FullHistory:
        """Nothing is stored to be met by later tuples."""
        return FullHistory()

    @property
    def index(self) -> str:
        """There is none to choose."""
        return "auto"

    @property
    def archive_period_us(self) -> int | None:
        """There are no segments of tuples."""
        return None

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the input that views are made of, in its order; one at least, as blocks need one."""
        values = _values(self.keys, self.parts, self.windows)
        wanted = {name for value in values for _, name in columns_of(value)}
        names = self.streams[0].columns.names
        return tuple(name for name in names if name in wanted) or (names[0],)

    def equality_keys(self, side: int) -> tuple[Expression, ...]:
        """What equal groups are routed by: columns of views."""
        return tuple(Column(self.names[side], key_name(place), key.value.type) for place, key in enumerate(self.keys))

    @property
    def output(self) -> pa.Schema:
        """Names and types of the result columns; of groups that change, with what a row says and as of when."""
        fields = [pa.field(name, expression.type) for name, expression in self.select]
        if isinstance(self.windows, Changing):
            fields += [pa.field(OPERATION, pa.string()), pa.field(EMIT_TIME, TIMESTAMP)]
        return pa.schema(fields)

    @property
    def identity(self) -> tuple[str, ...]:
        """Of groups that change, the output columns that tell them apart; else none."""
        if not isinstance(self.windows, Changing):
            return ()
        shown = {expression: name for name, expression in reversed(self.select)}
        return tuple(shown[key.shown] for key in self.keys)

    @property
    def result_key(self) -> Expression | None:
        """What results are looked up by: the first of what is grouped by."""
        return self.keys[0].shown if self.keys else None

    @property
    def has_equal_keys(self) -> bool:
        """See `JoinPlan`."""
        return bool(self.keys)

    @property
    def key_name(self) -> str | None:
        """See `JoinPlan`."""
        return None if self.result_key is None else str(self.result_key)

    @property
    def delivered(self) -> pa.Schema:
        """What leaves the units: the result columns, and if they are `keyed` their time and the key; their time is
        the last microsecond of the window, or the moment as of which a group is given."""
        fields = list(self.output)
        if self.keyed:
            fields.append(pa.field(RESULT_TIME, INT64))
            if self.result_key is not None:
                fields.append(pa.field(RESULT_KEY, self.result_key.type))
        return pa.schema(fields)

    emitted = delivered


def key_name(place: int) -> str:
    """The column of a view that has a part of its group."""
    return f"key {place}"
