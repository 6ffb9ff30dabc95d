"""What the formulas take, and what they tell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """One stream: chi, phi and the number of stored tuples."""

    tuple_bytes: float
    rate_per_s: float
    stored: float

    @property
    def bytes_per_s(self) -> float:
        """Sigma = chi phi."""
        return self.tuple_bytes * self.rate_per_s


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What single steps take, in us: measured, for the papers name no values.

    Args:
        link_us: to hand a tuple on to the next node.
        probe_us: to compare a tuple with all that one unit stores of the other stream (the papers' w T_P).
    """

    link_us: float
    probe_us: float


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one tuple that waits for no other, in us: until it has met all its partners, and until it meets one."""

    processing_us: float
    visiting_us: float


@dataclass(frozen=True, slots=True)
class BlockSize:
    """A chain's block of tuples that are forwarded together, and what went into it.

    Args:
        tuples: by stream, (R, S).
        target: J of these sizes, by stream.
        weight: a, of transmission against imbalance.
        cost_serialization, cost_transmission: C_ser of a block and C_tr of a tuple, in one unit.
    """

    tuples: tuple[int, int]
    target: tuple[float, float]
    weight: float
    cost_serialization: float
    cost_transmission: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the formulas say of one operator.

    Args:
        memory_bytes: W, all units together.
        bytes_per_s: B, between routers and units.
        replication: tuples received by units / tuples in.
        comparisons_per_s: tuples compared with a nested loop a second; an index needs fewer.
        busiest_bytes_per_s: the largest In(unit).
        latency: where the paper has a formula, and the costs of its steps are known.
        block: of a chain whose block size the formula sets.
    """

    memory_bytes: float
    bytes_per_s: float
    replication: float
    comparisons_per_s: float
    busiest_bytes_per_s: float
    latency: Latency | None = None
    block: BlockSize | None = None


def stored_once_bytes(r: StreamStatistics, s: StreamStatistics) -> float:
    """Memory of an operator that keeps one copy of each live tuple."""
    return r.tuple_bytes * r.stored + s.tuple_bytes * s.stored


def nested_loop_per_s(r: StreamStatistics, s: StreamStatistics) -> float:
    """Comparisons a second where every tuple meets the whole opposite window once, wherever it is stored."""
    return r.rate_per_s * s.stored + s.rate_per_s * r.stored
