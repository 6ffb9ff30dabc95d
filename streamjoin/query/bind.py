"""Binding: a syntax tree and the streams it may read -> the plan of a join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from streamjoin.errors import InputError
from streamjoin.index.layout import layout_of
from streamjoin.plan.aggregate import Groups
from streamjoin.plan.expression import Expression, conjunction, conjuncts
from streamjoin.plan.functions.table import FUNCTIONS
from streamjoin.plan.grouping import feeding_select, joined_groups, stream_groups
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import Join, Tree
from streamjoin.plan.parted import in_order
from streamjoin.plan.predicate import JoinPredicate, led_by
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import STREAMS_MAX, Cascade
from streamjoin.plan.tree import cascade, parts_of
from streamjoin.plan.window import CountWindow, FullHistory, Reaches, TimeWindow, Window
from streamjoin.query.asof import asof_alone, bind_asof
from streamjoin.query.condition import condition_over
from streamjoin.query.grouping import Timed, bind_distinct, bind_groups, check_alone, is_grouped
from streamjoin.query.joins import Joins, bind_joins, check_window, hidden_names, names_aside
from streamjoin.query.limits import room_to_recurse
from streamjoin.query.parse import ParsedQuery, parse
from streamjoin.query.predicates import RegisteredPredicate
from streamjoin.query.relations import check_preserved, check_relations, sides_of_relations, window_over, with_versions
from streamjoin.query.scope import Scope, look_up, suggest
from streamjoin.query.select import bind_select
from streamjoin.query.tokens import Words
from streamjoin.query.translate import RULES
from streamjoin.query.translator import Translator
from streamjoin.query.using import merged_columns
from streamjoin.query.written import From, Written, place_of, read_from
from streamjoin.settings.trees import NamedTree

_SELECT_READS = {"expressions", "from_", "joins", "where", "group", "having"}
_TABLE_READS = {"this", "alias", "joins"}  # of which the last are those of the brackets that it stands first in


def plan_query(
    text: str,
    streams: Mapping[str, StreamSchema],
    *,
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
    predicates: Mapping[str, RegisteredPredicate] | None = None,
    index: str = "auto",
    archive_period_us: int | None = None,
    main: str | None = None,
    tree: NamedTree | None = None,
) -> JoinPlan | Cascade:
    """Give the names of a query their meaning: of two streams a join, of more a join after the other.

    Args:
        streams: the streams and relations that a query may read, by name.
        predicates: registered predicates by name; the plan holds those the query calls.
        index, archive_period_us: handed to the plan.
        main: the conjunct of the query that leads to candidates, as text; None for the best.
        tree: what is joined with what, by the names that the query gives; in the order of FROM unless given.
    Raises:
        QueryError: a name is unknown or ambiguous, or types do not fit; `span` says where.
        UnsupportedQueryError: the query reads no stream, or not two to nine streams and relations.
        InputError: an argument besides the query is wrong.
    """
    registered = _registered(predicates or {})
    if archive_period_us is not None:
        _check_archive_period(archive_period_us, parsed)
    syntax, words = parsed.tree, parsed.words
    _check_parts(syntax, words)
    start = read_from(syntax, words)
    asof, grouped = asof_alone(start.joins, words), is_grouped(syntax, words) or parsed.distinct is not None
    names, read = _streams(start, words, streams, streams_min=1 if grouped else 2)
    check_relations(read, start.joins, parsed)
    read = with_versions(names, read, parsed)
    scope = Scope(words.source, names, read)
    if asof is not None:
        return _asof(asof, parsed, Translator(RULES, words, scope, registered), main, tree, archive_period_us, index)
    scope = replace(
        scope, merged=merged_columns(start.joins, words, scope), hidden=hidden_names(start.joins, words, names)
    )
    translator = Translator(RULES, words, scope, registered)
    with room_to_recurse():
        common = partial(
            JoinPlan, index=index, archive_period_us=archive_period_us, predicates=translator.used, text=parsed.text
        )
        joins = bind_joins(syntax, start, translator)
        groups = _groups(parsed, translator, lambda: _timed(scope, parsed, start.joins))
        select = bind_select(syntax, translator) if groups is None else feeding_select(groups)
        if groups is not None and len(read) == 1:
            check_alone(parsed, main, tree)
            return stream_groups(read[0], names[0], joins.where, groups, translator.used, parsed.text)
        window = window_over(names, read, parsed)
        if len(read) > 2 or any(one.is_relation for one in read):
            check_preserved(joins, read, parsed)
            staged = _staged(names, read, joins, select, window, parsed, common, main, tree)
            return staged if groups is None else joined_groups(staged, (), groups)
        _check_no_tree(tree)
        assert not isinstance(window, Reaches)
        plan = _binary((names[0], names[1]), (read[0], read[1]), joins, select, window, parsed, common, main)
    plan = _indexed(plan, main, index)
    return plan if groups is None else joined_groups(plan, joins.conditions, groups)


def _groups(parsed: ParsedQuery, translator: Translator, timed: Callable[[], Timed]) -> Groups | None:
    """What GROUP BY or DISTINCT makes of rows; None without either."""
    if parsed.tree.args.get("group"):
        return bind_groups(parsed, translator, timed())
    if parsed.distinct is not None:
        return bind_distinct(bind_select(parsed.tree, translator), parsed, translator, timed())
    return None


def _check_no_tree(tree: NamedTree | None) -> None:
    if tree is not None:
        raise InputError("two streams are joined in one way; leave it out", field="operator.tree")


def _timed(scope: Scope, parsed: ParsedQuery, joins: Sequence[Written]) -> Timed:
    """The streams of a query, by name, how near they are in time, and which have no say in how long rows count."""
    if len(scope.streams) == 1:
        return scope.names, FullHistory(), ()
    streams = [name for name, one in zip(scope.names, scope.streams, strict=True) if not one.is_relation]
    return streams, window_over(scope.names, scope.streams, parsed), names_aside(joins, scope)


def _indexed(plan: JoinPlan, main: str | None, index: str) -> JoinPlan:
    """The plan, led by what the user wants as the main condition."""
    if main is not None:
        plan = replace(plan, predicate=_led_by(main, plan))
    if index != "auto":
        # An index that cannot answer the query is the user's mistake, so it shows here and not in a worker.
        layout_of(plan, 0)
    return plan


def _registered(predicates: Mapping[str, RegisteredPredicate]) -> dict[str, RegisteredPredicate]:
    if hidden := sorted(name for name in predicates if name.lower() in FUNCTIONS):
        raise InputError(f'predicate "{hidden[0]}" has the name of a built-in function; register it under another')
    return dict(predicates)


def _asof(
    join: Written,
    parsed: ParsedQuery,
    translator: Translator,
    main: str | None,
    tree: NamedTree | None,
    archive_period_us: int | None,
    index: str,
) -> JoinPlan | Cascade:
    settings = {"main": main, "tree": tree, "archive_period": archive_period_us, "index": index}
    for name, given in settings.items():
        if given not in (None, "auto"):
            raise InputError("an ASOF JOIN is run in one way; leave it out", field=f"operator.{name}")
    scope = translator.scope
    window = parsed.window if isinstance(parsed.window, TimeWindow) else FullHistory()
    with room_to_recurse():
        groups = _groups(parsed, translator, lambda: (scope.names, window, names_aside((join,), scope)))
        select = bind_select(parsed.tree, translator) if groups is None else feeding_select(groups)
        plan = bind_asof(join, parsed, translator, select)
    return plan if groups is None else joined_groups(plan, conjuncts(plan.predicate.whole), groups)


def _check_archive_period(archive_period_us: int, parsed: ParsedQuery) -> None:
    if archive_period_us < 1:
        raise InputError("the archive period is at least 1 us", field="operator.archive_period")
    if isinstance(parsed.window, CountWindow | FullHistory):
        raise InputError(
            f"an archive period is a span of time, and this join is {parsed.window}; leave it out",
            field="operator.archive_period",
        )


def _binary(
    names: tuple[str, str],
    read: tuple[StreamSchema, StreamSchema],
    joins: Joins,
    select: tuple[tuple[str, Expression], ...],
    window: Window,
    parsed: ParsedQuery,
    common: Callable[..., JoinPlan],
    main: str | None,
) -> JoinPlan:
    (only,) = joins.clauses
    check_window(only.kind, window, parsed.words, only.written.node)
    r, s = names
    parts = parts_of(only.kind, only.on, joins.where, (frozenset([r]), frozenset([s])))
    condition = conjunction(parts.filter)
    return common(read, names, parts.predicate(names), window, select, main=main, kind=only.kind, filter=condition)


def _staged(
    names: tuple[str, ...],
    read: tuple[StreamSchema, ...],
    joins: Joins,
    select: tuple[tuple[str, Expression], ...],
    window: Window | Reaches,
    parsed: ParsedQuery,
    common: Callable[..., JoinPlan],
    main: str | None,
    tree: NamedTree | None,
) -> Cascade:
    if main is not None:
        raise InputError(
            "each stage of a join of three streams and more, or with a relation, has a main condition of its own; "
            "leave it out",
            field="operator.main",
        )
    if isinstance(window, CountWindow) or (isinstance(window, TimeWindow) and window.before_us != window.after_us):
        raise parsed.words.source.unsupported(
            f"a window of rows or of two sides is for two streams, and this query joins {len(read)}; write one span of "
            "time for all of them, such as WITHIN 10 SECONDS, or one for each, such as WITHIN 10 SECONDS FOR "
            f"{names[0]}, 1 MINUTE FOR {names[1]}, ...",
            parsed.within,
        )
    if joins.are_inner:
        conditions = joins.conditions
        whole = in_order(read, names, conditions, joins.groups) if tree is None else _numbered(tree, names)
        plan = cascade(read, names, conditions, select, window, common, parsed.text, whole)
    elif tree is None:
        sides = sides_of_relations(joins, read)
        for clause, of_relations in zip(joins.clauses, sides, strict=True):
            if not of_relations:  # to which no row ever comes
                check_window(clause.kind, window, parsed.words, clause.written.node)
        plan = cascade(read, names, joins.where, select, window, common, parsed.text, joins.tree)
    else:
        raise InputError(
            "outer, semi, anti and as-of joins are joined as they are written; leave it out, and group them by "
            "brackets in FROM",
            field="operator.tree",
        )
    for stage in plan.stages:
        try:
            for query in stage.plan.queries:
                if isinstance(query, JoinPlan):
                    layout_of(query, 0)
        except InputError as wrong:
            raise InputError(f"stage {stage.number + 1}: {wrong.message}", field=wrong.field) from None
    return plan


def _numbered(tree: NamedTree, names: Sequence[str]) -> Tree:
    """A tree by the numbers of its streams, each of which is in it once."""
    left = {name.lower(): number for number, name in enumerate(names)}

    def numbered(part: NamedTree) -> Tree:
        if not isinstance(part, str):
            return Join(numbered(part[0]), numbered(part[1]))
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
                "SELECT ONLINE ... FROM R, S WHERE ... WITHIN ... GROUP BY ... HAVING ...",
                where,
            )
    if not tree.expressions and tree.args.get("from_"):
        raise words.source.wrong("SELECT ONLINE needs at least one column", words.range(0))


def _streams(
    start: From, words: Words, streams: Mapping[str, StreamSchema], streams_min: int
) -> tuple[tuple[str, ...], tuple[StreamSchema, ...]]:
    """What the query calls its streams, and the streams."""
    source, tables = words.source, start.tables
    found = [_stream(table, words, streams) for table in tables]
    if len(found) < streams_min:
        raise source.unsupported(
            "a join needs two streams; write FROM R, S, or the same stream twice with two names; one stream alone can "
            "be grouped, with GROUP BY R.k, or GROUP BY R.k, TUMBLE(1 MINUTE)",
            place_of(tables[0], words),
        )
    if len(found) > STREAMS_MAX:
        raise source.unsupported(
            f"a query joins {STREAMS_MAX} streams at most, and this one reads {len(found)}",
            place_of(tables[STREAMS_MAX], words),
        )
    taken: dict[str, StreamSchema] = {}
    for table, (name, stream) in zip(tables, found, strict=True):
        if (first := taken.get(name.lower())) is not None:
            twice = "the same stream" if first is stream else "two streams"
            raise source.wrong(
                f'the query calls {twice} "{name}"; give each its own name, such as FROM {first.name} AS a, '
                f"{stream.name} AS b",
                place_of(table, words),
            )
        taken[name.lower()] = stream
    return tuple(name for name, _ in found), tuple(stream for _, stream in found)


def _stream(table: exp.Expr, words: Words, streams: Mapping[str, StreamSchema]) -> tuple[str, StreamSchema]:
    where = place_of(table, words)
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
    if stream is None:
        raise words.source.wrong(f'there is no stream "{name}"; {suggest(name, {own: own for own in streams})}', where)
    return alias.name if alias is not None else name, stream
