"""Streams and relations among the inputs of a query: which are which, and where in a tree relations may stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from streamjoin.errors import InputError
from streamjoin.plan.expression import Expression, streams_of
from streamjoin.plan.kinds import Join, JoinKind, Tree, streams_in
from streamjoin.plan.schema import StreamSchema

Groups = int | tuple["Groups", ...]
"""Inputs of a query that stand in brackets together, by their numbers."""


@dataclass(frozen=True, slots=True)
class Parted:
    """The inputs of a query, streams and relations apart, each in the order of FROM."""

    streams: tuple[StreamSchema, ...]
    names: tuple[str, ...]
    relations: tuple[StreamSchema, ...]
    relation_names: tuple[str, ...]


def parted(inputs: Sequence[StreamSchema], names: Sequence[str]) -> Parted:
    """Streams and relations apart, with what the query calls them."""
    streams, relations = (
        [(one, name) for one, name in zip(inputs, names, strict=True) if one.is_relation == wanted]
        for wanted in (False, True)
    )
    return Parted(
        tuple(one for one, _ in streams), tuple(name for _, name in streams),
        tuple(one for one, _ in relations), tuple(name for _, name in relations),
    )  # fmt: skip


def place_of(inputs: Sequence[StreamSchema], number: int) -> tuple[int, bool]:
    """An input's number among the streams, or among the relations, and whether it is one of these."""
    is_relation = inputs[number].is_relation
    return sum(one.is_relation == is_relation for one in inputs[:number]), is_relation


def in_order(
    inputs: Sequence[StreamSchema],
    names: Sequence[str],
    conditions: Sequence[Expression],
    groups: Groups | None = None,
) -> Tree:
    """Inner joins of each input with what the ones before it have become.

    A relation waits for a stream, and for a condition that leads to it from what is there: without one, each row would
    meet all of it.

    Args:
        groups: what is joined first, as it stands in brackets, in each of which is a stream; all are in one group
            unless given.
    """
    if isinstance(groups, int):
        return groups
    order: list[Tree] = []
    waiting: list[int] = []

    def is_led_to(number: int) -> bool:
        there = {names[other] for tree in order for other in streams_in(tree)}
        reads = map(streams_of, conditions)
        return any(names[number] in read and len(read) > 1 and read <= there | {names[number]} for read in reads)

    for group in range(len(inputs)) if groups is None else groups:
        if isinstance(group, int) and inputs[group].is_relation:
            waiting.append(group)
        else:
            order.append(in_order(inputs, names, conditions, group))
        while order and (found := next(filter(is_led_to, waiting), None)) is not None:
            waiting.remove(found)
            order.append(found)
    return reduce(Join, [*order, *waiting])


_TURNED = {JoinKind.INNER: JoinKind.INNER, JoinKind.RIGHT: JoinKind.LEFT}
"""What a join is with its sides exchanged, where it is one with a relation on its left."""


def streams_first(tree: Tree, inputs: Sequence[StreamSchema]) -> Tree:
    """The same tree with each relation on the right of its join.

    Raises:
        InputError: two relations are joined with each other, or a relation would be preserved.
    """
    if isinstance(tree, int):
        return tree
    left, right = streams_first(tree.left, inputs), streams_first(tree.right, inputs)
    kind = tree.kind
    if is_relation(left, inputs):
        if is_relation(right, inputs):
            assert isinstance(left, int) and isinstance(right, int)
            raise InputError(
                f"{inputs[left].name} and {inputs[right].name} are relations, and a relation is joined with a stream; "
                "put a stream between the two",
                field="operator.tree",
            )
        left, right, kind = right, left, _TURNED[kind]
    return replace(tree, left=left, right=right, kind=kind)


def is_relation(tree: Tree, inputs: Sequence[StreamSchema]) -> bool:
    """Whether a tree is one relation."""
    return isinstance(tree, int) and inputs[tree].is_relation
