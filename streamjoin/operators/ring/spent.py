"""What nodes of a ring spent on a batch -> what single steps took in it (PSP, table 1).

T_j is of a pair that is compared, with its share of what it takes to look it up and to give what is found. T_s is of a
tuple in a node: decoded there, made ready to probe, and, where it is found in a round that is not the last, routed and
encoded. What readers of streams spend on routing rows to the first round is not in it. T_n is the time between two
rounds, by a tuple of the batch: a shuffle carries all of them at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamjoin.engine.spent import HANDED, RECEIVED
from streamjoin.operators.costs.psp import StepTimes
from streamjoin.operators.costs.watched import LEAST_S, MOST_S, Taken, observed_s, terms
from streamjoin.operators.ring.step import PURGED, STORED
from streamjoin.operators.rounds.meeting import COMPARED

HOP_MAX_S = 60.0
"""A longer pause between two rounds is of a machine that slept, or of two whose clocks differ."""


@dataclass(frozen=True, slots=True)
class StepsWatched:
    """What a ring's nodes spend, and what is made of it; see `Watching`.

    Args:
        times: what steps take, as set or assumed.
        given: the names of those that are set.
    """

    times: StepTimes
    given: Collection[str]

    def observed(
        self, stages: Sequence[Sequence[Mapping[str, Sequence[float]]]], hops_s: Sequence[float], tuples: int
    ) -> dict[str, float | None]:
        """See `Watching`; a stage is a round."""
        every = [node for of_round in stages for node in of_round]
        handed_s = sum(node[HANDED][0] for of_round in stages[:-1] for node in of_round if HANDED in node)
        seconds, count, anyway_s = _added(every, RECEIVED)
        hops_s = [one for one in hops_s if 0 < one <= HOP_MAX_S]
        hop_s = sum(hops_s) / len(hops_s) / tuples if hops_s and tuples > 0 else None
        return {
            "join": observed_s(_added(every, COMPARED)),
            "send": observed_s((seconds + handed_s, count, anyway_s)),
            "insert": observed_s(_added(every, STORED)),
            "purge": observed_s(_added(every, PURGED)),
            "hop": hop_s if hop_s is not None and LEAST_S <= hop_s <= MOST_S else None,
        }

    def told(self, measured: Mapping[str, float]) -> list[dict[str, Any]]:
        """See `Watching`."""
        found = terms(self.times, self.given, measured)
        return [{"name": one.name, "symbol": one.symbol, "us": one.us, "origin": one.origin} for one in found]


def _added(nodes: Sequence[Mapping[str, Any]], kind: str) -> Taken:
    found = [node[kind] for node in nodes if kind in node]
    seconds, count, anyway_s = (sum(one[place] for one in found) for place in range(3))
    return seconds, count, anyway_s
