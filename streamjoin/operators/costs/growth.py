"""Up to how many slots a layout is worth having: BiStream's and SplitJoin's counts, with measured step times.

Slots are doubled, and batches with them, until each would bring less than half of what one does alone. That is a ratio
of times of one machine, so it hangs much less on which machine that was than a rate does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamjoin.operators.costs.slots import Around, Layout, Predicted, StepCosts, predicted

LayoutOf = Callable[[int], Layout]
"""Slots -> what becomes of a tuple with so many."""
SHARE_MIN = 0.5
"""A slot among many is to bring so much of what one alone does, or a layout has stopped scaling."""
SLOTS_MAX = 4096
SLOT_TUPLES = 786_432
"""Tuples of both streams in a batch for each of its slots, as `MEASURED` was measured with."""
WINDOW_BATCHES = 4
"""So many batches are live."""
MEASURED = StepCosts(
    route_ns=148.6, send_ns=46.2, store_ns=0.0, far_store_ns=100.8, probe_ns=46.2, far_probe_ns=69.8, unit_us=3102.1,
)  # fmt: skip
MEASURED_AROUND = Around(batch_ms=214.8, tuple_ns=420.6)
"""With `MEASURED`, what docs/benchmarks.md says under "How joins grow with their slots"."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Where a layout stops scaling.

    Args:
        slots: the most of which each brings enough, a power of two; None where `SLOTS_MAX` still do.
        most: what most of a batch of twice as many slots goes to, or of `SLOTS_MAX`. Copies are probed as often as they
            are sent, so no measurement tells the two apart.
    """

    slots: int | None
    most: str


def growth(
    layout: LayoutOf,
    costs: StepCosts = MEASURED,
    around: Around = MEASURED_AROUND,
    slot_tuples: float = SLOT_TUPLES,
) -> Growth:
    """Up to how many slots a layout is worth having. It takes 14 predictions at most."""

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
