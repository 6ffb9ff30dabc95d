"""How long a ring should be for several streams, each with its own rate and window (PSP, sections 5.2 to 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

from streamjoin.operators.costs.psp import (
    bandwidth_bytes_per_s,
    bounds_of_length,
    latency_of_lengths_s,
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


def ring_terms(known: Several, orders: Orders, available: int) -> RingTerms:
    """The terms of a ring that has so many nodes at most."""
    met = [known.met(origin, order) for origin, order in enumerate(orders)]
    streams = len(orders)
    best = _lowest(lambda nodes: mean_latency_s(known, orders, [nodes] * streams), available)
    first, second = (_weighted(known, [bounds_of_length(one, known.times)[which] for one in met]) for which in range(2))
    lengths = [0] * streams
    for stream in sorted(range(streams), key=lambda one: (_impact(known, one), one)):

        def latency_s(nodes: int, stream: int = stream) -> float:
            return mean_latency_s(known, orders, [nodes if one == stream else one_s or nodes
                                                  for one, one_s in enumerate(lengths)])  # fmt: skip

        lengths[stream] = _lowest(latency_s, available)
    bandwidth = max(
        bandwidth_bytes_per_s(one, [best] * len(one), known.streams[origin].tuple_bytes, known.times)
        for origin, one in enumerate(met)
    )
    return RingTerms(
        best, (first, second), tuple(lengths), mean_latency_s(known, orders, [best] * streams), bandwidth
    )  # fmt: skip


def mean_latency_s(known: Several, orders: Orders, lengths: Sequence[int]) -> float:
    """(5), a mean over all tuples that come in, of streams that are kept by so many nodes."""
    nodes = max(lengths)
    return _weighted(
        known,
        [
            latency_of_lengths_s(known.met(origin, order), [lengths[stream] for stream in order], nodes, known.times)
            for origin, order in enumerate(orders)
        ],
    )


def _weighted(known: Several, values: Sequence[float]) -> float:
    """The mean of what is said of each stream, by the streams' rates."""
    rates = [one.rate_per_s for one in known.streams]
    whole = sum(rates)
    return sum(rate * value for rate, value in zip(rates, values, strict=True)) / whole if whole else mean(values)


def _impact(known: Several, stream: int) -> float:
    """lambda W times the mean share of the conditions on a stream; those with more of it are looked at last."""
    shares = [share.matching for share in known.shares if stream in share.streams]
    one = known.streams[stream]
    return one.rate_per_s * one.reach_s * (mean(shares) if shares else 1.0)


def _lowest(latency_s: Callable[[int], float], available: int) -> int:
    """The number of nodes with the lowest latency; the fewest of equals."""
    return min(range(1, available + 1), key=latency_s)
