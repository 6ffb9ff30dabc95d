"""Which stages must know the clock of a stream that enters at another one."""

from __future__ import annotations

from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import AnyPlan, Cascade, entry_of, stages_of


def elsewhere(plan: AnyPlan, stage: int) -> dict[int, StreamSchema]:
    """The streams that enter at other stages than this one and whose clocks it must know all the same, by number.

    None but where a stream of three and more may be idle: it then has the mark of the others, wherever they enter.
    """
    if not isinstance(plan, Cascade) or all(stream.idle_us is None for stream in plan.streams):
        return {}
    found = plan.stages[stage]
    # What it reads says how far all of them have come.
    if isinstance(found.plan, AggregatePlan) or found.keeps is not None:
        return {}
    return {number: stream for number, stream in enumerate(plan.streams) if entry_of(plan, number)[0].number != stage}


def hearing(plan: AnyPlan, stream: int) -> tuple[int, ...]:
    """The stages beside its own that must know the clock of a stream."""
    return tuple(stage.number for stage in stages_of(plan) if stream in elsewhere(plan, stage.number))
