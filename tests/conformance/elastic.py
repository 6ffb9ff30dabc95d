"""A biclique whose units come and go by a script, in place of what they store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamjoin.engine.operator import Operator
from streamjoin.operators.adapting.members import Load
from streamjoin.operators.biclique.adaptive import AdaptiveBiclique
from streamjoin.operators.biclique.router import Biclique, Routing
from streamjoin.operators.biclique.scaling import UnitPlan, grown, released, shrunk
from streamjoin.plan.window import R, S

Shape = tuple[int, int, Routing, int, int]


@dataclass(frozen=True)
class Scripted(AdaptiveBiclique):
    """Follows a script: by batch, (side, subgroup, how many units more or fewer there are from the next one on)."""

    script: Mapping[int, Sequence[tuple[int, int, int]]] = field(default_factory=dict)

    def decide(self, batch: int, now_us: int, loads: Mapping[int, Load | None]) -> UnitPlan:
        after = released(self.plan, batch, now_us, loads)
        for side, group, change in self.script.get(batch, ()):
            if change > 0:
                after, _ = grown(after, side, group, change, batch + 1)
            else:
                after, _ = shrunk(after, side, group, -change)
        return after


ROUTED: dict[str, Shape] = {
    "random": (2, 3, Routing.RANDOM, 1, 1),
    "hash": (3, 2, Routing.HASH, 1, 1),
    "contrand": (4, 3, Routing.CONTRAND, 2, 3),
}


def scripted(shape: Shape, seed: int, batches: int = 20) -> Scripted:
    """Up and down in about every batch, of any subgroup."""
    rng = np.random.default_rng(seed)
    operator = Scripted(*shape)
    groups = [len(side) for side in operator.groups]
    script = {
        batch: [
            (side, int(rng.integers(groups[side])), int(rng.choice([-3, -2, -1, 1, 2])))
            for side in (R, S)
            if rng.random() < 0.7
        ]
        for batch in range(batches)
    }
    return Scripted(*shape, script=script)


def of_loop(operators: Iterable[Operator], seed: int) -> tuple[Operator, ...]:
    """A loop's operators; those of joins follow scripts."""
    return tuple(
        scripted((found.r_units, found.s_units, found.routing, found.r_groups, found.s_groups), seed + number)
        if isinstance(found, Biclique)
        else found
        for number, found in enumerate(operators)
    )
