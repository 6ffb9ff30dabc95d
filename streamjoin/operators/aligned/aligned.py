"""Aligned tuple routing as an operator: its nodes, and where tuples go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from streamjoin.engine.operator import Capabilities
from streamjoin.engine.routing import PROBE, STORE, Route, Tuples, UnitSpec
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import InputError
from streamjoin.index.columns import kept_columns
from streamjoin.operators.aligned.segments import Segments
from streamjoin.operators.aligned.step import AlignedStep
from streamjoin.operators.rounds.operator import RoundsOperator
from streamjoin.plan.in_rounds import ALIGNED, NamedOrders, in_rounds
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan
from streamjoin.plan.window import format_us

REACHES_A_SEGMENT = 5
"""How many of the longest reach a segment is long, unless asked for. The paper tries 1 to 5 (section 8.3)."""


@dataclass(frozen=True)
class Aligned(RoundsOperator):
    """Nodes of aligned tuple routing, such as `Aligned(4, segment_us=60_000_000, master="a")`.

    Args:
        nodes: N, at least 1.
        segment_us: how much event time a segment covers (L); five times the longest reach unless given.
        master: which stream goes to one node each, as the query calls it; the one with the shortest reach unless given.
        orders: see `plan.in_rounds.in_rounds`.
        round: what `planned` gives; None before.
    """

    nodes: int
    segment_us: int | None = None
    master: str | None = None
    orders: NamedOrders = field(default_factory=dict)
    round: RoundPlan | None = None
    name = "aligned"

    def planned(self, plan: Plan) -> Plan:
        """See `Operator`."""
        found = in_rounds(plan, ALIGNED, self.orders)
        if self.segment_us is not None and self.segment_us < 1:
            raise InputError(
                "a segment covers some event time; write a span such as 1min, or leave it out", field="operator.segment"
            )
        if self.master is not None and self.master.lower() not in {name.lower() for name in found.names}:
            raise InputError(
                f"the query has no stream {self.master}; it reads {', '.join(found.names)}", field="operator.master"
            )
        return found

    @cached_property
    def segments(self) -> Segments:
        """How the streams are cut."""
        reaches_us = self.plan.reaches_us
        master = usual_master(reaches_us)
        if self.master is not None:
            master = [name.lower() for name in self.streams].index(self.master.lower())
        return Segments(self.segment_us or usual_segment_us(reaches_us), self.nodes, master, reaches_us)

    @property
    def capabilities(self) -> Capabilities:
        """Each result is found at one node, in the batch that brought its last part."""
        return Capabilities()

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """The nodes; each counts the late tuples of its own segments."""
        streams = tuple(range(len(self.plan.orders)))
        return tuple(UnitSpec(node, f"node {node}", streams, streams) for node in range(self.nodes))

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """To the nodes of all segments whose results a tuple may be part of, where it is stored and probes."""
        assert tuples.ts_us is not None
        return [
            Route(rows, tuple((node, STORE | PROBE) for node in nodes))
            for rows, nodes in self.segments.groups(side, tuples.ts_us)
        ]

    def step(self, work: Work) -> Step:
        """See `Operator`."""
        return AlignedStep(work, self.plan, self.segments)

    def stored_columns(self, plan: Pairs, side: int) -> tuple[str, ...]:
        """See `Operator`."""
        return kept_columns(self.plan, side)

    @property
    def lasting(self) -> str:
        """Tuples lie where nodes, segments and the master say, and are indexed for the orders."""
        cut = self.segments
        return f"{self.name} {self.plan.orders} {cut.nodes} {cut.length_us} {cut.master}"

    def __str__(self) -> str:
        nodes = f"{self.nodes} node{'s'[: self.nodes > 1]}"
        if self.round is None:
            return f"aligned on {nodes}"
        cut = self.segments
        copies = ", ".join(
            f"{name} to {cut.copies[stream]:.3g}" for stream, name in enumerate(self.streams) if stream != cut.master
        )
        return (
            f"aligned on {nodes}, segments of {format_us(cut.length_us)}; master {self.streams[cut.master]}, each row "
            f"to one node, and {copies} on average"
        )


def usual_master(reaches_us: Sequence[int]) -> int:
    """With the shortest reach the others are sent to the fewest nodes; of equals the one that FROM names first."""
    return min(range(len(reaches_us)), key=lambda stream: reaches_us[stream])


def usual_segment_us(reaches_us: Sequence[int]) -> int:
    """Five times the longest reach."""
    return max(REACHES_A_SEGMENT * max(reaches_us), 1)
