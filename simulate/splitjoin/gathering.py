"""From the regions to the output: a tree of mergers for each side, a Combiner, and policies of what to read next.

Section on result gathering, Algorithm 5. A policy is a merger's whole knowledge of order; it sees the first message of
each input and says which input may be read, and when a star is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from simulate.network import Network
from simulate.splitjoin.buffers import Node, Step
from simulate.splitjoin.messages import (
    Barrier,
    Change,
    Closed,
    Label,
    Message,
    Ordering,
    Precision,
    Result,
    Star,
)
from simulate.stream import Stream

Heads = Mapping[str, Message | None]
"""The first message of each open input, in core order."""


class Policy:
    """Passes on what comes, in any order: what mergers do without punctuation, and the Combiner always.

    Args:
        ports: the open inputs, in core order.
        position: of the next tuple in the sequence.
    """

    def __init__(self, ports: Sequence[str], position: int = 0) -> None:
        self.ports = list(ports)
        self.position = position

    def may_read(self, heads: Heads) -> str | None:
        """The input to read next."""
        return next((port for port in self.ports if isinstance(heads[port], Result | Star)), None)

    def take(self, port: str, message: Result | Star) -> Result | Star | None:
        """What to pass on of it."""
        return message

    def star_due(self, heads: Heads) -> Star | None:
        """A star that must go out before anything is read."""
        return None

    def waits_for(self, heads: Heads) -> list[str]:
        """When nothing may be read: the inputs that hold up what others gave."""
        return []

    def close(self, port: str) -> None:
        """Nothing comes from that input any more."""
        self.ports.remove(port)


class Shut(Policy):
    """Outer order: an input that gave its star is shut while the others go on; then one star for all of them."""

    def __init__(self, ports: Sequence[str], position: int = 0) -> None:
        super().__init__(ports, position)
        self._starred: dict[str, Star] = {}

    def may_read(self, heads: Heads) -> str | None:
        """See `Policy`."""
        free = (port for port in self.ports if port not in self._starred)
        return next((port for port in free if isinstance(heads[port], Result | Star)), None)

    def take(self, port: str, message: Result | Star) -> Result | Star | None:
        """See `Policy`."""
        if isinstance(message, Result):
            return message
        self._starred[port] = message
        return None

    def star_due(self, heads: Heads) -> Star | None:
        """See `Policy`."""
        if not self.ports or len(self._starred) < len(self.ports):
            return None
        star = self._starred[self.ports[-1]]
        self._starred.clear()
        return star

    def waits_for(self, heads: Heads) -> list[str]:
        """See `Policy`."""
        return [port for port in self.ports if port not in self._starred] if self._starred else []

    def close(self, port: str) -> None:
        """See `Policy`."""
        super().close(port)
        self._starred.pop(port, None)


class InPortOrder(Shut):
    """Outer order as Algorithm 5 prints it: the first input up to its star, then the second, and so on; one star."""

    def may_read(self, heads: Heads) -> str | None:
        """See `Policy`."""
        turn = next((port for port in self.ports if port not in self._starred), None)
        return turn if turn is not None and isinstance(heads[turn], Result | Star) else None


class Aligned(Policy):
    """Inner order: sections of inputs are put together by their labels, in core order within a label.

    Counting stars, as Algorithm 5 does, is right only as long as the oldest live tuple lies in the first core. By
    label, an input that holds nothing of a storage round is simply past it. One star goes out for each label.
    """

    def __init__(self, ports: Sequence[str], position: int = 0) -> None:
        super().__init__(ports, position)
        self._passed = {port: Label(-1, inf) for port in ports}
        """What comes from an input has a greater label."""
        self._taken: Star | None = None
        """Read from an input, not yet passed on."""
        self._unfinished: Star | None = None
        """Passed on, but it was not the last of its probe."""

    def may_read(self, heads: Heads) -> str | None:
        """See `Policy`: an input before which no other can still have anything."""
        for port in self.ports:
            head = heads[port]
            # Of several inputs that stand at one label, this finds the first.
            if isinstance(head, Result | Star) and all(
                _label(heads[other]) == head.label or self._beyond(other, head.label, heads) for other in self.ports
            ):
                return port
        return None

    def take(self, port: str, message: Result | Star) -> Result | Star | None:
        """See `Policy`."""
        if isinstance(message, Result):
            return message
        self._passed[port] = Label(message.label.probe, inf) if message.last else message.label
        self._taken = message
        return None

    def star_due(self, heads: Heads) -> Star | None:
        """See `Policy`."""
        if self._taken is not None and self._all_beyond(self._taken.label, heads):
            taken, self._taken = self._taken, None
            star = replace(taken, last=self._all_beyond(Label(taken.label.probe, inf), heads))
            self._unfinished = None if star.last else star
            return star if star.last or star.label.storage_round >= 0 else None
        if self._taken is None and self._unfinished is not None:
            # The input that should have ended the probe was closed.
            label = Label(self._unfinished.label.probe, inf)
            if self._all_beyond(label, heads):
                star, self._unfinished = replace(self._unfinished, label=label, last=True), None
                return star
        return None

    def waits_for(self, heads: Heads) -> list[str]:
        """See `Policy`."""
        given = [_label(head) for head in heads.values() if head is not None]
        given += [self._taken.label] if self._taken is not None else []
        return [
            port for port in self.ports if given and heads[port] is None and not self._beyond(port, min(given), heads)
        ]

    def _beyond(self, port: str, label: Label, heads: Heads) -> bool:
        head = heads[port]
        return self._passed[port] >= label or (head is not None and _label(head) > label)

    def _all_beyond(self, label: Label, heads: Heads) -> bool:
        return bool(self.ports) and all(self._beyond(port, label, heads) for port in self.ports)


class ByPosition(Policy):
    """Total order, an extension: for the Combiner.

    Each place of the sequence is one processed tuple of one of the two trees, so there is no need to wait for a stream
    that is silent: the tree that has the next place goes on, up to its star.
    """

    def may_read(self, heads: Heads) -> str | None:
        """See `Policy`."""
        for port in self.ports:
            head = heads[port]
            if isinstance(head, Result | Star) and head.position == self.position:
                return port
        return None

    def take(self, port: str, message: Result | Star) -> Result | Star | None:
        """See `Policy`."""
        if isinstance(message, Star) and message.last:
            self.position += 1
        return message


def _label(head: Message | None) -> Label:
    return head.label if isinstance(head, Result | Star) else Label(inf, inf) if head is not None else Label(-1, -1)


Policies = Mapping[Ordering, type[Policy]]

MERGERS: Policies = {
    Ordering.NONE: Policy,
    Ordering.OUTER: Shut,
    Ordering.INNER: Aligned,
    Ordering.TOTAL: Aligned,
}
COMBINER: Policies = {**dict.fromkeys(Ordering, Policy), Ordering.TOTAL: ByPosition}


class Merger(Node):
    """An inner node of a gathering tree: some inputs into one output.

    A change of the punctuation, or the end, is passed on when it stands first in all inputs: what came before it was
    merged by the old settings, what follows will be by the new ones.
    """

    def __init__(
        self,
        name: str,
        ports: Sequence[str],
        output: str,
        precision: Precision,
        policies: Policies = MERGERS,
        buffer: int | None = None,
    ) -> None:
        super().__init__(name, ports, [output], buffer)
        self.waited_us = dict.fromkeys(ports, 0)
        """How long what other inputs gave had to wait for this one."""
        self._output = output
        self._policies = policies
        self._policy = policies[precision.ordering](ports)
        self._waiting_since_us: dict[str, int] = {}

    def next_work(self, network: Network) -> Iterator[Step] | None:
        """See `Node`."""
        heads = {port: queue[0] if queue else None for port, queue in self.queues.items()}
        for port, head in heads.items():
            if isinstance(head, Closed):
                return self._close(port)
        star = self._policy.star_due(heads)
        if star is not None:
            return self._pass_on(star)
        free = self._policy.may_read(heads)
        if free is not None:
            self._count_waiting(network, [])
            return self.take(free, self.pop(free, network), network)
        if heads and all(isinstance(head, Barrier) for head in heads.values()):
            barriers = [self.pop(port, network) for port in heads]
            return self._switch(barriers[0])
        self._count_waiting(network, self._policy.waits_for(heads))
        return None

    def take(self, port: str, message: Message, network: Network) -> Iterator[Step]:
        """See `Node`."""
        assert isinstance(message, Result | Star)
        passed_on = self._policy.take(port, message)
        if passed_on is not None:
            yield from self._pass_on(self.marked(port, passed_on))

    def marked(self, port: str, message: Result | Star) -> Result | Star:
        """What a message looks like behind this node."""
        return message

    def _pass_on(self, message: Message) -> Iterator[Step]:
        yield [(self._output, message)]

    def _close(self, port: str) -> Iterator[Step]:
        del self.queues[port]
        self._policy.close(port)
        if not self.queues:
            yield from self._pass_on(Closed())

    def _switch(self, barrier: Message) -> Iterator[Step]:
        if isinstance(barrier, Change):
            self._policy = self._policies[barrier.precision.ordering](list(self.queues), barrier.position)
        yield from self._pass_on(barrier)

    def _count_waiting(self, network: Network, ports: Sequence[str]) -> None:
        for port in list(self._waiting_since_us):
            if port not in ports:
                self.waited_us[port] += network.now_us - self._waiting_since_us.pop(port)
        for port in ports:
            self._waiting_since_us.setdefault(port, network.now_us)


class Combiner(Merger):
    """Makes one output of the two trees' roots and flags stars with the stream whose tuples they divide.

    Args:
        origins: the stream of each input.
    """

    def __init__(
        self,
        name: str,
        origins: Mapping[str, Stream],
        output: str,
        precision: Precision,
        policies: Policies = COMBINER,
        buffer: int | None = None,
    ) -> None:
        super().__init__(name, list(origins), output, precision, policies, buffer)
        self._origins = origins

    def marked(self, port: str, message: Result | Star) -> Result | Star:
        """See `Merger`."""
        return replace(message, flag=self._origins[port]) if isinstance(message, Star) else message


@dataclass(frozen=True, slots=True)
class Left:
    """What left the operator, and when."""

    at_us: int
    message: Message


class Sink(Node):
    """Notes what comes out."""

    def __init__(self, name: str, combiner: str, buffer: int | None = None) -> None:
        super().__init__(name, [combiner], [], buffer)
        self.output: list[Left] = []

    def take(self, port: str, message: Any, network: Network) -> Iterator[Step]:
        """See `Node`."""
        self.output.append(Left(network.now_us, message))
        return iter(())
