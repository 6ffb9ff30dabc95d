"""Units that come, drain and leave between two batches, what is asked for, and what was decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DECISIONS_KEPT = 50
"""The last ones, which the state remembers; reports have them all."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a unit stores."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Member:
    """A unit. Numbers are never used again, so nothing of a unit that left can be taken for another one's.

    Args:
        since: the first batch that it takes part in.
        drains: it stores nothing new.
    """

    number: int
    since: int = 0
    drains: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for in the last round.

    Args:
        wish: more units, or fewer where negative.
        times: in how many rounds in a row it was the same direction, since units changed last.
        load: tau.
    """

    wish: int = 0
    times: int = 0
    load: float = 0.0

    def again(self, wish: int, load: float) -> Asked:
        """What is asked for in the round after it."""
        if not wish:
            return Asked(0, 0, load)
        same = bool(self.wish) and (wish > 0) == (self.wish > 0)
        return Asked(wish, (self.times if same else 0) + 1, load)


@dataclass(frozen=True, slots=True)
class Decision:
    """A change of some units that are decided on together, with the numbers that it was made by.

    Args:
        plan: the number of the plan that it made.
        batch: the first one that follows it.
        at_us: when it was made, by the clock of the batch.
        side: whose units; R or S, or the ring's.
        group: of which subgroup.
        units: how many stored before.
        bytes: what all of them had, with those that drain.
        load: tau; 0 where units left, which are empty.
        wish: how many units more or fewer were asked for.
        added, drained, left: numbers of units.
        way: how what is stored gets to its unit, where there is more than one way.
    """

    plan: int
    batch: int
    at_us: int
    side: str
    group: int
    units: int
    bytes: int = 0
    load: float = 0.0
    wish: int = 0
    added: tuple[int, ...] = ()
    drained: tuple[int, ...] = ()
    left: tuple[int, ...] = ()
    way: str = ""

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Decision:
        """The inverse of `dataclasses.asdict`, also after a text was made of it."""
        return Decision(**{**value, **{name: tuple(value[name]) for name in ("added", "drained", "left")}})
