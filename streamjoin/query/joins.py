"""What a query's ON, USING and WHERE ask for, as one list of conditions."""

from __future__ import annotations

from sqlglot import TokenType, exp

from streamjoin.plan.expression import Expression, conjuncts, streams_of
from streamjoin.query.source import Range
from streamjoin.query.tokens import Words
from streamjoin.query.translator import Translator


def bind_conditions(tree: exp.Select, translator: Translator) -> list[Expression]:
    """All that must hold of a result, in the order in which it is written.

    Raises:
        QueryError: a condition cannot be bound, one is missing, or ON reads a stream that is joined later.
        UnsupportedQueryError: a join of another kind.
    """
    found: list[Expression] = []
    joins: list[exp.Join] = tree.args["joins"]
    merged = iter(translator.scope.merged)
    for number, join in enumerate(joins, 1):
        _check_kind(join, translator.words)
        for node in join.args.get("using") or ():
            one = next(merged)
            found.append(translator.compare("eq", one.left, one.columns[-1], node))
        if (on := join.args.get("on")) is not None:
            condition = translator.condition(on)
            _check_reads(condition, number, on, translator)
            found += conjuncts(condition)
    if place := _join_without_condition(translator.words, joins):
        raise translator.words.source.wrong(
            "JOIN needs a condition; write ON R.k = S.k, or FROM R, S for every pair in the window", place
        )
    if (where := tree.args.get("where")) is not None:
        found += conjuncts(translator.condition(where.this))
    return found


def _check_kind(join: exp.Join, words: Words) -> None:
    if any(part and key not in ("this", "on", "using", "kind") for key, part in join.args.items()):
        raise words.source.unsupported("only inner joins are supported yet", words.range_of(join))
    kind = join.args.get("kind", "")
    if kind not in ("", "INNER", "CROSS"):
        raise words.source.unsupported(f"{kind} JOIN is not supported yet", words.range_of(join))
    if kind == "CROSS" and join.args.get("using"):
        raise words.source.wrong("CROSS JOIN takes no USING; write JOIN", words.range_of(join.args["using"][0]))


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
