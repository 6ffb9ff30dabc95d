"""ESJ's formulas: processing efficiency, and what the block size costs and gains ("Join engine").

r and s are the live tuples of the streams, k the outputs of joining them, m the workers; the paper's varsigma is
`block`, its varpi `rate_per_s`, its varphi `window_s`, its alpha `weight`. Logarithms are to base 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from streamjoin.operators.costs.prediction import (
    BlockSize,
    Prediction,
    StreamStatistics,
    nested_loop_per_s,
    stored_once_bytes,
)

CONSTANT = 2.0
"""What the big O hides, for the bounds: with 1 a search, 2 makes up for both streams searching (r + s <= 2 n)."""


def efficiency_naive(r: int, s: int, k: int) -> float:
    """rho of pairwise comparison: outputs / comparisons."""
    return k / (r * s)


def efficiency_bst(r: int, s: int, k: int) -> float:
    """rho of the search in a balanced tree, with 1 for the constant that the big O hides."""
    return k / (r * math.log2(s) + s * math.log2(r) + k)


def efficiency_hash(r: int, s: int, k: int) -> float:
    """rho of the look-up by hash, with 1 for the constant that the big O hides."""
    return k / (r + s + k)


def bound_bst(r: int, s: int, k: int, eta: float, constant: float = CONSTANT) -> float | None:
    """What rho of the tree is at least, k / (2 C n log n); `None` where eta, tuples a key, exceeds C log n."""
    n = max(r, s)
    return k / (2 * constant * n * math.log2(n)) if eta <= constant * math.log2(n) else None


def bound_hash(r: int, s: int, k: int, eta: float, constant: float = CONSTANT) -> float | None:
    """What rho of the hash map is at least, k / (2 C n); `None` where eta, tuples a key, exceeds C."""
    return k / (2 * constant * max(r, s)) if eta <= constant else None


def gain_bst(r: int, s: int, eta: float, constant: float = CONSTANT) -> float | None:
    """What rho of the tree / rho of pairwise comparison is at least, n' / (2 C log n) with n' = min(r, s)."""
    n = max(r, s)
    return min(r, s) / (2 * constant * math.log2(n)) if eta <= constant * math.log2(n) else None


def gain_hash(r: int, s: int, eta: float, constant: float = CONSTANT) -> float | None:
    """What rho of the hash map / rho of pairwise comparison is at least, n' / (2 C) with n' = min(r, s)."""
    return min(r, s) / (2 * constant) if eta <= constant else None


def serialization_ratio(block: int, cost_serialization: float) -> float:
    """SR, a tuple's share of the serialization of its block."""
    return cost_serialization / block


def transmission_cost(tuples: float, block: int, cost_transmission: float, cost_serialization: float) -> float:
    """TC, of sending so many tuples one hop."""
    return (cost_transmission + serialization_ratio(block, cost_serialization)) * tuples


def imbalance(loads: list[int]) -> float:
    """IF = (w_max - w_avg) / w_avg, measured; 0 for an empty chain."""
    average = sum(loads) / len(loads)
    return (max(loads) - average) / average if average else 0.0


def imbalances(units: Sequence[Mapping[str, Any]], streams: int) -> list[float]:
    """By stream, IF among the units of the stage that stores it.

    Args:
        units: what units report, with `stored_rows` by stream and the `stage`.
    """
    found = []
    for stream in range(streams):
        stages: dict[int, list[int]] = {}
        for unit in units:
            stages.setdefault(unit.get("stage", 0), []).append(unit["stored_rows"][stream])
        # A stream is stored at one stage.
        found.append(max(map(imbalance, stages.values()), default=0.0))
    return found


def fair_share(rate_per_s: float, window_s: float, workers: int) -> float:
    """w_avg, the live tuples of a stream in one worker."""
    return rate_per_s * window_s / workers


def imbalance_predicted(block: int, rate_per_s: float, window_s: float, workers: int) -> float:
    """IF as the paper puts it, block / w_avg. It takes w_max - w_avg <= block, which holds between neighbours only."""
    return block / fair_share(rate_per_s, window_s, workers)


def target(
    block: int,
    rate_per_s: float,
    window_s: float,
    workers: int,
    weight: float,
    cost_transmission: float,
    cost_serialization: float,
) -> float:
    """J, transmission and imbalance together, `weight` in (0, 1) being that of transmission.

    Raises:
        ValueError: the weight leaves one of the two out.
    """
    _check_weight(weight)
    sent = transmission_cost(rate_per_s * window_s, block, cost_transmission, cost_serialization)
    return weight * sent + (1 - weight) * imbalance_predicted(block, rate_per_s, window_s, workers)


def best_block(rate_per_s: float, window_s: float, workers: int, weight: float, cost_serialization: float) -> float:
    """Where J is least, before it is made a whole number and capped; the cost of transmission plays no part.

    Args:
        rate_per_s: the expected one, of one stream; it stays until there is a new plan.
    """
    _check_weight(weight)
    return rate_per_s * window_s * math.sqrt(weight / (1 - weight) * cost_serialization / workers)


def block_size(rate_per_s: float, window_s: float, workers: int, weight: float, cost_serialization: float) -> int:
    """The block to use: the best one, at least 1, and at most half of a worker's fair share.

    Without a cap the block can be larger than a fair share, and then some worker is empty at any time.
    """
    best = best_block(rate_per_s, window_s, workers, weight, cost_serialization)
    return max(1, min(round(best), int(fair_share(rate_per_s, window_s, workers) / 2)))


def handshake(
    r: StreamStatistics,
    s: StreamStatistics,
    workers: int,
    *,
    weight: float = 0.5,
    cost_serialization: float = 1.0,
    cost_transmission: float = 1.0,
) -> Prediction:
    """A chain of m workers: a tuple is in one of them at a time, and passes all m before it is let go.

    A tuple that expires earlier has made fewer than its m - 1 hops, so the traffic is the most there can be.
    """
    arriving = r.bytes_per_s + s.bytes_per_s
    chosen = weight, cost_serialization, cost_transmission
    return Prediction(
        stored_once_bytes(r, s),
        workers * arriving,
        float(workers),
        nested_loop_per_s(r, s),
        arriving,
        block=_block(r, s, workers, *chosen) if r.rate_per_s and s.rate_per_s else None,
    )


def _block(
    r: StreamStatistics, s: StreamStatistics, workers: int, weight: float, serialization: float, transmission: float
) -> BlockSize:
    """(16) and its cap for either stream, and J (15) of the outcome; varpi varphi is the number of stored tuples."""

    def of(stream: StreamStatistics) -> tuple[int, float]:
        rate_per_s, window_s = stream.rate_per_s, stream.stored / stream.rate_per_s
        tuples = block_size(rate_per_s, window_s, workers, weight, serialization)
        return tuples, target(tuples, rate_per_s, window_s, workers, weight, transmission, serialization)

    (r_tuples, r_target), (s_tuples, s_target) = of(r), of(s)
    return BlockSize((r_tuples, s_tuples), (r_target, s_target), weight, serialization, transmission)


def _check_weight(weight: float) -> None:
    if not 0 < weight < 1:
        raise ValueError(f"the weight is between 0 and 1, not {weight}")
