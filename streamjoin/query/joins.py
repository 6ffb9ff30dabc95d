"""What a query's joins are, and what their ON, USING and WHERE ask for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from streamjoin.plan.asof import AsOf
from streamjoin.plan.expression import Expression, conjuncts, streams_of
from streamjoin.plan.kinds import Join, JoinKind, Tree
from streamjoin.plan.parted import Groups
from streamjoin.plan.window import CountWindow, FullHistory, Reaches, Window
from streamjoin.query.asof import asof_on, check_kinds, is_asof
from streamjoin.query.scope import Scope
from streamjoin.query.tokens import Words
from streamjoin.query.translator import Translator
from streamjoin.query.written import From, Written, place_before


@dataclass(frozen=True, slots=True)
class Clause:
    """One comma or JOIN of FROM.

    Args:
        written: where it stands, and what it joins.
        on: the conjuncts of its ON and USING; of an ASOF JOIN without the comparison of times.
        asof: what it is, of an ASOF JOIN.
    """

    written: Written
    kind: JoinKind
    on: tuple[Expression, ...]
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
        clauses: in the order in which they are joined, as `From.joins`.
        where: the conjuncts of WHERE.
        groups: which inputs stand in brackets together.
    """

    clauses: tuple[Clause, ...]
    where: tuple[Expression, ...]
    groups: Groups

    @property
    def are_inner(self) -> bool:
        """Whether all conditions may be taken together, whatever is joined first."""
        return all(clause.kind is JoinKind.INNER and clause.asof is None for clause in self.clauses)

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """All that must hold of a result; inner joins only."""
        return (*(part for clause in self.clauses for part in clause.on), *self.where)

    @property
    def tree(self) -> Tree:
        """What is joined with what, as it is written."""
        found: dict[int, Tree] = {}
        for clause in self.clauses:
            first, joined = clause.written.left.start, clause.written.joined
            left, right = found.get(first, first), found.get(joined, joined)
            found[first] = Join(left, right, clause.kind, clause.on, clause.asof)
        return found[0]


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


def bind_joins(tree: exp.Select, start: From, translator: Translator) -> Joins:
    """The joins of a query and their conditions.

    Raises:
        QueryError: a condition cannot be bound, one is missing, or one reads a stream that it cannot see.
        UnsupportedQueryError: a join of another kind.
    """
    words, scope = translator.words, translator.scope
    clauses: list[Clause] = []
    merged = iter(scope.merged)
    hidden: set[str] = set()
    for written in start.joins:
        join, kind = written.node, kind_of(written.node, words)
        on: list[Expression] = []
        for node in join.args.get("using") or ():
            one = next(merged)
            on.append(translator.compare("eq", one.left, one.right, node))
        if is_asof(join):
            check_kinds(written, translator)
        if (condition := join.args.get("on")) is not None:
            found = translator.condition(condition)
            _check_reads(found, written, condition, translator)
            check_hidden(found, hidden, translator, condition)
            on += conjuncts(found)
        clause = Clause(written, kind, tuple(on))
        if is_asof(join):
            as_of = [scope.names[one.written.joined] for one in clauses if one.asof is not None]
            equalities, asof = asof_on(written, as_of, translator)
            clause = replace(clause, on=equalities, asof=asof)
        clauses.append(clause)
        if not kind.gives_pairs:
            hidden.update(scope.names[number] for number in written.right)
    _check_conditions(clauses, words)
    translator.scope = replace(scope, is_behind=True)
    where: Sequence[Expression] = ()
    if (node := tree.args.get("where")) is not None:
        found = translator.condition(node.this)
        check_hidden(found, hidden, translator, node.this)
        where = conjuncts(found)
    bound = Joins(tuple(clauses), tuple(where), start.groups)
    if not bound.are_inner:
        _check_groups(bound, translator)
    return bound


def hidden_names(joins: Sequence[Written], words: Words, names: Sequence[str]) -> frozenset[str]:
    """The streams that semi and anti joins look into: of these no column comes out."""
    looking = (join for join in joins if not kind_of(join.node, words).gives_pairs)
    return frozenset(names[number] for join in looking for number in join.right)


def names_aside(joins: Sequence[Written], scope: Scope) -> frozenset[str]:
    """The streams that have no say in how long a row counts: the hidden ones, and what ASOF JOIN brings.

    What ASOF JOIN brings is like more columns of the row that it is brought to.
    """
    return scope.hidden | {scope.names[number] for join in joins if is_asof(join.node) for number in join.right}


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


def _check_groups(bound: Joins, translator: Translator) -> None:
    """Where not all joins are inner, ON reads what it joins: JOIN binds tighter than the comma."""
    names = translator.scope.names
    for clause in bound.clauses:
        seen = {names[number] for number in clause.written.both}
        if outside := sorted(clause.reads - seen, key=names.index):
            node = clause.written.node
            instead = "CROSS JOIN in place of the comma"
            instead = instead if clause.asof is not None else f"the condition in WHERE, or {instead}"
            raise translator.words.source.wrong(
                f"this ON reads {outside[0]}, which a comma separates from it: JOIN binds tighter than the comma; "
                f"write {instead}",
                translator.words.range_of(node.args.get("on") or node),
            )


def _check_reads(condition: Expression, written: Written, node: exp.Expr, translator: Translator) -> None:
    """ON reads the streams before it and those that it joins, inside its brackets."""
    names, place = translator.scope.names, translator.place(node)
    for number in sorted(map(names.index, streams_of(condition))):
        name = names[number]
        if number not in written.within:
            raise translator.words.source.wrong(
                f"this ON stands in brackets and reads {name}, which is outside of them; write the condition in the ON "
                f"that joins the brackets with {name}, or in WHERE",
                place,
            )
        if number >= written.right.stop:
            raise translator.words.source.wrong(
                f"this ON reads {name}, which is joined later; write the condition where {name} is joined, or in WHERE",
                place,
            )


def _check_conditions(clauses: Sequence[Clause], words: Words) -> None:
    """A JOIN without a condition is CROSS JOIN."""
    for join in (clause.written for clause in clauses if not clause.written.is_comma):
        place = place_before(join.node, words)
        if join.node.args.get("on") or join.node.args.get("using") or words.is_word(place - 1, "CROSS"):
            continue
        are_inner = all(clause.kind is JoinKind.INNER for clause in clauses)
        instead = ", or FROM R, S for every pair in the window" if are_inner else ""
        raise words.source.wrong(f"JOIN needs a condition; write ON R.k = S.k{instead}", words.range(place))
