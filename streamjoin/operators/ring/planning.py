"""Which nodes a ring has, where slices end, and when either changes (PSP, section 6).

    what came, was compared and found -> rates, smoothed -> N* and how busy nodes are -> a wish, confirmed by some
    rounds in a row -> another plan

Everything here is a pure function of numbers that are given, so that a batch that is repeated decides the same.

*Smoothing*: each round, slices end where each node gets as many tuples of a stream as the others. *Passive*: the ends
change, and what is stored stays in its node until it is too old for it by the old ends, too; a node that is new is the
new tail, and one that goes drains. *Aggressive*: everything goes to the node of its age at once; nodes that are new
stand where what shifts fills them, and those that go hand over what they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from streamjoin.operators.adapting.members import DECISIONS_KEPT, Asked, Decision, Load, Member
from streamjoin.operators.costs.psp import StepTimes
from streamjoin.operators.costs.watched import resolved
from streamjoin.operators.ring.measured import Rates, Table, added, table_of, zeros
from streamjoin.operators.ring.slices import Ends, even_ends_us

PASSIVE, AGGRESSIVE = "passive", "aggressive"


class Objective(StrEnum):
    """What a ring has as many nodes for as it has (PSP, section 5.2)."""

    LATENCY = "latency"
    RATE = "rate"


RING = "ring"
"""Whose nodes they are, where a report names sides of a biclique."""
_OFF_BY = 1
"""N* may be off by so many nodes."""
_ROUNDS_A_WINDOW = 10
"""With fewer, a window is too small for slices that follow what was seen: they are equal."""


@dataclass(frozen=True, slots=True)
class RingLimits:
    """When a ring changes.

    Args:
        least, most: nodes.
        times: what single steps take, as set or assumed.
        given: those of them that are set, by their names: what is measured of the others takes their place.
        objective: by latency there are to be N* nodes, by rate all that there may be.
        high: nodes that work a larger share of their time are too few.
        target: the share that they are to work afterwards, at most.
        rounds: how many rounds in a row must ask for the same.
        every_us: how much time is between two rounds.
        smoothing: the weight of the newest round in the mean of all.
    """

    least: int
    most: int
    times: StepTimes
    high: float = 0.8
    target: float = 0.6
    rounds: int = 3
    every_us: int = 60_000_000
    smoothing: float = 0.3
    given: frozenset[str] = frozenset()
    objective: Objective = Objective.LATENCY

    def knowing(self, measured: Mapping[str, float]) -> RingLimits:
        """The same by what is measured; see `resolved`."""
        return replace(self, times=resolved(self.times, self.given, measured))


@dataclass(frozen=True, slots=True)
class Stored:
    """What all nodes store of a stream, segment by segment: int64 of shape (n,)."""

    ts_min_us: np.ndarray
    ts_max_us: np.ndarray
    rows: np.ndarray


NOTHING = Stored(*(np.zeros(0, np.int64) for _ in range(3)))


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is when a batch begins.

    Args:
        rows: by stream, how many tuples were sent to nodes since the job began.
        marks_us: by stream, how far the others have come; None where one has not begun.
        compared, found: by origin and round, in the batch before.
        loads: by number, what nodes have, with what is on its way to them.
        stored: by stream.
        tuple_bytes: by stream, of one that is stored; 0 where none is.
    """

    rows: tuple[int, ...]
    marks_us: tuple[int | None, ...]
    compared: Table
    found: Table
    loads: Mapping[int, Load]
    stored: tuple[Stored, ...]
    tuple_bytes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class RingPlan:
    """The nodes of a ring in one batch, and their slices.

    Args:
        nodes: from the youngest slice on; those that drain have none.
        ends_us: by stream, where slices end.
        end: nodes that will be new are numbered from here on.
        number: how many changes there were before.
        since, way: the first batch of this number of nodes, and how they got their slices.
        earlier_us, changed_us: see `Slices`.
        asked, asked_way: what was asked for in the last round.
        round_us: when that was; None before the first batch.
        marks_us, rows: as seen then.
        rates: smoothed; None before the second round.
        compared, found: by origin and round, since then.
        decisions: the last ones.
    """

    nodes: tuple[Member, ...]
    ends_us: tuple[Ends, ...]
    end: int
    number: int = 0
    since: int = 0
    way: str = ""
    earlier_us: tuple[Ends, ...] | None = None
    changed_us: tuple[int, ...] = ()
    asked: Asked = field(default_factory=Asked)
    asked_way: str = ""
    round_us: int | None = None
    marks_us: tuple[int | None, ...] = ()
    rows: tuple[int, ...] = ()
    rates: Rates | None = None
    compared: Table = ()
    found: Table = ()
    decisions: tuple[Decision, ...] = ()

    @staticmethod
    def first(nodes: int, reaches_us: Sequence[int]) -> RingPlan:
        """The plan of a job's first batch."""
        none = zeros(len(reaches_us))
        ends_us = tuple(even_ends_us(reach_us, nodes) for reach_us in reaches_us)
        return RingPlan(tuple(map(Member, range(nodes))), ends_us, nodes, compared=none, found=none)

    @property
    def storing(self) -> tuple[int, ...]:
        """By place, the nodes that have a slice."""
        return tuple(member.number for member in self.nodes if not member.drains)

    @property
    def draining(self) -> tuple[int, ...]:
        """The nodes that have none any more."""
        return tuple(member.number for member in self.nodes if member.drains)

    @property
    def numbers(self) -> list[int]:
        """Of all nodes."""
        return sorted(member.number for member in self.nodes)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> RingPlan:
        """The inverse of `to_json`, also after a text was made of it."""
        return RingPlan(
            **{
                **value,
                "nodes": tuple(Member(**one) for one in value["nodes"]),
                "ends_us": tuple(map(tuple, value["ends_us"])),
                "earlier_us": value["earlier_us"] and tuple(map(tuple, value["earlier_us"])),
                "changed_us": tuple(value["changed_us"]),
                "asked": Asked(**value["asked"]),
                "marks_us": tuple(value["marks_us"]),
                "rows": tuple(value["rows"]),
                "rates": value["rates"] and Rates.from_json(value["rates"]),
                "compared": table_of(value["compared"]),
                "found": table_of(value["found"]),
                "decisions": tuple(map(Decision.from_json, value["decisions"])),
            }
        )


def after(
    plan: RingPlan, batch: int, now_us: int, seen: Seen, reaches_us: Sequence[int], limits: RingLimits
) -> RingPlan:
    """The plan of the batch after `batch`.

    Args:
        plan: that of `batch`.
        now_us: when the batch began, as logged.
    """
    before, plan = plan, released(plan, batch, now_us, seen.loads)
    plan = replace(plan, compared=added(plan.compared, seen.compared), found=added(plan.found, seen.found))
    if before.round_us is not None and now_us - before.round_us < max(limits.every_us, 1):
        return plan
    none = zeros(len(reaches_us))
    told = replace(plan, round_us=now_us, marks_us=seen.marks_us, rows=seen.rows, compared=none, found=none)
    if before.round_us is None:
        return told
    came = [now - then for now, then in zip(seen.rows, plan.rows, strict=True)]
    now = Rates.over((now_us - before.round_us) / 1e6, came, plan.compared, plan.found)
    rates = plan.rates.smoothed(now, limits.smoothing) if plan.rates else now
    # With few rounds in a window there is nothing that slices could follow.
    follows = [
        mark is not None and then is not None and (mark - then) * _ROUNDS_A_WINDOW <= reach_us
        for mark, then, reach_us in zip(seen.marks_us, plan.marks_us, reaches_us, strict=True)
    ]
    seen = replace(seen, stored=tuple(one if yes else NOTHING for one, yes in zip(seen.stored, follows, strict=True)))
    told = replace(told, rates=rates, ends_us=ends_us(len(told.storing), seen, reaches_us))
    return _asked(told, rates, batch, now_us, seen, reaches_us, limits)


def _asked(
    plan: RingPlan, rates: Rates, batch: int, now_us: int, seen: Seen, reaches_us: Sequence[int], limits: RingLimits
) -> RingPlan:
    """A round: what is asked for, and where it was often enough, the change."""
    nodes = len(plan.storing)
    load = rates.busy(limits.times, nodes)
    wish, way = wished(rates, nodes, limits)
    asked = (plan.asked if way == plan.asked_way else Asked()).again(wish, load)
    if asked.times < limits.rounds or not settled(plan, seen.marks_us, reaches_us):
        return replace(plan, asked=asked, asked_way=way)
    plan = replace(plan, asked=Asked(wish, 0, load), asked_way=way)
    return changed(plan, wish, way, batch, now_us, seen, reaches_us, load=load)


def wished(rates: Rates, nodes: int, limits: RingLimits) -> tuple[int, str]:
    """How many nodes more or fewer are asked for, and in which way; 0 where all is well.

    Nodes that are too busy get others at once. Where N* is further away than a node, there is time; fewer nodes than
    work no more than the target there are not to be. For the highest output rate every node helps (equation 4), so that
    all there may be are asked for instead of N*.
    """
    if limits.objective is Objective.RATE:
        best, off_by = limits.most, 0
    else:
        best, off_by = rates.best(limits.times, limits.most), _OFF_BY
    enough = needed(rates, limits)
    wanted = min(max(best, enough, limits.least), limits.most)
    if rates.busy(limits.times, nodes) > limits.high and wanted > nodes:
        return wanted - nodes, AGGRESSIVE
    is_off = abs(best - nodes) > off_by or not limits.least <= nodes <= limits.most
    wanted = min(max(best, min(enough, nodes), limits.least), limits.most)
    return (wanted - nodes, PASSIVE) if is_off else (0, "")


def needed(rates: Rates, limits: RingLimits) -> int:
    """The fewest nodes of which none works more than the target; where there are none, as many as there may be."""
    every = range(limits.least, limits.most + 1)
    return next((nodes for nodes in every if rates.busy(limits.times, nodes) <= limits.target), limits.most)


def settled(plan: RingPlan, marks_us: Sequence[int | None], reaches_us: Sequence[int]) -> bool:
    """Whether all streams have begun, and all is dead that was there when the number of nodes changed last."""
    if None in marks_us:
        return False
    since = plan.changed_us or (None,) * len(reaches_us)
    return all(
        mark is not None and (then is None or mark > then + reach)
        for mark, then, reach in zip(marks_us, since, reaches_us, strict=True)
    )


def changed(
    plan: RingPlan, wish: int, way: str, batch: int, now_us: int, seen: Seen, reaches_us: Sequence[int],
    *, load: float = 0.0,
) -> RingPlan:  # fmt: skip
    """The plan with so many nodes more or fewer, from the batch after `batch` on; every stream has begun.

    Args:
        load: what is told of the decision.
    """
    size = sum(one.bytes for one in seen.loads.values())
    told = Decision(plan.number + 1, batch + 1, now_us, RING, 0, len(plan.storing), size, load, wish, way=way)
    if wish > 0:
        members, end, added_now = grown(plan, wish, way, batch + 1)
        told = replace(told, added=added_now)
    else:
        members, end, going = shrunk(plan, -wish, way)
        told = replace(told, drained=going)
        if not going:
            return plan
    stay = sum(not member.drains for member in members)
    return _decided(
        replace(
            plan, nodes=members, end=end, ends_us=ends_us(stay, seen, reaches_us), since=batch + 1, way=way,
            earlier_us=plan.ends_us if way == PASSIVE else None,
            changed_us=tuple(mark for mark in seen.marks_us if mark is not None),
        ),
        told,
    )  # fmt: skip


def grown(plan: RingPlan, more: int, way: str, batch: int) -> tuple[tuple[Member, ...], int, tuple[int, ...]]:
    """The nodes with so many more that store, the end of their numbers, and which came; first those that drain.

    Passive, they are the new tail. Aggressive, the j-th of K stands behind old node ceil(j N / K), which is where what
    shifts fills it: nothing has to move further than to the next node.
    """
    back = plan.draining[:more]
    new = tuple(range(plan.end, plan.end + more - len(back)))
    known = {member.number: member for member in plan.nodes}
    came = [replace(known[number], drains=False) for number in back] + [Member(number, batch) for number in new]
    old = [member for member in plan.nodes if not member.drains]
    nodes = len(old)
    left = [member for member in plan.nodes if member.drains and member.number not in back]
    if way == AGGRESSIVE:
        # From the last one on, so that places of the others stay.
        for turn in range(more, 0, -1):
            old.insert(-(-turn * nodes // more), came[turn - 1])
    else:
        old += came
    return (*old, *left), plan.end + len(new), (*back, *new)


def shrunk(plan: RingPlan, fewer: int, way: str) -> tuple[tuple[Member, ...], int, tuple[int, ...]]:
    """The reverse: the first node always stays."""
    storing = plan.storing
    stay = max(len(storing) - fewer, 1)
    fewer = len(storing) - stay
    if way == AGGRESSIVE:
        places = [-(-turn * stay // fewer) + turn - 1 for turn in range(1, fewer + 1)]
        going = tuple(storing[place] for place in places)
    else:
        going = storing[stay:]
    members = [replace(one, drains=one.drains or one.number in going) for one in plan.nodes]
    return tuple(members), plan.end, going


def released(plan: RingPlan, batch: int, now_us: int, loads: Mapping[int, Load]) -> RingPlan:
    """The plan of the batch after `batch`, without nodes that drain and had nothing, nor were sent any."""
    left = tuple(number for number in plan.draining if number in loads and not loads[number].rows)
    if not left:
        return plan
    told = Decision(plan.number + 1, batch + 1, now_us, RING, 0, len(plan.storing), left=left)
    return _decided(replace(plan, nodes=tuple(one for one in plan.nodes if one.number not in left)), told)


def ends_us(nodes: int, seen: Seen, reaches_us: Sequence[int]) -> tuple[Ends, ...]:
    """Where slices of so many nodes end: each has as many tuples of a stream as the others (workload smoothing).

    Where nothing is seen of a stream, they are equal.
    """
    return tuple(
        (mark is not None and level_ends_us(one, mark, nodes)) or even_ends_us(reach_us, nodes)
        for one, mark, reach_us in zip(seen.stored, seen.marks_us, reaches_us, strict=True)
    )


def level_ends_us(stored: Stored, mark_us: int, nodes: int) -> Ends:
    """Ages between which there are as many tuples; nothing where nothing is stored, or the ring has one node.

    Tuples of a segment count as spread evenly over its time.
    """
    if not stored.rows.size:
        return ()
    youngest = np.argsort(-stored.ts_max_us, kind="stable")
    upto = np.concatenate(([0], np.cumsum(stored.rows[youngest])))
    ages_us = np.concatenate(([mark_us - int(stored.ts_max_us.max())], mark_us - stored.ts_min_us[youngest]))
    shares = upto[-1] * np.arange(1, nodes) / nodes
    return tuple(int(age) for age in np.interp(shares, upto, np.maximum.accumulate(ages_us)))


def _decided(plan: RingPlan, told: Decision) -> RingPlan:
    return replace(plan, number=told.plan, decisions=(*plan.decisions, told)[-DECISIONS_KEPT:])
