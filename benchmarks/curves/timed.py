"""The simulated SplitJoin with measured times: whole probes at a time, cores that do one thing at a time.

The simulation's clock counts whole units; here a unit is a nanosecond, whatever its names say. A core's two regions
share one processor. A sub-window of 2^16 tuples is not simulated comparison by comparison but probe by probe, which
takes the same time; of the results of a probe one is followed, at a place among the comparisons drawn by chance.
Merging costs what all results together cost.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.curves.model import FAN, Workload
from benchmarks.curves.units import Measured
from simulate.network import Earliest, Network
from simulate.splitjoin.buffers import Step
from simulate.splitjoin.core import Region
from simulate.splitjoin.distribution import Distributor, Input
from simulate.splitjoin.gathering import MERGERS, InPortOrder, Merger
from simulate.splitjoin.messages import Arrival, Label, Message, Ordering, Precision, Result, Star
from simulate.splitjoin.system import Costs, SplitJoin
from simulate.splitjoin.window import CountWindow
from simulate.stream import Stream


def simulate(load: Workload, costs: Measured, arrivals_ns: Sequence[float], follow: bool = False) -> SplitJoin:
    """A run with full windows: tuples of R and S in turn, at these times.

    Args:
        follow: one result of each probe, for latencies.
    """
    run = SplitJoin(
        Earliest(),
        load.cores,
        CountWindow(load.cores),
        lambda r, s: False,
        Precision(Ordering.OUTER) if load.stars == 1 else Precision(Ordering.INNER),
        fan_out=FAN,
        fan_in=FAN,
        costs=Costs(lambda sender, receiver: round(costs.under_way)),
        region=_timed_region(load, costs, follow),
        merger=type("LoadedMerger", (TimedMerger,), {"load": load, "costs": costs}),
        distributor=_timed_distributor(costs),
        mergers={**MERGERS, Ordering.OUTER: InPortOrder},
    )
    for tree in run.gathering.values():
        for node in tree.inner():
            merger = run.mergers[node.name]
            assert isinstance(merger, TimedMerger)
            merger.leaves = len(node.leaves())
    streams = (Stream.R, Stream.S)
    return run.join([Input(streams[at % 2], 0, None, round(each)) for at, each in enumerate(arrivals_ns)])


def _timed_region(load: Workload, costs: Measured, follow: bool) -> type[Region]:
    chance = random.Random(1)
    free_ns: dict[str, int] = defaultdict(int)

    class TimedRegion(Region):
        """The whole sub-window is one piece of work, when the core has time for it."""

        def _process(self, tuple_: Arrival, network: Network) -> Iterator[Step]:
            probe, position = self.seen[tuple_.stream], sum(self.seen.values())
            (core,) = self.queues
            sections = round(load.stars)
            section_ns = load.rows * costs.compare / sections
            begins_ns = max(network.now_us, free_ns[core])
            free_ns[core] = begins_ns + round(costs.receive + sections * (section_ns + costs.send))
            yield begins_ns - network.now_us
            started_ns = network.now_us
            yield round(costs.receive)
            for at in range(sections):
                found = chance.random() if follow and at == 0 else None
                if found is not None:
                    yield round(section_ns * found)
                    label = self._label(probe, at)
                    result = Result(tuple_, tuple_, label, position, started_ns, network.now_us)
                    yield [(self._output, result)]
                yield round(section_ns * (1 - (found or 0))) + round(costs.send)
                yield self._star(probe, position, self._label(probe, at).storage_round, last=at == sections - 1)

        def _store(self, tuple_: Arrival) -> None:
            """The window is full: what comes in pushes out as much."""

        def _label(self, probe: int, at: int) -> Label:
            return Label(probe, float(at) if load.stars > 1 else -1.0)

    return TimedRegion


class TimedMerger(Merger):
    """Taking a star, with the results before it, and passing it on takes time."""

    leaves = 0
    load: Workload
    costs: Measured

    def take(self, port: str, message: Message, network: Network) -> Iterator[Step]:
        if isinstance(message, Star):
            yield round(self.costs.receive)
        yield from super().take(port, message, network)

    def _pass_on(self, message: Message) -> Iterator[Step]:
        if isinstance(message, Star):
            results = self.leaves * self.load.rows * self.load.match_probability / self.load.stars
            yield round(self.costs.send + results * self.costs.collect)
        yield from super()._pass_on(message)


def _timed_distributor(costs: Measured) -> type[Distributor]:
    class TimedDistributor(Distributor):
        """Writing to each child takes time."""

        def take(self, port: str, message: Message, network: Network) -> Iterator[Step]:
            yield round(costs.receive + len(self.outputs) * costs.send)
            yield from super().take(port, message, network)

    return TimedDistributor
