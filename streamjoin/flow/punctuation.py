"""Punctuations: what a router tells every unit about a stream, batch by batch (BiStream's signal tuples).

A punctuation says that all tuples of one piece of the batch's input have been sent, how many there were, and how far
event time has come. From the punctuations of all batches a `StreamClock` derives the stream's *mark*: no tuple that is
inside the allowed delay can be older.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

IDLE_TIMEOUT_US = 60_000_000
"""A router that has had nothing to bring for so long no longer holds the mark back; what returns late is counted.

It counts between batches of one run: while nobody looked, a router may have got much to bring."""


@dataclass(frozen=True, slots=True)
class Punctuation:
    """All tuples of one piece of a batch's input were sent.

    Args:
        side: R or S.
        router: the part of the source whose event times rise together, such as a topic partition.
        piece: which piece of the batch's input, unique in the batch; pieces are ordered by it.
        rows: tuples of the piece, including those that the query's selection dropped.
        ts_max_us: their latest event time; None where there was none, although the router may have brought records.
        clock_us: when the batch began, as logged with its offsets, so that a replay sees the same.
        counts: what intake counted, by name; added up in reports.
        shed: tuples of `rows` that load shedding dropped.
        routed: tuples of `rows` that were sent to units.
        states: it is of a unit whose output is this flow, and `mark_us` is what the unit promises of it: no later
            tuple has a lower event time; None before its inputs have begun.
    """

    side: int
    router: str
    piece: str
    rows: int
    ts_max_us: int | None
    clock_us: int
    counts: Mapping[str, int] = field(default_factory=dict)
    shed: int = 0
    routed: int = 0
    states: bool = False
    mark_us: int | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        stated = {"states": True, "mark_us": self.mark_us} if self.states else {}
        return {
            "side": self.side, "router": self.router, "piece": self.piece, "rows": self.rows,
            "ts_max_us": self.ts_max_us, "clock_us": self.clock_us, "counts": dict(self.counts),
            "shed": self.shed, "routed": self.routed, **stated,
        }  # fmt: skip

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Punctuation:
        """The inverse of `to_json`."""
        return Punctuation(**value)


@dataclass(frozen=True, slots=True)
class StreamClock:
    """How far one stream has come.

    Args:
        rows: tuples it brought so far; the next one's rank.
        mark_us: no tuple inside the allowed delay is older than this; None before the first tuple.
        routers: router -> (latest event time, clock when it brought something last), both in us. The clock moves on by
            the time between two runs; what is left until now is time in which the router had nothing to bring.
        now_us: the clock of the last batch; None before the first.
        shed: tuples of `rows` that load shedding dropped.
        routed: tuples of `rows` that were sent to units.
    """

    rows: int = 0
    mark_us: int | None = None
    routers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shed: int = 0
    routed: int = 0
    now_us: int | None = None

    def advance(
        self,
        punctuations: Sequence[Punctuation],
        delay_us: int,
        now_us: int,
        idle_us: int = IDLE_TIMEOUT_US,
        *,
        begins: bool = False,
    ) -> StreamClock:
        """The clock after a batch.

        Args:
            punctuations: those of this stream in the batch, in any order.
            now_us: when the batch began, as logged.
            begins: the batch is the first that its run has planned.
        """
        stated = [punctuation.mark_us for punctuation in punctuations if punctuation.states]
        if stated:
            return self._told(punctuations, lowest_mark_us(stated), now_us)
        if self.now_us is not None:
            now_us = max(now_us, self.now_us)  # clocks of several sources, and a machine's clock may be set
        stopped_us = now_us - self.now_us if begins and self.now_us is not None else 0
        routers = {name: (latest, seen_us + stopped_us) for name, (latest, seen_us) in self.routers.items()}
        for punctuation in punctuations:
            if punctuation.ts_max_us is not None:
                latest = routers.get(punctuation.router, (punctuation.ts_max_us, 0))[0]
                routers[punctuation.router] = (max(latest, punctuation.ts_max_us), now_us)
            elif punctuation.router in routers:
                routers[punctuation.router] = (routers[punctuation.router][0], now_us)
        mark_us = self.mark_us
        if routers:
            active = [latest for latest, seen_us in routers.values() if now_us - seen_us <= idle_us]
            # With every router idle, the last one to bring something still tells the time.
            reached = min(active) if active else max(latest for latest, _ in routers.values())
            mark_us = max(reached - delay_us, mark_us) if mark_us is not None else reached - delay_us
        return StreamClock(
            self.rows + sum(item.rows for item in punctuations),
            mark_us,
            routers,
            self.shed + sum(item.shed for item in punctuations),
            self.routed + sum(item.routed for item in punctuations),
            now_us,
        )

    def _told(self, punctuations: Sequence[Punctuation], mark_us: int | None, now_us: int) -> StreamClock:
        """The clock of a stage's output, whose mark all units of that stage state anew in each batch."""
        known = [mark for mark in (self.mark_us, mark_us) if mark is not None]
        return replace(
            self,
            rows=self.rows + sum(item.rows for item in punctuations),
            mark_us=max(known, default=None),
            routed=self.routed + sum(item.routed for item in punctuations),
            now_us=now_us if self.now_us is None else max(now_us, self.now_us),
        )

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return {
            "rows": self.rows, "mark_us": self.mark_us, "routers": {k: list(v) for k, v in self.routers.items()},
            "shed": self.shed, "routed": self.routed, "now_us": self.now_us,
        }  # fmt: skip

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> StreamClock:
        """The inverse of `to_json`."""
        routers = {k: (v[0], v[1]) for k, v in value["routers"].items()}
        # A manifest written before these were kept says nothing of them.
        now_us = value.get("now_us", max((seen_us for _, seen_us in routers.values()), default=None))
        return StreamClock(
            value["rows"], value["mark_us"], routers, value.get("shed", 0), value.get("routed", 0), now_us
        )


def lowest_mark_us(marks_us: Iterable[int | None]) -> int | None:
    """How far all have come; None where one of them has not begun, or there is none."""
    found = list(marks_us)
    begun = [mark_us for mark_us in found if mark_us is not None]
    return min(begun) if begun and len(begun) == len(found) else None


def last_seen_us(clocks: Iterable[StreamClock]) -> int | None:
    """The clock of the last batch that brought any of these streams something, moved on by stops; None before it."""
    return max((seen_us for clock in clocks for _, seen_us in clock.routers.values()), default=None)
