"""WITHIN, the last clause of a query: which window it asks for.

WITHIN 10 MINUTES                        at most 10 minutes apart
WITHIN (5 SECONDS, 10 SECONDS)           s at most 5 s before r and at most 10 s after it
WITHIN 5 SECONDS FOR r, 1 MINUTE FOR s   each with rows up to so much newer than its own
WITHIN 100 ROWS                          the last 100 tuples of the other stream
(nothing)                                full history
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import TokenType

from streamjoin.errors import QueryError
from streamjoin.plan.window import CountWindow, FullHistory, TimeWindow, Window
from streamjoin.query.durations import parse_span_us
from streamjoin.query.source import Range
from streamjoin.query.tokens import Words

ROWS_MAX = 10**12
_FOR_EXAMPLE = "write WITHIN 10 SECONDS FOR a, 1 MINUTE FOR b"
_EXAMPLE = "write WITHIN 10 MINUTES, WITHIN (5 SECONDS, 10 SECONDS) or WITHIN 100 ROWS"
_MAY_FOLLOW = ("GROUP", "GROUP BY", "HAVING", "ORDER", "ORDER BY", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "QUALIFY")


@dataclass(frozen=True, slots=True)
class ReachFor:
    """A span FOR a stream.

    Args:
        stream: its name as written, and `place` is where.
    """

    stream: str
    span_us: int
    place: Range


Asked = Window | tuple[ReachFor, ...]
"""What WITHIN asks for: a window, or a reach for each stream."""


def take_within(words: Words) -> tuple[Words, Asked, Range]:
    """The words without the WITHIN clause, what it asks for, and where it stands; without one, the first word.

    Raises:
        QueryError: the clause cannot be read, stands elsewhere than last, or stands twice.
    """
    place = _find(words)
    if place is None:
        return words, FullHistory(), words.range(0)
    reader = _Reader(words, place + 1)
    window = reader.window()
    past = reader.place
    if past < len(words.tokens) and not words.is_word(past, *_MAY_FOLLOW):
        raise words.source.wrong(
            f'WITHIN is the last clause, after WHERE or ON; "{words.source.snippet(words.range(past))}" '
            "cannot follow it",
            words.range(past),
        )
    rest = words.without(place, past)
    if (second := _find(rest)) is not None:
        raise words.source.wrong("a query has one WITHIN clause", rest.range(second))
    return rest, window, (words.range(place)[0], words.range(past - 1)[1])


def _find(words: Words) -> int | None:
    depth = 0
    for place in range(len(words.tokens)):
        kind = words.kind(place)
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if not words.is_word(place, "WITHIN"):
            continue
        # R.within and AS within are names.
        if words.kind(place - 1) in (TokenType.DOT, TokenType.ALIAS) or words.kind(place + 1) == TokenType.DOT:
            continue
        if depth > 0:
            raise words.source.wrong(
                'WITHIN is the last clause and cannot stand in brackets; a column of that name is written "within"',
                words.range(place),
            )
        return place
    return None


class _Reader:
    """Reads the clause from `place` on; afterwards `place` is the first word past it."""

    def __init__(self, words: Words, place: int) -> None:
        self.words = words
        self.place = place

    def window(self) -> Asked:
        start = self.place
        if self.words.kind(start) == TokenType.L_PAREN:
            self.place += 1
            before_us = self._span_us()
            self._expect(TokenType.COMMA)
            after_us = self._span_us()
            self._expect(TokenType.R_PAREN)
            return TimeWindow(before_us, after_us)
        if self.words.is_word(start + 1, "ROWS", "ROW") or self.words.is_word(start + 2, "ROWS", "ROW"):
            return self._rows()
        span_us = self._span_us()
        if self._is_for():
            return tuple(self._reaches(span_us))
        return TimeWindow(span_us, span_us)

    def _is_for(self) -> bool:
        return self.words.is_word(self.place, "FOR")

    def _reaches(self, span_us: int) -> Iterator[ReachFor]:
        """From the first FOR on."""
        while True:
            if not self._is_for():
                raise self._wrong(
                    f"every span of this WITHIN is for a stream; {_FOR_EXAMPLE}", self.words.range(self.place - 1)
                )
            if self.words.kind(self.place + 1) in (None, TokenType.COMMA, TokenType.NUMBER, TokenType.STRING):
                raise self._wrong(f"FOR takes the name of a stream; {_FOR_EXAMPLE}", self.words.range(self.place))
            yield ReachFor(self.words.tokens[self.place + 1].text, span_us, self.words.range(self.place + 1))
            self.place += 2
            if self.words.kind(self.place) != TokenType.COMMA:
                return
            self.place += 1
            span_us = self._span_us()

    def _rows(self) -> CountWindow:
        number, where = self._number()
        self.place += 1
        plain = number.replace("_", "")
        if not plain.isdecimal() or not 1 <= int(plain[:20]) <= ROWS_MAX:
            raise self._wrong(f"WITHIN ... ROWS takes a whole number from 1 to {ROWS_MAX}, not {number[:40]}", where)
        return CountWindow(int(plain))

    def _span_us(self) -> int:
        number, where = self._number()
        if self.words.is_word(self.place, "ROWS", "ROW"):
            raise self._wrong("a window of two sides is a window of time; write WITHIN 100 ROWS", where)
        if self.words.kind(self.place) in (None, TokenType.COMMA, TokenType.R_PAREN, TokenType.STRING):
            raise self._wrong(f"WITHIN {number} needs a unit; {_EXAMPLE}", where)
        unit = self.words.text(self.words.tokens[self.place])
        where = where[0], self.words.range(self.place)[1]
        self.place += 1
        try:
            return parse_span_us(number, unit, hint="; drop WITHIN to keep everything")
        except QueryError as bad:
            raise self._wrong(f"WITHIN: {bad.message}", where) from None

    def _number(self) -> tuple[str, Range]:
        """The number at `place` and where it stands."""
        where = self.words.range(self.place)
        if self.words.kind(self.place) == TokenType.DASH:
            raise self._wrong("WITHIN takes no negative number; a window reaches back and ahead by itself", where)
        if self.words.kind(self.place) != TokenType.NUMBER:
            raise self._wrong(f"WITHIN takes a number and a unit; {_EXAMPLE}", where)
        number = self.words.text(self.words.tokens[self.place])
        self.place += 1
        return number, where

    def _expect(self, kind: TokenType) -> None:
        if self.words.kind(self.place) != kind:
            raise self._wrong(f"this WITHIN cannot be read; {_EXAMPLE}", self.words.range(self.place))
        self.place += 1

    def _wrong(self, message: str, where: Range) -> QueryError:
        return self.words.source.wrong(message, where)
