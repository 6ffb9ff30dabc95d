"""Costs of the state replication that PSP compares itself with: ATR and CTR (EDBT 2009, section 7).

The paper has no formulas for them. These follow from what is routed where; S, lambda W and partial results are as in
`psp`, and what is told of ATR's segments as in `operators/aligned/segments.py`.

    ATR  a tuple of stream l is at 1 + (W_l + W_master) / L nodes, of N at most, and one of the master at one. Until a
         partial result has a tuple of the master, it is found at each node that has all of its tuples.
    CTR  a tuple is stored c times. In a hop a partial result goes to the hosts that together have the live segments of
         the stream that it meets: as many as there are such segments at most, and N / c, as further ones have copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from streamjoin.operators.costs.prediction import Prediction, StreamStatistics, nested_loop_per_s
from streamjoin.operators.costs.psp import kept_s, partials
from streamjoin.operators.costs.several import Cost, Several


def aligned_copies(reaches: Sequence[float], master: int, segment: float, nodes: int) -> tuple[float, ...]:
    """To how many nodes of ATR a tuple goes on average, by stream.

    Args:
        reaches: W, by stream; in the unit of `segment`, which is L.
    """
    return tuple(
        1.0 if stream == master else min(1.0 + (reach + reaches[master]) / segment, float(nodes))
        for stream, reach in enumerate(reaches)
    )


def cover_hosts(reach: float, segment: float, nodes: int, copies: int) -> float:
    """How many hosts of CTR cover the live segments of a stream, at most.

    Args:
        reach: W of the stream, in the unit of `segment`.
    """
    return float(min(ceil(reach / segment) + 1, ceil(nodes / copies)))


def aligned(known: Several, orders: Sequence[Sequence[int]], copies: Sequence[float], master: int) -> Cost:
    """ATR of several streams.

    Args:
        copies: see `aligned_copies`.
    """
    cost = Cost()
    for origin, order in enumerate(orders):
        stream = known.streams[origin]
        there = frozenset([origin])
        size = known.stored(there) * stream.tuple_bytes * copies[origin]
        send = stream.rate_per_s * copies[origin]
        cost += Cost(size, 0.0, 0.0, send, send * stream.tuple_bytes, send * (kept_s(known.times) + known.times.send))
        met = known.met(origin, order)
        for other, one, sent in zip(order, met, partials(met), strict=True):
            asked = stream.rate_per_s * sent * _found_times(there, copies, master)
            there |= {other}
            times = stream.rate_per_s * sent * _found_times(there, copies, master)
            stored = known.streams[other]
            looked_at = times * one.stored
            cost += Cost(
                comparisons_per_s=times * stored.rate_per_s * stored.kept_s,
                looked_at_per_s=looked_at,
                work_s=asked * known.times.probe + looked_at * known.times.join,
            )
    # One node does all the work for a tuple, in one hop; those that get copies do it at the same time.
    return replace(cost, response_s=known.alone(cost, 1.0, 1.0))


def _found_times(there: frozenset[int], copies: Sequence[float], master: int) -> float:
    """At how many nodes a partial result of these streams is found."""
    return 1.0 if master in there else min(copies[stream] for stream in there)


def coordinated(
    known: Several, orders: Sequence[Sequence[int]], hosts: Sequence[float], copies: int
) -> Cost:  # fmt: skip
    """CTR of several streams.

    Args:
        hosts: by stream, how many cover it; see `cover_hosts`.
        copies: c.
    """
    cost = Cost()
    for origin, order in enumerate(orders):
        stream = known.streams[origin]
        there = frozenset([origin])
        size = known.stored(there) * stream.tuple_bytes * copies
        cost += Cost(memory_bytes=size, work_s=stream.rate_per_s * copies * kept_s(known.times))
        met = known.met(origin, order)
        for other, one, sent in zip(order, met, partials(met), strict=True):
            rate, stored = stream.rate_per_s * sent, known.streams[other]
            received = max(hosts[other], copies) if len(there) == 1 else hosts[other]
            cost += Cost(
                0.0,
                rate * stored.rate_per_s * stored.kept_s,
                rate * one.stored,
                rate * received,
                rate * received * known.tuple_bytes(there),
                rate * (received * known.times.send + hosts[other] * known.times.probe + one.stored * known.times.join),
            )
            there |= {other}
    # Hosts of a hop share its work.
    return replace(cost, response_s=known.alone(cost, len(orders) - 1.0, min(hosts)))


def of_two(
    r: StreamStatistics, s: StreamStatistics, stored: Sequence[float], received: Sequence[float], busiest: float
) -> Prediction:
    """Either of them for two streams.

    Args:
        stored, received: by stream, how many nodes store a tuple, and how many get it.
        busiest: the share of all that is sent that the busiest node gets.
    """
    both = (r, s)
    sent = sum(one.bytes_per_s * copies for one, copies in zip(both, received, strict=True))
    tuples = sum(one.rate_per_s * copies for one, copies in zip(both, received, strict=True))
    rate = r.rate_per_s + s.rate_per_s
    memory = sum(one.tuple_bytes * one.stored * copies for one, copies in zip(both, stored, strict=True))
    return Prediction(memory, sent, tuples / rate if rate else 0.0, nested_loop_per_s(r, s), sent * busiest)
