"""The head of a query: SELECT ONLINE."""

from __future__ import annotations

from sqlglot import TokenType

from streamjoin.query.source import SNIPPET_MAX, Range
from streamjoin.query.tokens import Words


def take_online(words: Words) -> tuple[Words, Range | None]:
    """The words without ONLINE and DISTINCT, and where DISTINCT stands; None without it.

    Raises:
        QueryError: the query does not begin with SELECT ONLINE, or is more than one query.
    """
    source = words.source
    first = words.text(words.tokens[0])
    if not words.is_word(0, "SELECT"):
        hint = "" if first.isascii() else "; it has letters that only look like Latin ones"
        raise source.wrong(f'a query begins with SELECT ONLINE, not with "{first[:SNIPPET_MAX]}"{hint}', words.range(0))
    for place in range(len(words.tokens)):
        if words.kind(place) == TokenType.SEMICOLON:
            raise source.wrong("one query at a time: nothing may follow the semicolon", words.range(place))
    online = 2 if words.is_word(1, "DISTINCT", "ALL") else 1
    if not words.is_word(online, "ONLINE"):
        end = words.tokens[online - 1].end + 1
        corrected = " ".join((source.text[:end] + " ONLINE" + source.text[end:]).split())
        shown = corrected if len(corrected) <= 200 else corrected[:197] + "..."
        raise source.wrong(f"a join over streams is SELECT ONLINE; write: {shown}", words.range(0, online - 1))
    distinct = next((place for place in (online - 1, online + 1) if words.is_word(place, "DISTINCT")), None)
    if distinct is None:
        return words.without(online, online + 1), None
    if words.is_word(distinct + 1, "ON"):
        raise source.unsupported(
            "DISTINCT ON is not supported; write GROUP BY with ARG_MIN or ARG_MAX", words.range(distinct, distinct + 1)
        )
    lower = min(online, distinct)
    return words.without(lower, lower + 2), words.range(distinct)
