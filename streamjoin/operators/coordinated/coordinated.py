"""Coordinated tuple routing as an operator: its nodes, and where tuples and partial results go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from streamjoin.engine.operator import Capabilities, Operator
from streamjoin.engine.routing import PROBE, STORE, Route, Tuples, UnitSpec, split
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import Step, Work
from streamjoin.errors import InputError
from streamjoin.index.columns import kept_columns
from streamjoin.operators.coordinated.routes import Routes
from streamjoin.operators.coordinated.step import FirstHop, LaterHop, segments_of
from streamjoin.operators.coordinated.table import RoutingTable
from streamjoin.operators.rounds.operator import RoundsOperator
from streamjoin.plan.in_rounds import COORDINATED, NamedOrders, in_rounds
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.stages import Plan
from streamjoin.plan.window import format_us

COPIES = 2
"""c, unless asked for; the paper says that its source stores two (section 8.1)."""
SEGMENTS_A_REACH = 2
"""How many segments the longest reach is long, unless asked for."""


@dataclass(frozen=True)
class Coordinated(RoundsOperator):
    """Nodes of coordinated tuple routing, such as `Coordinated(4, copies=2, segment_us=5_000_000)`.

    Args:
        nodes: N, at least 1.
        copies: c, on how many nodes a tuple is stored; two, or one where there is one node, unless given.
        segment_us: how much event time a segment covers (L); half of the longest reach unless given.
        orders: see `plan.in_rounds.in_rounds`.
        round: what is done in a stage of the plan that `planned` gives; None before.
        table: of the batch; see `in_batch`.
    """

    nodes: int
    copies: int | None = None
    segment_us: int | None = None
    orders: NamedOrders = field(default_factory=dict)
    round: RoundPlan | None = None
    table: RoutingTable | None = field(default=None, compare=False, repr=False)
    name = "coordinated"

    def planned(self, plan: Plan) -> Plan:
        """See `Operator`."""
        found = in_rounds(plan, COORDINATED, self.orders)
        if self.segment_us is not None and self.segment_us < 1:
            raise InputError(
                "a segment covers some event time; write a span such as 5s, or leave it out", field="operator.segment"
            )
        if self.copies is not None and not 1 <= self.copies <= self.nodes:
            raise InputError(
                f"{self.copies} is not a number of copies from 1 to {self.nodes}, the nodes that there are",
                field="operator.copies",
            )
        return found

    @property
    def stored_copies(self) -> int:
        """c."""
        return self.copies or min(COPIES, self.nodes)

    @property
    def length_us(self) -> int:
        """L."""
        return self.segment_us or max(max(self.plan.reaches_us) // SEGMENTS_A_REACH, 1)

    @property
    def capabilities(self) -> Capabilities:
        """Every result is found in the batch that brought its last part."""
        return Capabilities(routes_by_state=True, receives_forwarded=True)

    def in_batch(self, look: Callable[[int], UnitState]) -> Operator:
        """See `Operator`: with the routing table that the nodes' states are."""
        return replace(self, table=RoutingTable.of(look(node) for node in range(self.nodes)))

    @cached_property
    def routes(self) -> Routes:
        """Those of the batch; of the first one where no state was looked at."""
        return Routes(self.table or RoutingTable.empty(self.nodes), self.stored_copies, self.plan.orders)

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """The nodes; the first host of a segment counts its late tuples."""
        streams = tuple(range(len(self.plan.orders))) if self.plan.is_first else ()
        return tuple(UnitSpec(node, f"node {node}", streams, streams) for node in range(self.nodes))

    def route(self, side: int, tuples: Tuples) -> list[Route]:
        """Everything to the hosts of the hop; new tuples also to those that store their segments."""
        hop = dict.fromkeys(self.routes.hosts_of_hop(side, self.plan.number), PROBE)
        if not self.plan.is_first:
            return [Route(np.arange(len(tuples), dtype=np.int64), tuple(hop.items()))]
        assert tuples.ts_us is not None
        segments, places = segments_of(tuples.ts_us, self.length_us)
        hosts = [self.routes.hosts_of(side, int(segment)) for segment in segments]
        numbered = {one: number for number, one in enumerate(dict.fromkeys(hosts))}
        codes = np.array([numbered[one] for one in hosts], np.int64)[places]
        every = list(numbered)
        return [Route(rows, _targets(hop, every[code])) for code, rows in split(codes)]

    def step(self, work: Work) -> Step:
        """See `Operator`."""
        if self.plan.is_first:
            return FirstHop(work, self.plan, self.routes, self.length_us)
        return LaterHop(work, self.plan, self.routes)

    def stored_columns(self, plan: Pairs, side: int) -> tuple[str, ...]:
        """See `Operator`."""
        return kept_columns(self.plan, side) if self.plan.is_first else ()

    @property
    def lasting(self) -> str:
        """Tuples are kept by segment, on so many of the nodes, and indexed for the orders."""
        return f"{self.name} {self.plan.orders} {self.nodes} {self.stored_copies} {self.length_us}"

    def __str__(self) -> str:
        nodes = f"{self.nodes} node{'s'[: self.nodes > 1]}"
        stored = f"each row stored on {self.stored_copies}"
        length = f", segments of {format_us(self.length_us)}" if self.round else ""
        return f"coordinated on {nodes}{length}, {stored}"


def _targets(hop: dict[int, int], hosts: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    roles = dict(hop)
    for host in hosts:
        roles[host] = roles.get(host, 0) | STORE
    return tuple(sorted(roles.items()))
