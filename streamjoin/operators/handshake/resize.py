"""A longer or a shorter chain over the same tuples (ESJ: workers are added and removed on demand).

A pair (r, s) has met iff r's worker is not left of s's. Workers that are added change nothing of that: they are put
between the others, empty, and the chain's balance fills them. Neighbours that become one worker do: what lies in the
left one as r and in the right one as s has not met, and in one place nobody would join it any more. So the merged
worker's next batch joins exactly these, and no others, which have met.

What is on its way between two merged workers comes to rest in the one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.handshake.handover import message, sent
from streamjoin.operators.routing import even_groups
from streamjoin.operators.unit import UnitState, totals_of
from streamjoin.window import R, S


def resized(states: Mapping[int, UnitState], workers: int) -> dict[int, UnitState]:
    """States of a chain of `workers` workers, from those of a chain of another length."""
    found = groups(len(states), workers)
    after = {worker: _merged(states, group, worker) for worker, group in enumerate(found)}
    # Only a stream's head has tuples that do not fill a block yet.
    for worker, side, head in ((0, R, 0), (workers - 1, S, len(states) - 1)):
        if head in found[worker]:
            rows = list(after[worker].open_rows)
            rows[side] = states[head].open_rows[side]
            after[worker] = replace(after[worker], open_rows=(rows[R], rows[S]))
    after[0] = replace(after[0], totals=totals_of(states.values()))
    return after


def groups(before: int, after: int) -> list[tuple[int, ...]]:
    """Which of `before` workers each of `after` workers takes the place of; neighbours, and the ends stay the ends."""
    if after < before:
        return list(even_groups(range(before), after))
    places = {old * (after - 1) // max(before - 1, 1): old for old in range(before)}
    return [(places[new],) if new in places else () for new in range(after)]


def _merged(states: Mapping[int, UnitState], group: Sequence[int], worker: int) -> UnitState:
    """What becomes of the workers of `group`, left to right, none or more."""

    def named(old: int, infos: Iterable[SegmentInfo]) -> tuple[SegmentInfo, ...]:
        return tuple(info.taken_over(old, worker) for info in infos)

    def at_rest(old: int, side: int) -> tuple[SegmentInfo, ...]:
        return named(old, states[old].segments.get(side, ()))

    def on_its_way(old: int, side: int) -> tuple[SegmentInfo, ...]:
        return named(old, sent(states[old], side))

    kept, outbox = {}, []
    # Oldest first. R's oldest tuples are furthest right, and what a worker has sent is ahead of what it has.
    for side, ahead_first in ((R, tuple(reversed(group))), (S, tuple(group))):
        kept[side] = tuple(
            info
            for place, old in enumerate(ahead_first)
            for info in (*(on_its_way(old, side) if place else ()), *at_rest(old, side))
        )
        if group and (leaving := on_its_way(ahead_first[0], side)):
            outbox.append(message(side, leaving))
    unmet = [
        (named(old, r), named(old, s)) for old in group for r, s in states[old].unmet
    ]  # of workers that were merged before, if there was no batch since
    for place, left in enumerate(group[:-1]):
        r = (*at_rest(left, R), *on_its_way(left, R))
        s = tuple(info for right in group[place + 1 :] for info in (*at_rest(right, S), *on_its_way(right, S)))
        if r and s:
            unmet.append((r, s))
    waiting = tuple(replace(run, info=run.info.taken_over(old, worker)) for old in group for run in states[old].waiting)
    any_one = next(iter(states.values()))
    return UnitState(
        any_one.version,
        kept,
        any_one.clocks,
        outbox=tuple(outbox),
        waiting=waiting,
        settled=any_one.settled,
        unmet=tuple(unmet),
    )
