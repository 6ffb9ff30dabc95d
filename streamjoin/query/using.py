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


def merged_columns(joins: Sequence[exp.Join], words: Words, scope: Scope) -> tuple[Merged, ...]:
    """The columns that joins without ON say are equal, in the order of their USING; none without any.

    Raises:
        QueryError: a name is not one column of the streams before and one of the stream that is joined, or stands there
            twice.
    """
    found: list[Merged] = []
    for joined, join in enumerate(joins, 1):
        here: list[Merged] = []
        for node in join.args.get("using") or ():
            if not isinstance(node, exp.Identifier):
                raise words.source.wrong("USING takes names of columns", words.range_of(node))
            columns, left = _before(node, joined, words, scope, found)
            right = _column(node, joined, words, scope)
            if any(one.columns[-1] == right for one in here):
                raise words.source.wrong(f'"{node.name}" stands twice in USING', words.range_of(node))
            here.append(Merged((*columns, right), left, _value(left, right, kind_of(join, words))))
        found += here
    return tuple(found)


def _before(
    node: exp.Identifier, joined: int, words: Words, scope: Scope, merged: Sequence[Merged]
) -> tuple[tuple[Column, ...], Expression]:
    """What a name means in the streams before: the columns, merged or one, and their value."""
    if joined == 1:
        column = _column(node, 0, words, scope)
        return (column,), column
    named = [of_side for side in range(joined) if (of_side := scope.column_of(side, node.name))]
    for one in reversed(merged):
        if set(named) <= set(one.columns) and named:
            return one.columns, one.value
    if len(named) == 1:
        return (named[0],), named[0]
    if named:
        both = " or ".join(map(str, named))
        raise words.source.wrong(f'"{node.name}" can be {both}; join them with ON', words.range_of(node))
    known = {name: name for side in range(joined) for name in scope.streams[side].own_columns.names}
    raise words.source.wrong(
        f'no stream before {scope.names[joined]} has a column "{node.name}", and USING needs one of each side; '
        f"{suggest(node.name, known)}",
        words.range_of(node),
    )


def _value(left: Expression, right: Column, kind: JoinKind) -> Expression:
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
