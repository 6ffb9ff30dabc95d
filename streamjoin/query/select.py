"""The SELECT list: which columns a result has and what they are called.

A column is called by its alias, else by the stream column it is or the field of a struct, else `column_3` for the third
item. Where two of these
names would be the same, stream columns are called `stream_column` instead. What still collides is an error: a result
never has two columns whose names differ by case only, as no stream may either.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from streamjoin.plan.coercion import cast
from streamjoin.plan.expression import Column, Expression
from streamjoin.plan.schema import VERSION
from streamjoin.plan.types import column_type
from streamjoin.query.joins import check_hidden
from streamjoin.query.source import Range, Source
from streamjoin.query.translator import Translator


@dataclass(frozen=True, slots=True)
class Item:
    """One output column before it has its final name."""

    expression: Expression
    alias: str | None
    position: int
    where: Range
    field: str | None = None
    """The last name of a struct's field that was written with dots."""

    @property
    def short_name(self) -> str:
        """What it is called where nothing else is called so."""
        if self.alias is not None:
            return self.alias
        if self.field is not None:
            return self.field
        return _called(self.expression) if isinstance(self.expression, Column) else f"column_{self.position}"

    @property
    def long_name(self) -> str:
        """What it is called otherwise."""
        if self.alias is None and isinstance(self.expression, Column):
            name = _called(self.expression) if self.field is None else self.expression.name.replace(".", "_")
            return f"{self.expression.stream}_{name}"
        return self.short_name


def _called(column: Column) -> str:
    return "version" if column.name == VERSION else column.name


def bind_select(tree: exp.Select, translator: Translator) -> tuple[tuple[str, Expression], ...]:
    """The output columns of a query, (name, expression), in order.

    Raises:
        QueryError: an item cannot be bound, or two have one name.
    """
    items: list[Item] = []
    for node in tree.expressions:
        items.extend(_items(node, len(items), translator))
    return named(items, translator.words.source)


def alias_of(node: exp.Expr, translator: Translator) -> str | None:
    """What an item is called by AS; None without it.

    Raises:
        QueryError: no column can be called so.
    """
    if type(node) is not exp.Alias:
        return None
    if not node.alias.strip() or node.alias.startswith("__"):
        raise translator.wrong(
            f'"{node.alias}" cannot be the name of a column: names are not empty, and do not begin with two '
            "underscores",
            node,
        )
    return node.alias


def merged_name(node: exp.Expr, translator: Translator) -> str | None:
    """What an item is called that is a column which USING made of several; None of any other one."""
    if type(node) is not exp.Column or node.args.get("table"):
        return None
    value = translator.expression(node)
    return next((one.columns[0].name for one in translator.scope.merged if one.value is value), None)


def _items(node: exp.Expr, before: int, translator: Translator) -> list[Item]:
    where = translator.place(node)
    if type(node) is exp.Star and not any(node.args.values()):
        scope = translator.scope
        # What is merged inside brackets that a semi or anti join looks into does not come out.
        there = [one for one in scope.widest if any(column.stream not in scope.hidden for column in one.columns)]
        merged = [(one.value, one.columns[0].name) for one in there]
        seen = [side for side, name in enumerate(scope.names) if name not in scope.hidden]
        every = [column for side in seen for column in scope.all_of(side)]
        others = [column for column in every if scope.merged_of([column]) is None]
        named = [*merged, *((column, None) for column in others)]
        return [Item(column, name, before + place, where) for place, (column, name) in enumerate(named, 1)]
    if type(node) is exp.Column and type(node.this) is exp.Star and not any(node.this.args.values()):
        table = node.args["table"]
        columns = translator.scope.all_of(translator.scope.side(table.name, translator.place(table)))
        for column in columns[:1]:
            check_hidden(column, translator.scope.hidden, translator, node)
        return [Item(column, None, before + place, where) for place, column in enumerate(columns, 1)]
    alias = alias_of(node, translator)
    if type(node) is exp.Alias:
        node = node.this
    expression = translator.expression(node)
    check_hidden(expression, translator.scope.hidden, translator, node)
    if alias is None:
        alias = merged_name(node, translator)
    if pa.types.is_null(expression.type):
        raise translator.words.source.wrong("NULL alone has no type; write CAST(NULL AS ...)", where)
    is_field = isinstance(expression, Column) and "." in expression.name and "." not in node.name
    expression = cast(expression, column_type(expression.type))
    return [Item(expression, alias, before + 1, where, node.name if is_field else None)]


def named(items: list[Item], source: Source) -> tuple[tuple[str, Expression], ...]:
    """Items with their final names.

    Raises:
        QueryError: two have one name.
    """
    short = Counter(item.short_name.lower() for item in items)
    taken: dict[str, Item] = {}
    select = []
    for item in items:
        name = item.short_name if short[item.short_name.lower()] == 1 else item.long_name
        if twin := taken.get(name.lower()):
            raise source.wrong(
                f'two output columns are called "{name}": {source.snippet(twin.where)} and '
                f"{source.snippet(item.where)}; give one another name with AS",
                item.where,
            )
        taken[name.lower()] = item
        select.append((name, item.expression))
    return tuple(select)
