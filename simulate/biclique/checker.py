"""Definition 2 as a check of what units did: is there one global order that explains it?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from simulate.biclique.messages import Identity


class OrderError(Exception):
    """The run was not order-consistent."""


def global_sequence(
    processed: Mapping[str, Sequence[Identity]], assigned: Mapping[str, Collection[Identity]]
) -> list[Identity]:
    """A sequence Z with each tuple once, of which what each unit processed is a subsequence (BiStream, Definition 2).

    It looks at neither stamps nor signals. Cost: linear in what was processed.

    Args:
        processed: tuples by unit, in its order.
        assigned: what was meant for each unit, by unit.

    Raises:
        OrderError: a unit lacks a tuple or has one twice, or units' orders contradict each other.
    """
    sorter: TopologicalSorter[Identity] = TopologicalSorter()
    for unit in sorted({*processed, *assigned}):
        did, meant = processed.get(unit, ()), assigned.get(unit, ())
        if sorted(did) != sorted(meant):
            raise OrderError(f"unit {unit} processed {sorted(did)}, it was assigned {sorted(meant)}")
        for identity in did:
            sorter.add(identity)
        for earlier, later in pairwise(did):
            sorter.add(later, earlier)
    try:
        return list(sorter.static_order())
    except CycleError as error:
        raise OrderError(f"units contradict each other on {error.args[1]}") from error
