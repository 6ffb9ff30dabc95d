"""Replicas: a unit whose machine is lost is rebuilt from what opposite units keep of it.

Source: BiStream, section 3.5. Some of the units that join a tuple write it to their disk afterwards; the unit that
stores it has it in memory alone. Unstated there, and read as:

- **How many**, and which: `replicas` of the units that the tuple is sent to, by a hash. Hash routing sends it to one.
- **When the backup upstream may be trimmed**: once the unit that stores the tuple has processed it and all holders have
  written it; until then the dispatcher keeps each of these messages, and sends it again to whoever is rebuilt.
- **Expiry**: the unit that stores a tuple tells its holders when it lets it go. A holder may be further in the common
  order than the rebuilt unit is.
- **Order**: what a unit gets back has its stamps, and waits in the ordering queue for its turn. A probe that is sent
  again must not meet what came after it.
- **Results** are named by the probe's place in the common order: a rebuilt unit does not know how many it had given.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from simulate.biclique.messages import (
    PROTECTED,
    Copy,
    Home,
    Identity,
    Message,
    Plan,
    Protections,
    Role,
    Safe,
    Signal,
    StreamTuple,
)
from simulate.biclique.order import Inbox
from simulate.biclique.router import SIGNAL_US, Dispatcher
from simulate.biclique.unit import COLLECTOR, Collector, Unit, Window
from simulate.network import Network

ASK_AGAIN_US = 20_000


@dataclass(frozen=True, slots=True)
class Rebuild:
    """From a unit without memory to a dispatcher: send all that you keep for me."""


@dataclass(frozen=True, slots=True)
class Resume:
    """The answer to `Rebuild`: what follows begins with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Restore:
    """From a unit without memory to another unit: give me back what is mine."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The answer to `Restore`: tuples that the receiver stores or holds.

    Args:
        whole: of the tuples that the sender stores these are all that the receiver holds.
    """

    copies: tuple[Copy, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Again:
    """From a rebuilt unit to a holder that may have been rebuilt before it could be told: hold this."""

    copy: Copy


@dataclass(frozen=True, slots=True)
class Expired:
    """From the unit that stores tuples to a holder: they are out of reach of every later probe."""

    identities: tuple[Identity, ...]


@dataclass(frozen=True, slots=True)
class PlacedResult:
    """A joined pair.

    Args:
        place: of the probe in the common order, and of the pair among those of the probe.
        r, s: the tuples' numbers in their streams.
    """

    place: tuple[int, str, int]
    r: int
    s: int


def home_of(item: StreamTuple, targets: Sequence[tuple[str, Role]], replicas: int, dispatcher: str) -> Home:
    """Where a tuple is kept.

    Raises:
        ValueError: fewer units join it than are to keep it.
    """
    (primary,) = (unit for unit, role in targets if role is Role.STORE)
    joined = sorted(unit for unit, role in targets if role is Role.JOIN)
    if len(joined) < replicas:
        raise ValueError(
            f"a tuple is sent to {len(joined)} opposite unit{'s' * (len(joined) != 1)}, so there cannot be {replicas} "
            "replicas of it; take fewer, or a routing with more units per tuple"
        )
    first = crc32(f"replica {item.side} {item.number}".encode()) % len(joined)
    return Home(primary, tuple((joined * 2)[first : first + replicas]), dispatcher)


class ReplicaDisk:
    """What units hold for others; it is there after a crash, unless the machine is lost."""

    def __init__(self) -> None:
        self._written: dict[str, bytes] = {}

    def write(self, unit: str, held: dict[Identity, Copy]) -> None:
        """Replace what the unit wrote before."""
        self._written[unit] = pickle.dumps(held)

    def read(self, unit: str) -> dict[Identity, Copy]:
        """Nothing if it has written nothing yet."""
        return pickle.loads(self._written[unit]) if unit in self._written else {}

    def forget(self, unit: str) -> None:
        """The disk is lost."""
        self._written.pop(unit, None)


class ReplicatingDispatcher(Dispatcher):
    """Says with each tuple where it is kept, and is the backup of all messages about it until it is.

    Args:
        replicas: how many units hold a tuple beside the one that stores it.
    """

    def __init__(
        self,
        name: str,
        shufflers: Sequence[str],
        plan: Plan | None,
        signal_us: int = SIGNAL_US,
        skew_us: int = 0,
        protections: Protections = PROTECTED,
        *,
        replicas: int,
    ) -> None:
        super().__init__(name, shufflers, plan, signal_us, skew_us, protections, keep=True)
        self._replicas = replicas
        self._safe: Counter[str] = Counter()
        self._duties: dict[Identity, list[tuple[str, int]]] = {}
        """By tuple, whose messages have to be safe before any of them is forgotten."""

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """See `Dispatcher`; a unit without memory asks for all that is kept for it."""
        if not isinstance(message, Rebuild):
            super().receive(sender, message, network)
            return
        output = self._output(sender)
        first = output.kept[0].number if output.kept else output.sent
        self._safe[sender] = first
        network.send(self.name, sender, Resume(first))
        for each in output.kept:
            network.send(self.name, sender, each)
        # It may know no signal, and this dispatcher may have left.
        self._send(sender, Signal(output.sent, self.clock, last=self._left), network)
        if self._left:
            network.wake_at(self.name, network.now_us + self._signal_us)

    def _home(self, item: StreamTuple, targets: Sequence[tuple[str, Role]]) -> Home | None:
        return home_of(item, targets, self._replicas, self.name)

    def _send(self, unit: str, message: Message, network: Network) -> None:
        if (
            isinstance(message, Copy)
            and message.home is not None
            and unit in (message.home.primary, *message.home.holders)
        ):
            self._duties.setdefault(message.tuple.identity, []).append((unit, message.number))
        super()._send(unit, message, network)

    def _trim(self, unit: str, number: int) -> None:
        self._safe[unit] = max(self._safe[unit], number)
        for name, output in self._outputs.items():
            while output.kept and output.kept[0].number < self._safe[name] and self._is_kept(output.kept[0]):
                output.kept.popleft()

    def _is_kept(self, message: Message) -> bool:
        """Whether all who are to keep the message's tuple do."""
        if isinstance(message, Signal) or not self._protections.safe_with_replicas:
            return True
        return all(number < self._safe[unit] for unit, number in self._duties[message.tuple.identity])


class ReplicatedUnit(Unit):
    """A unit whose tuples are in its memory alone, and that holds some of the tuples that it joins on its disk.

    Args:
        others: all other units.
        replica_disk: where it writes what it holds.
    """

    def __init__(
        self,
        name: str,
        side: int,
        dispatchers: Sequence[str],
        match: Callable[[StreamTuple, StreamTuple], bool],
        window: Window | None = None,
        protections: Protections = PROTECTED,
        *,
        others: Sequence[str],
        replica_disk: ReplicaDisk,
    ) -> None:
        super().__init__(name, side, dispatchers, match, window, protections)
        self.held = replica_disk.read(name)
        self.held_most = 0
        self.copies: dict[Identity, Copy] = {}
        """What it stores, with where else that is kept."""
        self._others = tuple(others)
        self._replica_disk = replica_disk
        self._asked: set[str] = set()
        self._unresumed: set[str] = set()
        self._told: dict[str, int] = {}
        self._given_back: set[Identity] = set()

    @property
    def is_whole(self) -> bool:
        """Whether it has got back all that it asked for."""
        return not self._asked and not self._unresumed

    def recover(self, network: Network) -> None:
        """On the recovery node: ask dispatchers for what they keep for it, and then the others for what it had.

        A holder that is asked first may still wait to process a tuple, and the dispatcher forget it a little later.
        """
        self._asked = set(self._others)
        self._unresumed = set(self.state.queue.signals)
        for dispatcher in sorted(self._unresumed):
            network.send(self.name, dispatcher, Rebuild())
        if not self._protections.restored_after_resumed:
            self._ask(network)

    def wake(self, tag: Any, network: Network) -> None:
        """Ask those again who have not answered: what was asked of a unit that crashed may be lost."""
        if self._asked:
            self._ask(network)

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """A copy or a signal from a dispatcher, or a word from another unit."""
        match message:
            case Resume(number):
                self._unresumed.discard(sender)
                self.state.inboxes[sender] = Inbox(number)
                if not self._unresumed and self._protections.restored_after_resumed:
                    self._ask(network)
            case Restore():
                network.send(self.name, sender, self._of(sender))
            case Restored():
                self._take_back(sender, message, network)
            case Again(copy):
                self.held[copy.tuple.identity] = copy
                self._hold()
            case Expired(identities):
                self._let_go(identities)
            case _ if sender not in self._unresumed:  # what was on its way before it crashed comes again
                for each in self._in_turn(sender, message, network):
                    self._accept(sender, each, network)
        if self.is_whole:
            for copy in self.state.queue.release():
                self._process(copy, network)
            self._tell_safe(network)

    def _ask(self, network: Network) -> None:
        for unit in sorted(self._asked):
            network.send(self.name, unit, Restore())
        network.wake_at(self.name, network.now_us + ASK_AGAIN_US)

    def _of(self, unit: str) -> Restored:
        """What another unit stores or holds, as far as it is known here."""
        stored = [copy for copy in self.held.values() if copy.home is not None and copy.home.primary == unit]
        held = [copy for copy in self.copies.values() if copy.home is not None and unit in copy.home.holders]
        return Restored((*stored, *held), self.is_whole)

    def _take_back(self, sender: str, message: Restored, network: Network) -> None:
        is_answer = sender in self._asked
        for copy in message.copies:
            assert copy.home is not None
            if copy.home.primary != self.name:
                self.held[copy.tuple.identity] = copy
            elif copy.tuple.identity not in self._given_back and is_answer:
                self._given_back.add(copy.tuple.identity)
                again = replace(copy, role=Role.STORE)
                if self._protections.restored_in_order:
                    self.state.queue.put(copy.home.dispatcher, again)
                else:
                    self._process(again, network)
        if message.whole and is_answer:
            known = {copy.tuple.identity for copy in message.copies}
            gone = [
                identity
                for identity, copy in self.held.items()
                if copy.home is not None and copy.home.primary == sender and identity not in known
            ]
            self._let_go(gone)
        self._hold()
        self._asked.discard(sender)

    def _process(self, copy: Copy, network: Network) -> None:
        self.processed.append(copy.tuple.identity)
        assert copy.home is not None
        if copy.role is Role.STORE:
            self.state.stored[copy.tuple.identity] = copy.tuple
            self.copies[copy.tuple.identity] = copy
            self.stored_most = max(self.stored_most, len(self.state.stored))
            if copy.tuple.identity in self._given_back:
                for holder in copy.home.holders:
                    network.send(self.name, holder, Again(copy))
            if not self._protections.expired_by_primary and self._window is not None:
                reach = self._window.width_us + self._window.delay_us
                self._let_go(
                    [name for name, held in self.held.items() if copy.tuple.time_us - held.tuple.time_us > reach]
                )
            return
        before = set(self.state.stored)
        self._discard(copy.tuple)
        self._tell_expired(before - set(self.state.stored), network)
        pairs = sorted(self._partners(copy.tuple), key=lambda pair: (pair[0].number, pair[1].number))
        for rank, (r, s) in enumerate(pairs):
            place = copy.stamp, copy.home.dispatcher, rank
            network.send(self.name, COLLECTOR, PlacedResult(place, r.number, s.number))
        if self.name in copy.home.holders:
            self.held[copy.tuple.identity] = copy
            self._hold()

    def _tell_expired(self, identities: Collection[Identity], network: Network) -> None:
        by_holder: dict[str, list[Identity]] = {}
        for identity in sorted(identities):
            home = self.copies.pop(identity).home
            assert home is not None
            for holder in home.holders:
                by_holder.setdefault(holder, []).append(identity)
        if self._protections.expired_by_primary:
            for holder, gone in by_holder.items():
                network.send(self.name, holder, Expired(tuple(gone)))

    def _let_go(self, identities: Collection[Identity]) -> None:
        for identity in identities:
            self.held.pop(identity, None)
        self._hold()

    def _hold(self) -> None:
        self.held_most = max(self.held_most, len(self.held))
        self._replica_disk.write(self.name, self.held)

    def _tell_safe(self, network: Network) -> None:
        """What it has processed; what it holds of that is on disk."""
        for dispatcher, inbox in self.state.inboxes.items():
            lowest = self.state.queue.lowest(dispatcher)
            number = inbox.next if lowest is None else lowest
            if number > self._told.get(dispatcher, 0):
                self._told[dispatcher] = number
                network.send(self.name, dispatcher, Safe(number))


class PlaceCollector(Collector):
    """Takes each result once: a unit that is rebuilt finds results of probes that are sent again at the same places."""

    def __init__(self, protections: Protections = PROTECTED) -> None:
        super().__init__(protections)
        self._last: dict[str, tuple[int, str, int]] = {}

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """A result from a unit."""
        if sender in self._last and message.place <= self._last[sender] and self._protections.numbered_results:
            self.repeats += 1
            return
        self._last[sender] = message.place
        self.pairs.append((message.r, message.s))
        self.found_us.append(network.now_us)
