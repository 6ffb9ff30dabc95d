"""JOIN ... USING (k): one column of each stream, which are equal and have one name."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from streamjoin.plan.coercion import call, cast
from streamjoin.plan.expression import Column, Expression
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.types import comparison_type, is_number
from streamjoin.query.joins import kind_of
from streamjoin.query.scope import Merged, Scope, suggest
from streamjoin.query.tokens import Words
from streamjoin.query.written import Written


def merged_columns(joins: Sequence[Written], words: Words, scope: Scope) -> tuple[Merged, ...]:
    """The columns that joins without ON say are equal, in the order of their USING; none without any.

    Raises:
        QueryError: a name does not mean one column on each side of the join, or stands in USING twice.
    """
    found: list[Merged] = []
    for join in joins:
        here: list[Merged] = []
        for node in join.node.args.get("using") or ():
            if not isinstance(node, exp.Identifier):
                raise words.source.wrong("USING takes names of columns", words.range_of(node))
            first = scope.names[join.joined]
            columns, left = _of_side(node, join.before, f"before {first}", words, scope, found)
            others, right = _of_side(node, join.right, f"in the brackets of {first}", words, scope, found)
            if any(one.right == right for one in here):
                raise words.source.wrong(f'"{node.name}" stands twice in USING', words.range_of(node))
            here.append(Merged((*columns, *others), left, right, _value(left, right, kind_of(join.node, words))))
        found += here
    return tuple(found)


def _of_side(
    node: exp.Identifier, streams: range, where: str, words: Words, scope: Scope, merged: Sequence[Merged]
) -> tuple[tuple[Column, ...], Expression]:
    """What a name means in the streams of one side: the columns, merged or one, and their value."""
    if len(streams) == 1:
        column = _column(node, streams[0], words, scope)
        return (column,), column
    named = [of_one for one in streams if (of_one := scope.column_of(one, node.name))]
    for one in reversed(merged):
        if set(named) <= set(one.columns) and named:
            return one.columns, one.value
    if len(named) == 1:
        return (named[0],), named[0]
    if named:
        both = " or ".join(map(str, named))
        raise words.source.wrong(f'"{node.name}" can be {both}; join them with ON', words.range_of(node))
    known = {name: name for one in streams for name in scope.streams[one].own_columns.names}
    raise words.source.wrong(
        f'no stream {where} has a column "{node.name}", and USING needs one of each side; {suggest(node.name, known)}',
        words.range_of(node),
    )


def _value(left: Expression, right: Expression, kind: JoinKind) -> Expression:
    """The value of the side that is there, in the type in which the two are compared."""
    ours, theirs = _common(left, right), _common(right, left)
    if kind is JoinKind.FULL:
        return call("coalesce", ours, theirs)
    return theirs if kind is JoinKind.RIGHT else ours


def _common(value: Expression, other: Expression) -> Expression:
    """A value in the type in which it is compared with another; as it is where there is no such type."""
    common = comparison_type(value.type, other.type)
    # Where they cannot be compared, the equality says so.
    if common is None or pa.types.is_decimal256(common) or is_number(common) != is_number(value.type):
        return value
    return cast(value, common)


def _column(node: exp.Identifier, side: int, words: Words, scope: Scope) -> Column:
    if column := scope.column_of(side, node.name):
        return column
    known = {name: name for name in scope.streams[side].own_columns.names}
    raise words.source.wrong(
        f'{scope.names[side]} has no column "{node.name}", and USING needs one of each stream; '
        f"{suggest(node.name, known)}",
        words.range_of(node),
    )
