"""How long a ring should be for several streams, each with its own rate and window (PSP, sections 5.2 to 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

from streamjoin.operators.costs.psp import (
    Met,
    StepTimes,
    bandwidth_bytes_per_s,
    bounds_of_length,
    latency_of_lengths_s,
    latency_s,
    partials,
    ring_s,
    sent_tuples,
)
from streamjoin.operators.costs.several import Several

Orders = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class RingTerms:
    """What PSP's formulas say of a ring.

    Args:
        best: N*, of the nodes there are; the same for all streams.
        bounds: N_1 and N_2, between which the paper looks for it.
        lengths: how many nodes each stream needs, found one after the other (section 5.4).
        latency_s: (5), of a ring of `best` nodes; a mean over all tuples that come in.
        bandwidth_bytes_per_s: (6), what a link between two nodes must carry so that none waits.
    """

    best: int
    bounds: tuple[float, float]
    lengths: tuple[int, ...]
    latency_s: float
    bandwidth_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class RingTraffic:
    """What a ring sends for a tuple that comes in, beside what leaves it (section 4.3), and how much it can take.

    Args:
        nodes: N, of a ring in which all streams are kept by all nodes.
        matching: p, how many stored tuples of a stream match one partial result, the mean over all rounds.
        sent: tuples and partial results that nodes are sent for a tuple that comes in.
        found: results of a tuple that comes in.
        rate_per_s: (4), tuples that come in, with all nodes always busy.
    """

    nodes: int
    matching: float
    sent: float
    found: float
    rate_per_s: float

    @property
    def dominates(self) -> bool:
        """Nodes send each other more than they give: p is small beside N."""
        return self.nodes > 1 and self.sent > self.found


@dataclass(frozen=True, slots=True)
class Load:
    """What PSP's formulas ask of the streams of a ring.

    Args:
        rates_per_s: by stream.
        orders: by origin, the streams that its tuples meet.
        met: by origin, what they meet in each round.
        impacts: by stream, lambda W times the mean share of its conditions; those with more are looked at last.
        tuple_bytes: by stream.
    """

    rates_per_s: Sequence[float]
    orders: Orders
    met: Sequence[Sequence[Met]]
    impacts: Sequence[float]
    tuple_bytes: Sequence[float]

    def latency_s(self, lengths: Sequence[int], times: StepTimes) -> float:
        """(5), a mean over all tuples that come in, of streams that are kept by so many nodes."""
        nodes = max(lengths)
        each = [
            latency_of_lengths_s(one, [lengths[stream] for stream in order], nodes, times, own)
            for one, order, own in zip(self.met, self.orders, lengths, strict=True)
        ]
        return _weighted(self.rates_per_s, each)


def ring_terms(known: Several, orders: Orders, available: int, times: StepTimes | None = None) -> RingTerms:
    """The terms of a ring that has so many nodes at most.

    Args:
        times: what steps take, where that is known better than by `known`.
    """
    return terms_of(load_of(known, orders), available, times or known.times)


def load_of(known: Several, orders: Orders) -> Load:
    """What is known of streams, for a ring."""
    return Load(
        [one.rate_per_s for one in known.streams],
        orders,
        [known.met(origin, order) for origin, order in enumerate(orders)],
        [_impact(known, stream) for stream in range(len(orders))],
        [one.tuple_bytes for one in known.streams],
    )


def ring_traffic(known: Several, orders: Orders, nodes: int, times: StepTimes | None = None) -> RingTraffic:
    """Of a ring of so many nodes; a mean over all tuples that come in."""
    load = load_of(known, orders)
    rates, lengths = load.rates_per_s, [nodes] * (len(orders) - 1)
    matching = [one.stored * one.selectivity for met in load.met for one in met]
    found = [partials(met)[-1] * met[-1].stored * met[-1].selectivity for met in load.met]
    busy = busy_share(rates, load.met, times or known.times, nodes)
    return RingTraffic(
        nodes,
        mean(matching),
        _weighted(rates, [sent_tuples(met, lengths) for met in load.met]),
        _weighted(rates, found),
        sum(rates) / busy if busy else 0.0,
    )


def terms_of(load: Load, available: int, times: StepTimes) -> RingTerms:
    """The terms of a ring that has so many nodes at most, of what is known of its streams.

    Cost: (5) for each stream and number of nodes.
    """
    streams = len(load.orders)
    best = _lowest(lambda nodes: load.latency_s([nodes] * streams, times), available)
    bounds = [bounds_of_length(one, times) for one in load.met]
    first, second = (_weighted(load.rates_per_s, [one[which] for one in bounds]) for which in range(2))
    lengths = [0] * streams
    for stream in sorted(range(streams), key=lambda one: (load.impacts[one], one)):

        def of_length_s(nodes: int, stream: int = stream) -> float:
            # One that is not known yet is as long as this one.
            return load.latency_s([nodes if one == stream else length or nodes
                                   for one, length in enumerate(lengths)], times)  # fmt: skip

        lengths[stream] = _lowest(of_length_s, available)
    bandwidth = max(
        (
            bandwidth_bytes_per_s(one, [best] * len(one), size, times)
            for one, size in zip(load.met, load.tuple_bytes, strict=True)
            if all(met.stored for met in one)
        ),
        default=0.0,
    )
    latency_s = load.latency_s([best] * streams, times)
    return RingTerms(best, (first, second), tuple(lengths), latency_s, bandwidth)


def best_length_of(rates_per_s: Sequence[float], met: Sequence[Sequence[Met]], times: StepTimes, available: int) -> int:
    """N*, of streams whose tuples meet others so, with the lowest mean of (5); the fewest of equals.

    Args:
        rates_per_s, met: by origin.
    """
    return _lowest(lambda nodes: _weighted(rates_per_s, [latency_s(one, nodes, times) for one in met]), available)


def busy_share(rates_per_s: Sequence[float], met: Sequence[Sequence[Met]], times: StepTimes, nodes: int) -> float:
    """How busy each of so many nodes is (1, 4): above 1, tuples come faster than they are joined."""
    works = [ring_s(one, [nodes] * len(one), times, nodes) for one in met]
    return sum(rate * work for rate, work in zip(rates_per_s, works, strict=True)) / nodes


def _weighted(rates: Sequence[float], values: Sequence[float]) -> float:
    """The mean of what is said of each stream, by the streams' rates."""
    whole = sum(rates)
    return sum(rate * value for rate, value in zip(rates, values, strict=True)) / whole if whole else mean(values)


def _impact(known: Several, stream: int) -> float:
    """lambda W times the mean share of the conditions on a stream; those with more of it are looked at last."""
    shares = [share.matching for share in known.shares if stream in share.streams]
    one = known.streams[stream]
    return one.rate_per_s * one.reach_s * (mean(shares) if shares else 1.0)


def _lowest(latency: Callable[[int], float], available: int) -> int:
    """The number of nodes with the lowest latency; the fewest of equals."""
    return min(range(1, available + 1), key=latency)
