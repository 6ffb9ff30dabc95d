"""ASOF JOIN: what its ON, WHERE and WITHIN ask for.

    FROM trades AS t ASOF [LEFT] JOIN quotes AS q ON t.sym = q.sym AND t.ts >= q.ts [WHERE ...] [WITHIN 1 HOUR]

ON has equalities and one comparison of the two event times. WHERE says which of the rows that come out are given, so
what it asks of the right stream does not change which row is the latest. Beside other joins, ON compares the event time
of any stream before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from streamjoin.errors import InputError
from streamjoin.flow.block import TS
from streamjoin.plan.asof import AsOf
from streamjoin.plan.expression import Call, Column, Expression, conjunction, conjuncts, renamed, streams_of, walk
from streamjoin.plan.functions.comparisons import MIRRORED
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.predicate import analyse
from streamjoin.plan.schema import ARRIVAL
from streamjoin.plan.types import INT64, NANOSECONDS, embeds, is_instant
from streamjoin.plan.window import FullHistory, R, S, TimeWindow
from streamjoin.query.parse import ParsedQuery
from streamjoin.query.source import Range
from streamjoin.query.tokens import Words
from streamjoin.query.translator import Translator
from streamjoin.query.written import Written

_ORDERED = ("lt", "le", "gt", "ge")
_LEFT = "\0"
"""All streams before an ASOF JOIN, as one; no query can call a stream so."""


def is_asof(join: exp.Join) -> bool:
    """Whether a join of FROM is an ASOF JOIN."""
    return bool(join.args.get("method") == "ASOF")


def asof_alone(joins: Sequence[Written], words: Words) -> Written | None:
    """The ASOF JOIN of a query that joins nothing else; None of another query.

    Raises:
        QueryError: an ASOF JOIN of any query has USING.
        UnsupportedQueryError: it keeps rows of the right stream, or brings more than one.
    """
    as_of = [join for join in joins if is_asof(join.node)]
    for join in as_of:
        _check_form(join, words)
    return as_of[0] if as_of and len(joins) == 1 else None


def _check_form(written: Written, words: Words) -> None:
    join = written.node
    if join.args.get("side") not in (None, "", "LEFT") or join.args.get("kind") not in (None, "", "OUTER"):
        raise words.source.unsupported("as-of joins are ASOF JOIN and ASOF LEFT JOIN", words.range_of(join))
    if using := join.args.get("using"):
        raise words.source.wrong("ASOF JOIN takes ON, with the comparison of times in it", words.range_of(using[0]))
    if len(written.right) > 1:
        raise words.source.unsupported(
            "ASOF JOIN brings the latest row of one stream, and these brackets hold a join; write that stream without "
            "brackets, and the other joins behind it",
            words.range_of(join.this),
        )


def bind_asof(
    join: Written, parsed: ParsedQuery, translator: Translator, select: tuple[tuple[str, Expression], ...]
) -> JoinPlan:
    """The plan of a query with an ASOF JOIN of two streams.

    Args:
        select: what it gives.
    Raises:
        QueryError: ON lacks an equality or the comparison of times, or has more; or WITHIN is not one span.
    """
    names, streams = translator.scope.names, translator.scope.streams
    both = (names[R], names[S])
    check_kinds(join, translator)
    equalities, asof = asof_on(join, (), translator)
    left: list[Expression] = []
    given: list[Expression] = []
    if (where := parsed.tree.args.get("where")) is not None:
        for part in conjuncts(translator.condition(where.this)):
            (left if streams_of(part) <= {names[R]} else given).append(part)
    return JoinPlan(
        (streams[R], streams[S]), both, analyse(conjunction([*equalities, *left]), both), _window(parsed),
        select, filter=conjunction(given),
        predicates=translator.used, text=parsed.text, asof=AsOf(asof.keeps, asof.older, asof.values),
    )  # fmt: skip


def asof_on(written: Written, as_of: Sequence[str], translator: Translator) -> tuple[tuple[Expression, ...], AsOf]:
    """The equalities of ON, and what the join is.

    Args:
        as_of: the streams before it that an ASOF JOIN has brought.
    Raises:
        QueryError: ON lacks an equality or the comparison of times, or has more.
    """
    scope, words = translator.scope, translator.words
    join, joined = written.node, written.joined
    place = words.range_of(join)
    right = scope.names[joined]
    times = _times(written, translator, place)
    first = next((name for name in times if name not in (right, *as_of)), scope.names[written.within.start])
    example = f"ON {first}.key = {right}.key AND {times[first]} >= {times[right]}"
    equalities: list[Expression] = []
    keys: list[Expression] = []
    compared: tuple[str, bool] | None = None
    for node in _conjuncts(join):
        part, where = translator.condition(node), translator.place(node)
        if (found := _comparison(part, times, right)) is not None:
            if compared is not None:
                raise words.source.wrong("ON of an ASOF JOIN has one comparison of the event times", where)
            compared = _checked(found, times, right, as_of, words, where)
        elif (key := _key_of(part, right)) is not None:
            equalities.append(part)
            keys.append(key)
        else:
            raise words.source.wrong(
                f"ON of an ASOF JOIN has equalities between the two streams and one comparison of their event times, "
                f"such as {example}; write other conditions in WHERE",
                where,
            )
    if not equalities:
        raise words.source.wrong(f"ASOF JOIN needs an equality between the two streams; write {example}", place)
    if compared is None:
        raise words.source.wrong(f"ASOF JOIN needs a comparison of the event times; write {example}", place)
    left, older = compared
    _check_units(left, right, times, translator)
    _check_key(keys, first, joined, translator, place)
    keeps, values = join.args.get("side") == "LEFT", scope.streams[joined].values
    return tuple(equalities), AsOf(keeps, older, values, Column(left, TS, INT64))


def _times(written: Written, translator: Translator, place: Range) -> Mapping[str, Column]:
    """By name, the columns of event time of the stream that is joined and of those before it.

    Raises:
        QueryError: it has none, or none before it has one.
    """
    names, streams = translator.scope.names, translator.scope.streams
    joined = written.joined
    timed = [number for number in (*written.before, joined) if streams[number].time != ARRIVAL]
    missing = joined if joined not in timed else written.within.start if timed == [joined] else None
    if missing is not None and streams[missing].is_relation:
        raise translator.words.source.unsupported(
            "ASOF JOIN gives rows of what stands before it, which are relations only, whose rows have no time; write a "
            "stream first",
            place,
        )
    if missing is not None:
        raise translator.words.source.wrong(
            f"{names[missing]} has no column of event time, which ASOF JOIN compares; give it one in place of time: "
            "arrival",
            place,
        )
    kinds = {number: streams[number].columns.field(streams[number].time).type for number in timed}
    return {names[number]: Column(names[number], streams[number].time, kinds[number]) for number in timed}


def check_kinds(written: Written, translator: Translator) -> None:
    """Refuse an ASOF JOIN that compares event times of which one is a number and the other none.

    Raises:
        QueryError: it does, or a stream has no event time.
    """
    times = _times(written, translator, translator.words.range_of(written.node)).values()
    for node in _conjuncts(written.node):
        if not isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE):
            continue
        if not (isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column)):
            continue
        both = [translator.expression(side) for side in (node.left, node.right)]
        kinds = [_is_number(one) for one in both if isinstance(one, Column) and one in times]
        if sorted(kinds) != [False, True]:
            continue
        number, other = both if kinds[0] else reversed(both)
        example = node.copy()
        cast = exp.cast((node.left if kinds[0] else node.right).copy(), "timestamp")
        example.set("this" if kinds[0] else "expression", cast)
        raise translator.words.source.wrong(
            f"{number} is a number and {other} is {other.type}; both are event times, so write {example.sql()}",
            translator.place(node),
        )


def _conjuncts(join: exp.Join) -> Iterable[exp.Expr]:
    """The conditions of ON."""
    on = join.args.get("on")
    return on.flatten() if isinstance(on, exp.And) else [on] if on is not None else []


def _comparison(part: Expression, times: Mapping[str, Column], right: str) -> tuple[str, str] | None:
    """Which event time a condition compares with the right stream's, and how; None where it does not."""
    if not (isinstance(part, Call) and part.function in _ORDERED):
        return None
    one, other = map(_as_time, part.args)
    for name, time in times.items():
        if name == right:
            continue
        if (one, other) == (time, times[right]):
            return name, part.function
        if (other, one) == (time, times[right]):
            return name, MIRRORED[part.function]
    return None


def _checked(
    compared: tuple[str, str], times: Mapping[str, Column], right: str, as_of: Sequence[str], words: Words, where: Range
) -> tuple[str, bool]:
    """The stream whose time is compared, and whether the right row must be older."""
    left, way = compared
    if left in as_of:
        others = [name for name in times if name not in (right, *as_of)]
        raise words.source.wrong(
            f"{left} comes by an ASOF JOIN itself, as of the time of a row before it; compare that one, such as "
            f"{times[others[0]]} >= {times[right]}",
            where,
        )
    if way in ("lt", "le"):
        raise words.source.wrong(
            f"ASOF JOIN gives the latest row that is not newer; write {times[left]} >= {times[right]}, or > for one "
            "that is older",
            where,
        )
    return left, way == "gt"


def _key_of(part: Expression, right: str) -> Expression | None:
    """What an equality between the streams before and the right one compares of that; None of another condition."""
    columns = [node for node in walk(part) if isinstance(node, Column) and node.stream != right]
    as_one = {(one.stream, one.name): Column(_LEFT, f"{one.stream}.{one.name}", one.type) for one in columns}
    equalities = analyse(renamed(part, as_one), (_LEFT, right)).equalities
    return equalities[0].keys[S] if len(equalities) == 1 else None


def _check_units(left: str, right: str, times: Mapping[str, Column], translator: Translator) -> None:
    one, other = (translator.scope.streams[translator.scope.names.index(name)] for name in (left, right))
    numbers = [stream for stream, name in ((one, left), (other, right)) if _is_number(times[name])]
    if len({stream.time_unit for stream in numbers}) > 1:
        raise InputError(
            "ASOF JOIN compares event times, and these numbers have different units; give the two streams one unit",
            field=f"streams.{other.name}.time_unit",
        )


def _check_key(keys: Sequence[Expression], left: str, joined: int, translator: Translator, where: Range) -> None:
    """Refuse an ON that compares something else than the key which rows of the right stream may end."""
    right, key = translator.scope.names[joined], translator.scope.streams[joined].key
    compared = {one.name if isinstance(one, Column) else None for one in map(_plain, keys)}
    if key and compared != set(key):
        example = " AND ".join(f"{left}.{name} = {right}.{name}" for name in key)
        raise translator.words.source.wrong(
            f"rows of {right} may end their key, so ON compares that key, {', '.join(key)}, and nothing else of "
            f"{right}, such as {example}; or leave deletes out of the stream",
            where,
        )


def _is_number(column: Column) -> bool:
    return str(column.type).startswith(("int", "uint"))


def _plain(value: Expression) -> Expression:
    """A column, in whatever type it is compared."""
    while isinstance(value, Call) and value.function == "cast":
        value = value.args[0]
    return value


def _as_time(value: Expression) -> Expression:
    """A column of event time without casts to types in which times are compared, which keep their order.

    Others, as a DATE, make one of two times: what is compared then is not when the row was.
    """
    while isinstance(value, Call) and value.function == "cast" and _keeps_time(value.args[0].type, value.type):
        value = value.args[0]
    return value


def _keeps_time(given: pa.DataType, kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return is_instant(given) or pa.types.is_integer(given)
    if is_instant(given):
        return kind == NANOSECONDS or (kind == INT64 and pa.types.is_timestamp(given))
    return embeds(given, kind)


def _window(parsed: ParsedQuery) -> TimeWindow | FullHistory:
    match parsed.window:
        case FullHistory() as everything:
            return everything
        case TimeWindow(before_us, after_us) if before_us == after_us:
            return TimeWindow(before_us, 0)
    raise parsed.words.source.wrong(
        "WITHIN of an ASOF JOIN is one span, how old the right row may be, such as WITHIN 1 HOUR", parsed.within
    )
