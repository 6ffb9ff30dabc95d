"""A ring whose nodes come and go by a script, in place of what they do."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streamjoin.operators.ring.adaptive import AdaptiveRing
from streamjoin.operators.ring.planning import (
    AGGRESSIVE,
    NOTHING,
    PASSIVE,
    RingLimits,
    RingPlan,
    Seen,
    changed,
    ends_us,
    released,
)

Script = Mapping[int, tuple[int, str]]
"""By batch, how many nodes more or fewer there are from the next one on, and in which way."""


@dataclass(frozen=True)
class Scripted(AdaptiveRing):
    """Follows a script, where every stream has begun.

    Args:
        levels: slices become such that nodes have as many rows each, in every batch.
    """

    script: Script = field(default_factory=dict)
    levels: bool = False

    def decide(self, batch: int, now_us: int, seen: Seen, limits: RingLimits) -> RingPlan:
        plan, reaches_us = released(self.nodes_now, batch, now_us, seen.loads), self.plan.reaches_us
        if not self.levels:
            seen = replace(seen, stored=(NOTHING,) * len(seen.stored))
        plan = replace(plan, ends_us=ends_us(len(plan.storing), seen, reaches_us))
        change, way = self.script.get(batch, (0, ""))
        if not change or None in seen.marks_us:
            return plan
        return changed(plan, change, way, batch, now_us, seen, reaches_us)


def random_script(chosen: random.Random, batches: int) -> Script:
    """Up and down in about every second batch, in either way."""
    return {
        batch: (chosen.choice([-2, -1, 1, 2, 3]), chosen.choice([PASSIVE, AGGRESSIVE]))
        for batch in range(batches)
        if chosen.random() < 0.6
    }
