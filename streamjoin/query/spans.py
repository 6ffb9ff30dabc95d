"""Spans of event time behind a keyword: TUMBLE(1 MINUTE), EMIT EVERY 5 SECONDS."""

from __future__ import annotations

from sqlglot import TokenType

from streamjoin.errors import QueryError
from streamjoin.query.durations import parse_span_us
from streamjoin.query.tokens import Words


def span_at(words: Words, at: int, name: str, takes: str, example: str) -> int:
    """The span whose number is the word `at` and whose unit is the next one, in us; it is longer than nothing.

    Args:
        name: what takes the span, and `takes` what that is, for messages.
        example: how it is written.
    Raises:
        QueryError: it cannot be read.
    """
    if words.kind(at) == TokenType.DASH:
        raise words.source.wrong(f"{name} takes no negative span", words.range(at))
    if words.kind(at) != TokenType.NUMBER:
        raise words.source.wrong(f"{name} takes {takes}, such as {example}", words.range(at))
    number = words.text(words.tokens[at])
    if words.kind(at + 1) in (None, TokenType.COMMA, TokenType.R_PAREN, TokenType.STRING):
        raise words.source.wrong(f"{name}: {number} needs a unit, such as {example}", words.range(at))
    where = words.range(at, at + 1)
    try:
        span_us = parse_span_us(number, words.text(words.tokens[at + 1]))
    except QueryError as bad:
        raise words.source.wrong(f"{name}: {bad.message}", where) from None
    if span_us < 1:
        raise words.source.wrong(f"{name}: a span of time is longer than nothing; write {example}", where)
    return span_us
