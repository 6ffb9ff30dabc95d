"""Which units a biclique has, and when it gets more or fewer: the two-phase scaling of BiStream (2PS, section 5).

    what each unit stores -> tau of each subgroup -> a wish, confirmed by some rounds in a row -> another plan

Everything here is a pure function of numbers that are given, so that whoever decides again decides the same: a batch
that is repeated after a crash, or the simulation.

Nothing that is stored moves. A unit that is new stores its share of what comes from then on. One that is to go drains:
it stores nothing new and is still probed, until what it stores has expired. Subgroups and the maps of keys to them
stay, as each key's partners may be in any unit of its subgroup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from streamjoin.operators.adapting.members import DECISIONS_KEPT, Asked, Decision, Load, Member
from streamjoin.operators.costs import scaling_change
from streamjoin.plan.window import R, S

SIDES = "RS"


@dataclass(frozen=True, slots=True)
class Limits:
    """When units are added and taken away.

    Args:
        capacity_bytes: what a unit is to store at most (C).
        least, most: units that store each stream.
        high, low: above, and below, this share of the capacity a subgroup asks for more units, or for fewer.
        target: the share that it is to have afterwards.
        rounds: how many rounds in a row must ask for the same.
        every_us: how much time is between two rounds.
        shrinks: units are taken away, too; without a window one that drains would never be empty.
    """

    capacity_bytes: int
    least: int
    most: int
    high: float = 0.8
    low: float = 0.3
    target: float = 0.6
    rounds: int = 3
    every_us: int = 60_000_000
    shrinks: bool = True


Groups = tuple[tuple[Member, ...], ...]


@dataclass(frozen=True, slots=True)
class UnitPlan:
    """The units of a biclique in one batch.

    Args:
        groups: of R and of S, the units of each subgroup by rising number.
        end: units that will be new are numbered from here on; no number is used again.
        number: how many changes there were before.
        asked: of R and of S, what each subgroup asked for in the last round.
        round_us: when that was; None before the first batch.
        decisions: the last ones.
    """

    groups: tuple[Groups, Groups]
    end: int
    number: int = 0
    asked: tuple[tuple[Asked, ...], tuple[Asked, ...]] = ((), ())
    round_us: int | None = None
    decisions: tuple[Decision, ...] = ()

    @staticmethod
    def first(r: Sequence[Sequence[int]], s: Sequence[Sequence[int]]) -> UnitPlan:
        """The plan of a job's first batch, by numbers of units."""
        groups = [tuple(tuple(map(Member, group)) for group in side) for side in (r, s)]
        asked = [tuple(Asked() for _ in side) for side in groups]
        end = 1 + max(member.number for side in groups for group in side for member in group)
        return UnitPlan((groups[R], groups[S]), end, asked=(asked[R], asked[S]))

    def members(self, side: int) -> list[Member]:
        """All units of a side, those that drain included."""
        return [member for group in self.groups[side] for member in group]

    def storing(self, side: int) -> list[list[int]]:
        """By subgroup, the units that store what comes."""
        return [[member.number for member in group if not member.drains] for group in self.groups[side]]

    @property
    def numbers(self) -> list[int]:
        """Of all units."""
        return sorted(member.number for side in (R, S) for member in self.members(side))

    @property
    def draining(self) -> list[int]:
        """The units that store nothing new."""
        return [member.number for side in (R, S) for member in self.members(side) if member.drains]

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> UnitPlan:
        """The inverse of `to_json`, also after a text was made of it."""
        groups = [tuple(tuple(Member(**one) for one in group) for group in side) for side in value["groups"]]
        asked = [tuple(Asked(**one) for one in side) for side in value["asked"]]
        return UnitPlan(
            (groups[R], groups[S]),
            value["end"],
            value["number"],
            (asked[R], asked[S]),
            value["round_us"],
            tuple(map(Decision.from_json, value["decisions"])),
        )

    def with_group(self, side: int, group: int, members: Sequence[Member]) -> UnitPlan:
        """The plan with other units in one subgroup."""
        mine = list(self.groups[side])
        mine[group] = tuple(members)
        return replace(self, groups=(tuple(mine), self.groups[S]) if side == R else (self.groups[R], tuple(mine)))

    def with_asked(self, side: int, group: int, asked: Asked) -> UnitPlan:
        """The plan with what one subgroup has asked for now."""
        mine = list(self.asked[side])
        mine[group] = asked
        return replace(self, asked=(tuple(mine), self.asked[S]) if side == R else (self.asked[R], tuple(mine)))


def grown(plan: UnitPlan, side: int, group: int, more: int, batch: int) -> tuple[UnitPlan, tuple[int, ...]]:
    """So many units more that store, and which: those that drain come back first, as they have tuples already.

    Args:
        batch: the first that follows the plan.
    """
    members = list(plan.groups[side][group])
    back = [member.number for member in members if member.drains][:more]
    new = range(plan.end, plan.end + more - len(back))
    members = [replace(member, drains=member.drains and member.number not in back) for member in members]
    members += [Member(number, batch) for number in new]
    return replace(plan.with_group(side, group, members), end=plan.end + len(new)), (*back, *new)


def shrunk(plan: UnitPlan, side: int, group: int, fewer: int) -> tuple[UnitPlan, tuple[int, ...]]:
    """So many units fewer that store, and which: those that came last; the first one of a subgroup always stays."""
    members = plan.groups[side][group]
    storing = [member.number for member in members if not member.drains]
    going = tuple(storing[max(len(storing) - fewer, 1) :])
    drained = [replace(member, drains=member.drains or member.number in going) for member in members]
    return plan.with_group(side, group, drained), going


def released(plan: UnitPlan, batch: int, now_us: int, loads: Mapping[int, Load | None]) -> UnitPlan:
    """The plan of the batch after `batch`, without the units that were empty before `batch` and drained in it.

    They stay empty in it: nobody sent them anything to store.
    """
    for side in (R, S):
        for group, members in enumerate(plan.groups[side]):
            left = tuple(
                member.number
                for member in members
                if member.drains and (load := loads.get(member.number)) is not None and not load.rows
            )
            if left:
                stay = [member for member in members if member.number not in left]
                storing = sum(not member.drains for member in stay)
                told = Decision(plan.number + 1, batch + 1, now_us, SIDES[side], group, storing, left=left)
                plan = _decided(plan.with_group(side, group, stay), told)
    return plan


def after(plan: UnitPlan, batch: int, now_us: int, loads: Mapping[int, Load | None], limits: Limits) -> UnitPlan:
    """The plan of the batch after `batch`.

    Args:
        plan: that of `batch`.
        now_us: when the batch began, as logged.
        loads: by number, what each unit stored before it; None, or nothing, of a unit that did not answer.
    """
    before, plan = plan, released(plan, batch, now_us, loads)
    if before.round_us is None:
        return replace(plan, round_us=now_us)
    if now_us - before.round_us < limits.every_us:
        return plan
    plan = replace(plan, round_us=now_us)
    for side in (R, S):
        for group in range(len(plan.groups[side])):
            plan = _round(plan, side, group, batch, now_us, loads, limits)
    return plan


def _round(
    plan: UnitPlan,
    side: int,
    group: int,
    batch: int,
    now_us: int,
    loads: Mapping[int, Load | None],
    limits: Limits,
) -> UnitPlan:
    """One subgroup's round: it asks, and where it has asked for the same often enough, gets it."""
    members = plan.groups[side][group]
    answers = [loads.get(member.number) for member in members]
    size = sum(answer.bytes for answer in answers if answer is not None)
    if None in answers:
        return plan  # nothing is decided from a part of the answers
    storing = sum(not member.drains for member in members)
    # What those that drain still have will be the others' share: as much comes anew as they let go.
    load = size / (storing * limits.capacity_bytes)
    all_storing = sum(map(len, plan.storing(side)))
    wish = _inside(_wish(load, storing, limits), all_storing, len(plan.groups[side]) - group, limits)
    asked = plan.asked[side][group].again(wish, load)
    if asked.times < limits.rounds:
        return plan.with_asked(side, group, asked)
    plan = plan.with_asked(side, group, Asked(wish, 0, load))
    granted = min(wish, limits.most - all_storing) if wish > 0 else max(wish, limits.least - all_storing)
    told = Decision(plan.number + 1, batch + 1, now_us, SIDES[side], group, storing, size, load, wish)
    if granted > 0 and wish > 0:
        plan, added = grown(plan, side, group, granted, batch + 1)
        return _decided(plan, replace(told, added=added))
    if granted < 0 and wish < 0:
        plan, going = shrunk(plan, side, group, -granted)
        return _decided(plan, replace(told, drained=going)) if going else plan
    return plan


def _wish(load: float, storing: int, limits: Limits) -> int:
    """How many units more or fewer a subgroup asks for (equation 7)."""
    if load > limits.high or (load < limits.low and limits.shrinks):
        return scaling_change(load, storing, limits.target)
    return 0


def _inside(wish: int, all_storing: int, groups: int, limits: Limits) -> int:
    """What a subgroup asks for where limits have changed: also its share of what its stream is outside of them.

    Args:
        wish: what it asks for by its load.
        all_storing: units that store the stream now.
        groups: how many subgroups have not asked in this round, with this one.
    """
    if (missing := limits.least - all_storing) > 0:
        return max(wish, -(-missing // groups))
    if (excess := all_storing - limits.most) > 0 and limits.shrinks:
        return min(wish, -excess // groups)
    return wish


def _decided(plan: UnitPlan, told: Decision) -> UnitPlan:
    return replace(plan, number=told.plan, decisions=(*plan.decisions, told)[-DECISIONS_KEPT:])


Decide = Callable[[UnitPlan, int, int, Mapping[int, Load | None]], UnitPlan]
"""The plan of a batch, its number, when it began, and what units stored before it -> the plan of the next batch."""
