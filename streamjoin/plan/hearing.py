"""Which stages must know the clock of a stream that enters at another one."""

from __future__ import annotations

from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import Plan, entry_of, parts_at


def elsewhere(plan: Plan, stage: int) -> dict[int, StreamSchema]:
    """The streams that enter at other stages than this one and whose clocks it must know all the same, by number.

    None but where a stream of three and more may be idle: it then has the mark of the others, wherever they enter. A
    stage that rests knows of none.
    """
    if stage in plan.resting:
        return {}
    part = parts_at(plan, stage)[0]  # of all that share the stage it is the same
    own, number = part.plan, part.numbers.index(stage)
    found = own.stages[number]
    # Where it is of groups or of a later round, what it reads says how far all of them have come.
    if (
        all(stream.idle_us is None for stream in own.streams)
        or isinstance(found.plan, AggregatePlan)
        or found.keeps is not None
    ):
        return {}
    return {
        part.streams[read]: stream for read, stream in enumerate(own.streams) if entry_of(own, read)[0].number != number
    }


def entries_elsewhere(plan: Plan, stage: int) -> dict[int, tuple[int, int]]:
    """Where those streams enter, by number: the stage, and their side there."""
    found = {stream: entry_of(plan, stream) for stream in elsewhere(plan, stage)}
    return {stream: (entered.number, side) for stream, (entered, side) in found.items()}


def hearing(plan: Plan, stream: int) -> tuple[int, ...]:
    """The stages beside its own that must know the clock of a stream."""
    return tuple(stage.number for stage in plan.stages if stream in elsewhere(plan, stage.number))
