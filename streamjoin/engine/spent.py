"""What a unit's work takes of a processor, by its kind, for formulas that say what work costs.

It is beside what a step computes, and no step looks at it: a step that is repeated takes other times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

HANDED = "handed"
"""What takes a unit's results on: routing and encoding, or writing them."""
RECEIVED = "received"
"""Tuples that probe, decoded and put together."""


@dataclass(slots=True)
class Spent:
    """Processor time of one step.

    Args:
        now_s: a clock of the processor time of this thread, which stands still while the thread waits.
        by_kind: kind of work -> [seconds, how many were worked on, seconds that would pass whatever their number].
    """

    now_s: Callable[[], float]
    by_kind: dict[str, list[float]] = field(default_factory=dict)

    def add(self, kind: str, seconds: float, count: int = 0, fixed_s: float = 0.0) -> None:
        """Note more work of a kind."""
        known = self.by_kind.setdefault(kind, [0.0, 0.0, 0.0])
        for place, more in enumerate((seconds, count, fixed_s)):
            known[place] += more

    def since(self, begun_s: float, kind: str, count: int = 0, fixed_s: float = 0.0) -> None:
        """Note what has passed since `now_s` said `begun_s`."""
        self.add(kind, self.now_s() - begun_s, count, fixed_s)
