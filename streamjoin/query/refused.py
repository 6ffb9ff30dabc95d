"""What SQL has and this language has not, found on words: the message says what to write instead.

It stands before the parser because the words carry exact places, and because the parser reads more than the language
has: `a : b` as an alias, `@a` as ABS, an empty item in a list as nothing.
"""

from __future__ import annotations

import re

from sqlglot import TokenType

from streamjoin.query.tokens import Words

_ORDER = "a stream has no end to sort by, so ORDER BY, LIMIT and OFFSET are not supported; sort the result"
_SETS = "UNION, INTERSECT and EXCEPT are not supported yet; run one query for each part"
_SUBQUERY = "subqueries and WITH are not supported yet; register the inner query as a stream of its own"
_WHETHER = (
    "subqueries and WITH are not supported; for IN and EXISTS write FROM a LEFT SEMI JOIN b ON ..., for NOT EXISTS a "
    "LEFT ANTI JOIN"
)
_AS_OF = (
    "FOR ... AS OF is not needed: a row of a stream meets the newest version of a relation, so leave it out; where it "
    "is to meet what held at its own time, the changes are a stream: write ASOF JOIN"
)
_MOMENTS = {"SYSTEM_TIME", "TIMESTAMP", "VERSION"}
_BROADCAST = "there is nothing to broadcast: all units of a machine share one copy of a relation; write its name alone"
_POSITIONAL = "there is no POSITIONAL JOIN here: rows of streams have no common order; write FROM R JOIN S ON ..."
_NATURAL = "NATURAL is not supported yet; name the columns, such as USING (k)"
_WINDOW_FUNCTION = "window functions are not supported yet; the window of a join is its WITHIN clause"
_GROUPINGS = "a query groups its rows in one way; run one job for each, such as GROUP BY R.k, R.l and GROUP BY R.k"
_ALL = "GROUP BY ALL is not supported; name what rows of a group have in common, such as GROUP BY R.k"
_FILTER = (
    "FILTER is not supported; aggregates pass over NULL, so write SUM(CASE WHEN c THEN x END), and for COUNT(*) "
    "COUNT(CASE WHEN c THEN 1 END)"
)
_TABLES = "only registered streams can stand in FROM, not LATERAL, PIVOT or table functions"

KEYWORDS = {
    TokenType.ORDER_BY: _ORDER,
    TokenType.LIMIT: _ORDER,
    TokenType.UNION: _SETS,
    TokenType.INTERSECT: _SETS,
    TokenType.EXCEPT: _SETS,
    TokenType.SELECT: _SUBQUERY,
    TokenType.WITH: _SUBQUERY,
    TokenType.NATURAL: _NATURAL,
    TokenType.OVER: _WINDOW_FUNCTION,
    TokenType.QUALIFY: _WINDOW_FUNCTION,
    TokenType.LATERAL: _TABLES,
    TokenType.PIVOT: _TABLES,
    TokenType.UNPIVOT: _TABLES,
}
_RESERVED = frozenset((TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.JOIN, TokenType.ON, TokenType.WITH))
_AFTER_A_STREAM = (None, TokenType.COMMA, TokenType.WHERE, TokenType.JOIN, TokenType.ON, TokenType.ALIAS)
_MANY_GROUPINGS = (TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS)
SYMBOLS = frozenset(("(", ")", ",", ".", "=", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "::"))
_INSTEAD = {
    "==": "write =",
    "<=>": "write a IS NOT DISTINCT FROM b",
    "^": "write POWER(a, b)",
    "**": "write POWER(a, b)",
    "//": "write FLOOR(a / b)",
    "~": "write REGEXP_LIKE(text, pattern)",
    "!": "write NOT",
    "&&": "write AND",
    "@": "write ABS(a)",
    "->": "there are no lambdas and no nested values",
    "[": "there are no lists and subscripts",
    "{": "there are no nested values",
    "?": "there are no parameters",
    "$": "there are no parameters",
}
_NO_ITEM_BEFORE = (TokenType.COMMA, TokenType.SELECT, TokenType.L_PAREN, TokenType.FROM)
_NO_ITEM_AFTER = (None, TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.WHERE)
_WORD = re.compile(r"\w+(\s+\w+)*")
_OPERANDS = {TokenType.NUMBER, TokenType.STRING, TokenType.IDENTIFIER}


def check_words(words: Words) -> None:
    """Refuse words and symbols outside the language.

    Raises:
        UnsupportedQueryError: a clause that a later version may have.
        QueryError: anything else.
    """
    for place in range(1, len(words.tokens)):
        _check_reserved(words, place)
        if words.kind(place) == TokenType.COMMA:  # of which _check_list would say that an item is missing
            _check_reserved(words, place + 1)
        _check_symbol(words, place)
        _check_list(words, place)
        _check_touching(words, place)
        _check_type_length(words, place)
        if words.kind(place - 1) == TokenType.DOT:
            continue
        kind = words.kind(place)
        _check_groups(words, place)
        if (reason := _elsewhere(words, place)) is not None:
            raise words.source.unsupported(reason, words.range(place))
        if kind in KEYWORDS:
            raise words.source.unsupported(KEYWORDS[kind], words.range(place))
        if words.is_word(place, "POSITIONAL") and words.is_word(place + 1, "JOIN"):
            raise words.source.unsupported(_POSITIONAL, words.range(place, place + 1))
        if kind == TokenType.USING:
            _check_using(words, place)
        if words.is_word(place, "EXTRACT") and words.kind(place + 1) == TokenType.L_PAREN:
            _check_extract(words, place)


def _check_reserved(words: Words, place: int) -> None:
    """A stream whose name is a word of the language."""
    kind, before, after = (words.kind(place + step) for step in (0, -1, 1))
    if kind not in _RESERVED or before == TokenType.DOT:
        return
    stands_for_a_stream = before in (TokenType.FROM, TokenType.JOIN, TokenType.COMMA) and after in _AFTER_A_STREAM
    if after == TokenType.DOT or stands_for_a_stream:
        word = words.text(words.tokens[place])
        raise words.source.wrong(
            f'{word} is a reserved word; where it is the name of a stream, quote it: "{word}"', words.range(place)
        )


def _check_groups(words: Words, place: int) -> None:
    """What other systems have around GROUP BY and aggregates."""
    kind, before, after = (words.kind(place + step) for step in (0, -1, 1))
    named = place + 1 if kind == TokenType.WITH else place  # MySQL's GROUP BY k WITH ROLLUP
    if words.kind(named) in _MANY_GROUPINGS and (named > place or after == TokenType.L_PAREN):
        name = words.text(words.tokens[named]).upper()
        raise words.source.unsupported(f"{name}: {_GROUPINGS}", words.range(place, named))
    if kind == TokenType.GROUP_BY and after == TokenType.ALL:
        raise words.source.unsupported(_ALL, words.range(place, place + 1))
    if kind == TokenType.FILTER and (before, after) == (TokenType.R_PAREN, TokenType.L_PAREN):
        raise words.source.unsupported(_FILTER, words.range(place))


def _elsewhere(words: Words, place: int) -> str | None:
    """What other systems have for joins with relations, and what it is here."""
    kind, before = words.kind(place), words.kind(place - 1)
    if kind == TokenType.SELECT and before == TokenType.L_PAREN and place > 1:
        return _WHETHER if words.kind(place - 2) in (TokenType.IN, TokenType.EXISTS) else None
    written = words.text(words.tokens[place]).upper().split()  # some are one token, such as FOR TIMESTAMP
    following = words.text(words.tokens[place + 1]).upper() if words.kind(place + 1) is not None else ""
    if written[:1] == ["FOR"] and {*written[1:], following} & _MOMENTS:
        return _AS_OF
    opens = words.kind(place + 1) == TokenType.L_PAREN
    named = before in (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)
    return _BROADCAST if words.is_word(place, "BROADCAST") and opens and named else None


def _check_symbol(words: Words, place: int) -> None:
    token = words.tokens[place]
    written = words.text(token)
    if token.token_type in (TokenType.NUMBER, TokenType.IDENTIFIER):
        return
    if token.token_type == TokenType.STRING and written.startswith("'"):
        return
    if written not in SYMBOLS and not _WORD.fullmatch(written):
        instead = next((hint for symbol, hint in _INSTEAD.items() if written == symbol), None)
        instead = instead or next((hint for symbol, hint in _INSTEAD.items() if written.startswith(symbol)), None)
        raise words.source.wrong(
            f'"{words.source.snippet(words.range(place))}" is not part of the query language'
            + (f"; {instead}" if instead else ""),
            words.range(place),
        )


def _check_list(words: Words, place: int) -> None:
    """The parser reads `a,, b` and `a, FROM` as if the empty item were not there."""
    if words.kind(place) != TokenType.COMMA:
        return
    if words.kind(place - 1) in _NO_ITEM_BEFORE or words.kind(place + 1) in _NO_ITEM_AFTER:
        raise words.source.wrong("an item is missing beside this comma", words.range(place))


def _check_touching(words: Words, place: int) -> None:
    """The parser reads 0x1F as `0 AS x1F`, and a'b' as `a AS b`."""
    one, other = words.tokens[place - 1], words.tokens[place]
    if one.end + 1 != other.start or not {one.token_type, other.token_type} & _OPERANDS:
        return
    if words.text(one) not in SYMBOLS and words.text(other) not in SYMBOLS:
        raise words.source.wrong(
            f'"{words.source.snippet(words.range(place - 1, place))}" is not a number, name or string; put a blank '
            "between them, or quote it",
            words.range(place - 1, place),
        )


def _check_using(words: Words, using: int) -> None:
    """The parser reads USING (R.k), USING k and USING () as if they were in order."""
    place = using + 1
    if words.kind(place) == TokenType.L_PAREN:
        while words.kind(place) in (TokenType.L_PAREN, TokenType.COMMA) and _is_name(words, place + 1):
            place += 2
    if place == using + 1 or words.kind(place) != TokenType.R_PAREN:
        raise words.source.wrong(
            "USING takes the names of columns of both streams in brackets, such as USING (k)", words.range(using, place)
        )


def _check_extract(words: Words, place: int) -> None:
    """The parser reads EXTRACT(year, t) as well."""
    if words.kind(place + 3) != TokenType.FROM:
        raise words.source.wrong(
            "EXTRACT takes a unit, FROM and a time, such as EXTRACT(hour FROM t)", words.range(place)
        )


def _is_name(words: Words, place: int) -> bool:
    if words.kind(place) in (None, TokenType.NUMBER, TokenType.STRING):
        return False
    return words.kind(place) == TokenType.IDENTIFIER or _WORD.fullmatch(words.text(words.tokens[place])) is not None


def _check_type_length(words: Words, place: int) -> None:
    """The parser drops the length of VARCHAR(3)."""
    named = words.kind(place - 1) in (TokenType.ALIAS, TokenType.DCOLON)
    plain = words.kind(place) in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.DECIMAL)
    if named and not plain and words.kind(place + 1) == TokenType.L_PAREN:
        written = words.text(words.tokens[place])
        raise words.source.wrong(f"{written} takes no length here; lengths are not checked", words.range(place))
