"""Groups that are given again as they change, and when what they are of enters and leaves them, as plain data.

What is known of a group is as of a moment T, a multiple of a span of event time: the rows with hi <= T <= end, where
`hi` is the event time of a row's newest part, and `end` is how long the row counts: the time of its oldest part plus
the reach of that part's stream, the longest of those that are as old. Rows with the same first and last T that count
them are alike to every T, so these two moments are what a view is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamjoin.flow.block import TS
from streamjoin.plan.coercion import call
from streamjoin.plan.expression import Call, Column, Expression, Literal
from streamjoin.plan.types import BOOL, INT64
from streamjoin.plan.window import format_us

EMIT_US_DEFAULT = 1_000_000
OPERATION = "op"
"""Output column of groups that change: whether the row is what its group is now, or says that there is none."""
EMIT_TIME = "emit_time"
"""Output column of groups that change: the T as of which the row is."""
UPSERT, DELETE = "upsert", "delete"
_NO_TIME = 1 << 62
"""Later than any event time; the time of a part that is not there."""


@dataclass(frozen=True, slots=True)
class Changing:
    """Groups as of the multiples of a span, counted from 1970 in UTC.

    Args:
        every_us: the span.
        ends: up to when a row counts, in us, over the input; None where rows count for ever.
    """

    every_us: int
    ends: Expression | None = None

    @property
    def pane_us(self) -> int:
        """The span within which it makes no difference when a row comes."""
        return self.every_us

    @property
    def given(self) -> str:
        """When groups are given, for people."""
        return f"given again as they change, every {format_us(self.every_us)} that the watermark has passed"

    @property
    def made(self) -> str:
        """What is made of rows, for people."""
        return f"groups of {self}"

    def __str__(self) -> str:
        return "all rows so far" if self.ends is None else "the rows inside WITHIN"


@dataclass(frozen=True, slots=True)
class Runs:
    """Values that are given once for each run of rows that have them: rows that follow one another while one counts.

    Args:
        ends: see `Changing`; where rows count for ever, a value is given once.
    """

    ends: Expression | None = None

    @property
    def pane_us(self) -> int:
        """Every moment tells."""
        return 1

    @property
    def given(self) -> str:
        """When rows are given, for people."""
        again = "" if self.ends is None else ", and again once no row with it is inside WITHIN"
        return f"given when the watermark has passed its first row{again}"

    @property
    def made(self) -> str:
        """What is made of rows, for people."""
        return str(self)

    def __str__(self) -> str:
        return "each different row"


@dataclass(frozen=True, slots=True)
class Timed:
    """A stream whose rows are parts of what is grouped.

    Args:
        name: what the query calls it.
        reach_us: how much newer than a row of it what it meets may be.
    """

    name: str
    reach_us: int


def end_us(parts: Sequence[Timed]) -> Expression:
    """Up to when a row of these parts counts, in us; a part that is not there has no say."""
    times = [call("coalesce", Column(part.name, TS, INT64), Literal(_NO_TIME, INT64)) for part in parts]
    oldest = call("least", *times) if len(times) > 1 else times[0]
    if len({part.reach_us for part in parts}) == 1:
        return call("add", oldest, Literal(parts[0].reach_us, INT64))
    # Of a part that is not the oldest, its oldest's time stands in, which is below every end.
    ends = [
        call("if", Call("le", (time, oldest), BOOL), call("add", time, Literal(part.reach_us, INT64)), oldest)
        for part, time in zip(parts, times, strict=True)
    ]
    return call("greatest", *ends)
