"""What a query may say of relations: it reads a stream beside them, and they have no time."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from streamjoin.plan.expression import Column, Expression
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.schema import VERSION, StreamSchema
from streamjoin.plan.types import INT64
from streamjoin.plan.window import FullHistory, R, Reaches, S, TimeWindow, Window
from streamjoin.query.asof import is_asof
from streamjoin.query.joins import Joins
from streamjoin.query.parse import ParsedQuery
from streamjoin.query.reaches import window_of
from streamjoin.query.scope import look_up
from streamjoin.query.tokens import CALL_MARK
from streamjoin.query.translator import Translator
from streamjoin.query.written import Written

VERSION_CALL = "version"


def with_versions(names: Sequence[str], read: Sequence[StreamSchema], parsed: ParsedQuery) -> tuple[StreamSchema, ...]:
    """What is read, with the column of its version in each relation that the query asks for it."""
    asked = {
        call.expressions[0].name.lower()
        for call in parsed.tree.find_all(exp.Anonymous)
        if str(call.this).removeprefix(CALL_MARK).lower() == VERSION_CALL and len(call.expressions) == 1
    }
    return tuple(
        one.versioned() if one.is_relation and name.lower() in asked else one
        for name, one in zip(names, read, strict=True)
    )


def version_of(translator: Translator, node: exp.Anonymous) -> Expression:
    """VERSION(name): the version of a relation that a row was joined with.

    Raises:
        QueryError: it is not asked of one relation, by its name.
    """
    (relation, *others) = node.expressions or [None]
    if others or type(relation) is not exp.Column or relation.args.get("table"):
        raise translator.wrong("VERSION takes the name of one relation, such as VERSION(customers)", node)
    side = translator.scope.side(relation.name, translator.place(relation))
    if not translator.scope.streams[side].is_relation:
        raise translator.wrong(
            f'"{translator.scope.names[side]}" is a stream, and only relations have versions', relation
        )
    return Column(translator.scope.names[side], VERSION, INT64)


def check_relations(read: Sequence[StreamSchema], joins: Sequence[Written], parsed: ParsedQuery) -> None:
    """Refuse relations without a stream, or in ASOF JOIN, and a WITHIN that nothing but a relation is held against.

    Args:
        read: what stands in FROM, in its order.
        joins: how it is joined there.
    Raises:
        UnsupportedQueryError: with the place.
    """
    relations = [one for one in read if one.is_relation]
    streams = len(read) - len(relations)
    source = parsed.words.source
    if relations and not streams:
        first = parsed.tree.args["from_"]
        raise source.unsupported(
            f"{_listed(relations)} {'are relations' if len(relations) > 1 else 'is a relation'}, and a query waits for "
            "rows of a stream; join one with a stream, or ask a database",
            parsed.words.range_of(first if isinstance(first, exp.Expr) else parsed.tree),
        )
    for join in joins:
        sides = read if len(read) == 2 else [read[join.joined]]
        if is_asof(join.node) and (by_time := [one for one in sides if one.is_relation]):
            raise source.unsupported(
                f"ASOF JOIN takes the latest row of a stream, and {_listed(by_time)} is a relation, whose rows have no "
                "time; write JOIN or LEFT JOIN",
                parsed.words.range_of(join.node),
            )
        inside = [read[number] for number in join.within]
        if join.is_bracketed and all(one.is_relation for one in inside):
            raise source.unsupported(
                f"these brackets hold {_listed(inside)}, which are relations, and a relation is joined with a stream, "
                "or with what has come of one; put the stream into the brackets, or leave them out",
                parsed.words.range_of(join.node),
            )
    if relations and streams == 1 and not isinstance(parsed.window, FullHistory):
        raise source.unsupported(
            f"WITHIN says how near rows of streams are in time, and {_listed(relations)} "
            f"{'are relations, whose' if len(relations) > 1 else 'is a relation, whose'} rows have no time; leave "
            "WITHIN out",
            parsed.within,
        )


def window_over(names: Sequence[str], read: Sequence[StreamSchema], parsed: ParsedQuery) -> Window | Reaches:
    """What WITHIN asks of the streams among what is read.

    Raises:
        QueryError: it names a relation, or not each stream.
    """
    streams = [name for name, one in zip(names, read, strict=True) if not one.is_relation]
    for reach in parsed.window if isinstance(parsed.window, tuple) else ():
        if look_up(reach.stream, {name: name for name in names if name not in streams}):
            raise parsed.words.source.wrong(
                f"{reach.stream} is a relation, whose rows have no time, so it has no reach; leave FOR "
                f"{reach.stream} out",
                reach.place,
            )
    window = window_of(parsed.window, streams, parsed.words.source, parsed.within)
    if isinstance(window, TimeWindow) and len(streams) == 2 < len(read) and window.before_us != window.after_us:
        # Two streams of several inputs have a reach each, as the sides of their window say.
        return Reaches(tuple(streams), (window.after_us, window.before_us))
    return window


def check_preserved(joins: Joins, read: Sequence[StreamSchema], parsed: ParsedQuery) -> None:
    """Refuse a join that would give the unmatched rows of a relation, which has no time, or rows of it alone.

    Raises:
        UnsupportedQueryError: with the place.
    """
    for clause, of_relations in zip(joins.clauses, sides_of_relations(joins, read), strict=True):
        wrong = [side for side in clause.kind.decided if side in of_relations]
        place = parsed.words.range_of(clause.written.node)
        if wrong or (clause.kind is not JoinKind.INNER and len(of_relations) > 1):
            raise parsed.words.source.unsupported(
                "a relation is never the preserved side, as it waits for rows of a stream, and this is "
                f"{clause.kind} JOIN; write the stream first, with LEFT, LEFT SEMI or LEFT ANTI JOIN",
                place,
            )
        if len(of_relations) > 1 and not joins.are_inner:
            both = [read[number] for number in clause.written.both]
            raise parsed.words.source.unsupported(
                f"{_listed(both)} are relations, and a relation is joined with a stream, or with what has come of one; "
                "beside outer, semi, anti and as-of joins all are joined as they are written, so put the stream first",
                place,
            )


def sides_of_relations(joins: Joins, read: Sequence[StreamSchema]) -> list[tuple[int, ...]]:
    """For each join in turn, the sides on which there is nothing but relations."""
    sides = ((clause.written.left, clause.written.right) for clause in joins.clauses)
    return [tuple(side for side in (R, S) if all(read[number].is_relation for number in both[side])) for both in sides]


def _listed(relations: Sequence[StreamSchema]) -> str:
    return " and ".join(f'"{one.name}"' for one in relations)
