"""A whole SplitJoin: source, distribution tree, k join cores of two regions, two gathering trees, Combiner, sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from simulate.network import Faults, Network, Scheduler
from simulate.splitjoin.core import Predicate, Region, Turn
from simulate.splitjoin.distribution import Distributor, Input, JoinCore, Source
from simulate.splitjoin.gathering import COMBINER, MERGERS, Combiner, Left, Merger, Policies, Sink
from simulate.splitjoin.messages import Closed, End, Grant, Precision, Result, Star
from simulate.splitjoin.tree import Tree, tree_over
from simulate.splitjoin.window import Window
from simulate.stream import Stream

SIDES = {"left": Stream.S, "right": Stream.R}
"""What the regions of a side store."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Times of the model section.

    Args:
        link_us: T_CL, of an edge (sender, receiver) of a tree; inside a core and at the trees' roots nothing is spent.
        compare_us: T_P, of one comparison at a core.
    """

    link_us: Callable[[str, str], int] = lambda sender, receiver: 0
    compare_us: Callable[[int], int] = lambda core: 0

    def delay_us(self, sender: str, receiver: str, message: Any) -> int:
        """See `Network`."""
        down, up = sender.startswith("distributor"), receiver.startswith("merger")
        return self.link_us(sender, receiver) if (down or up) and not isinstance(message, Grant) else 0


class SplitJoin:
    """Builds the actors and joins what it is fed.

    Args:
        cores: k.
        fan_out, fan_in: b of the distribution tree and c of the gathering trees.
        match: the predicate, of R's value and S's value.
        run: so many tuples of a stream in a row go to one core.
        buffer: messages that fit between two actors; None is without a bound.
        region, core, distributor, merger, mergers, combiner: other parts, for tests of what goes wrong with them and
            for parts whose work takes time.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        cores: int,
        window: Window,
        match: Predicate,
        precision: Precision | None = None,
        *,
        fan_out: int = 2,
        fan_in: int = 2,
        run: int = 1,
        buffer: int | None = None,
        costs: Costs | None = None,
        faults: Faults | None = None,
        region: type[Region] = Region,
        core: type[JoinCore] = JoinCore,
        distributor: type[Distributor] = Distributor,
        merger: type[Merger] = Merger,
        mergers: Policies = MERGERS,
        combiner: Policies = COMBINER,
    ) -> None:
        self.precision = precision or Precision()
        costs = costs or Costs()
        self._distributor_class = distributor
        self.network = Network(scheduler, costs.delay_us, faults)
        self.cores = [f"core {at}" for at in range(cores)]
        self.distribution = tree_over(self.cores, fan_out, "distributor")
        self.gathering = {
            side: tree_over([f"{name} {side}" for name in self.cores], fan_in, f"merger {side}") for side in SIDES
        }
        self.regions: dict[str, Region] = {}
        parents = {"down": self.distribution.parents()} | {
            side: tree.parents() | {tree.name: "combiner"} for side, tree in self.gathering.items()
        }
        self._parents = parents
        self.source = Source("source", self.distribution.name, window.by_time, buffer)
        self.distributors = [self._distributor(node, buffer) for node in self.distribution.inner()]
        for at, name in enumerate(self.cores):
            self.network.add(
                core(name, [parents["down"].get(name, "source")], [f"{name} {side}" for side in SIDES], buffer)
            )
            for side, stores in SIDES.items():
                self.regions[f"{name} {side}"] = region(
                    f"{name} {side}", name, parents[side][f"{name} {side}"], stores, Turn(at, cores, run),
                    window.sub_window(cores, run), match, self.precision, costs.compare_us(at), buffer,
                )  # fmt: skip
        self.mergers = {
            node.name: merger(
                node.name, [child.name for child in node.children], parents[side][node.name], self.precision, mergers,
                buffer,
            )
            for side, tree in self.gathering.items()
            for node in tree.inner()
        }  # fmt: skip
        origins = {tree.name: SIDES[side].opposite for side, tree in self.gathering.items()}
        self.combiner = Combiner("combiner", origins, "sink", self.precision, combiner, buffer)
        self.sink = Sink("sink", "combiner", buffer)
        inner = (*self.distributors, *self.regions.values(), *self.mergers.values())
        for actor in (self.source, *inner, self.combiner, self.sink):
            self.network.add(actor)

    def feed(self, inputs: Iterable[Input | Precision | End]) -> None:
        """Put tuples, changes of the punctuation, or the end into the source."""
        self.source.feed(inputs, self.network)

    def join(self, inputs: Sequence[Input | Precision]) -> SplitJoin:
        """Feed it all, then the end, and run until nothing can happen any more."""
        self.feed([*inputs, End()])
        self.network.run()
        return self

    def crash_core(self, at: int) -> None:
        """Let a core and its regions stop. Behind what they had sent, their neighbours see the connections break."""
        name = self.cores[at]
        for each in (name, *(f"{name} {side}" for side in SIDES)):
            self.network.crash(each, lose_waiting=True)
        if name in self._parents["down"]:
            self.network.send(name, self._parents["down"][name], Closed())
        for side in SIDES:
            self.network.send(f"{name} {side}", self._parents[side][f"{name} {side}"], Closed())

    @property
    def output(self) -> list[Left]:
        """All that came out, in order."""
        return self.sink.output

    @property
    def results(self) -> list[Result]:
        """The pairs, in order."""
        return [left.message for left in self.output if isinstance(left.message, Result)]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(R's number, S's number) of each, in order."""
        return [result.pair for result in self.results]

    @property
    def stars(self) -> list[Star]:
        """In order."""
        return [left.message for left in self.output if isinstance(left.message, Star)]

    @property
    def ended(self) -> bool:
        """Whether the end came out, behind everything else."""
        return bool(self.output) and isinstance(self.output[-1].message, End)

    def _distributor(self, node: Tree, buffer: int | None) -> Distributor:
        parent = self.distribution.parents().get(node.name, "source")
        return self._distributor_class(node.name, [parent], [child.name for child in node.children], buffer)
