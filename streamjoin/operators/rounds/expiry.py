"""When a tuple of many streams is dead: once all the others have passed its reach (PSP, step 2-1, for M streams)."""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.flow.punctuation import StreamClock, lowest_mark_us


def others_mark_us(clocks: Sequence[StreamClock], stream: int) -> int | None:
    """How far all other streams have come; None before one of them has begun."""
    return lowest_mark_us(clock.mark_us for number, clock in enumerate(clocks) if number != stream)


def is_dead(ts_max_us: int, mark_us: int | None, reach_us: int) -> bool:
    """Whether no tuple still to come of another stream, inside its delay, can meet the segment (2-1, M streams)."""
    return mark_us is not None and ts_max_us + reach_us < mark_us
