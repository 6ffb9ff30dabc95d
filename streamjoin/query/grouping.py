"""GROUP BY, HAVING, and a SELECT list of groups: names and aggregate calls become expressions over groups.

An expression over groups reads what is grouped by, the bounds of the window, and aggregates. What stands inside an
aggregate is an expression over tuples, as in a query without groups.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
from sqlglot import TokenType, exp

from streamjoin.errors import InputError, QueryError
from streamjoin.plan.aggregate import GROUPS, WINDOW_END, WINDOW_START, Aggregate, Groups, Hopping, Key, Part
from streamjoin.plan.changing import Changing
from streamjoin.plan.coercion import cast
from streamjoin.plan.expression import TRUE, Column, Expression, Literal
from streamjoin.plan.types import column_type
from streamjoin.plan.window import FullHistory, Reaches, Window
from streamjoin.query.aggregates import AGGREGATES, made
from streamjoin.query.changing import changing, check_changes, runs
from streamjoin.query.hopping import STAND_IN
from streamjoin.query.parse import ParsedQuery
from streamjoin.query.select import Item, alias_of, merged_name, named
from streamjoin.query.source import Range
from streamjoin.query.tokens import CALL_MARK, Words
from streamjoin.query.translate import RULES
from streamjoin.query.translator import Translator
from streamjoin.settings.trees import NamedTree

Timed = tuple[Sequence[str], Window | Reaches, Collection[str]]
_BOUNDS = {"window_start": WINDOW_START, "window_end": WINDOW_END}


def is_grouped(tree: exp.Select, words: Words) -> bool:
    """Whether a query has groups.

    Raises:
        QueryError: HAVING without GROUP BY.
    """
    if tree.args.get("group"):
        return True
    if tree.args.get("having"):
        place = next(at for at in range(len(words.tokens)) if words.kind(at) == TokenType.HAVING)
        raise words.source.wrong(
            "HAVING chooses among groups, and this query has none; write GROUP BY R.k before it, or WHERE to choose "
            "among rows",
            words.range(place),
        )
    return False


def bind_groups(parsed: ParsedQuery, tuples: Translator, timed: Timed) -> Groups:
    """Give the groups of a query their meaning.

    Args:
        tuples: translates expressions over the streams.
        timed: the streams that are read, by name, how near they are in time, and which have no say in how long rows
            count, see `names_aside`.
    Raises:
        QueryError: an item is neither grouped by nor in an aggregate, or cannot be bound.
        UnsupportedQueryError: groups of another kind.
    """
    tree, words, window = parsed.tree, tuples.words, parsed.windows
    if parsed.distinct is not None:
        raise words.source.wrong("groups differ already by what they are made of; leave DISTINCT out", parsed.distinct)
    place = next(at for at in range(len(words.tokens)) if words.kind(at) == TokenType.GROUP_BY)
    if window is not None and (wrong := parsed.changes.where) is not None:
        raise words.source.wrong(
            f"{words.source.snippet(wrong)} is for groups that are given again as they change, and each window of "
            f"{words.source.snippet(window.where)} is given once; leave one of both out",
            wrong,
        )
    keys = _keys(tree, tuples, words.range(place))
    groups = _OverGroups(tuples, keys, has_windows=window is not None)
    select = named(_items(tree, groups), words.source)
    having = groups.condition(tree.args["having"].this) if tree.args.get("having") else TRUE
    windows: Hopping | Changing
    if window is not None:
        windows = window.windows
    else:
        shown = {expression: name for name, expression in reversed(select)}
        identity = [(key, shown.get(key.shown)) for key in keys]
        check_changes(list(dict(select)), identity, words, words.range(place))
        windows = changing(parsed.changes, *timed, words, parsed.within)
    return Groups(windows, keys, tuple(groups.parts), tuple(groups.aggregates.values()), select, having)


def bind_distinct(
    select: Sequence[tuple[str, Expression]], parsed: ParsedQuery, tuples: Translator, timed: Timed
) -> Groups:
    """The different rows of a SELECT list: groups by all of it, without aggregates."""
    keys = tuple(Key(value, Column(GROUPS, name, value.type)) for name, value in select)
    windows = runs(*timed, tuples.words, parsed.within)
    return Groups(windows, keys, (), (), tuple((key.shown.name, key.shown) for key in keys), TRUE)


def check_alone(parsed: ParsedQuery, main: str | None, tree: NamedTree | None) -> None:
    """Refuse what says how streams are joined, where a query reads one.

    Raises:
        QueryError, InputError: it is there.
    """
    if not isinstance(parsed.window, FullHistory):
        raise parsed.words.source.wrong(
            "WITHIN says how far apart rows may be that are joined, and this query reads one stream; leave it out",
            parsed.within,
        )
    for name, given in (("main", main), ("tree", tree)):
        if given is not None:
            raise InputError("this query reads one stream and joins nothing; leave it out", field=f"operator.{name}")


def _keys(tree: exp.Select, tuples: Translator, where: Range) -> tuple[Key, ...]:
    group = tree.args["group"]
    called = {node.alias.lower(): node.this for node in tree.expressions if type(node) is exp.Alias}
    if any(part and key != "expressions" for key, part in group.args.items()):
        raise tuples.words.source.wrong(
            "GROUP BY takes columns and expressions, one after the other, and a window", where
        )
    keys: dict[Expression, Key] = {}
    for node in group.expressions:
        if type(node) is exp.Column and node.name == STAND_IN:
            continue
        # A column comes before what SELECT calls so, as in PostgreSQL and DuckDB.
        if type(node) is exp.Column and not node.table and not tuples.scope.has(node.name):
            node = called.get(node.name.lower(), node)
        if (call := _call_in(node)) is not None:
            raise tuples.wrong(
                f"{_name(call).upper()} is computed of a group, so it cannot be what groups are made by", call
            )
        value = tuples.expression(node)
        if isinstance(value, Literal):
            raise tuples.wrong("GROUP BY takes columns and expressions over them, not constants or positions", node)
        value = cast(value, column_type(value.type))
        shown = value if isinstance(value, Column) else Column(GROUPS, str(value), value.type)
        keys.setdefault(value, Key(value, shown))
    return tuple(keys.values())


def _items(tree: exp.Select, groups: _OverGroups) -> list[Item]:
    items = []
    for position, node in enumerate(tree.expressions, 1):
        where = groups.place(node)
        if any(isinstance(part, exp.Star) and not isinstance(part.parent, exp.Anonymous) for part in node.walk()):
            raise groups.words.source.wrong(
                "* is every column of a row, and a group is of many rows; name what is grouped by, and aggregates",
                where,
            )
        alias = alias_of(node, groups)
        inner = node.this if type(node) is exp.Alias else node
        expression = groups.expression(inner)
        if pa.types.is_null(expression.type):
            raise groups.words.source.wrong("NULL alone has no type; write CAST(NULL AS ...)", where)
        if alias is None and isinstance(expression, Column) and expression.stream == GROUPS:
            bounds = expression in (WINDOW_START, WINDOW_END)
            alias = expression.name if bounds else merged_name(inner, groups.tuples) or f"column_{position}"
        items.append(Item(cast(expression, column_type(expression.type)), alias, position, where))
    return items


class _OverTuples(Translator):
    """Turns each node into an expression over tuples once, however many of the nodes around it are asked for, too."""

    def __init__(self, tuples: Translator) -> None:
        super().__init__(RULES, tuples.words, tuples.scope, tuples.predicates)
        self.used = tuples.used
        self._known: dict[int, tuple[exp.Expr, Expression]] = {}

    def expression(self, node: exp.Expr) -> Expression:
        """See `Translator`."""
        if id(node) not in self._known:  # the node is kept with it, so that no other one gets its id
            self._known[id(node)] = node, super().expression(node)
        return self._known[id(node)][1]


class _OverGroups(Translator):
    """Turns syntax nodes into expressions over groups.

    Args:
        parts: those that were met, and their numbers.
        aggregates: those that were met, by what they are computed of.
    """

    def __init__(self, tuples: Translator, keys: Sequence[Key], *, has_windows: bool) -> None:
        super().__init__(RULES, tuples.words, tuples.scope, tuples.predicates)
        self.used = tuples.used
        self.tuples = _OverTuples(tuples)
        self.has_windows = has_windows
        self.keys = {key.value: key.shown for key in keys}
        self.parts: dict[Part, int] = {}
        self.aggregates: dict[tuple[str, tuple[int, ...], float | None], Aggregate] = {}

    def expression(self, node: exp.Expr) -> Expression:
        """See `Translator`."""
        if isinstance(node, exp.Anonymous) and (name := _name(node)) in (*AGGREGATES, *_BOUNDS):
            if name in _BOUNDS:
                if node.expressions:
                    raise self.wrong(f"{name.upper()} takes no argument", node)
                if not self.has_windows:
                    raise self.wrong(
                        f"{name.upper()} is a bound of a window, and these groups are in none; write GROUP BY ..., "
                        "TUMBLE(1 MINUTE), or leave it out: rows of groups that change have their time in emit_time",
                        node,
                    )
                return _BOUNDS[name]
            return self._aggregate(name, node)
        if type(node) not in (exp.Paren, exp.Literal) and _call_in(node) is None:
            value = self.tuples.expression(node)
            if (shown := self.keys.get(cast(value, column_type(value.type)))) is not None:
                return shown
            if isinstance(value, Column):
                raise self.wrong(
                    f"{value} is neither in GROUP BY nor inside an aggregate, so a group has many of it; write it in "
                    f"GROUP BY, or MIN({value})",
                    node,
                )
        return super().expression(node)

    def _aggregate(self, name: str, node: exp.Anonymous) -> Column:
        nodes, distinct = list(node.expressions), False
        if len(nodes) == 1 and type(nodes[0]) is exp.Star:
            if name != "count":
                raise self.wrong(f"{name.upper()} needs an expression; only COUNT takes *", node)
            nodes = []
        elif not nodes:
            raise self.wrong(f"{name.upper()} needs an argument" + (", or COUNT(*)" if name == "count" else ""), node)
        if len(nodes) == 1 and type(nodes[0]) is exp.Distinct:
            nodes, distinct = list(nodes[0].expressions), True
            if len(nodes) != 1:
                raise self.wrong("COUNT(DISTINCT ...) takes one expression", node)
        for inner in nodes:
            if (call := _call_in(inner)) is not None:
                raise self.wrong(
                    f"{_name(call).upper()} cannot stand inside {name.upper()}: aggregates do not nest", call
                )
        args = [self.tuples.expression(inner) for inner in nodes]
        if any(pa.types.is_null(arg.type) for arg in args):
            raise self.wrong("NULL alone has no type; write CAST(NULL AS ...)", node)
        try:
            found = made(name, [cast(arg, column_type(arg.type)) for arg in args], distinct=distinct)
        except QueryError as bad:
            raise self.wrong(bad.message, node) from None
        numbers = tuple(self.parts.setdefault(part, len(self.parts)) for part in found.parts)
        computed = (found.function, numbers, found.quantile)
        if (known := self.aggregates.get(computed)) is not None:
            return known.result
        listed = f"DISTINCT {args[0]}" if distinct else ", ".join(map(str, args)) or "*"
        result = Column(GROUPS, f"{name.upper()}({listed})", found.type)
        self.aggregates[computed] = Aggregate(found.function, numbers, result, found.quantile)
        return result


def _name(node: exp.Anonymous) -> str:
    return str(node.this).removeprefix(CALL_MARK).lower()


def _call_in(node: exp.Expr) -> exp.Anonymous | None:
    """A call in a node that has a meaning over groups only."""
    calls = (part for part in node.find_all(exp.Anonymous) if _name(part) in (*AGGREGATES, *_BOUNDS))
    return next(calls, None)
