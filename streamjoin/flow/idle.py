"""Streams that are silent: how far they count as having come, so that the others go on.

A stream whose source has had nothing to bring for longer than its `idle` takes the lowest mark of the plan's streams
that are active; if all are idle, each takes the highest. What comes below that mark later is late. Every unit of every
stage finds the same, as each knows the clocks of all streams of its plan, and a clock is made of what is logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamjoin.flow.punctuation import StreamClock, lowest_mark_us


def with_idle(clocks: Sequence[StreamClock], idle_us: Sequence[int | None]) -> tuple[StreamClock, ...]:
    """The clocks of all streams of a plan after a batch, with the marks that idle ones take over.

    Args:
        clocks: of each stream, as it has come by itself.
        idle_us: of each stream, the silence after which it is idle; None for never.
    """
    idle = [clock.is_idle(limit_us) for clock, limit_us in zip(clocks, idle_us, strict=True)]
    if not any(idle):
        return tuple(clocks)
    known = [clock.mark_us for clock in clocks if clock.mark_us is not None]
    active = [clock.mark_us for clock, is_idle in zip(clocks, idle, strict=True) if not is_idle]
    reached_us = lowest_mark_us(active) if active else max(known, default=None)
    return tuple(
        _at_least(clock, reached_us) if is_idle else clock for clock, is_idle in zip(clocks, idle, strict=True)
    )


def _at_least(clock: StreamClock, mark_us: int | None) -> StreamClock:
    """A clock that has come as far as `mark_us`, if it is not ahead of it."""
    return replace(clock, mark_us=max((mark for mark in (clock.mark_us, mark_us) if mark is not None), default=None))
