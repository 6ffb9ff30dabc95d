"""From the two streams to the join cores: one sequence, broadcast down a tree (Algorithms 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from simulate.network import Network
from simulate.splitjoin.buffers import Node, Step
from simulate.splitjoin.messages import Arrival, Change, End, Message, Precision
from simulate.stream import Stream


@dataclass(frozen=True, slots=True)
class Input:
    """A tuple before it has a place in the sequence.

    Args:
        time_us: event time, for time windows.
        arrives_us: it comes not before this time of the simulation.
    """

    stream: Stream
    value: Any
    time_us: int | None = None
    arrives_us: int = 0


class Source(Node):
    """Where both streams become one FIFO sequence, in front of the tree's root.

    Args:
        by_time: tuples carry event times, which must not fall, over both streams together: expiry stops at the first
            stored tuple that is young enough, and only ever asks how much older than the new tuple a stored one is.
    """

    def __init__(self, name: str, root: str, by_time: bool, buffer: int | None) -> None:
        super().__init__(name, [], [root], buffer)
        self.sequence: list[Arrival] = []
        self._by_time = by_time
        self._counts = dict.fromkeys(Stream, 0)
        self._inputs: list[Input | Precision | End] = []

    def feed(self, inputs: Iterable[Input | Precision | End], network: Network) -> None:
        """What to send down, in this order; a `Precision` changes the punctuation from there on."""
        self._inputs.extend(inputs)
        self.go_on(network)

    def next_work(self, network: Network) -> Iterator[Step] | None:
        """See `Node`."""
        return self._enter(self._inputs.pop(0), network) if self._inputs else None

    def _enter(self, item: Input | Precision | End, network: Network) -> Iterator[Step]:
        message: Message
        if isinstance(item, End):
            message = item
        elif isinstance(item, Precision):
            message = Change(item, len(self.sequence))
        else:
            self._check(item)
            yield max(0, item.arrives_us - network.now_us)
            message = Arrival(
                item.stream, self._counts[item.stream], len(self.sequence), item.value, item.time_us, network.now_us
            )
            self._counts[item.stream] += 1
            self.sequence.append(message)
        yield [(self.outputs[0], message)]

    def _check(self, item: Input) -> None:
        if (item.time_us is not None) != self._by_time:
            raise ValueError("tuples have an event time with time windows, and only then")
        before = self.sequence[-1].time_us if self.sequence else None
        if item.time_us is not None and before is not None and item.time_us < before:
            raise ValueError(f"event time fell from {before} to {item.time_us} us: merge the streams by time first")


class Distributor(Node):
    """Writes each tuple to all its children, whatever its stream (Algorithm 1)."""

    def take(self, port: str, message: Message, network: Network) -> Iterator[Step]:
        """See `Node`."""
        yield [(child, message) for child in self.outputs]


class JoinCore(Distributor):
    """Hands each tuple to both its regions: one stores that stream, the other processes it (Algorithm 2)."""
