"""FROM as it is written: what it reads, and its joins, which run from left to right inside each pair of brackets.

JOIN binds tighter than the comma: the left side of a JOIN begins behind the last comma before it, or where its brackets
open. What a join joins stands side by side in FROM, so the numbers of the first and the last stream say all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import TokenType, exp

from streamjoin.plan.parted import Groups
from streamjoin.query.source import Range
from streamjoin.query.tokens import Words


@dataclass(frozen=True, slots=True)
class Written:
    """One comma or JOIN.

    Args:
        left, right: the streams that it joins, by their numbers.
        within: the streams inside the same brackets, or all.
        is_bracketed: whether there are brackets around it.
    """

    node: exp.Join
    left: range
    right: range
    within: range
    is_comma: bool
    is_bracketed: bool

    @property
    def joined(self) -> int:
        """The number of the first stream that it brings."""
        return self.right.start

    @property
    def before(self) -> range:
        """All streams before it in its brackets, over commas."""
        return range(self.within.start, self.joined)

    @property
    def both(self) -> range:
        """The streams of both sides."""
        return range(self.left.start, self.right.stop)


@dataclass(frozen=True, slots=True)
class From:
    """What FROM of a query says.

    Args:
        tables: the syntax nodes of what is read, in the order in which they are written.
        joins: in the order in which they are joined: those in brackets before those around them, in each pair of
            brackets JOINs before commas, and else as they are written.
        groups: which of what is read stand in brackets together.
    """

    tables: tuple[exp.Expr, ...]
    joins: tuple[Written, ...]
    groups: Groups


def read_from(tree: exp.Select, words: Words) -> From:
    """FROM of a query.

    Raises:
        QueryError: there is none.
        UnsupportedQueryError: brackets with a name, without a join in them, or left out.
    """
    if (start := tree.args.get("from_")) is None:
        raise words.source.wrong("the query has no FROM; a join reads two streams, such as FROM R, S", words.range(0))
    reading = _Reading(words)
    if start.this.args.get("joins"):
        reading.refuse_left_out(start.this)
    groups = reading.level(start.this, tree.args.get("joins") or (), is_bracketed=False)
    return From(tuple(reading.tables), tuple(reading.joins), groups)


@dataclass(slots=True)
class _Reading:
    """FROM while it is read from left to right."""

    words: Words
    tables: list[exp.Expr] = field(default_factory=list)
    joins: list[Written] = field(default_factory=list)

    def level(self, first: exp.Expr, joins: Sequence[exp.Join], *, is_bracketed: bool) -> Groups:
        """All that stands in one pair of brackets, or in none; the joins of `first` itself are given."""
        opens = start = len(self.tables)
        items = [self._item(first)]
        own: list[int] = []
        commas: list[tuple[exp.Join, int]] = []
        for join in joins:
            joined = len(self.tables)
            if join.this.args.get("joins"):
                self.refuse_left_out(join.this)
            items.append(self._item(join.this))
            if self.words.kind(place_before(join, self.words)) == TokenType.COMMA:
                commas.append((join, joined))
                start = joined
                continue
            own.append(len(self.joins))
            left, right = range(start, joined), range(joined, len(self.tables))
            # Where the brackets close is known at their end.
            self.joins.append(Written(join, left, right, right, is_comma=False, is_bracketed=is_bracketed))
        within = range(opens, len(self.tables))
        for place in own:
            self.joins[place] = replace(self.joins[place], within=within)
        ends = [*(joined for _, joined in commas[1:]), within.stop]
        for (join, joined), end in zip(commas, ends, strict=False):
            left, right = range(opens, joined), range(joined, end)
            self.joins.append(Written(join, left, right, within, is_comma=True, is_bracketed=is_bracketed))
        return tuple(items) if len(items) > 1 else items[0]

    def _item(self, node: exp.Expr) -> Groups:
        """A stream, or brackets."""
        inside = node.this
        if type(node) is not exp.Subquery or not isinstance(inside, exp.Table | exp.Subquery):
            self.tables.append(node)
            return len(self.tables) - 1
        source, where = self.words.source, self.words.range_of(node)
        joins = inside.args.get("joins") or ()
        if isinstance(inside, exp.Table) and not joins:
            raise source.unsupported(
                f'brackets in FROM hold a join, such as (b JOIN c ON b.k = c.k); write "{inside.name}" without them',
                where,
            )
        if alias := node.args.get("alias"):
            named = self.words.range_of(alias)
            name = next(table.alias_or_name for table in node.find_all(exp.Table))
            raise source.unsupported(
                f"brackets in FROM have no name of their own; leave {source.snippet(named)} out, as the streams inside "
                f"keep their names, such as {name}",
                named,
            )
        if any(part for key, part in node.args.items() if key not in ("this", "joins")):
            raise source.unsupported(
                f'nothing stands behind brackets in FROM but the next join, unlike in "{source.snippet(where)}"', where
            )
        return self.level(inside, joins, is_bracketed=True)

    def refuse_left_out(self, node: exp.Expr) -> None:
        """SQL lets two ON in a row stand for brackets."""
        raise self.words.source.unsupported(
            "a second ON in a row stands for brackets that are left out; write them, such as FROM a LEFT JOIN (b LEFT "
            "JOIN c ON b.k = c.k) ON a.k = b.k",
            self.words.range_of(node),
        )


def place_before(join: exp.Join, words: Words) -> int:
    """The place of the word JOIN of a join, or of its comma."""
    start = words.range_of(join.this)[0]
    place = bisect_left(words.tokens, start, key=lambda token: token.start) - 1
    while words.kind(place) == TokenType.L_PAREN:
        place -= 1
    return place


def place_of(table: exp.Expr, words: Words) -> Range:
    """Where a stream stands in FROM, with its name; the joins behind it in its brackets are not a part of it."""
    if not table.args.get("joins"):
        return words.range_of(table)
    named = words.range_of(table.args.get("alias") or table.this)
    return words.range_of(table.this)[0], named[1]
