"""Limits on query text, checked before a parser sees it: no text may hang, exhaust or crash the process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import Lock

from sqlglot import Token, TokenType

from streamjoin.query.source import Source

TEXT_BYTES_MAX = 64 * 1024
NESTING_MAX = 64
INTERVAL_CHARACTERS_MAX = 100
OPERAND_DEPTH_MAX = 128
"""Operators inside operators, such as the terms of one sum. Chains of AND, OR and || are balanced and do not count."""
REPEATED_MAX = 100_000
"""Parts of a query's conditions and values, each as often as it is computed: IN, BETWEEN and CASE x repeat theirs."""

_FRAMES = 20_000
_recursion_limit = Lock()

_OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSES = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_ENDS_A_RUN = _CLOSES | {
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.NULL,
    TokenType.TRUE,
    TokenType.FALSE,
}


def check_text(text: str) -> None:
    """Refuse text that is too long, or has characters no column or string can hold.

    Raises:
        QueryError: with the place of the first bad character.
    """
    source = Source(text)
    # Characters first: encoding a huge text only to measure it would cost what the limit saves.
    if len(text) > TEXT_BYTES_MAX:
        raise source.wrong(f"the query is longer than {TEXT_BYTES_MAX} bytes", (0, 0))
    if (place := text.find("\0")) >= 0:
        raise source.wrong("the query has a NUL character; remove it", (place, place))
    try:
        size = len(text.encode())
    except UnicodeEncodeError as bad:
        raise source.wrong("the query has half of a surrogate pair; save it as UTF-8", (bad.start, bad.start)) from None
    if size > TEXT_BYTES_MAX:
        raise source.wrong(f"the query is longer than {TEXT_BYTES_MAX} bytes", (0, 0))


def check_tokens(source: Source, tokens: Sequence[Token]) -> None:
    """Refuse what would take the parser too long, or too many frames.

    Raises:
        QueryError: with its place.
    """
    _check_nesting(source, tokens)
    _check_intervals(source, tokens)


def _check_nesting(source: Source, tokens: Sequence[Token]) -> None:
    """Refuse brackets and CASE inside each other, or operators in a row, deeper than `NESTING_MAX`."""
    depth = run = 0
    for token in tokens:
        if token.token_type in _OPENS:
            depth += 1
        elif token.token_type in _CLOSES:
            depth = max(depth - 1, 0)
        # NOT NOT NOT ... nests as deeply as brackets do, without a bracket.
        if token.token_type in _ENDS_A_RUN:
            run = 0
        elif token.token_type not in _OPENS:
            run += 1
        if max(depth, run) > NESTING_MAX:
            raise source.wrong(
                f"the query is nested more than {NESTING_MAX} levels deep; take it apart", (token.start, token.end)
            )


def _check_intervals(source: Source, tokens: Sequence[Token]) -> None:
    """Refuse a long text after INTERVAL: the parser tries each number of its blanks."""
    for word, text in pairwise(tokens):
        is_asked = word.token_type == TokenType.INTERVAL and text.token_type == TokenType.STRING
        if is_asked and len(text.text) > INTERVAL_CHARACTERS_MAX:
            raise source.wrong(
                "an interval is one number and one unit, such as INTERVAL '5' SECOND", (text.start, text.end)
            )


@contextmanager
def room_to_recurse() -> Iterator[None]:
    """Let a query of `NESTING_MAX` levels through however deep the caller's own stack is.

    The parser needs up to 30 frames a level, more than Python's default of 1000 allows in all. The limit belongs to
    the whole process, so one query at a time raises it.
    """
    with _recursion_limit:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, _FRAMES))
        try:
            yield
        finally:
            sys.setrecursionlimit(before)
