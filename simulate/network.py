"""Actors that send messages over FIFO channels, with a virtual clock, faults, and a scheduler for what happens next.

Nothing here is concurrent: one message or timer at a time reaches one actor. Which one is the scheduler's choice, so
that a seed gives one run for ever, and all choices together give every run there is.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

STEPS_MAX = 1_000_000


class Actor(Protocol):
    """One process of a protocol. It knows of others only what it was told."""

    name: str

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """A message has arrived."""

    def wake(self, tag: Any, network: Network) -> None:
        """The time has come that it asked for with `Network.wake_at`."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One line of the log: what reached whom and when, and the message's number in its channel, from 0."""

    at_us: int
    sender: str
    receiver: str
    number: int
    message: Any


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may happen next: the first message of a channel, or a timer (then `sender` is empty).

    Args:
        ready_us: when it can happen at the earliest.
        sequence: in which order it was made, over all channels and timers.
    """

    ready_us: int
    sequence: int
    sender: str
    receiver: str


class Scheduler(Protocol):
    """Decides what happens next."""

    def pick(self, candidates: Sequence[Candidate]) -> int:
        """The place of the chosen one; there is at least one, in the order of `sequence`."""


class Earliest:
    """What is ready first happens first: time passes as the delays of the channels say."""

    def pick(self, candidates: Sequence[Candidate]) -> int:
        """See `Scheduler`."""
        return min(range(len(candidates)), key=lambda at: (candidates[at].ready_us, candidates[at].sequence))


class Shuffled:
    """Any channel may be next, whatever its delay: the interleaving of a seed.

    Args:
        speeds: how much likelier a channel (sender, receiver) is than one that is not named.
    """

    def __init__(self, seed: int, speeds: dict[tuple[str, str], float] | None = None) -> None:
        self._random = random.Random(seed)
        self._speeds = speeds or {}

    def pick(self, candidates: Sequence[Candidate]) -> int:
        """See `Scheduler`."""
        if not self._speeds:
            return self._random.randrange(len(candidates))
        weights = [self._speeds.get((each.sender, each.receiver), 1.0) for each in candidates]
        return self._random.choices(range(len(candidates)), weights)[0]


class Chosen:
    """Follows a list of choices, then takes the first candidate each time; notes how many there were."""

    def __init__(self, choices: Sequence[int] = ()) -> None:
        self._choices = choices
        self.taken: list[int] = []
        self.open: list[int] = []

    def pick(self, candidates: Sequence[Candidate]) -> int:
        """See `Scheduler`."""
        step = len(self.taken)
        choice = self._choices[step] if step < len(self._choices) else 0
        self.taken.append(choice)
        self.open.append(len(candidates))
        return choice


def every_run(play: Callable[[Chosen], None]) -> Iterator[Chosen]:
    """Play once for every sequence of choices, each time from the beginning; cost: as many plays as there are."""
    choices: list[int] | None = []
    while choices is not None:
        scheduler = Chosen(choices)
        play(scheduler)
        yield scheduler
        choices = None
        for step in reversed(range(len(scheduler.taken))):
            if scheduler.taken[step] + 1 < scheduler.open[step]:
                choices = [*scheduler.taken[:step], scheduler.taken[step] + 1]
                break


@dataclass(slots=True)
class Faults:
    """What goes wrong in channels, by the number of the message in its channel (sender, receiver).

    Args:
        lose, repeat: these messages never arrive, or arrive twice in a row.
        overtake: these messages arrive before the one sent just before them.
    """

    lose: set[tuple[str, str, int]] = field(default_factory=set)
    repeat: set[tuple[str, str, int]] = field(default_factory=set)
    overtake: set[tuple[str, str, int]] = field(default_factory=set)


@dataclass(slots=True)
class _Channel:
    queue: deque[tuple[int, int, int, Any]] = field(default_factory=deque)
    """(ready_us, sequence, number, message)."""
    sent: int = 0
    last_ready_us: int = 0


class Network:
    """Actors and the channels between them.

    Args:
        scheduler: decides what happens next.
        delay_us: of a message from its sender to its receiver; none by default. Channels stay FIFO whatever it says.
        faults: what goes wrong.
        keep_log: keep every delivery in `log`.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        delay_us: Callable[[str, str, Any], int] | None = None,
        faults: Faults | None = None,
        keep_log: bool = True,
    ) -> None:
        self.now_us = 0
        self.steps = 0
        self.log: list[Delivery] = []
        self._scheduler = scheduler
        self._delay_us = delay_us
        self._faults = faults or Faults()
        self._keep_log = keep_log
        self._actors: dict[str, Actor] = {}
        self._down: set[str] = set()
        self._channels: dict[tuple[str, str], _Channel] = {}
        self._timers: list[tuple[int, int, str, Any]] = []
        self._sequence = 0

    def add(self, actor: Actor) -> None:
        """Let an actor take part; it replaces one of its name that crashed, and gets what waits for that."""
        self._actors[actor.name] = actor
        self._down.discard(actor.name)

    def play(self, *actors: Actor) -> None:
        """Let actors take part, wake the last of them, and run until nothing can happen any more."""
        for actor in actors:
            self.add(actor)
        self.wake_at(actors[-1].name, 0)
        self.run()

    def actor(self, name: str) -> Actor:
        """For the test that looks on; actors do not use it."""
        return self._actors[name]

    def crash(self, name: str, *, lose_waiting: bool = False) -> None:
        """Let an actor stop: nothing reaches it, and its timers are gone, until it is added again.

        Args:
            lose_waiting: what is on its way to it is lost too; else it waits.
        """
        self._down.add(name)
        self._timers = [timer for timer in self._timers if timer[2] != name]
        heapq.heapify(self._timers)
        if lose_waiting:
            for (_, receiver), channel in self._channels.items():
                if receiver == name:
                    channel.queue.clear()

    def send(self, sender: str, receiver: str, message: Any) -> None:
        """Put a message into the channel from `sender` to `receiver`."""
        channel = self._channels.setdefault((sender, receiver), _Channel())
        number = channel.sent
        channel.sent += 1
        if (sender, receiver, number) in self._faults.lose:
            return
        delay_us = 0 if self._delay_us is None else self._delay_us(sender, receiver, message)
        channel.last_ready_us = max(channel.last_ready_us, self.now_us + delay_us)
        for _ in range(2 if (sender, receiver, number) in self._faults.repeat else 1):
            entry = (channel.last_ready_us, self._next(), number, message)
            if (sender, receiver, number) in self._faults.overtake and channel.queue:
                channel.queue.insert(len(channel.queue) - 1, entry)
            else:
                channel.queue.append(entry)

    def wake_at(self, name: str, at_us: int, tag: Any = None) -> None:
        """Call an actor's `wake` at a time, or now if that is past."""
        heapq.heappush(self._timers, (max(at_us, self.now_us), self._next(), name, tag))

    def work(self, *, probes: int = 0, comparisons: int = 0, inserts: int = 0, purges: int = 0) -> None:
        """What the actor that acts has just done; takes no time here, see `simulate.timed`.

        Args:
            probes: rows or partial results that it took up, to look for what they match.
            comparisons: pairs that it compared.
            inserts, purges: rows that it stored, and that it found too old.
        """

    def waiting(self, receiver: str | None = None) -> int:
        """Messages that are on their way, to one actor or to all."""
        return sum(len(channel.queue) for (_, to), channel in self._channels.items() if receiver in (None, to))

    def step(self) -> bool:
        """Let one thing happen; whether there was any."""
        ready: list[tuple[Candidate, _Channel | None]] = [
            (Candidate(channel.queue[0][0], channel.queue[0][1], *ends), channel)
            for ends, channel in self._channels.items()
            if channel.queue and ends[1] in self._actors and ends[1] not in self._down
        ]
        if self._timers:
            ready.append((Candidate(self._timers[0][0], self._timers[0][1], "", self._timers[0][2]), None))
        if not ready:
            return False
        ready.sort(key=lambda each: each[0].sequence)
        chosen, channel = ready[self._scheduler.pick([candidate for candidate, _ in ready])]
        self.now_us = max(self.now_us, chosen.ready_us)
        self.steps += 1
        if channel is None:
            _, _, name, tag = heapq.heappop(self._timers)
            self._actors[name].wake(tag, self)
            return True
        _, _, number, message = channel.queue.popleft()
        if self._keep_log:
            self.log.append(Delivery(self.now_us, chosen.sender, chosen.receiver, number, message))
        self._actors[chosen.receiver].receive(chosen.sender, message, self)
        return True

    def run(self, until: Callable[[], bool] | None = None, steps_max: int = STEPS_MAX) -> None:
        """Go on until nothing can happen any more, or `until` holds.

        Raises:
            RuntimeError: it did not come to an end within `steps_max` steps.
        """
        for _ in range(steps_max):
            if (until is not None and until()) or not self.step():
                return
        raise RuntimeError(f"the simulation did not end within {steps_max:,} steps")

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence
