"""What single steps of a ring take, as its units were watched at work (PSP, table 1).

A batch gives one observation of a time: what all nodes spent on a kind of work, by how many they worked on. Where that
is hardly more than what would have passed for nothing, as in a batch of few rows, it tells nothing of a single one and
is left out. A time is the median of the last observations, which a clock that jumps, or a machine that is busy with
something else for some batches, does not move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from statistics import median

from streamjoin.operators.costs.psp import StepTimes

KEPT, ENOUGH = 9, 5
"""How many observations of a time are remembered, and how many it takes to be one."""
LEAST_S, MOST_S = 1e-10, 1e3
"""No step takes less or more: whatever is outside is no observation."""
_CLEAR = 2.0
"""An observation takes so many times what would have passed anyway."""
_SECONDS_MIN = 1e-3
"""Shorter work than this tells more of the clock than of the work."""
SYMBOLS = {"join": "T_j", "send": "T_s", "hop": "T_n", "insert": "T_i", "purge": "T_p"}
"""Times by their name in `StepTimes` -> what the paper calls them."""
SET, MEASURED, ASSUMED = "set", "measured", "assumed"
Taken = tuple[float, float, float]
"""Seconds, how many were worked on, and the seconds that would have passed anyway."""


def observed_s(taken: Taken) -> float | None:
    """What one of them took; None where that cannot be told."""
    seconds, count, anyway_s = taken
    if not (isfinite(seconds) and count > 0 and seconds >= max(_CLEAR * anyway_s, _SECONDS_MIN)):
        return None
    each_s = seconds / count
    return each_s if LEAST_S <= each_s <= MOST_S else None


@dataclass(slots=True)
class Watched:
    """Times of steps by name, of a job that runs.

    Args:
        known: what an earlier start measured; it holds until as much is measured anew.
    """

    known: dict[str, float] = field(default_factory=dict)
    _seen: dict[str, deque[float]] = field(default_factory=dict)

    def add(self, observed: Mapping[str, float | None]) -> None:
        """Note the observations of a batch; None where it made none."""
        for name, seconds in observed.items():
            if seconds is None:
                continue
            seen = self._seen.setdefault(name, deque(maxlen=KEPT))
            seen.append(seconds)
            if len(seen) >= ENOUGH:
                self.known[name] = median(seen)


def resolved(times: StepTimes, given: Collection[str], measured: Mapping[str, float]) -> StepTimes:
    """What steps take: what is set, else what is measured, else what is assumed.

    Args:
        times: with what is set, and assumptions for the rest.
        given: the names of those that are set.
    """
    return replace(times, **{name: seconds for name, seconds in measured.items() if name not in given})


@dataclass(frozen=True, slots=True)
class Term:
    """A time of the model, for people.

    Args:
        name: in `StepTimes`.
        symbol: what the paper calls it.
        origin: `set`, `measured` or `assumed`.
    """

    name: str
    symbol: str
    us: float
    origin: str


def terms(times: StepTimes, given: Collection[str], measured: Mapping[str, float]) -> list[Term]:
    """All of them; see `resolved`."""
    found = resolved(times, given, measured)
    return [
        Term(
            name, symbol, getattr(found, name) * 1e6,
            SET if name in given else MEASURED if name in measured else ASSUMED,
        )
        for name, symbol in SYMBOLS.items()
    ]  # fmt: skip
