"""The paper's alternative to an order: units keep the tuples of both sides and compare their times.

Source: BiStream, section 3.2.3: a unit of R joins r and s only if r.time <= s.time, one of S only if s.time < r.time.
Nothing waits, but everything is stored at each unit that it reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulate.biclique.messages import Copy, Message, Result, StreamTuple
from simulate.biclique.unit import COLLECTOR
from simulate.network import Network
from streamjoin.plan.window import R

TimeRule = Callable[[int, int], bool]
"""Whether a unit joins r and s, of their times."""


def r_first(r_us: int, s_us: int) -> bool:
    """The rule of R's units, to which a tie belongs."""
    return r_us <= s_us


def s_first(r_us: int, s_us: int) -> bool:
    """The rule of S's units."""
    return s_us < r_us


class TemporalUnit:
    """Keeps both sides and joins each tuple at once with all of the other side that the rule lets it join.

    Args:
        match: what the join asks for, of r and s.
        rule: `r_first` for a unit of R, `s_first` for one of S.
    """

    def __init__(self, name: str, match: Callable[[StreamTuple, StreamTuple], bool], rule: TimeRule) -> None:
        self.name = name
        self.kept: tuple[list[StreamTuple], list[StreamTuple]] = ([], [])
        self._match = match
        self._rule = rule
        self._results = 0

    def receive(self, sender: str, message: Message, network: Network) -> None:
        """A copy; signals mean nothing here."""
        if not isinstance(message, Copy):
            return
        new = message.tuple
        for other in self.kept[1 - new.side]:
            r, s = (new, other) if new.side == R else (other, new)
            if self._rule(r.time_us, s.time_us) and self._match(r, s):
                network.send(self.name, COLLECTOR, Result(self._results, r.number, s.number))
                self._results += 1
        self.kept[new.side].append(new)

    def wake(self, tag: Any, network: Network) -> None:
        """It asks for no timer."""
