"""ASOF JOIN: what its ON, WHERE and WITHIN ask for.

    FROM trades AS t ASOF [LEFT] JOIN quotes AS q ON t.sym = q.sym AND t.ts >= q.ts [WHERE ...] [WITHIN 1 HOUR]

ON has equalities and one comparison of the two event times. WHERE says which of the rows that come out are given, so
what it asks of the right stream does not change which row is the latest.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from streamjoin.errors import InputError
from streamjoin.plan.asof import AsOf
from streamjoin.plan.expression import Call, Column, Expression, conjunction, conjuncts, streams_of
from streamjoin.plan.functions.comparisons import MIRRORED
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.predicate import analyse
from streamjoin.plan.schema import ARRIVAL
from streamjoin.plan.window import FullHistory, R, S, TimeWindow
from streamjoin.query.parse import ParsedQuery
from streamjoin.query.source import Range
from streamjoin.query.translator import Translator

_ORDERED = ("lt", "le", "gt", "ge")


def asof_join(parsed: ParsedQuery) -> exp.Join | None:
    """The ASOF JOIN of a query; None where there is none.

    Raises:
        UnsupportedQueryError: it is not the only join, or keeps rows of the right stream.
    """
    words, joins = parsed.words, parsed.tree.args.get("joins") or []
    found: exp.Join | None = next((join for join in joins if join.args.get("method") == "ASOF"), None)
    if found is None:
        return None
    where = words.range_of(found)
    if len(joins) > 1:
        raise words.source.unsupported(
            "an ASOF JOIN is of two streams by themselves for now; join others with its results in a job of their own",
            where,
        )
    if found.args.get("side") not in (None, "", "LEFT") or found.args.get("kind") not in (None, "", "OUTER"):
        raise words.source.unsupported("as-of joins are ASOF JOIN and ASOF LEFT JOIN", where)
    if using := found.args.get("using"):
        raise words.source.wrong("ASOF JOIN takes ON, with the comparison of times in it", words.range_of(using[0]))
    return found


def bind_asof(
    join: exp.Join, parsed: ParsedQuery, translator: Translator, select: tuple[tuple[str, Expression], ...]
) -> JoinPlan:
    """The plan of a query with an ASOF JOIN.

    Args:
        select: what it gives.
    Raises:
        QueryError: ON lacks an equality or the comparison of times, or has more; or WITHIN is not one span.
    """
    names, streams = translator.scope.names, translator.scope.streams
    source, place = parsed.words.source, parsed.words.range_of(join)
    for name, stream in zip(names, streams, strict=True):
        if stream.time == ARRIVAL:
            raise source.wrong(
                f"{name} has no column of event time, which ASOF JOIN compares; give it one in place of time: arrival",
                place,
            )
    both = (names[R], names[S])
    equalities, older = _on(join, translator)
    _check_key(equalities, translator, place)
    left: list[Expression] = []
    given: list[Expression] = []
    if (where := parsed.tree.args.get("where")) is not None:
        for part in conjuncts(translator.condition(where.this)):
            (left if streams_of(part) <= {names[R]} else given).append(part)
    return JoinPlan(
        (streams[R], streams[S]), both, analyse(conjunction([*equalities, *left]), both), _window(parsed),
        select, filter=conjunction(given),
        predicates=translator.used, text=parsed.text,
        asof=AsOf(join.args.get("side") == "LEFT", older, streams[S].values),
    )  # fmt: skip


def _on(join: exp.Join, translator: Translator) -> tuple[list[Expression], bool]:
    """The equalities of ON, and whether the right row must be older."""
    names, streams = translator.scope.names, translator.scope.streams
    times = tuple(Column(name, stream.time, stream.columns.field(stream.time).type)
                  for name, stream in zip(names, streams, strict=True))  # fmt: skip
    example = f"ON {names[R]}.key = {names[S]}.key AND {times[R]} >= {times[S]}"
    words = translator.words
    on = join.args.get("on")
    equalities: list[Expression] = []
    older: bool | None = None
    for node in on.flatten() if isinstance(on, exp.And) else [on] if on is not None else []:
        part, where = translator.condition(node), translator.place(node)
        if (way := _compared(part, times)) is not None:
            if older is not None:
                raise words.source.wrong("ON of an ASOF JOIN has one comparison of the event times", where)
            if way in ("lt", "le"):
                raise words.source.wrong(
                    f"ASOF JOIN gives the latest row that is not newer; write {times[R]} >= {times[S]}, or > for one "
                    "that is older",
                    where,
                )
            older = way == "gt"
        elif len(analyse(part, (names[R], names[S])).equalities) == 1:
            equalities.append(part)
        else:
            raise words.source.wrong(
                f"ON of an ASOF JOIN has equalities between the two streams and one comparison of their event times, "
                f"such as {example}; write other conditions in WHERE",
                where,
            )
    place = words.range_of(join)
    if not equalities:
        raise words.source.wrong(f"ASOF JOIN needs an equality between the two streams; write {example}", place)
    if older is None:
        raise words.source.wrong(f"ASOF JOIN needs a comparison of the event times; write {example}", place)
    if len({stream.time_unit for stream, time in zip(streams, times, strict=True) if _is_number(time)}) > 1:
        raise InputError(
            "ASOF JOIN compares event times, and these numbers have different units; give the two streams one unit",
            field=f"streams.{streams[S].name}.time_unit",
        )
    return equalities, older


def _check_key(equalities: Sequence[Expression], translator: Translator, where: Range) -> None:
    """Refuse an ON that compares something else than the key which rows of the right stream may end."""
    names, key = translator.scope.names, translator.scope.streams[S].key
    if not key:
        return
    compared = [_plain(analyse(part, (names[R], names[S])).equalities[0].keys[S]) for part in equalities]
    if {one.name if isinstance(one, Column) else None for one in compared} != set(key):
        example = " AND ".join(f"{names[R]}.{name} = {names[S]}.{name}" for name in key)
        raise translator.words.source.wrong(
            f"rows of {names[S]} may end their key, so ON compares that key, {', '.join(key)}, and nothing else of "
            f"{names[S]}, such as {example}; or leave deletes out of the stream",
            where,
        )


def _is_number(column: Column) -> bool:
    return str(column.type).startswith(("int", "uint"))


def _compared(part: Expression, times: tuple[Column, ...]) -> str | None:
    """How a condition compares R's event time with S's; None where it does not."""
    if not (isinstance(part, Call) and part.function in _ORDERED):
        return None
    sides = tuple(map(_plain, part.args))
    if sides == times:
        return part.function
    return MIRRORED[part.function] if sides == times[::-1] else None


def _plain(value: Expression) -> Expression:
    """A column, in whatever type it is compared."""
    while isinstance(value, Call) and value.function == "cast":
        value = value.args[0]
    return value


def _window(parsed: ParsedQuery) -> TimeWindow | FullHistory:
    match parsed.window:
        case FullHistory() as everything:
            return everything
        case TimeWindow(before_us, after_us) if before_us == after_us:
            return TimeWindow(before_us, 0)
    raise parsed.words.source.wrong(
        "WITHIN of an ASOF JOIN is one span, how old the right row may be, such as WITHIN 1 HOUR", parsed.within
    )
