"""How many tuples the nodes of a run hold at most, all of them at one moment and one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from simulate.network import Actor, Network, Scheduler


class Storing(Protocol):
    """A node of the ring, of ATR or of CTR."""

    @property
    def stored(self) -> int:
        """How many tuples it has."""


class Watched(Network):
    """A network that looks at all nodes after each step.

    The maxima of single nodes fall at different times, so their sum would be more than there ever was.

    Attributes:
        most: tuples on all nodes, at the moment with the most.
        fullest: tuples on one node, at the moment with the most.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self.most = self.fullest = 0
        self._nodes: Sequence[Storing] = ()

    def play(self, *actors: Actor) -> None:
        """See `Network`; the last actor spreads tuples and stores none."""
        self._nodes = cast(Sequence[Storing], actors[:-1])
        super().play(*actors)

    def step(self) -> bool:
        """See `Network`."""
        happened = super().step()
        held = [node.stored for node in self._nodes]
        self.most, self.fullest = max(self.most, sum(held)), max(self.fullest, *held)
        return happened
