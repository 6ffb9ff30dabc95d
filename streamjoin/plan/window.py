"""Windows: which tuples of the two streams are near enough to join.

Every window compares one int64 coordinate of the stored tuple with one of the probing tuple, and keeps the pair iff
`low <= stored - probe <= high`. For time windows the coordinate is the event time; for count windows a stored tuple's
is its rank in its own stream, and a probing tuple's is how many tuples of the other stream came before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

R, S = 0, 1
"""The two sides of a binary join: the first stream in FROM is R."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """r and s join iff -before_us <= s.ts - r.ts <= after_us, closed at both ends."""

    before_us: int
    after_us: int

    def bounds(self, stored: int) -> tuple[int, int]:
        """(low, high) of `stored.ts - probe.ts` in us, for tuples stored on side `stored`."""
        return (-self.after_us, self.before_us) if stored == R else (-self.before_us, self.after_us)

    def keeps_us(self, stored: int) -> int:
        """How far behind the opposite stream's mark a stored tuple can still be matched (BiStream, Theorem 1)."""
        return self.after_us if stored == R else self.before_us

    def __str__(self) -> str:
        if self.before_us == self.after_us:
            return f"within {format_us(self.before_us)}"
        return f"within ({format_us(self.before_us)} before, {format_us(self.after_us)} after)"


@dataclass(frozen=True, slots=True)
class CountWindow:
    """Each tuple joins the last `rows` tuples of the other stream, by arrival order."""

    rows: int

    def bounds(self, stored: int) -> tuple[int, int]:
        """(low, high) of the stored tuple's rank minus the number of its stream's tuples before the probing one."""
        return (-self.rows, -1)

    def __str__(self) -> str:
        return f"within {self.rows} rows"


@dataclass(frozen=True, slots=True)
class FullHistory:
    """Every tuple joins all tuples of the other stream, so nothing is ever discarded."""

    def bounds(self, stored: int) -> None:
        """There are no bounds."""

    def __str__(self) -> str:
        return "full history"


@dataclass(frozen=True, slots=True)
class Reaches:
    """Each stream joins rows up to its own span newer than its tuples.

    Args:
        names: what the query calls its streams, in the order of FROM.
        spans_us: the reach of each.
    """

    names: tuple[str, ...]
    spans_us: tuple[int, ...]

    def between(self, one: int, other: int) -> TimeWindow:
        """What this says of two streams, by their numbers, as R and S."""
        return TimeWindow(self.spans_us[other], self.spans_us[one])

    def __str__(self) -> str:
        spans = zip(self.names, self.spans_us, strict=True)
        return f"within {', '.join(f'{format_us(span_us)} for {name}' for name, span_us in spans)}"


Window: TypeAlias = TimeWindow | CountWindow | FullHistory


def reach_us(window: TimeWindow | Reaches, number: int) -> int:
    """How much newer than a tuple what it meets may be; a window of more than two streams has two equal sides."""
    return window.spans_us[number] if isinstance(window, Reaches) else window.keeps_us(min(number, S))


def between(window: Window | Reaches, one: int, other: int) -> TimeWindow | None:
    """How near rows of two streams, by their numbers, must be in time; None where time says nothing of them."""
    if isinstance(window, Reaches):
        return window.between(one, other)
    return window if isinstance(window, TimeWindow) else None


_UNITS_US = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000))


def format_us(span_us: int) -> str:
    """A span for people: the largest unit that divides it, such as `10 s` or `1500 ms`."""
    for unit, size in _UNITS_US:
        if span_us and span_us % size == 0:
            return f"{span_us // size} {unit}"
    return f"{span_us} us"
