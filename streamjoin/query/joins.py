"""What a query's joins are, and what their ON, USING and WHERE ask for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import TokenType, exp

from streamjoin.plan.asof import AsOf
from streamjoin.plan.expression import Expression, conjuncts, streams_of
from streamjoin.plan.kinds import Join, JoinKind, Tree
from streamjoin.plan.window import CountWindow, FullHistory, Reaches, Window
from streamjoin.query.asof import asof_on, is_asof
from streamjoin.query.source import Range
from streamjoin.query.tokens import Words
from streamjoin.query.translator import Translator


@dataclass(frozen=True, slots=True)
class Clause:
    """One comma or JOIN of FROM.

    Args:
        joined: the number of the stream that it brings.
        on: the conjuncts of its ON and USING; of an ASOF JOIN without the comparison of times.
        asof: what it is, of an ASOF JOIN.
    """

    joined: int
    kind: JoinKind
    on: tuple[Expression, ...]
    is_comma: bool
    asof: AsOf | None = None

    @property
    def reads(self) -> frozenset[str]:
        """The streams that its ON and USING read."""
        read = frozenset().union(*map(streams_of, self.on))
        return read if self.asof is None or self.asof.at is None else read | {self.asof.at.stream}


@dataclass(frozen=True, slots=True)
class Joins:
    """What FROM and WHERE of a query ask for.

    Args:
        clauses: in the order in which they are written.
        where: the conjuncts of WHERE.
    """

    clauses: tuple[Clause, ...]
    where: tuple[Expression, ...]

    @property
    def are_inner(self) -> bool:
        """Whether all conditions may be taken together, whatever is joined first."""
        return all(clause.kind is JoinKind.INNER and clause.asof is None for clause in self.clauses)

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """All that must hold of a result, in the order in which it is written; inner joins only."""
        return (*(part for clause in self.clauses for part in clause.on), *self.where)

    @property
    def tree(self) -> Tree:
        """What is joined with what: JOIN binds tighter than the comma, and joins run from left to right."""
        groups: list[Tree] = [0]
        for clause in self.clauses:
            if clause.is_comma:
                groups.append(clause.joined)
            else:
                groups[-1] = Join(groups[-1], clause.joined, clause.kind, clause.on, clause.asof)
        return reduce(Join, groups)


def kind_of(join: exp.Join, words: Words) -> JoinKind:
    """What kind of join a clause is; an ASOF JOIN decides on no row by what comes later.

    Raises:
        UnsupportedQueryError: there is no such kind here.
    """
    if is_asof(join):
        return JoinKind.INNER
    if any(part and key not in _READS for key, part in join.args.items()):
        raise words.source.unsupported("there is no such join here; joins are " + _KNOWN, words.range_of(join))
    written = " ".join(part for part in (join.args.get("side"), join.args.get("kind")) if part)
    if written not in _KINDS:
        raise words.source.unsupported(f"there is no {written} JOIN here; joins are {_KNOWN}", words.range_of(join))
    if written == "CROSS" and join.args.get("using"):
        raise words.source.wrong("CROSS JOIN takes no USING; write JOIN", words.range_of(join.args["using"][0]))
    return _KINDS[written]


_READS = ("this", "on", "using", "kind", "side")
_KINDS = {
    "": JoinKind.INNER,
    "INNER": JoinKind.INNER,
    "CROSS": JoinKind.INNER,
    "LEFT": JoinKind.LEFT,
    "LEFT OUTER": JoinKind.LEFT,
    "RIGHT": JoinKind.RIGHT,
    "RIGHT OUTER": JoinKind.RIGHT,
    "FULL": JoinKind.FULL,
    "FULL OUTER": JoinKind.FULL,
    "LEFT SEMI": JoinKind.SEMI,
    "SEMI": JoinKind.SEMI,
    "LEFT ANTI": JoinKind.ANTI,
    "ANTI": JoinKind.ANTI,
}
_KNOWN = "INNER, CROSS, LEFT, RIGHT and FULL JOIN, LEFT SEMI JOIN and LEFT ANTI JOIN"


def bind_joins(tree: exp.Select, translator: Translator) -> Joins:
    """The joins of a query and their conditions.

    Raises:
        QueryError: a condition cannot be bound, one is missing, or one reads a stream that it cannot see.
        UnsupportedQueryError: a join of another kind.
    """
    words, scope = translator.words, translator.scope
    clauses: list[Clause] = []
    joins: list[exp.Join] = tree.args["joins"]
    merged = iter(scope.merged)
    hidden: set[str] = set()
    for number, join in enumerate(joins, 1):
        kind = kind_of(join, words)
        on: list[Expression] = []
        for node in join.args.get("using") or ():
            one = next(merged)
            on.append(translator.compare("eq", one.left, one.columns[-1], node))
        if (condition := join.args.get("on")) is not None:
            found = translator.condition(condition)
            _check_reads(found, number, condition, translator)
            check_hidden(found, hidden, translator, condition)
            on += conjuncts(found)
        clause = Clause(number, kind, tuple(on), _is_comma(join, words))
        if is_asof(join):
            as_of = [scope.names[one.joined] for one in clauses if one.asof is not None]
            equalities, asof = asof_on(join, number, as_of, translator)
            clause = replace(clause, on=equalities, asof=asof)
        clauses.append(clause)
        if not kind.gives_pairs:
            hidden.add(scope.names[number])
    if place := _join_without_condition(words, joins):
        instead = (
            ", or FROM R, S for every pair in the window"
            if all(clause.kind is JoinKind.INNER for clause in clauses)
            else ""
        )
        raise words.source.wrong(f"JOIN needs a condition; write ON R.k = S.k{instead}", place)
    translator.scope = replace(scope, is_behind=True)
    where: Sequence[Expression] = ()
    if (node := tree.args.get("where")) is not None:
        found = translator.condition(node.this)
        check_hidden(found, hidden, translator, node.this)
        where = conjuncts(found)
    bound = Joins(tuple(clauses), tuple(where))
    if not bound.are_inner:
        _check_groups(bound, joins, translator)
    return bound


def hidden_names(tree: exp.Select, words: Words, names: Sequence[str]) -> frozenset[str]:
    """The streams that semi and anti joins look into: of these no column comes out."""
    joins: list[exp.Join] = tree.args["joins"]
    return frozenset(name for name, join in zip(names[1:], joins, strict=True) if not kind_of(join, words).gives_pairs)


def check_window(kind: JoinKind, window: Window | Reaches, words: Words, join: exp.Join) -> None:
    """Refuse a window in which rows of a kind of join would wait for ever.

    Raises:
        UnsupportedQueryError: the reason.
    """
    where = words.range_of(join)
    if isinstance(window, CountWindow) and kind.decided:
        raise words.source.unsupported(
            f"{kind} JOIN says of each row whether it was matched, for which it needs a span of time, such as WITHIN "
            "10 SECONDS; windows of rows are for inner joins",
            where,
        )
    if isinstance(window, FullHistory) and kind.preserved:
        raise words.source.unsupported(
            f"over full history no row of {kind} JOIN is ever known to be unmatched, as a partner may still come; "
            "write a span of time, such as WITHIN 1 HOUR",
            where,
        )


def check_hidden(expression: Expression, hidden: Collection[str], translator: Translator, node: exp.Expr) -> None:
    """What a semi or anti join looks for, only its own ON can read.

    Raises:
        QueryError: an expression reads it.
    """
    if seen := sorted(streams_of(expression) & set(hidden)):
        raise translator.words.source.wrong(
            f"{seen[0]} is joined by LEFT SEMI or LEFT ANTI JOIN, which gives rows of the streams before it only; read "
            f"{seen[0]} in that ON",
            translator.place(node),
        )


def _check_groups(bound: Joins, joins: Sequence[exp.Join], translator: Translator) -> None:
    """Where not all joins are inner, ON reads what it joins: JOIN binds tighter than the comma."""
    names, first = translator.scope.names, 0
    for clause in bound.clauses:
        first = clause.joined if clause.is_comma else first
        seen = set(names[first : clause.joined + 1])
        if outside := sorted(clause.reads - seen, key=names.index):
            node = joins[clause.joined - 1]
            instead = "CROSS JOIN in place of the comma"
            instead = instead if clause.asof is not None else f"the condition in WHERE, or {instead}"
            raise translator.words.source.wrong(
                f"this ON reads {outside[0]}, which a comma separates from it: JOIN binds tighter than the comma; "
                f"write {instead}",
                translator.words.range_of(node.args.get("on") or node),
            )


def _check_reads(condition: Expression, joined: int, node: exp.Expr, translator: Translator) -> None:
    """ON reads the streams before it and the one that it joins."""
    names = translator.scope.names
    if later := sorted(streams_of(condition) - set(names[: joined + 1]), key=names.index):
        raise translator.words.source.wrong(
            f"this ON reads {later[0]}, which is joined later; write the condition where {later[0]} is joined, or in "
            "WHERE",
            translator.place(node),
        )


def _join_without_condition(words: Words, joins: list[exp.Join]) -> Range | None:
    """The word JOIN of the first one that has no condition, unless it is CROSS JOIN."""
    bare = [not (join.args.get("on") or join.args.get("using")) for join in joins]
    written = [place for place in range(len(words.tokens)) if words.kind(place) == TokenType.JOIN]
    # A comma is a join without the word.
    commas = [_is_comma(join, words) for join in joins]
    with_word = [lacks for lacks, comma in zip(bare, commas, strict=True) if not comma]
    for place, lacks in zip(written, with_word, strict=False):
        if lacks and not words.is_word(place - 1, "CROSS"):
            return words.range(place)
    return None


def _is_comma(join: exp.Join, words: Words) -> bool:
    start = words.range_of(join.this)[0]
    before = [place for place in range(len(words.tokens)) if words.range(place)[1] < start]
    return bool(before) and words.kind(before[-1]) == TokenType.COMMA
