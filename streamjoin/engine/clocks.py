"""How far the streams of a stage have come with a batch, for stages of any number of streams."""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import UnitInput
from streamjoin.flow.idle import with_idle
from streamjoin.flow.punctuation import IDLE_TIMEOUT_US, Punctuation, StreamClock, drains
from streamjoin.plan.schema import StreamSchema


def clocks_after(
    streams: Sequence[StreamSchema], before: UnitState, given: UnitInput
) -> tuple[tuple[StreamClock, ...], dict[int, StreamClock]]:
    """The clocks of a stage's inputs after a batch, and those of streams that enter elsewhere, by number.

    Streams that are idle have come as far as the plan's other streams have.

    Args:
        streams: what the stage reads, by side.
    """
    heard = [[item for item in given.punctuations if item.side == side] for side in range(len(streams))]
    sides = {side: clock_after(before.clock(side), heard[side], stream, given) for side, stream in enumerate(streams)}
    # The mark of a flow is what the stage before says, and a relation has none.
    timed = [
        side
        for side, stream in enumerate(streams)
        if not stream.is_relation and not any(item.states for item in heard[side])
    ]
    others = {
        number: clock_after(
            before.elsewhere.get(number, StreamClock()),
            [item for item in given.heard if item.elsewhere == number],
            stream,
            given,
        )
        for number, stream in given.elsewhere.items()
    }
    idle_us = [*(streams[side].idle_us for side in timed)]
    idle_us += [stream.idle_us for stream in given.elsewhere.values()]
    marked = with_idle([*(sides[side] for side in timed), *others.values()], idle_us)
    sides |= dict(zip(timed, marked, strict=False))
    return tuple(sides[side] for side in range(len(streams))), dict(zip(others, marked[len(timed) :], strict=True))


def clock_after(
    before: StreamClock, heard: Sequence[Punctuation], stream: StreamSchema, given: UnitInput
) -> StreamClock:
    """The clock of one stream after a batch, by the punctuations that are of it."""
    return before.advance(
        heard, stream.delay_us, given.now_us, stream.idle_us or IDLE_TIMEOUT_US,
        begins=given.begins, drained=drains(given.punctuations),
    )  # fmt: skip
