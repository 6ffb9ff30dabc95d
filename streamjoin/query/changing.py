"""CUMULATIVE and EMIT EVERY, behind GROUP BY: groups that are given again as they change.

GROUP BY R.k                                   as of each second, over the rows inside WITHIN
GROUP BY R.k CUMULATIVE EMIT EVERY 5 SECONDS   as of every fifth second, over all rows so far
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlglot import TokenType

from streamjoin.plan.aggregate import Key
from streamjoin.plan.changing import EMIT_TIME, EMIT_US_DEFAULT, OPERATION, Changing, Runs, Timed, end_us
from streamjoin.plan.expression import Expression
from streamjoin.plan.window import CountWindow, FullHistory, Reaches, TimeWindow, Window, reach_us
from streamjoin.query.source import Range
from streamjoin.query.spans import span_at
from streamjoin.query.tokens import Words

_EXAMPLE = "EMIT EVERY 5 SECONDS"
_NOT_BEFORE = frozenset(("AND", "OR", "NOT", "HAVING", "BETWEEN", "IN", "LIKE", "ILIKE", "IS", "THEN", "ELSE", "WHEN"))


@dataclass(frozen=True, slots=True)
class WrittenChanges:
    """What a query says of groups that change.

    Args:
        every_us: the span of EMIT EVERY, `emit` is where it stands; None if it is not written.
        cumulative: where CUMULATIVE stands; None if it does not.
    """

    every_us: int | None = None
    emit: Range | None = None
    cumulative: Range | None = None

    @property
    def where(self) -> Range | None:
        """Where the first of both stands."""
        return min((at for at in (self.emit, self.cumulative) if at is not None), default=None)


def take_changes(words: Words) -> tuple[Words, WrittenChanges]:
    """The words without CUMULATIVE and EMIT EVERY, and what these say.

    Raises:
        QueryError: one cannot be read, stands twice, or without GROUP BY.
    """
    grouped = next((at for at in range(len(words.tokens)) if words.kind(at) == TokenType.GROUP_BY), None)
    found, place = WrittenChanges(), 1
    while place < len(words.tokens):
        if (past := _end(words, place)) is None:
            place += 1
            continue
        is_emit = words.is_word(place, "EMIT")
        named = "EMIT EVERY" if is_emit else "CUMULATIVE"
        where = words.range(place, past - 1)
        if grouped is None or place < grouped:
            raise words.source.wrong(
                f"{named} stands behind GROUP BY, such as GROUP BY R.k {_EXAMPLE if is_emit else named}", where
            )
        if (found.emit if is_emit else found.cumulative) is not None:
            raise words.source.wrong(f"{named} is written twice", where)
        if is_emit:
            every_us = span_at(words, place + 2, named, "a span of event time", _EXAMPLE)
            found = replace(found, every_us=every_us, emit=where)
        else:
            found = replace(found, cumulative=where)
        words = words.without(place, past)
    return words, found


def check_changes(names: Sequence[str], identity: Sequence[tuple[Key, str | None]], words: Words, where: Range) -> None:
    """Refuse a SELECT list by which groups could not be told apart, or that has a name that is taken.

    Args:
        names: of the output columns.
        identity: what is grouped by, and the output column that shows it; None where none does.
    """
    if not identity:
        raise words.source.wrong(
            "groups that are given again as they change are told apart by what they are made by; write GROUP BY R.k, "
            "or TUMBLE(1 MINUTE) for one row a window",
            where,
        )
    for key, name in identity:
        if name is None:
            raise words.source.wrong(
                f"groups are given again as they change, so each row shows which one it is; add {key.value} to the "
                "SELECT list",
                where,
            )
    for name in names:
        if name.lower() in (OPERATION, EMIT_TIME):
            raise words.source.wrong(
                f'rows of groups that change have a column "{name}" of their own; give this one another name with AS',
                where,
            )


def changing(
    written: WrittenChanges, streams: Sequence[str], window: Window | Reaches, aside: Collection[str],
    words: Words, within: Range,
) -> Changing:  # fmt: skip
    """Groups that change, of rows of these streams.

    Args:
        streams: those of the query, by name; those of `aside` have no say in how long a row counts.
    """
    every_us = written.every_us or EMIT_US_DEFAULT
    if written.cumulative is not None or isinstance(window, FullHistory):
        return Changing(every_us)
    if isinstance(window, CountWindow):
        raise words.source.unsupported(
            "rows leave groups that change when they are older than WITHIN, for which it is a span of time; write one, "
            "such as WITHIN 10 SECONDS, or GROUP BY ... CUMULATIVE",
            within,
        )
    return Changing(every_us, _end_us(streams, window, aside))


def runs(streams: Sequence[str], window: Window | Reaches, aside: Collection[str], words: Words, within: Range) -> Runs:
    """What SELECT DISTINCT gives of rows of these streams; see `changing`."""
    if isinstance(window, FullHistory):
        return Runs()
    if isinstance(window, CountWindow):
        raise words.source.unsupported(
            "DISTINCT gives a row again when none like it is inside WITHIN any more, for which it is a span of time; "
            "write one, such as WITHIN 10 SECONDS",
            within,
        )
    return Runs(_end_us(streams, window, aside))


def _end_us(streams: Sequence[str], window: TimeWindow | Reaches, aside: Collection[str]) -> Expression:
    spans = dict(zip(window.names, window.spans_us, strict=True)) if isinstance(window, Reaches) else {}
    return end_us([
        Timed(name, spans[name] if isinstance(window, Reaches) else reach_us(window, number))
        for number, name in enumerate(streams)
        if name not in aside
    ])  # fmt: skip


def _end(words: Words, place: int) -> int | None:
    """The first word past CUMULATIVE or EMIT EVERY at `place`; None where neither stands."""
    before = words.tokens[place - 1]
    written = words.text(before).upper()
    is_behind = (written == ")" or written[-1:].isalnum() or written[-1:] in "_'\"`") and written not in _NOT_BEFORE
    if not is_behind or words.kind(place - 1) in (TokenType.GROUP_BY, TokenType.DOT, TokenType.ALIAS):
        return None
    if words.is_word(place, "CUMULATIVE"):
        grouped = any(words.kind(at) == TokenType.GROUP_BY for at in range(place))
        ends = words.kind(place + 1) is None or words.is_word(place + 1, "EMIT", "HAVING")
        return place + 1 if grouped or ends else None  # else it is a name that somebody gave to a stream
    if words.is_word(place, "EMIT") and words.is_word(place + 1, "EVERY"):
        return min(place + 4, len(words.tokens))
    return None
