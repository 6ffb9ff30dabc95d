"""PSP's formulas (EDBT 2009, sections 4.3 and 5): work, latency and the best length of a ring.

Stream 1 is the origin of a tuple, 2 to M are those it meets, in order. lambda W is what is stored of a stream, S the
share of it that matches one partial result. Equation 1 prints one S too many inside the sum, by which it would count
matches and not the pairs that are compared; equation 2 follows from the sum as it is here. Equation 3 lacks the N that
equation 4 has. And equation 1 has T_p once, though a tuple leaves every node that keeps its stream: here it is that
many times T_p. It is written once, as files move by their names, so T_i stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from streamjoin.operators.costs.prediction import (
    Prediction,
    StreamStatistics,
    nested_loop_per_s,
    stored_once_bytes,
)


@dataclass(frozen=True, slots=True)
class Met:
    """A stream as partial results meet it.

    Args:
        stored: lambda W, in tuples.
        selectivity: S, the share of them that match one partial result.
    """

    stored: float
    selectivity: float


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What single steps take, in seconds (table 1).

    Args:
        join: T_j, to compare a pair.
        send: T_s, to send and receive a tuple.
        hop: T_n, from a node to the next one.
        insert: T_i, to store a tuple, once.
        purge: T_p, to let a tuple go, from each node that has had it.
        probe: to look into an index, whatever is there; not the paper's, which compares with all that is stored.
    """

    join: float
    send: float
    hop: float
    insert: float = 0.0
    purge: float = 0.0
    probe: float = 0.0


def partials(met: Sequence[Met]) -> tuple[float, ...]:
    """Of one tuple, itself and what it has become after each round but the last: what is sent."""
    return tuple(accumulate((one.stored * one.selectivity for one in met[:-1]), lambda a, b: a * b, initial=1.0))


def central_s(met: Sequence[Met], times: StepTimes) -> float:
    """(1) L_C, the work on one tuple where all is in one place."""
    return _joining_s(met, times) + kept_s(times)


def kept_s(times: StepTimes, nodes: int = 1) -> float:
    """Work on one tuple as it is stored, and as it leaves each of so many nodes."""
    return times.insert + nodes * times.purge


def _joining_s(met: Sequence[Met], times: StepTimes) -> float:
    return times.join * sum(one.stored * sent for one, sent in zip(met, partials(met), strict=True))


def sent_tuples(met: Sequence[Met], lengths: Sequence[int]) -> float:
    """Tuples that are sent for one that comes in (section 4.3), where a stream is kept by so many nodes."""
    return sum(length * sent for length, sent in zip(lengths, partials(met), strict=True))


def ring_s(met: Sequence[Met], lengths: Sequence[int], times: StepTimes, own: int) -> float:
    """(1) L_PSP, the work on one tuple in a ring, all nodes together.

    Args:
        lengths: how many nodes keep each stream that it meets.
        own: how many keep its own stream.
    """
    return _joining_s(met, times) + kept_s(times, own) + times.send * sent_tuples(met, lengths)


def rate_per_s(met: Sequence[Met], nodes: int, times: StepTimes) -> float:
    """(4) Tuples per second of a ring whose nodes are always busy; it rises with the nodes, up to a limit."""
    return nodes / ring_s(met, [nodes] * len(met), times, nodes)


def latency_s(met: Sequence[Met], nodes: int, times: StepTimes) -> float:
    """(5) Mean time until all results of a tuple are there, of nodes with equal work."""
    return latency_of_lengths_s(met, [nodes] * len(met), nodes, times, nodes)


def latency_of_lengths_s(met: Sequence[Met], lengths: Sequence[int], nodes: int, times: StepTimes, own: int) -> float:
    """(5) where a stream is kept by fewer nodes: the round in which it is met is shorter, and its work is theirs.

    Args:
        lengths, own: see `ring_s`.
        nodes: of the ring.
    """
    rounds = zip(met, lengths, partials(met), strict=True)
    work = sum(sent * (times.join * one.stored / length + times.send) for one, length, sent in rounds)
    work += kept_s(times, own) / nodes
    hops = sum(lengths) + nodes  # M rounds; the last one is that of the END flag
    return (nodes - 1) / 2 * times.hop + max(work, hops * times.hop)


def cycle_s(met: Sequence[Met], nodes: int, times: StepTimes) -> float:
    """How long a ring is at work on one tuple, with no other in it, until the last END is back at the head.

    Not the paper's: by (5) work and hops overlap wholly, there are M rounds, and T_s is no part of a hop. But END flags
    follow right behind the tuples that they close, so M - 1 rounds are enough; nodes wait where few partial results are
    under way; and what goes on has to be received and sent. One node sends nothing.
    """
    if nodes == 1:
        return central_s(met, times)
    lengths = [nodes] * len(met)
    return ring_s(met, lengths, times, nodes) / nodes + sum(lengths) * (times.hop + times.send)


def bounds_of_length(met: Sequence[Met], times: StepTimes) -> tuple[float, float]:
    """N_1 and N_2 (section 5.2): where rounds take as long as work, and where hops do; with T_p once, as printed."""
    central, rounds = central_s(met, times), len(met) + 1
    kept = times.send * sum(partials(met))
    first = (kept + math.sqrt(kept**2 + 4 * rounds * times.hop * central)) / (2 * rounds * times.hop)
    return first, (1 + math.sqrt(1 + 8 * central / times.hop)) / 2


def best_length(met: Sequence[Met], times: StepTimes, available: int) -> int:
    """N*, the number of nodes with the lowest latency, of those there are; the fewest of equals."""
    return min(range(1, available + 1), key=lambda nodes: latency_s(met, nodes, times))


def bandwidth_bytes_per_s(met: Sequence[Met], lengths: Sequence[int], tuple_bytes: float, times: StepTimes) -> float:
    """(6) What a link must carry so that nodes never wait for tuples."""
    least = min(one.stored / length for one, length in zip(met, lengths, strict=True))
    return tuple_bytes / (times.join * least)


def ring(r: StreamStatistics, s: StreamStatistics, lengths: Sequence[int]) -> Prediction:
    """A ring of two streams, each kept by the first so many nodes: one round."""
    nodes = max(lengths)  # a tuple goes to those that keep the other stream, and to those that may keep it
    sent = nodes * (r.bytes_per_s + s.bytes_per_s)
    return Prediction(stored_once_bytes(r, s), sent, float(nodes), nested_loop_per_s(r, s), sent / nodes)
