"""The router's two tiers: shufflers stamp tuples and deal them to dispatchers, which send copies to units.

Source: BiStream, sections 3.2.1 and 3.2.3. A dispatcher's logical clock is max(clock + 1, wall clock in us) at every
tuple and at every signal. The paper's counter, moved by tuples alone, stops when a dispatcher has no input, and then
no unit may process anything of the others.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from simulate.biclique.messages import (
    PROTECTED,
    Arrival,
    Copy,
    Dispatchers,
    Held,
    Hold,
    Home,
    Identity,
    InputEnd,
    Message,
    Plan,
    Protections,
    Replay,
    Role,
    Safe,
    Signal,
    StreamTuple,
    Switch,
)
from simulate.network import Network

SIGNAL_US = 10_000


class Shuffler:
    """Gives each arrival its time and deals it to a dispatcher: at random, but to each equally often.

    Args:
        arrivals: its input.
        dispatchers: who takes part at first.
        seed: of the dealing.
        skew_us: how far its clock is ahead.
    """

    def __init__(
        self, name: str, arrivals: Sequence[Arrival], dispatchers: Sequence[str], seed: int = 0, skew_us: int = 0
    ) -> None:
        self.name = name
        self.dealt: Counter[str] = Counter()
        self.stamped: list[StreamTuple] = []
        self._arrivals = arrivals
        self._dispatchers = tuple(dispatchers)
        self._random = random.Random(seed)
        self._skew_us = skew_us
        self._round: list[str] = []
        self._ended = False

    def start(self, network: Network) -> None:
        """Let its input begin."""
        for arrival in self._arrivals:
            network.wake_at(self.name, arrival.at_us, arrival)
        network.wake_at(self.name, max((arrival.at_us for arrival in self._arrivals), default=0))

    def wake(self, tag: Arrival | None, network: Network) -> None:
        """A tuple arrives, or there is none left."""
        if tag is None:
            self._ended = True
            for dispatcher in self._dispatchers:
                network.send(self.name, dispatcher, InputEnd())
            return
        item = StreamTuple(tag.side, tag.number, tag.key, network.now_us + self._skew_us)
        self.stamped.append(item)
        if not self._round:
            self._round = self._random.sample(self._dispatchers, len(self._dispatchers))
        dispatcher = self._round.pop()
        self.dealt[dispatcher] += 1
        network.send(self.name, dispatcher, item)

    def receive(self, sender: str, message: Dispatchers, network: Network) -> None:
        """Other dispatchers take part."""
        before, self._dispatchers, self._round = self._dispatchers, message.names, []
        gone = [name for name in before if name not in message.names]
        for name in [name for name in message.names if name not in before] if self._ended else gone:
            network.send(self.name, name, InputEnd())


@dataclass(slots=True)
class _Output:
    """What goes to one unit: a dispatcher is the backup of those below it (section 3.5)."""

    sent: int = 0
    kept: deque[Message] = field(default_factory=deque)
    fresh: bool = False
    """Whether a tuple was sent since the last signal."""


class Dispatcher:
    """Stamps tuples with its logical clock, sends their copies, and tells all units how far its clock is.

    Args:
        shufflers: whose input it waits for.
        plan: who gets what at first; None lets it wait until the manager says.
        signal_us: how often it signals.
        skew_us: how far its wall clock is ahead.
        keep: keep what is sent until the unit says it is safe.
    """

    def __init__(
        self,
        name: str,
        shufflers: Sequence[str],
        plan: Plan | None,
        signal_us: int = SIGNAL_US,
        skew_us: int = 0,
        protections: Protections = PROTECTED,
        keep: bool = False,
    ) -> None:
        self.name = name
        self.clock = 0
        self.stored: Counter[str] = Counter()
        """Its share of the statistics: tuples that each unit stores."""
        self.assigned: dict[str, list[Identity]] = {}
        self.output_most = 0
        self._open = set(shufflers)
        self._plan = plan
        self._signal_us = signal_us
        self._skew_us = skew_us
        self._protections = protections
        self._keep = keep
        self._held: list[tuple[str, StreamTuple | InputEnd]] | None = None if plan else []
        self._outputs: dict[str, _Output] = {}
        self._left = False

    def start(self, network: Network) -> None:
        """Let its signals begin."""
        if self._plan is not None:
            network.wake_at(self.name, network.now_us + self._signal_us)

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """A tuple or the end from a shuffler, a unit's report, or the manager's word."""
        match message:
            case StreamTuple() | InputEnd():
                if self._held is None:
                    self._take(sender, message, network)
                else:
                    self._held.append((sender, message))
            case Safe(number):
                self._trim(sender, number)
            case Replay(number):
                self._replay(sender, number, network)
            case Hold():
                self._held = []
                network.send(self.name, sender, Held(self.clock))
            case Switch():
                self._switch(message, network)

    def wake(self, tag: Any, network: Network) -> None:
        """A period is over: signal. Once it has left, repeat its last word to those who may not have it."""
        if self._left:
            unsafe = [(unit, output.kept[-1]) for unit, output in self._outputs.items() if output.kept]
            for unit, last in unsafe:
                network.send(self.name, unit, last)
            if not unsafe:
                return
        elif self._held is None:
            self._signal(network)
        network.wake_at(self.name, network.now_us + self._signal_us)

    def _take(self, sender: str, message: StreamTuple | InputEnd, network: Network) -> None:
        if isinstance(message, InputEnd):
            self._open.discard(sender)
            if not self._open and not self._left:
                self._left = True
                self._signal(network, last=True)
            return
        assert self._plan is not None
        self._tick(network)
        targets = self._plan.assign(message)
        home = self._home(message, targets)
        for unit, role in targets:
            self.assigned.setdefault(unit, []).append(message.identity)
            self.stored[unit] += role is Role.STORE
            output = self._output(unit)
            output.fresh = True
            self._send(unit, Copy(output.sent, self.clock, message, role, home), network)

    def _home(self, item: StreamTuple, targets: Sequence[tuple[str, Role]]) -> Home | None:
        """Where the tuple is kept; None without replicas."""
        return None

    def _trim(self, unit: str, number: int) -> None:
        """A unit has what is below this number."""
        kept = self._outputs[unit].kept
        while kept and kept[0].number < number:
            kept.popleft()

    def _tick(self, network: Network) -> None:
        self.clock += 1
        if self._protections.wall_clock:
            self.clock = max(self.clock, network.now_us + self._skew_us)

    def _signal(self, network: Network, last: bool = False, newcomers: tuple[str, ...] = ()) -> None:
        assert self._plan is not None
        if self._protections.wall_clock:
            self._tick(network)
        for unit in self._plan.units:
            output = self._output(unit)
            if output.fresh or last or newcomers or self._protections.signals_to_all:
                output.fresh = False
                self._send(unit, Signal(output.sent, self.clock, last, newcomers), network)

    def _replay(self, unit: str, number: int, network: Network) -> None:
        output = self._output(unit)
        if number < output.sent - len(output.kept):
            raise LookupError(f"{unit} asks {self.name} for message {number}, which it no longer has")
        for each in output.kept:
            if each.number >= number:
                network.send(self.name, unit, each)

    def _switch(self, message: Switch, network: Network) -> None:
        begins = self._plan is None
        self._plan = message.plan
        if self._left:
            for unit in message.plan.units:
                if unit not in self._outputs:
                    self._send(unit, Signal(0, self.clock, last=True), network)
        else:
            self.clock = max(self.clock, message.stamp)
            if self.name in message.newcomers and begins:
                self.start(network)
            elif message.newcomers and self._protections.announced:
                self._announce(message, network)
        held, self._held = self._held or [], None
        for sender, each in held:
            self._take(sender, each, network)

    def _announce(self, message: Switch, network: Network) -> None:
        # Not a tick: the newcomer's stamps begin right above this one.
        for unit in message.plan.units:
            output = self._output(unit)
            self._send(unit, Signal(output.sent, self.clock, newcomers=message.newcomers), network)

    def _output(self, unit: str) -> _Output:
        return self._outputs.setdefault(unit, _Output())

    def _send(self, unit: str, message: Message, network: Network) -> None:
        output = self._output(unit)
        output.sent += 1
        if self._keep:
            output.kept.append(message)
            self.output_most = max(self.output_most, len(output.kept))
        network.send(self.name, unit, message)
