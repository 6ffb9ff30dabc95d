"""Who gets what: the job's own router for one tuple at a time, and a plan for a biclique whose units change."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from simulate.biclique.messages import Plan, Role, StreamTuple
from streamjoin.engine.routing import STORE, Tuples
from streamjoin.operators.biclique import Biclique


def routed_by(operator: Biclique) -> Plan:
    """The plan of the real router; its units are called R0, R1, ... and S0, S1, ..."""
    labels = {unit.number: unit.label for unit in operator.units}

    def assign(item: StreamTuple) -> list[tuple[str, Role]]:
        tuples = Tuples(np.array([_hash(item)], np.int64), np.array([item.key], np.int64))
        (route,) = operator.route(item.side, tuples)
        return [(labels[unit], Role.STORE if role == STORE else Role.JOIN) for unit, role in route.targets]

    return Plan(tuple(labels.values()), assign)


def spread(r_stores: Sequence[str], s_stores: Sequence[str], only_join: tuple[Sequence[str], Sequence[str]]) -> Plan:
    """Random routing: one unit stores a tuple, and it meets all units of the other side.

    Args:
        r_stores, s_stores: units that store new tuples.
        only_join: units of R and of S that store nothing new but are still probed.
    """
    stores = tuple(r_stores), tuple(s_stores)
    probed = (*r_stores, *only_join[0]), (*s_stores, *only_join[1])

    def assign(item: StreamTuple) -> list[tuple[str, Role]]:
        own = stores[item.side]
        return [(own[_hash(item) % len(own)], Role.STORE), *((unit, Role.JOIN) for unit in probed[1 - item.side])]

    return Plan((*probed[0], *probed[1]), assign)


def _hash(item: StreamTuple) -> int:
    return crc32(f"{item.side} {item.number}".encode())
