"""BiStream's formulas (SIGMOD 2015, section 4), for the join-biclique and the join-matrix.

Symbols: chi is a tuple's size in bytes, phi its arrival rate a second, |R| and |S| the stored tuples, m and n the
partitions, d and e the subgroups, D the delay in seconds, C the memory of a unit in bytes.
"""

from __future__ import annotations

import math

from streamjoin.operators.costs.prediction import Prediction, StreamStatistics


def _sizes(units: int, groups: int) -> list[int]:
    return [units // groups + (1 if group < units % groups else 0) for group in range(groups)]


def biclique_memory_bytes(
    r: StreamStatistics, s: StreamStatistics, m: int, n: int, d: int, e: int, delay_s: float
) -> float:
    """W_bi, the stored tuples and those that wait for the ordering protocol (section 4.1)."""
    waiting_r = n * r.rate_per_s / e * delay_s
    waiting_s = m * s.rate_per_s / d * delay_s
    return r.tuple_bytes * (r.stored + waiting_r) + s.tuple_bytes * (s.stored + waiting_s)


def matrix_memory_bytes(r: StreamStatistics, s: StreamStatistics, m: int, n: int) -> float:
    """W_mat (equation 2)."""
    return r.tuple_bytes * n * r.stored + s.tuple_bytes * m * s.stored


def biclique_inputs_bytes_per_s(
    r: StreamStatistics, s: StreamStatistics, m: int, n: int, d: int, e: int
) -> tuple[list[float], list[float]]:
    """In(R_k,i) and In(S_l,j) of every unit (section 4.3); subgroups may differ in size by one."""
    r_inputs = [r.bytes_per_s / (d * size) + s.bytes_per_s / d for size in _sizes(m, d) for _ in range(size)]
    s_inputs = [s.bytes_per_s / (e * size) + r.bytes_per_s / e for size in _sizes(n, e) for _ in range(size)]
    return r_inputs, s_inputs


def biclique_bytes_per_s(r: StreamStatistics, s: StreamStatistics, m: int, n: int, d: int, e: int) -> float:
    """B_bi (equation 5)."""
    return (n / e + 1) * r.bytes_per_s + (m / d + 1) * s.bytes_per_s


def matrix_bytes_per_s(r: StreamStatistics, s: StreamStatistics, m: int, n: int) -> float:
    """B_mat (equation 6)."""
    return n * r.bytes_per_s + m * s.bytes_per_s


def biclique(
    r: StreamStatistics, s: StreamStatistics, m: int, n: int, d: int, e: int, delay_s: float = 0.0
) -> Prediction:
    """A join-biclique of m + n units in d and e subgroups."""
    r_inputs, s_inputs = biclique_inputs_bytes_per_s(r, s, m, n, d, e)
    arriving = r.rate_per_s + s.rate_per_s
    return Prediction(
        biclique_memory_bytes(r, s, m, n, d, e, delay_s),
        biclique_bytes_per_s(r, s, m, n, d, e),
        (r.rate_per_s * (n / e + 1) + s.rate_per_s * (m / d + 1)) / arriving if arriving else 0.0,
        r.rate_per_s * s.stored / e + s.rate_per_s * r.stored / d,
        max(r_inputs + s_inputs),
    )


def matrix(r: StreamStatistics, s: StreamStatistics, m: int, n: int) -> Prediction:
    """A join-matrix of m rows and n columns."""
    arriving = r.rate_per_s + s.rate_per_s
    return Prediction(
        matrix_memory_bytes(r, s, m, n),
        matrix_bytes_per_s(r, s, m, n),
        (r.rate_per_s * n + s.rate_per_s * m) / arriving if arriving else 0.0,
        r.rate_per_s * s.stored + s.rate_per_s * r.stored,
        r.bytes_per_s / m + s.bytes_per_s / n,
    )


def biclique_scaling_gain() -> float:
    """SGR of the biclique: a new unit's memory is all for new tuples (section 4.2)."""
    return 1.0


def matrix_scaling_gain(other: StreamStatistics, other_partitions: int, capacity_bytes: float) -> float:
    """SGR of a new row or column (equations 3 and 4): the rest holds copies of the other stream.

    Args:
        other: the stream that is copied: S for a new row, R for a new column.
        other_partitions: its partitions: n for a new row, m for a new column.
    """
    return 1.0 - other.tuple_bytes * other.stored / (other_partitions * capacity_bytes)


def scaling_change(load: float, units: int, target: float = 0.6) -> int:
    """How many units 2PS adds, or removes where negative (equation 7).

    The paper leaves the rounding open; rounding up towards more units, and never below one, fits its figure 12.
    """
    return max(math.ceil((load / target - 1) * units - 1e-9), 1 - units)
