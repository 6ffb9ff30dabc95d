"""The parts of a bundle, each bound as a job of its own would be: for those who look at one after the other."""

from __future__ import annotations

from dataclasses import replace

from streamjoin.plan.stages import is_divided
from streamjoin.spec.prepare import Bound


def parts_of(bound: Bound) -> tuple[Bound, ...]:
    """One for each part, in their order; of any other plan the only one."""
    if not is_divided(bound.plan):
        return (bound,)
    by_name = {one.name: one for one in bound.single}
    found: list[Bound] = []
    for part, operator in zip(bound.plan.all_parts, bound.operators, strict=True):
        if part.names[0] not in by_name:  # its queries have ended
            continue
        first, *others = (by_name[name] for name in part.names)
        if others:
            single = (first, *others)
            first = replace(bound, plan=part.plan, operator=operator, single=single, stopped=(), operators=())
        found.append(first)
    return tuple(found)
