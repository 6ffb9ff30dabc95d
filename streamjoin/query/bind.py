"""Binding: a syntax tree and the streams it may read -> the plan of a join."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from streamjoin.errors import InputError
from streamjoin.index.layout import layout_of
from streamjoin.plan.expression import Expression, conjunction
from streamjoin.plan.functions.table import FUNCTIONS
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.predicate import JoinPredicate, analyse, led_by
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import STREAMS_MAX, Cascade, Tree, cascade
from streamjoin.plan.window import CountWindow, TimeWindow
from streamjoin.query.condition import condition_over
from streamjoin.query.joins import bind_conditions
from streamjoin.query.limits import room_to_recurse
from streamjoin.query.parse import ParsedQuery, parse
from streamjoin.query.predicates import RegisteredPredicate
from streamjoin.query.scope import Scope, look_up, suggest
from streamjoin.query.select import bind_select
from streamjoin.query.tokens import Words
from streamjoin.query.translate import RULES
from streamjoin.query.translator import Translator
from streamjoin.query.using import merged_columns
from streamjoin.settings.trees import NamedTree

_SELECT_READS = {"expressions", "from_", "joins", "where"}
_TABLE_READS = {"this", "alias"}
_SEMI_STREAM = (
    "no operator joins a stream with a relation yet, which is a semi-stream join; until then register the table as "
    "a stream, with its column of event time or with time: arrival"
)
_NESTED = "joins in brackets are not supported yet; write them one after the other"


def plan_query(
    text: str,
    streams: Mapping[str, StreamSchema],
    *,
    relations: Collection[str] = (),
    predicates: Mapping[str, RegisteredPredicate] | None = None,
    index: str = "auto",
    archive_period_us: int | None = None,
    main: str | None = None,
    tree: NamedTree | None = None,
) -> JoinPlan | Cascade:
    """`parse`, then `bind`."""
    return bind(
        parse(text),
        streams,
        relations=relations,
        predicates=predicates,
        index=index,
        archive_period_us=archive_period_us,
        main=main,
        tree=tree,
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
    tree: NamedTree | None = None,
) -> JoinPlan | Cascade:
    """Give the names of a query their meaning: of two streams a join, of more a join after the other.

    Args:
        streams: the streams a query may read, by name.
        relations: names of tables on disk; a query that reads one is refused by name.
        predicates: registered predicates by name; the plan holds those the query calls.
        index, archive_period_us: handed to the plan.
        main: the conjunct of the query that leads to candidates, as text; None for the best.
        tree: what is joined with what, by the names that the query gives; in the order of FROM unless given.
    Raises:
        QueryError: a name is unknown or ambiguous, or types do not fit; `span` says where.
        UnsupportedQueryError: the query reads a relation, or not two to nine streams.
        InputError: an argument besides the query is wrong.
    """
    registered = dict(predicates or {})
    if hidden := sorted(name for name in registered if name.lower() in FUNCTIONS):
        raise InputError(f'predicate "{hidden[0]}" has the name of a built-in function; register it under another')
    if archive_period_us is not None:
        _check_archive_period(archive_period_us, parsed)
    syntax, words = parsed.tree, parsed.words
    _check_parts(syntax, words)
    names, read = _streams(syntax, words, streams, relations)
    scope = Scope(words.source, names, read)
    scope = replace(scope, merged=merged_columns(syntax.args["joins"], words, scope))
    translator = Translator(RULES, words, scope, registered)
    if not syntax.expressions:
        raise words.source.wrong("SELECT ONLINE needs at least one column", words.range(0))
    with room_to_recurse():
        conditions = bind_conditions(syntax, translator)
        select = bind_select(syntax, translator)
        common = partial(
            JoinPlan, index=index, archive_period_us=archive_period_us, predicates=translator.used, text=parsed.text
        )
        if len(read) > 2:
            return _staged(names, read, conditions, select, parsed, common, main, tree)
        if tree is not None:
            raise InputError("two streams are joined in one way; leave it out", field="operator.tree")
        predicate = analyse(conjunction(conditions), (names[0], names[1]))
        plan = common((read[0], read[1]), (names[0], names[1]), predicate, parsed.window, select, main=main)
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


def _staged(
    names: tuple[str, ...],
    read: tuple[StreamSchema, ...],
    conditions: Sequence[Expression],
    select: tuple[tuple[str, Expression], ...],
    parsed: ParsedQuery,
    common: Callable[..., JoinPlan],
    main: str | None,
    tree: NamedTree | None,
) -> Cascade:
    window = parsed.window
    if main is not None:
        raise InputError(
            "each stage of a join of three streams and more has a main condition of its own; leave it out",
            field="operator.main",
        )
    if isinstance(window, CountWindow) or (isinstance(window, TimeWindow) and window.before_us != window.after_us):
        raise parsed.words.source.unsupported(
            f"a window of rows or of two sides is for two streams, and this query joins {len(read)}; write one span of "
            "time for all of them, such as WITHIN 10 SECONDS",
            parsed.within,
        )
    numbered = None if tree is None else _numbered(tree, names)
    plan = cascade(read, names, conditions, select, window, common, parsed.text, numbered)
    for stage in plan.stages:
        try:
            for query in stage.plan.queries:
                layout_of(query, 0)
        except InputError as wrong:
            raise InputError(f"stage {stage.number + 1}: {wrong.message}", field=wrong.field) from None
    return plan


def _numbered(tree: NamedTree, names: Sequence[str]) -> Tree:
    """A tree by the numbers of its streams, each of which is in it once."""
    left = {name.lower(): number for number, name in enumerate(names)}

    def numbered(part: NamedTree) -> Tree:
        if not isinstance(part, str):
            return numbered(part[0]), numbered(part[1])
        if part.lower() not in left:
            twice = any(part.lower() == name.lower() for name in names)
            raise InputError(
                f"{part} is in it twice" if twice else f"the query has no stream {part}; it reads {', '.join(names)}",
                field="operator.tree",
            )
        return left.pop(part.lower())

    found = numbered(tree)
    if left:
        missing = " and ".join(names[number] for number in left.values())
        raise InputError(f"it lacks {missing}; all streams of the query are joined", field="operator.tree")
    return found


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
            f"{main} is not an equality or range between the two streams of this query; {there}", field="operator.main"
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
) -> tuple[tuple[str, ...], tuple[StreamSchema, ...]]:
    """What the query calls its streams, and the streams."""
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
    if len(found) > STREAMS_MAX:
        raise source.unsupported(
            f"a query joins {STREAMS_MAX} streams at most, and this one reads {len(found)}",
            words.range_of(tables[STREAMS_MAX]),
        )
    taken: dict[str, StreamSchema] = {}
    for table, (name, stream) in zip(tables, found, strict=True):
        if (first := taken.get(name.lower())) is not None:
            twice = "the same stream" if first is stream else "two streams"
            raise source.wrong(
                f'the query calls {twice} "{name}"; give each its own name, such as FROM {first.name} AS a, '
                f"{stream.name} AS b",
                words.range_of(table),
            )
        taken[name.lower()] = stream
    return tuple(name for name, _ in found), tuple(stream for _, stream in found)


def _joins_tables(inside: exp.Expr) -> bool:
    return isinstance(inside, exp.Table) and bool(inside.args.get("joins"))


def _stream(
    table: exp.Expr, words: Words, streams: Mapping[str, StreamSchema], relations: Collection[str]
) -> tuple[str, StreamSchema]:
    where = words.range_of(table)
    if table.args.get("joins") or (isinstance(table, exp.Paren | exp.Subquery) and _joins_tables(table.this)):
        raise words.source.unsupported(_NESTED, where)
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
