"""The ring as an operator: its nodes, and where tuples and partial results go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from streamjoin.engine.operator import Capabilities
from streamjoin.engine.routing import PROBE, STORE, Route, Tuples, UnitSpec
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import InputError
from streamjoin.index.columns import kept_columns
from streamjoin.operators.costs.psp import StepTimes
from streamjoin.operators.costs.several import TIMES
from streamjoin.operators.ring.resize import resized
from streamjoin.operators.ring.slices import Slices, even_slices
from streamjoin.operators.ring.spent import StepsWatched
from streamjoin.operators.ring.step import FirstRound, later_round
from streamjoin.operators.rounds.operator import RoundsOperator
from streamjoin.plan.in_rounds import RING, NamedOrders, in_rounds
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan


@dataclass(frozen=True)
class Ring(RoundsOperator):
    """A ring of nodes, such as `Ring(4, lengths={"a": 2}, orders={"a": ["c", "b"]})`.

    Args:
        nodes: N, at least 1.
        lengths: by the names of the query, how many nodes keep a stream's tuples; all of them unless given.
        orders: see `plan.in_rounds.in_rounds`.
        round: what is done in a stage of the plan that `planned` gives; None before.
    """

    nodes: int
    lengths: Mapping[str, int] = field(default_factory=dict)
    orders: NamedOrders = field(default_factory=dict)
    round: RoundPlan | None = None
    name = "ring"

    def planned(self, plan: Plan) -> Plan:
        """See `Operator`."""
        found = in_rounds(plan, RING, self.orders)
        known = {name.lower() for name in found.names}
        for stream, length in self.lengths.items():
            where = f"operator.lengths.{stream}"
            if stream.lower() not in known:
                raise InputError(f"the query has no stream {stream}; it reads {', '.join(found.names)}", field=where)
            if not 1 <= length <= self.nodes:
                raise InputError(
                    f"{length} is not a number of nodes from 1 to {self.nodes}, which the ring has", field=where
                )
        return found

    @property
    def lengths_by_stream(self) -> tuple[int, ...]:
        """How many nodes keep tuples of each stream: the first ones."""
        given = {stream.lower(): length for stream, length in self.lengths.items()}
        return tuple(min(given.get(name.lower(), self.nodes), self.nodes) for name in self.streams)

    @property
    def times_known(self) -> tuple[StepTimes, frozenset[str]]:
        """What single steps take, as set or assumed, and the names of those that are set."""
        return TIMES, frozenset()

    @property
    def objective(self) -> str:
        """What the number of nodes is chosen for; nothing where it is given."""
        return ""

    @property
    def watching(self) -> StepsWatched:
        """What nodes spend on single steps."""
        return StepsWatched(*self.times_known)

    @property
    def capabilities(self) -> Capabilities:
        """Slices move by names of files; every result is found in the batch that brought its last part."""
        return Capabilities(resizes=True)

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """The nodes, from the youngest slice on; the first one counts late rows."""
        streams = tuple(range(len(self.plan.orders))) if self.plan.is_first else ()
        return tuple(
            UnitSpec(node, f"node {node}", streams, streams if node == 0 else ()) for node in range(self.nodes)
        )

    @property
    def slices(self) -> Slices:
        """Which node keeps a row; of the first round."""
        return even_slices(self.nodes, self.lengths_by_stream, self.plan.reaches_us)

    def keeping(self, stream: int) -> Sequence[int]:
        """The nodes that may have rows of a stream."""
        return range(self.lengths_by_stream[stream])

    def storing(self, stream: int) -> Sequence[int]:
        """The nodes that may store new rows of a stream."""
        return self.keeping(stream)

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """Every partial result to all nodes that keep rows of the stream it meets.

        New rows also go to those that may store them, of which one does.
        """
        roles = dict.fromkeys(self.keeping(self.plan.meets[side]), PROBE)
        for node in self.storing(side) if self.plan.is_first else ():
            roles[node] = roles.get(node, 0) | STORE
        return [Route(np.arange(len(tuples), dtype=np.int64), tuple(roles.items()))]

    def step(self, work: Work) -> Step:
        """See `Operator`."""
        if self.plan.is_first:
            return FirstRound(work, self.plan, self.slices)
        return later_round(work, self.plan)

    def stored_columns(self, plan: Pairs, side: int) -> tuple[str, ...]:
        """See `Operator`."""
        return kept_columns(self.plan, side) if self.plan.is_first else ()

    @property
    def lasting(self) -> str:
        """Tuples are indexed for the orders, and lie where the lengths say; the number of nodes may change."""
        return f"{self.name} {self.plan.orders} {sorted(self.lengths.items())}"

    def with_units(self, units: int) -> Ring:
        """See `Operator`."""
        return replace(self, nodes=units)

    def resized(self, states: Mapping[int, UnitState]) -> dict[int, UnitState]:
        """See the module `resize`."""
        return resized(states, self.nodes, self.lengths_by_stream, self.plan.reaches_us)

    def __str__(self) -> str:
        of_each = zip(self.streams, self.lengths_by_stream, strict=True) if self.round else ()
        shorter = ", ".join(f"{name} in the first {length}" for name, length in of_each if length < self.nodes)
        return f"ring of {self.nodes} node{'s'[: self.nodes > 1]}" + (f", {shorter}" if shorter else "")
