"""Which blocks a worker sends to the successor of their stream (ESJ, "Message passing").

The paper's rule: send part of the load iff the own load exceeds the successor's. Load is the number of live tuples of
that stream in a worker, with what is on its way to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamjoin.flow.punctuation import IDLE_TIMEOUT_US, StreamClock, last_seen_us
from streamjoin.index.segment import SegmentInfo
from streamjoin.plan.sharing import Pairs
from streamjoin.plan.window import CountWindow, FullHistory, TimeWindow


def balancing(blocks: Sequence[int], own: int, successor: int, threshold: int) -> int:
    """How many of the oldest blocks go to even out two loads.

    A block goes while the difference is as large as the block: after it, the successor has at most as much more than
    its sender as the sender had before, so blocks do not go back and forth between what is too much and too little.

    Args:
        blocks: tuples of each block that can go, oldest first.
        own, successor: loads in tuples.
        threshold: the difference must be above it.
    """
    for number, rows in enumerate(blocks):
        difference = own - successor
        if difference < rows or difference <= threshold:
            return number
        own, successor = own - rows, successor + rows
    return len(blocks)


def idle(clocks: tuple[StreamClock, ...], now_us: int) -> bool:
    """Whether both streams have been silent for so long that waiting for more of them helps nobody.

    Marks stand still then, so nothing outlives its window, and tuples in different workers would wait for ever.
    """
    seen_us = last_seen_us(clocks)
    return seen_us is not None and now_us - seen_us >= IDLE_TIMEOUT_US


def outlived(
    plan: Pairs, side: int, clocks: tuple[StreamClock, ...], part: int, parts: int
) -> Callable[[SegmentInfo], bool]:
    """Whether blocks of `side` are older than `part` of `parts` of the window; past all of it they meet nothing new.

    R is as old as S's mark says, S as R's mark says; with a count window, as old as its own stream is long.
    """
    match plan.window:
        case TimeWindow() as window:
            mark_us = clocks[1 - side].mark_us
            if mark_us is None:
                return lambda info: False
            oldest_us = mark_us - window.keeps_us(side) * part // parts
            return lambda info: info.ts_max_us < oldest_us
        case CountWindow(rows):
            first = clocks[side].rows - rows * part // parts
            return lambda info: info.rank_max < first
        case FullHistory():
            return lambda info: False
