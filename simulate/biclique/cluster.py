"""A whole join-biclique on a simulated network, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from simulate.biclique.manager import Change, Manager
from simulate.biclique.messages import PROTECTED, Arrival, Identity, Plan, Protections, StreamTuple
from simulate.biclique.router import SIGNAL_US, Dispatcher, Shuffler
from simulate.biclique.unit import Collector, Disk, Unit, Window
from simulate.network import Actor, Network
from streamjoin.plan.window import R, S


def equal_keys(r: StreamTuple, s: StreamTuple) -> bool:
    """The equality join."""
    return r.key == s.key


@dataclass(frozen=True)
class Setting:
    """What a run is made of.

    Args:
        plan: units and routing at first.
        dispatchers, shufflers: how many at first; they are called y0, y1, ... and x0, x1, ...
        signal_us: how often dispatchers signal.
        skews_us: by shuffler or dispatcher, how far its clock is ahead.
        disk: units write their state, dispatchers keep what is not written.
        changes: who comes and goes.
        seed: of the dealing.
    """

    plan: Plan
    dispatchers: int = 2
    shufflers: int = 1
    signal_us: int = SIGNAL_US
    skews_us: Mapping[str, int] = field(default_factory=dict)
    match: Callable[[StreamTuple, StreamTuple], bool] = equal_keys
    window: Window | None = None
    protections: Protections = PROTECTED
    disk: bool = False
    write_every: int = 3
    changes: Sequence[Change] = ()
    seed: int = 0


class Cluster:
    """Shufflers, dispatchers, units, manager and collector of a setting, added to a network.

    Args:
        arrivals: the input, dealt to shufflers in turn.
    """

    def __init__(self, network: Network, setting: Setting, arrivals: Sequence[Arrival]) -> None:
        self.network = network
        self.setting = setting
        self.disk = Disk() if setting.disk else None
        self._at_first = [f"y{number}" for number in range(setting.dispatchers)]
        shufflers = [f"x{number}" for number in range(setting.shufflers)]
        later = sorted({name for change in setting.changes for name in change.dispatchers} - {*self._at_first})
        units = sorted({*setting.plan.units, *(unit for change in setting.changes for unit in change.plan.units)})
        self.shufflers = [
            Shuffler(
                name,
                arrivals[number :: len(shufflers)],
                self._at_first,
                setting.seed + number,
                setting.skews_us.get(name, 0),
            )
            for number, name in enumerate(shufflers)
        ]
        self.dispatchers = [
            Dispatcher(
                name,
                shufflers,
                setting.plan if name in self._at_first else None,
                setting.signal_us,
                setting.skews_us.get(name, 0),
                setting.protections,
                setting.disk,
            )
            for name in [*self._at_first, *later]
        ]
        self.units = {name: self._unit(name) for name in units}
        self.manager = Manager(shufflers, self._at_first, setting.changes, setting.protections)
        self.collector = Collector(setting.protections)
        starters: list[Shuffler | Dispatcher | Manager] = [*self.shufflers, *self.dispatchers, self.manager]
        actors: list[Actor] = [*starters, *self.units.values(), self.collector]
        for actor in actors:
            network.add(actor)
        for starter in starters:
            starter.start(network)

    def recover(self, name: str) -> None:
        """Start a unit that crashed again, with what it has on disk."""
        self.units[name] = self._unit(name)
        self.network.add(self.units[name])
        self.units[name].recover(self.network)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """What was found, sorted; a pair that was found twice is there twice."""
        return sorted(self.collector.pairs)

    @property
    def processed(self) -> dict[str, list[Identity]]:
        """What each unit processed, in its order."""
        return {name: unit.processed for name, unit in self.units.items()}

    @property
    def assigned(self) -> dict[str, list[Identity]]:
        """What dispatchers meant for each unit."""
        assigned: dict[str, list[Identity]] = {name: [] for name in self.units}
        for dispatcher in self.dispatchers:
            for unit, identities in dispatcher.assigned.items():
                assigned[unit] += identities
        return assigned

    @property
    def waiting(self) -> int:
        """Tuples that units have received and not processed."""
        return sum(
            len(unit.state.queue) + sum(len(inbox.early) for inbox in unit.state.inboxes.values())
            for unit in self.units.values()
        )

    def _unit(self, name: str) -> Unit:
        setting = self.setting
        known = list(self._at_first)
        for change in setting.changes if name not in setting.plan.units else ():
            if name in change.plan.units:
                break
            known += [each for each in change.dispatchers if each not in known]
        return Unit(
            name,
            R if name.startswith("R") else S,
            known,
            setting.match,
            setting.window,
            setting.protections,
            self.disk,
            setting.write_every,
        )
