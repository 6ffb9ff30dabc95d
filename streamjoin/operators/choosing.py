"""What `auto` stands for: rules, of which the first that says anything decides, and says why."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from streamjoin.operators.kind import OperatorKind
from streamjoin.plan.stages import Plan, joins_as_of_only, joins_relation, joins_relations_only

SORTING_SPACE = 2
"""What a relation takes on disk while it is sorted, in times of what is kept of it."""
BOUNDS = ("memory", "rate")
"""Knobs that a relation in memory has and a sorted one has not."""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Given:
    """What is known beside the plan.

    Args:
        knobs: the names of those that the join file sets.
        kept_bytes: what is kept of all relations; None where only reading them would tell.
        free_bytes: the room on the disk where they are kept.
        earlier: the operator that joins relations in the checkpoint, if it was used before.
    """

    knobs: Collection[str] = ()
    kept_bytes: int | None = None
    free_bytes: int | None = None
    earlier: str | None = None

    @property
    def has_room_to_sort(self) -> bool:
        """Whether the disk has room for relations while they are sorted, as far as anybody knows."""
        if self.kept_bytes is None or self.free_bytes is None:
            return True
        return SORTING_SPACE * self.kept_bytes <= self.free_bytes


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, and why, as `explain` says it."""

    operator: str
    reason: str


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is chosen from, as the registry has it.

    Args:
        streams, as_of: what joins them unless somebody says otherwise.
        sorts, reads_in_parts: what joins a relation that is sorted once, and one that is read again and again.
    """

    streams: OperatorKind
    as_of: OperatorKind
    sorts: OperatorKind
    reads_in_parts: OperatorKind


Rule = Callable[[Plan, Given, Candidates], Choice | None]


def _reads_in_parts(plan: Plan, of: Candidates) -> bool:
    """Whether there is a relation, and any that there is can be read in parts."""
    return any(map(joins_relation, plan.stages)) and of.reads_in_parts.refuses(plan) is None


def as_before(plan: Plan, given: Given, of: Candidates) -> Choice | None:
    """A checkpoint keeps the operator of its relations, however full the disk has become."""
    if given.earlier is None or not _reads_in_parts(plan, of):
        return None
    if given.earlier != of.sorts.name:
        return Choice(given.earlier, "the checkpoint was begun with it")
    if any(knob in given.knobs for knob in BOUNDS):
        return None  # whoever starts it says that it cannot go on with another one
    of_streams = of.as_of.name if joins_as_of_only(plan) else of.streams.name
    name = of.sorts.name if joins_relations_only(plan) else of_streams
    return Choice(name, "the checkpoint was begun with relations that are sorted")


def as_of(plan: Plan, given: Given, of: Candidates) -> Choice | None:
    """An as-of join has one operator."""
    return Choice(of.as_of.name, "an as-of join has an operator of its own") if joins_as_of_only(plan) else None


def bounded(plan: Plan, given: Given, of: Candidates) -> Choice | None:
    """Who bounds the memory or the rate wants what has these bounds."""
    named = [knob for knob in BOUNDS if knob in given.knobs]
    if not named or not _reads_in_parts(plan, of):
        return None
    return Choice(
        of.reads_in_parts.name, f"operator.{named[0]} is given, which it keeps to, and what is asked for most is cached"
    )


def without_room(plan: Plan, given: Given, of: Candidates) -> Choice | None:
    """A relation that the disk cannot sort is read again and again."""
    if given.has_room_to_sort or not _reads_in_parts(plan, of):
        return None
    assert given.kept_bytes is not None and given.free_bytes is not None
    needed, free = SORTING_SPACE * given.kept_bytes / _MIB, given.free_bytes / _MIB
    return Choice(
        of.reads_in_parts.name,
        f"sorting takes about {needed:,.0f} MiB and the disk has {free:,.0f} MiB free, so a relation is copied once, "
        "read part by part, and what is asked for most is cached",
    )


def with_room(plan: Plan, given: Given, of: Candidates) -> Choice | None:
    """Where there are relations alone, they are sorted."""
    if not joins_relations_only(plan):
        return None
    return Choice(of.sorts.name, "a relation is sorted once, and each row of the stream is looked up in it")


def equal_keys(plan: Plan, given: Given, of: Candidates) -> Choice | None:
    """Streams with an equality."""
    if not plan.predicate.equalities:
        return None
    return Choice(of.streams.name, "an equality sends equal keys to one unit of each side, the least there is to send")


def ranges(plan: Plan, given: Given, of: Candidates) -> Choice | None:
    """Streams with a band or an inequality."""
    if not plan.predicate.ranges:
        return None
    words = "tuples match many others and skew does not matter when units are chosen at random"
    return Choice(of.streams.name, words)


def anything(plan: Plan, given: Given, of: Candidates) -> Choice | None:
    """Any other streams."""
    return Choice(of.streams.name, "any predicate can be joined when each tuple meets all units of the other side")


RULES: tuple[Rule, ...] = (as_before, as_of, bounded, without_room, with_room, equal_keys, ranges, anything)


def choice(plan: Plan, given: Given, of: Candidates) -> Choice:
    """What the first rule says that says anything."""
    said = (rule(plan, given, of) for rule in RULES)
    return next(one for one in said if one is not None)
