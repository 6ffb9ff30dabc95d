"""A ring that adapts while it runs (PSP, section 6): slices by the number of rows, and nodes that are added.

Workload smoothing: each node but the last keeps up to a bound of rows of each stream, which is set anew every period.
Passive adjustment: with more nodes bounds are lower, so that rows move on as new ones come, and the new nodes fill.
Nobody stops for it. Two rules are ours, as the paper has none: a bound lets few rows go at a time, and a row whose
window is over is dropped wherever it is, as rows come too rarely after a while to push it to the last node.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from simulate.network import Network
from simulate.ring.messages import Message, Query, Row, Slices
from simulate.ring.node import HEAD, Node
from simulate.ring.response import Heard, Response, summary
from simulate.ring.sizes import bytes_of
from simulate.ring.system import Played, Source, is_local, nodes_of, put
from simulate.timed import Timed, UnitCosts
from streamjoin.operators.costs.psp import Met, StepTimes, cycle_s

MOVES_MAX = 2
"""Rows of a stream that a bound lets go at one probe: more than come in, so that nodes get even, but no burst."""
SMOOTHING = 0.3
"""The weight of the last period in the mean of rates."""
PERIODS_OFF = 3
"""For how many periods in a row another number of nodes must have been better."""


@dataclass(slots=True)
class AdaptiveNode(Node):
    """A sliced join that is cut by age until it is told bounds."""

    bounds: tuple[int, ...] | None = None

    def receive(self, sender: str, message: Message, network: Network) -> None:
        """See `Node`; besides, tell the next node how the ring is cut from now on."""
        if not isinstance(message, Slices):
            Node.receive(self, sender, message, network)
            return
        self.nodes, self.bounds = message.nodes, message.bounds
        self.is_tail = (self.number == self.nodes - 1,) * len(self.query.windows)
        if self.number + 1 < self.nodes:
            self._send(message, network)

    def _leaving(self, stream: int, ts: int) -> Iterator[tuple[Row, bool]]:
        if self.bounds is None:
            yield from Node._leaving(self, stream, ts)
            return
        alive = []
        for row in self.state[stream]:
            if ts - row.ts >= self.query.windows[stream]:
                yield row, False
            else:
                alive.append(row)
        if not self.is_tail[stream]:
            too_many = max(0, len(alive) - self.bounds[stream])
            for row in alive[: min(too_many, MOVES_MAX)]:
                yield row, True


@dataclass(slots=True)
class Rule:
    """How a ring adapts.

    Args:
        period: how often, in the unit of rows' times.
        available: how many nodes there are; as many as at the beginning, if none is to be added.
        selectivity: S, of all pairs of streams.
        times: what steps take, by which the best number of nodes is found.
    """

    period: int
    available: int
    selectivity: float
    times: StepTimes


@dataclass(slots=True)
class Monitor(Source):
    """A source that counts what it gives the head, and tells the ring how it is to be cut.

    Args:
        nodes: N now.
        lately: times and streams of the rows of the last window.
        changes: when there were more nodes, and how many.
    """

    query: Query = field(kw_only=True)
    rule: Rule = field(kw_only=True)
    nodes: int = field(kw_only=True)
    lately: deque[tuple[int, int]] = field(kw_only=True)
    changes: list[tuple[int, int]] = field(default_factory=list)
    _next: int = -1
    _rates: list[float] = field(default_factory=list)
    _off: int = 0

    def before(self, row: Row, network: Network) -> None:
        """See `Source`."""
        self.lately.append((row.ts, row.stream))
        if row.ts < self._next:
            return
        self._next = row.ts + self.rule.period
        self._count(row.ts)
        self._decide(row.ts)
        live = Counter(stream for ts, stream in self.lately if row.ts - ts < self.query.windows[stream])
        bounds = tuple(-(-live[stream] // self.nodes) for stream in range(len(self.query.windows)))
        network.send(self.name, f"node {HEAD}", Slices(self.nodes, bounds))

    def _count(self, ts: int) -> None:
        """Rates of all streams, a mean over periods."""
        widest = max(self.query.windows)
        while ts - self.lately[0][0] >= widest:
            self.lately.popleft()
        now = self._rates_over(self.rule.period, ts)
        before = self._rates or self._rates_over(widest, ts)
        self._rates = [old + SMOOTHING * (new - old) for old, new in zip(before, now, strict=True)]

    def _rates_over(self, span: int, ts: int) -> list[float]:
        seen = Counter(stream for at, stream in self.lately if ts - at < span)
        return [seen[stream] / span for stream in range(len(self.query.windows))]

    def _decide(self, ts: int) -> None:
        """More nodes, if so many more than one are better for some periods; never twice within a window."""
        stored = sum(rate * window for rate, window in zip(self._rates, self.query.windows, strict=True))
        met = [Met(stored / len(self._rates), self.rule.selectivity)] * self.query.rounds
        best = min(range(1, self.rule.available + 1), key=lambda nodes: cycle_s(met, nodes, self.rule.times))
        self._off = self._off + 1 if best > self.nodes + 1 else 0
        is_early = bool(self.changes) and ts - self.changes[-1][0] < max(self.query.windows)
        if self._off >= PERIODS_OFF and not is_early:
            self.nodes, self._off = best, 0
            self.changes.append((ts, best))


def respond_adapting(
    costs: UnitCosts,
    tuple_bytes: int,
    rows: Sequence[Row],
    query: Query,
    nodes: int,
    rule: Rule,
    *,
    stored: Sequence[Row],
) -> Response:
    """Run rows through a ring that adapts, one after the other, each at its time; see `respond`.

    Args:
        nodes: N in the beginning, each with an equal part of the windows.
        stored: rows that came before.
    """
    every = [
        AdaptiveNode(node.number, nodes, query, node.ends, node.is_tail, interleaved=False)
        for node in nodes_of(query, [nodes] * len(query.windows))
    ]
    put(stored, every, rows[0].ts)
    idle = (0,) * len(query.windows)
    every += [
        AdaptiveNode(number, nodes, query, idle, (True,) * len(idle), interleaved=False)
        for number in range(nodes, rule.available)
    ]
    lately = deque((row.ts, row.stream) for row in stored)
    monitor = Monitor(deque(rows), 1, paced=True, query=query, rule=rule, nodes=nodes, lately=lately)
    heard = Heard(query.rounds)
    network = Timed(costs, partial(bytes_of, tuple_bytes=tuple_bytes), is_local, heard)
    network.play(*every, monitor)
    return summary(network, Played([*every], monitor, network), heard, {row.order: row.ts for row in rows})
