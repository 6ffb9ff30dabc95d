"""Where the input of streams says that periods end: at marker rows, or with files.

A period ends behind the event time of the row that says so, or behind the latest one of the file: what has that very
time still belongs to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamjoin.flow.punctuation import Punctuation

BEFORE_ALL_US = -(2**62)
"""Event times are later."""
PERIODS_AHEAD_MAX = 10_000
"""A stream that is so many periods ahead of the others ends no further one until they follow: its last one grows."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What one stream's input said in a batch.

    Args:
        ends_us: where periods end, one each; None for a file without rows.
        by_file: in the order of the files; otherwise by event time.
    """

    ends_us: tuple[int | None, ...] = ()
    by_file: bool = False


def ended_by(punctuations: Iterable[Punctuation]) -> Ended:
    """What the punctuations of one stream in a batch say, in whatever order they come."""
    rows: list[int] = []
    files: dict[int, int | None] = {}
    for said in punctuations:
        rows += said.ends_us
        if said.file is not None:
            latest = [time for time in (files.get(said.file), said.ts_max_us) if time is not None]
            files[said.file] = max(latest, default=None)
    if files:
        return Ended(tuple(None if latest is None else latest + 1 for _, latest in sorted(files.items())), by_file=True)
    return Ended(tuple(capped(sorted(rows))))


def capped(ends_us: Sequence[int]) -> Sequence[int]:
    """No more than PERIODS_AHEAD_MAX of them: the last one ends with those that are too many."""
    if len(ends_us) <= PERIODS_AHEAD_MAX:
        return ends_us
    first = PERIODS_AHEAD_MAX - 1
    return [*ends_us[:first], max(ends_us[first:])]


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of periods that a stream has told, and that have no part in a closed one yet.

    Args:
        ahead_us: those that its mark has not passed, by event time.
        passed_us: those that it has, in order; the first one is of the first period that is open.
        latest_us: the latest of all that were told.
    """

    ahead_us: tuple[int, ...] = ()
    passed_us: tuple[int, ...] = ()
    latest_us: int = BEFORE_ALL_US

    def after(self, told: Ended, mark_us: int | None) -> Ends:
        """With those of a batch, after which the stream has come as far as `mark_us`."""
        latest_us, ahead_us = self.latest_us, list(self.ahead_us)
        for end_us in told.ends_us:
            latest_us = max(latest_us, end_us) if end_us is not None else latest_us
            # All that was read before is in the files up to this one.
            ahead_us.append(latest_us if told.by_file or end_us is None else end_us)
        ahead_us.sort()
        passed = 0 if mark_us is None else bisect_right(ahead_us, mark_us)
        return Ends(tuple(capped(ahead_us[passed:])), tuple(capped([*self.passed_us, *ahead_us[:passed]])), latest_us)

    def without(self, periods: int) -> Ends:
        """Once so many periods have been closed."""
        return Ends(self.ahead_us, self.passed_us[periods:], self.latest_us)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return {"ahead_us": list(self.ahead_us), "passed_us": list(self.passed_us), "latest_us": self.latest_us}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Ends:
        """The inverse of `to_json`."""
        return Ends(tuple(value["ahead_us"]), tuple(value["passed_us"]), value["latest_us"])


def closing(streams: Sequence[Ends], output_mark_us: int | None, ended_us: int | None) -> list[int]:
    """Where the periods end that are complete: all streams have punctuated them, and the output has come so far.

    A period ends with the latest of its punctuations, and not before the one before it.

    Args:
        ended_us: where the last closed one ended; None before the first.
    """
    ends_us: list[int] = []
    if output_mark_us is None:
        return ends_us
    for of_period in zip(*(one.passed_us for one in streams), strict=False):
        end_us = max(of_period) if ended_us is None else max(*of_period, ended_us)
        if output_mark_us < end_us:
            break
        ends_us.append(end_us)
        ended_us = end_us
    return ends_us
