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
HEARTBEAT, DRAIN = "heartbeat", "drain"
"""Routers that are no stream's: their punctuations say that time has passed."""


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
            tuple has a lower event time; None before its inputs have begun. Where `ended`, no tuple comes any more
            unless the job's inputs go on.
        elsewhere: the number of the stream it is of, if that enters at another stage than the one that hears this.
        ends_us: where rows of the piece end periods, rising; like `counts` said to one slot only, and so is `file`.
        file: the number of the file that the piece is of, where the stream's files end periods.
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
    ended: bool = False
    elsewhere: int | None = None
    ends_us: tuple[int, ...] = ()
    file: int | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        stated: dict[str, Any] = {"states": True, "mark_us": self.mark_us, "ended": self.ended} if self.states else {}
        if self.elsewhere is not None:
            stated["elsewhere"] = self.elsewhere
        if self.ends_us:
            stated["ends_us"] = list(self.ends_us)
        if self.file is not None:
            stated["file"] = self.file
        return {
            "side": self.side, "router": self.router, "piece": self.piece, "rows": self.rows,
            "ts_max_us": self.ts_max_us, "clock_us": self.clock_us, "counts": dict(self.counts),
            "shed": self.shed, "routed": self.routed, **stated,
        }  # fmt: skip

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Punctuation:
        """The inverse of `to_json`."""
        return Punctuation(**{**value, "ends_us": tuple(value.get("ends_us", ()))})


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
        seen_us: when its source had something to bring last, or the first batch began; it moves on as for routers.
        ended: nothing comes any more, unless the job goes on with more input.
    """

    rows: int = 0
    mark_us: int | None = None
    routers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    shed: int = 0
    routed: int = 0
    now_us: int | None = None
    seen_us: int | None = None
    ended: bool = False

    def advance(
        self,
        punctuations: Sequence[Punctuation],
        delay_us: int,
        now_us: int,
        idle_us: int = IDLE_TIMEOUT_US,
        *,
        begins: bool = False,
        drained: bool = False,
    ) -> StreamClock:
        """The clock after a batch.

        Args:
            punctuations: those of this stream in the batch, in any order.
            now_us: when the batch began, as logged.
            idle_us: a router that had nothing to bring for longer is idle.
            begins: the batch is the first that its run has planned.
            drained: the batch is one of those after the end of all input.
        """
        stated = [punctuation.mark_us for punctuation in punctuations if punctuation.states]
        if stated:
            return self._told(punctuations, lowest_mark_us(stated), now_us)
        if self.now_us is not None:
            now_us = max(now_us, self.now_us)  # clocks of several sources, and a machine's clock may be set
        stopped_us = now_us - self.now_us if begins and self.now_us is not None else 0
        routers = {name: (latest, seen_us + stopped_us) for name, (latest, seen_us) in self.routers.items()}
        seen_us = now_us
        if self.seen_us is not None and all(item.router in (HEARTBEAT, DRAIN) for item in punctuations):
            seen_us = self.seen_us + stopped_us
        for punctuation in punctuations:
            if punctuation.ts_max_us is not None:
                latest = routers.get(punctuation.router, (punctuation.ts_max_us, 0))[0]
                routers[punctuation.router] = (max(latest, punctuation.ts_max_us), now_us)
            elif punctuation.router in routers:
                routers[punctuation.router] = (routers[punctuation.router][0], now_us)
        mark_us = self.mark_us
        if (reached := _reached_us(routers, now_us, idle_us)) is not None:
            mark_us = max(reached - delay_us, mark_us) if mark_us is not None else reached - delay_us
        return StreamClock(
            self.rows + sum(item.rows for item in punctuations),
            mark_us,
            routers,
            self.shed + sum(item.shed for item in punctuations),
            self.routed + sum(item.routed for item in punctuations),
            now_us,
            seen_us,
            drained,
        )

    def reached_us(self, idle_us: int = IDLE_TIMEOUT_US) -> int | None:
        """How far its own rows have come; None before the first. It is behind `mark_us` where an idle router is back.

        Args:
            idle_us: see `advance`.
        """
        return None if self.now_us is None else _reached_us(self.routers, self.now_us, idle_us)

    def is_idle(self, idle_us: int | None) -> bool:
        """Whether its source has had nothing to bring for longer than `idle_us`; None is for ever."""
        if idle_us is None or self.now_us is None or self.seen_us is None:
            return False
        return self.now_us - self.seen_us > idle_us

    def _told(self, punctuations: Sequence[Punctuation], mark_us: int | None, now_us: int) -> StreamClock:
        """The clock of a stage's output, whose mark all units of that stage state anew in each batch."""
        known = [mark for mark in (self.mark_us, mark_us) if mark is not None]
        return replace(
            self,
            rows=self.rows + sum(item.rows for item in punctuations),
            mark_us=max(known, default=None),
            routed=self.routed + sum(item.routed for item in punctuations),
            now_us=now_us if self.now_us is None else max(now_us, self.now_us),
            ended=all(item.ended for item in punctuations if item.states),
        )

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return {
            "rows": self.rows, "mark_us": self.mark_us, "routers": {k: list(v) for k, v in self.routers.items()},
            "shed": self.shed, "routed": self.routed, "now_us": self.now_us, "seen_us": self.seen_us,
            "ended": self.ended,
        }  # fmt: skip

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> StreamClock:
        """The inverse of `to_json`."""
        routers = {k: (v[0], v[1]) for k, v in value["routers"].items()}
        # A manifest written before these were kept says nothing of them.
        now_us = value.get("now_us", max((seen_us for _, seen_us in routers.values()), default=None))
        return StreamClock(
            value["rows"], value["mark_us"], routers, value.get("shed", 0), value.get("routed", 0), now_us,
            value.get("seen_us"), value.get("ended", False),
        )  # fmt: skip


def _reached_us(routers: Mapping[str, tuple[int, int]], now_us: int, idle_us: int) -> int | None:
    """The latest time of the router that has come least far, of those that are not idle; None where there is none."""
    active = [latest for latest, brought_us in routers.values() if now_us - brought_us <= idle_us]
    # With every router idle, the last one to bring something still tells the time.
    return min(active) if active else max((latest for latest, _ in routers.values()), default=None)


def drain_punctuation(clock_us: int) -> Punctuation:
    """What tells the units that a batch drains: the input is over, and what waits moves on; it moves no mark."""
    return Punctuation(0, DRAIN, DRAIN, 0, None, clock_us)


def drains(punctuations: Sequence[Punctuation]) -> bool:
    """Whether the batch of these punctuations drains."""
    return any(item.piece == DRAIN for item in punctuations)


def lowest_mark_us(marks_us: Iterable[int | None]) -> int | None:
    """How far all have come; None where one of them has not begun, or there is none."""
    found = list(marks_us)
    begun = [mark_us for mark_us in found if mark_us is not None]
    return min(begun) if begun and len(begun) == len(found) else None


def last_seen_us(clocks: Iterable[StreamClock]) -> int | None:
    """The clock of the last batch that brought any of these streams something, moved on by stops; None before it."""
    return max((seen_us for clock in clocks for _, seen_us in clock.routers.values()), default=None)
