"""How units and dispatchers come and go: everybody changes at one stamp of the global order.

The paper does not say how (section 5 says when). Reading: dispatchers hold back their input, the manager takes the
highest clock, and all go on above it by the new plan. So which plan a tuple follows depends on its stamp alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulate.biclique.messages import PROTECTED, Dispatchers, Held, Hold, Plan, Protections, Switch
from simulate.network import Network


@dataclass(frozen=True, slots=True)
class Change:
    """From `at_us` on, this plan and these dispatchers; one that left never comes back under its name."""

    at_us: int
    plan: Plan
    dispatchers: tuple[str, ...]


class Manager:
    """Carries out changes, one after the other.

    Args:
        changes: in the order of their times.
    """

    def __init__(
        self,
        shufflers: Sequence[str],
        dispatchers: Sequence[str],
        changes: Sequence[Change],
        protections: Protections = PROTECTED,
    ) -> None:
        self.name = "manager"
        self.stamps: list[int] = []
        """Where the plans change."""
        self._shufflers = shufflers
        self._known = tuple(dispatchers)
        self._changes = list(changes)
        self._protections = protections
        self._clocks: dict[str, int] = {}

    def start(self, network: Network) -> None:
        """Wait for the first change."""
        if self._changes:
            network.wake_at(self.name, self._changes[0].at_us)

    def wake(self, tag: Any, network: Network) -> None:
        """It is time for a change."""
        if not self._protections.agreed_stamp:
            self._switch(0, network)
            return
        for dispatcher in self._known:
            network.send(self.name, dispatcher, Hold())

    def receive(self, sender: str, message: Held, network: Network) -> None:
        """A dispatcher holds."""
        self._clocks[sender] = message.clock
        if len(self._clocks) == len(self._known):
            stamp = max(self._clocks.values())
            self._clocks = {}
            self.stamps.append(stamp)
            self._switch(stamp, network)

    def _switch(self, stamp: int, network: Network) -> None:
        change = self._changes.pop(0)
        newcomers = tuple(name for name in change.dispatchers if name not in self._known)
        # Those that leave too: they may still have input from before.
        self._known += newcomers
        for dispatcher in self._known:
            network.send(self.name, dispatcher, Switch(stamp, change.plan, newcomers))
        for shuffler in self._shufflers:
            network.send(self.name, shuffler, Dispatchers(change.dispatchers))
        self.start(network)
