"""The simulated low-latency handshake join with measured times: cores that do one thing at a time.

The coordinator is the simulation's own. A core takes a message in, passes it on, and compares a tuple with its whole
sub-window as one piece of work, before it takes the next message. A unit of the simulation's clock is a nanosecond.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.curves.model import Workload
from benchmarks.curves.units import Measured
from simulate.network import Earliest, Network
from simulate.splitjoin.chain import Coordinator, Expiry, Passing
from simulate.splitjoin.distribution import Input
from simulate.stream import Stream


@dataclass(slots=True)
class BusyCore:
    """One core of the chain.

    Args:
        following: the next core of each stream's way; None at the end.
        visits: (number of the tuple in both streams, when it met the middle of the sub-window, when it was done,
            when it had come to the chain).
    """

    name: str
    following: dict[Stream, str | None]
    load: Workload
    costs: Measured
    visits: list[tuple[int, int, int, int]] = field(default_factory=list)
    _queue: deque[Passing | Expiry] = field(default_factory=deque)
    _busy: bool = False

    def receive(self, sender: str, message: Any, network: Network) -> None:
        """See `Actor`."""
        self._queue.append(message)
        self._next(network)

    def wake(self, tag: Any, network: Network) -> None:
        """See `Actor`: a message has been passed on, or (`None`) compared with everything."""
        work_ns = 0
        if tag is not None:
            following = self._following(tag)
            if following is not None:
                network.send(self.name, following, tag)
            if isinstance(tag, Passing):
                work_ns = round(self.load.rows * self.costs.compare)
                place = 2 * tag.number + (tag.stream is Stream.S)
                now_ns = network.now_us
                self.visits.append((place, now_ns + work_ns // 2, now_ns + work_ns, tag.arrived_us))
        if work_ns:
            network.wake_at(self.name, network.now_us + work_ns)
            return
        self._busy = False
        self._next(network)

    def _next(self, network: Network) -> None:
        if self._busy or not self._queue:
            return
        self._busy = True
        message = self._queue.popleft()
        handling = self.costs.receive + (self.costs.send if self._following(message) is not None else 0)
        network.wake_at(self.name, network.now_us + round(handling), message)

    def _following(self, message: Passing | Expiry) -> str | None:
        # Expiry goes the way of the stream whose tuples may still want the tuple.
        return self.following[message.stream if isinstance(message, Passing) else message.stream.opposite]


def simulate(load: Workload, costs: Measured, arrivals_ns: Sequence[float]) -> list[BusyCore]:
    """A run with full windows: tuples of R and S in turn at these times, each with one expiry message."""
    network = Network(Earliest(), lambda *_: round(costs.under_way), keep_log=False)
    names = [f"core {at}" for at in range(load.cores)]
    cores = [
        BusyCore(name, {Stream.R: right, Stream.S: left}, load, costs)
        for name, right, left in zip(names, [*names[1:], None], [None, *names[:-1]], strict=True)
    ]
    # With a window of no rows the coordinator sends the expiry of a tuple that has left right away.
    coordinator = Coordinator(load.cores, rows=0)
    network.add(coordinator)
    for core in cores:
        network.add(core)
    streams = (Stream.R, Stream.S)
    coordinator.feed([Input(streams[at % 2], None, None, round(each)) for at, each in enumerate(arrivals_ns)], network)
    network.run()
    return cores
