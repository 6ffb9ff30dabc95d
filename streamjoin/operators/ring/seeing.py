"""What node 0 of a ring sees of all nodes when a batch begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import Work
from streamjoin.operators.adapting.members import Load
from streamjoin.operators.ring.measured import Table
from streamjoin.operators.ring.planning import RingPlan, Seen, Stored
from streamjoin.operators.ring.state import NodeState
from streamjoin.operators.rounds.expiry import others_mark_us
from streamjoin.operators.rounds.step import RoundStep

MET = "met"
"""In the values of every node: by origin, the pairs that its round compared in the last batch, and what it found."""


def met(step: RoundStep) -> list[list[int]]:
    """What a node notes of its round."""
    return [[one.comparisons, one.results] for one in step.meeting.origins]


def seen(work: Work, plan: RingPlan) -> Seen:
    """What there is when a batch begins.

    Args:
        work: of node 0 in the first round.
        plan: of the batch.
    """
    streams, batch = range(len(work.plan.streams)), work.before.version
    states = {one.number: work.look(one.number) for one in plan.nodes}
    # A round has the number of its stage, and a node that begins has no state in it.
    there = [one.number for one in plan.nodes if not (one.since == batch > 0)]
    rounds = [[states[number] for number in there]]
    rounds += [[work.look_in(stage, number) for number in there] for stage in streams[1:-1]]
    counted = [_counted(of_round, len(streams)) for of_round in rounds]
    clocks = [work.before.clock(stream) for stream in streams]
    return Seen(
        tuple(clock.routed for clock in clocks),
        tuple(others_mark_us(clocks, stream) for stream in streams),
        _by_origin(counted, 0),
        _by_origin(counted, 1),
        _loads(states),
        tuple(_stored(states.values(), stream) for stream in streams),
        tuple(_tuple_bytes(states.values(), stream) for stream in streams),
    )


def _counted(states: Iterable[UnitState], origins: int) -> np.ndarray:
    """Pairs that were compared, and what was found, by all nodes of a round: int64 of shape (origins, 2)."""
    noted = [state.values[MET] for state in states if MET in state.values]
    return np.sum(np.array(noted, np.int64).reshape(-1, origins, 2), axis=0)


def _by_origin(counted: Sequence[np.ndarray], what: int) -> Table:
    return tuple(tuple(float(one) for one in row) for row in np.stack(counted, axis=1)[:, :, what])


def _loads(states: Mapping[int, UnitState]) -> dict[int, Load]:
    """By node, what it has, with what is on its way from it and to it."""
    coming = dict.fromkeys(states, 0)
    for state in states.values():
        for (_, to), infos in NodeState.of(state).sent.items():
            coming[to] = coming.get(to, 0) + sum(info.rows for info in infos)
    has = {number: list(state.tuples()) for number, state in states.items()}
    return {
        number: Load(sum(info.rows for info in infos) + coming[number], sum(info.bytes for info in infos))
        for number, infos in has.items()
    }


def _stored(states: Iterable[UnitState], stream: int) -> Stored:
    """What all nodes have of a stream."""
    infos = [info for state in states for info in state.tuples(stream)]
    return Stored(
        np.array([info.ts_min_us for info in infos], np.int64),
        np.array([info.ts_max_us for info in infos], np.int64),
        np.array([info.rows for info in infos], np.int64),
    )


def _tuple_bytes(states: Iterable[UnitState], stream: int) -> float:
    infos = [info for state in states for info in state.tuples(stream)]
    rows = sum(info.rows for info in infos)
    return sum(info.bytes for info in infos) / rows if rows else 0.0
