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

from streamjoin.engine.routing import even_groups
from streamjoin.engine.state import UnitState, totals_of
from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.handshake.state import ChainState, Files
from streamjoin.plan.window import R, S


def resized(states: Mapping[int, UnitState], workers: int) -> dict[int, UnitState]:
    """States of a chain of `workers` workers, from those of a chain of another length."""
    before = {worker: ChainState.of(state) for worker, state in states.items()}
    any_one = states[0]
    after = {}
    for worker, group in enumerate(groups(len(states), workers)):
        # All workers have come equally far.
        merged = replace(_merged(before, group, worker), settled=before[0].settled)
        totals = totals_of(states.values()) if worker == 0 else {}
        after[worker] = UnitState(
            any_one.version, merged.tables, merged.values, any_one.clocks, totals, elsewhere=any_one.elsewhere
        )
    return after


def groups(before: int, after: int) -> list[tuple[int, ...]]:
    """Which of `before` workers each of `after` workers takes the place of; neighbours, and the ends stay the ends."""
    if after < before:
        return list(even_groups(range(before), after))
    places = {old * (after - 1) // max(before - 1, 1): old for old in range(before)}
    return [(places[new],) if new in places else () for new in range(after)]


def _merged(states: Mapping[int, ChainState], group: Sequence[int], worker: int) -> ChainState:
    """What becomes of the workers of `group`, left to right, none or more."""

    def named(old: int, infos: Iterable[SegmentInfo]) -> tuple[SegmentInfo, ...]:
        return tuple(info.taken_over(old, worker) for info in infos)

    def whole(old: int, side: int) -> tuple[SegmentInfo, ...]:
        return named(old, (*states[old].at_rest(side), *states[old].sent[side]))

    closed, kept_open, sent = [], [], []
    # Oldest first. R's oldest tuples are furthest right, and what a worker has sent is ahead of what it has.
    for side, ahead_first in ((R, tuple(reversed(group))), (S, tuple(group))):
        closed.append(
            tuple(
                info
                for place, old in enumerate(ahead_first)
                for info in named(old, (*(states[old].sent[side] if place else ()), *states[old].closed[side]))
            )
        )
        # Only a stream's head has them: it comes last here, and stays the head.
        kept_open.append(tuple(info for old in ahead_first for info in named(old, states[old].open[side])))
        sent.append(named(ahead_first[0], states[ahead_first[0]].sent[side]) if group else ())
    unmet = [
        (_files(named(old, states[old].found(R, r))), _files(named(old, states[old].found(S, s))))
        for old in group
        for r, s in states[old].unmet
    ]  # of workers that were merged before, if there was no batch since
    for place, left in enumerate(group[:-1]):
        r = whole(left, R)
        s = tuple(info for right in group[place + 1 :] for info in whole(right, S))
        if r and s:
            unmet.append((_files(r), _files(s)))
    waiting = tuple(replace(run, info=run.info.taken_over(old, worker)) for old in group for run in states[old].waiting)
    return ChainState(
        (closed[R], closed[S]), (kept_open[R], kept_open[S]), (sent[R], sent[S]), waiting, unmet=tuple(unmet)
    )


def _files(infos: Iterable[SegmentInfo]) -> Files:
    return tuple(info.file for info in infos)
