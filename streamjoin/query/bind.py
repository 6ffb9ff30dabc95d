"""Binding: a syntax tree and the streams it may read -> the plan of a join."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlglot import TokenType, exp

from streamjoin.errors import InputError
from streamjoin.index.layout import layout_of
from streamjoin.plan.expression import Expression, conjunction
from streamjoin.plan.functions.table import FUNCTIONS
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.predicate import JoinPredicate, analyse, led_by
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import TimeWindow
from streamjoin.query.condition import condition_over
from streamjoin.query.limits import room_to_recurse
from streamjoin.query.parse import ParsedQuery, parse
from streamjoin.query.predicates import RegisteredPredicate
from streamjoin.query.scope import Scope, look_up, suggest
from streamjoin.query.select import bind_select
from streamjoin.query.source import Range
from streamjoin.query.tokens import Words
from streamjoin.query.translate import RULES
from streamjoin.query.translator import Translator
from streamjoin.query.using import merged_columns

_SELECT_READS = {"expressions", "from_", "joins", "where"}
_TABLE_READS = {"this", "alias"}
_SEMI_STREAM = (
    "no operator joins a stream with a relation yet, which is a semi-stream join; until then register the table as "
    "a stream, with its column of event time or with time: arrival"
)
_TOO_MANY = "joins of more than two streams are not supported yet; join two and register the result as a stream"


def plan_query(
    text: str,
    streams: Mapping[str, StreamSchema],
    *,
    relations: Collection[str] = (),
    predicates: Mapping[str, RegisteredPredicate] | None = None,
    index: str = "auto",
    archive_period_us: int | None = None,
    main: str | None = None,
) -> JoinPlan:
    """`parse`, then `bind`."""
    return bind(
        parse(text),
        streams,
        relations=relations,
        predicates=predicates,
        index=index,
        archive_period_us=archive_period_us,
        main=main,
    )


def bind(
    parsed: ParsedQuery,
    streams: Mapping[str, StreamSchema],
    *,
    relations: Collection[str] = (),
    predicates: Mapping[str, RegisteredPredicate] | None = None,
    index: str = "auto",
    archive_period_us: int | None = None,
    main: str | None = None,
) -> JoinPlan:
    """Give the names of a query their meaning.

    Args:
        streams: the streams a query may read, by name.
        relations: names of tables on disk; a query that reads one is refused by name.
        predicates: registered predicates by name; the plan holds those the query calls.
        index, archive_period_us: handed to the plan.
        main: the conjunct of the query that leads to candidates, as text; None for the best.
    Raises:
        QueryError: a name is unknown or ambiguous, or types do not fit; `span` says where.
        UnsupportedQueryError: the query reads a relation, or not exactly two streams.
        InputError: an argument besides the query is wrong.
    """
    registered = dict(predicates or {})
    if hidden := sorted(name for name in registered if name.lower() in FUNCTIONS):
        raise InputError(f'predicate "{hidden[0]}" has the name of a built-in function; register it under another')
    if archive_period_us is not None:
        _check_archive_period(archive_period_us, parsed)
    tree, words = parsed.tree, parsed.words
    _check_parts(tree, words)
    names, two = _streams(tree, words, streams, relations)
    scope = Scope(words.source, names, two)
    scope = replace(scope, merged=merged_columns(tree.args["joins"][0], words, scope))
    translator = Translator(RULES, words, scope, registered)
    if not tree.expressions:
        raise words.source.wrong("SELECT ONLINE needs at least one column", words.range(0))
    with room_to_recurse():
        where = _where(tree, translator)
        select = bind_select(tree, translator)
        plan = JoinPlan(
            two,
            names,
            analyse(where, names),
            parsed.window,
            select,
            index,
            archive_period_us,
            translator.used,
            parsed.text,
            main=main,
        )
    if main is not None:
        plan = replace(plan, predicate=_led_by(main, plan))
    if index != "auto":
        # An index that cannot answer the query is the user's mistake, so it shows here and not in a worker.
        layout_of(plan, 0)
    return plan


def _check_archive_period(archive_period_us: int, parsed: ParsedQuery) -> None:
    if archive_period_us < 1:
        raise InputError("the archive period is at least 1 us", field="operator.archive_period")
    if not isinstance(parsed.window, TimeWindow):
        raise InputError(
            f"an archive period is a span of time, and this join is {parsed.window}; leave it out",
            field="operator.archive_period",
        )


def _led_by(main: str, plan: JoinPlan) -> JoinPredicate:
    predicate = plan.predicate
    try:
        led = led_by(predicate, condition_over(main, plan.names, plan.streams))
    except InputError as wrong:
        raise InputError(wrong.message, field="operator.main") from None
    if led is None:
        known = [found.source for found in predicate.equalities]
        known += [source for found in predicate.ranges for source in found.sources]
        there = f"there are {'; '.join(map(str, known))}" if known else "it has none"
        raise InputError(
            f"{main} is no equality or range between the two streams of this query; {there}", field="operator.main"
        )
    return led


def _check_parts(tree: exp.Select, words: Words) -> None:
    for key, part in tree.args.items():
        if part and key not in _SELECT_READS:
            node = part[0] if isinstance(part, list) else part
            where = words.range_of(node) if isinstance(node, exp.Expr) else words.range(0)
            raise words.source.unsupported(
                f'"{words.source.snippet(where)}" belongs to a clause that is not supported; a query is '
                "SELECT ONLINE ... FROM R, S WHERE ... WITHIN ...",
                where,
            )


def _streams(
    tree: exp.Select, words: Words, streams: Mapping[str, StreamSchema], relations: Collection[str]
) -> tuple[tuple[str, str], tuple[StreamSchema, StreamSchema]]:
    """What the query calls its two streams, and the streams."""
    source = words.source
    if (start := tree.args.get("from_")) is None:
        raise source.wrong("the query has no FROM; a join reads two streams, such as FROM R, S", words.range(0))
    joins: list[exp.Join] = tree.args.get("joins") or []
    tables: list[exp.Expr] = [start.this, *(join.this for join in joins)]
    found = [_stream(table, words, streams, relations) for table in tables]
    if len(found) < 2:
        raise source.unsupported(
            "a join needs two streams; write FROM R, S, or the same stream twice with two names", words.range_of(start)
        )
    if len(found) > 2:
        raise source.unsupported(
            _TOO_MANY,
            words.range_of(tables[2]),
        )
    (one, first), (other, second) = found
    if one.lower() == other.lower():
        twice = "the same stream" if first is second else "two streams"
        raise source.wrong(
            f'the query calls {twice} "{other}"; give each its own name, such as FROM {first.name} AS a, '
            f"{second.name} AS b",
            words.range_of(tables[1]),
        )
    return (one, other), (first, second)


def _stream(
    table: exp.Expr, words: Words, streams: Mapping[str, StreamSchema], relations: Collection[str]
) -> tuple[str, StreamSchema]:
    where = words.range_of(table)
    if table.args.get("joins"):
        raise words.source.unsupported(_TOO_MANY, where)
    unread = [key for key, part in table.args.items() if part and key not in _TABLE_READS]
    if type(table) is not exp.Table or type(table.this) is not exp.Identifier or unread:
        raise words.source.unsupported(
            f'FROM reads registered streams by name only, not "{words.source.snippet(where)}"; register the data as a '
            "stream first",
            where,
        )
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise words.source.unsupported("the columns of a stream cannot be renamed in FROM; use AS in SELECT", where)
    name = table.this.name
    stream = look_up(name, streams)
    if stream is None and look_up(name, {own: own for own in relations}) is not None:
        raise words.source.unsupported(f'"{name}" is a relation; {_SEMI_STREAM}', where)
    if stream is None:
        raise words.source.wrong(f'there is no stream "{name}"; {suggest(name, {own: own for own in streams})}', where)
    return alias.name if alias is not None else name, stream


def _where(tree: exp.Select, translator: Translator) -> Expression:
    words = translator.words
    join: exp.Join = tree.args["joins"][0]
    if any(part and key not in ("this", "on", "using", "kind") for key, part in join.args.items()):
        raise words.source.unsupported("only inner joins are supported yet", words.range_of(join))
    if join.args.get("kind", "") not in ("", "INNER", "CROSS"):
        raise words.source.unsupported(f"{join.args['kind']} JOIN is not supported yet", words.range_of(join))
    parts: list[exp.Expr] = []
    if join.args.get("using"):
        if join.args.get("kind") == "CROSS":
            raise words.source.wrong("CROSS JOIN takes no USING; write JOIN", words.range_of(join.args["using"][0]))
    elif join.args.get("on") is not None:
        parts.append(join.args["on"])
    elif place := _join_without_condition(words):
        raise words.source.wrong(
            "JOIN needs a condition; write ON R.k = S.k, or FROM R, S for every pair in the window", place
        )
    if (where := tree.args.get("where")) is not None:
        parts.append(where.this)
    equal = [
        translator.compare("eq", *merged.columns, node)
        for merged, node in zip(translator.scope.merged, join.args.get("using") or (), strict=True)
    ]
    return conjunction([*equal, *map(translator.condition, parts)])


def _join_without_condition(words: Words) -> Range | None:
    """The word JOIN, unless it is CROSS JOIN."""
    for place in range(len(words.tokens)):
        if words.kind(place) == TokenType.JOIN and not words.is_word(place - 1, "CROSS"):
            return words.range(place)
    return None
