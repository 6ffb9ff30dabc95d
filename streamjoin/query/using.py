"""JOIN ... USING (k): one column of each stream, which are equal and have one name."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from streamjoin.plan.coercion import cast
from streamjoin.plan.expression import Column, Expression
from streamjoin.plan.types import comparison_type, is_number
from streamjoin.query.scope import Merged, Scope, suggest
from streamjoin.query.tokens import Words


def merged_columns(join: exp.Join, words: Words, scope: Scope) -> tuple[Merged, ...]:
    """The pairs of columns that a join without ON says are equal; in order, none without USING.

    Raises:
        QueryError: a name is not one column of either stream, or stands there twice.
    """
    found: list[Merged] = []
    for node in join.args.get("using") or ():
        if not isinstance(node, exp.Identifier):
            raise words.source.wrong("USING takes names of columns", words.range_of(node))
        r, s = (_column(node, side, words, scope) for side in (0, 1))
        if any(merged.columns == (r, s) for merged in found):
            raise words.source.wrong(f'"{node.name}" stands twice in USING', words.range_of(node))
        found.append(Merged((r, s), _value(r, s)))
    return tuple(found)


def _value(r: Column, s: Column) -> Expression:
    """R's value in the type in which the two are compared; as it is where no column has such a type."""
    common = comparison_type(r.type, s.type)
    # Where they cannot be compared, the equality says so.
    if common is None or pa.types.is_decimal256(common) or is_number(common) != is_number(r.type):
        return r
    return cast(r, common)


def _column(node: exp.Identifier, side: int, words: Words, scope: Scope) -> Column:
    if column := scope.column_of(side, node.name):
        return column
    known = {name: name for name in scope.streams[side].columns.names}
    raise words.source.wrong(
        f'{scope.names[side]} has no column "{node.name}", and USING needs one of each stream; '
        f"{suggest(node.name, known)}",
        words.range_of(node),
    )
