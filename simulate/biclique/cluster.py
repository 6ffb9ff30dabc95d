"""A whole join-biclique on a simulated network, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from simulate.biclique.manager import Change, Manager
from simulate.biclique.messages import PROTECTED, Arrival, Identity, Plan, Protections, StreamTuple
from simulate.biclique.replicas import PlaceCollector, ReplicaDisk, ReplicatedUnit, ReplicatingDispatcher
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
        replicas: how many of the units that join a tuple keep it, beside the one that stores it; 0 for none.
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
    replicas: int = 0
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
        self.replica_disk = ReplicaDisk()
        self.dispatchers = [self._dispatcher(name, shufflers) for name in [*self._at_first, *later]]
        self.units = {name: self._unit(name) for name in units}
        self.manager = Manager(shufflers, self._at_first, setting.changes, setting.protections)
        self.collector = (PlaceCollector if setting.replicas else Collector)(setting.protections)
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

    def lose(self, name: str, *, disk: bool, lose_waiting: bool = True) -> None:
        """A unit's machine stops: its memory is gone, with its disk or without."""
        self.network.crash(name, lose_waiting=lose_waiting)
        if disk:
            self.replica_disk.forget(name)

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

    def _dispatcher(self, name: str, shufflers: Sequence[str]) -> Dispatcher:
        setting = self.setting
        plan = setting.plan if name in self._at_first else None
        clock = setting.signal_us, setting.skews_us.get(name, 0)
        if setting.replicas:
            return ReplicatingDispatcher(name, shufflers, plan, *clock, setting.protections, replicas=setting.replicas)
        return Dispatcher(name, shufflers, plan, *clock, setting.protections, setting.disk)

    def _unit(self, name: str) -> Unit:
        setting = self.setting
        side = R if name.startswith("R") else S
        if setting.replicas:
            others = [unit for unit in setting.plan.units if unit != name]
            return ReplicatedUnit(
                name, side, self._at_first, setting.match, setting.window, setting.protections,
                others=others, replica_disk=self.replica_disk,
            )  # fmt: skip
        known = list(self._at_first)
        for change in setting.changes if name not in setting.plan.units else ():
            if name in change.plan.units:
                break
            known += [each for each in change.dispatchers if each not in known]
        return Unit(
            name,
            side,
            known,
            setting.match,
            setting.window,
            setting.protections,
            self.disk,
            setting.write_every,
        )
