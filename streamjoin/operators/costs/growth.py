"""How many slots a layout can use: BiStream's and SplitJoin's counts, with measured step times.

Slots are doubled, and batches with them, until a slot would bring less than half of what one slot does alone. As a
ratio of times on one machine, this depends much less on the machine than a rate does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamjoin.operators.costs.slots import Around, Layout, Predicted, StepCosts, predicted

LayoutOf = Callable[[int], Layout]
"""From a number of slots to where tuples go with so many."""
SHARE_MIN = 0.5
"""The least share of a lone slot's rate that a slot among many has to bring."""
SLOTS_MAX = 4096
SLOT_TUPLES = 786_432
"""Tuples of both streams per batch and slot, as in the measurement of `MEASURED`."""
WINDOW_BATCHES = 4
"""How many batches are live."""
MEASURED = StepCosts(
    route_ns=145.9, send_ns=63.8, store_ns=34.7, far_store_ns=125.7, probe_ns=63.8, far_probe_ns=47.0, unit_us=4331.7,
)  # fmt: skip
MEASURED_AROUND = Around(batch_ms=261.3, tuple_ns=559.4, copy_ns=873.7)
"""Both are from docs/benchmarks.md, "How joins grow with their slots"."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Where a layout stops scaling.

    Args:
        slots: the most of which each brings enough, a power of two; None where `SLOTS_MAX` still do.
        most: what most of a batch of twice as many slots goes to, or of `SLOTS_MAX`.
    """

    slots: int | None
    most: str


def growth(
    layout: LayoutOf,
    costs: StepCosts = MEASURED,
    around: Around = MEASURED_AROUND,
    slot_tuples: float = SLOT_TUPLES,
) -> Growth:
    """How many slots a layout can use. Cost: at most 14 predictions."""

    def at(slots: int) -> Predicted:
        tuples = slot_tuples * slots
        return predicted(costs, around, layout(slots), tuples, WINDOW_BATCHES * tuples)

    alone, slots = at(1).rate_per_s, 1
    while slots < SLOTS_MAX:
        twice = at(2 * slots)
        if twice.rate_per_s < SHARE_MIN * alone * 2 * slots:
            return Growth(slots, twice.most)
        slots *= 2
    return Growth(None, at(slots).most)
