"""Query text as a list of words, made ready for the parser.

The dialect is sqlglot's "duckdb": strings are standard SQL ('it''s', and a backslash is a backslash, as patterns need),
"a b" is a name, INTERVAL and :: are known. Spark's reads "a b" as a string and drops backslashes.

Three things are settled here, on words and not on text, so that every place stays right:
    1. `a b` becomes a name too, which the dialect does not know.
    2. The name of a called function gets a mark no text can contain. sqlglot would read hundreds of names as nodes
       of their own, some with other arguments than written; a marked name is a plain call to it.
    3. The type int8 is the join file's.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import TokenError

from streamjoin.errors import QueryError
from streamjoin.plan.functions.table import PUBLIC_FUNCTIONS
from streamjoin.query.source import Range, Source

DIALECT = Dialect.get_or_raise("duckdb")
CALL_MARK = "\0"

SYNONYMS = {"substr": "substring", "ceiling": "ceil", "pow": "power", "char_length": "length", "mod": "modulo"}
"""Names a query may write for functions of `streamjoin.plan.functions.table`."""

CALLABLE = frozenset((*PUBLIC_FUNCTIONS, *SYNONYMS, *SYNONYMS.values()))
"""Every built-in name that can stand before a bracket."""

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_NEVER_CALLS = ("CAST", "TRY_CAST", "EXTRACT")
_UNCLOSED = re.compile(r"Missing (\S+) from ")
_QUOTED = re.compile(
    r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|/\*.*?(?:\*/|\Z)|\$\$.*?(?:\$\$|\Z)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a query, in order, and the text they come from.

    Args:
        _found: the places of the items of the SELECT list, once they were asked for.
    """

    source: Source
    tokens: tuple[Token, ...]
    _found: list[Range] = field(default_factory=list, init=False, repr=False, compare=False)

    def text(self, token: Token) -> str:
        """A word as written."""
        return self.source.text[token.start : token.end + 1]

    def is_word(self, place: int, *words: str) -> bool:
        """Whether the token at `place` is one of the unquoted words, in any case."""
        if self.kind(place) in (None, TokenType.IDENTIFIER, TokenType.STRING):
            return False
        return self.text(self.tokens[place]).upper() in words

    def kind(self, place: int) -> TokenType | None:
        """The type of the token at `place`; None outside the query."""
        return self.tokens[place].token_type if 0 <= place < len(self.tokens) else None

    def range(self, first: int, last: int | None = None) -> Range:
        """From the start of one token to the end of another; past the end it is the last token."""
        final = len(self.tokens) - 1
        one = self.tokens[min(first, final)]
        other = one if last is None else self.tokens[min(last, final)]
        return one.start, max(one.end, other.end)

    def without(self, first: int, past: int) -> Words:
        """The words except those from `first` up to, not including, `past`."""
        return Words(self.source, self.tokens[:first] + self.tokens[past:])

    def range_of(self, node: exp.Expr) -> Range:
        """Where a syntax node stands; brackets that open inside it are closed inside it, and the other way round.

        A node without any name or constant in it, such as NULL, has the place of what it is part of.
        """
        above: exp.Expr | None = node
        while above is not None:
            if above is not node and isinstance(above, exp.Alias) and isinstance(above.parent, exp.Select):
                return self._item(above.index or 0)
            places = [part.meta for part in above.walk() if "start" in part.meta]
            if places:
                return self._closed(min(place["start"] for place in places), max(place["end"] for place in places))
            if isinstance(above.parent, exp.Select) and above.arg_key == "expressions":
                return self._item(above.index or 0)
            above = above.parent
        return self.range(0, len(self.tokens) - 1)

    def _item(self, number: int) -> Range:
        """The place of an item of the SELECT list; commas outside brackets separate them."""
        if not self._found:
            depth, first = 0, 1
            for place in range(1, len(self.tokens)):
                kind = self.kind(place)
                depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
                past = kind == TokenType.FROM and self.kind(place - 1) != TokenType.DISTINCT
                if depth == 0 and (past or kind == TokenType.COMMA):
                    self._found.append(self.range(first, place - 1))
                    first = place + 1
            self._found.append(self.range(first, len(self.tokens) - 1))
        return self._found[min(number, len(self._found) - 1)]

    def _closed(self, start: int, end: int) -> Range:
        depth = lowest = 0
        first = bisect_left(self.tokens, start, key=lambda token: token.start)
        for place in range(first, len(self.tokens)):
            token = self.tokens[place]
            if token.start > end and depth <= 0:
                break
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            lowest = min(lowest, depth)
            end = max(end, token.end)
        while lowest < 0 and first > 0:  # what is closed inside and not opened there is opened before it
            first -= 1
            kind = self.tokens[first].token_type
            lowest += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
            start = self.tokens[first].start
        return start, end


def read_words(text: str) -> Words:
    """The words of `text`; comments are skipped.

    Raises:
        QueryError: a quote or comment that is never closed, or no word at all.
    """
    source = Source(text)
    try:
        tokens = DIALECT.tokenize(text)
    except (TokenError, IndexError) as failure:
        raise _unclosed(source, failure) from None
    tokens = list(_join_backticks(source, tokens))
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        everything = 0, max(len(text) - 1, 0)
        raise source.wrong(
            "the query is empty; write SELECT ONLINE ... FROM R, S WHERE ... WITHIN 10 MINUTES", everything
        )
    return Words(source, tuple(tokens))


def _unclosed(source: Source, failure: Exception) -> QueryError:
    found = _UNCLOSED.search(str(failure.__cause__ or failure.__context__ or failure))
    # What is never closed runs to the end, so it is the last one.
    start = max((quoted.start() for quoted in _QUOTED.finditer(source.text)), default=0)
    mark = found[1] if found else source.text[start : start + 2]
    return source.wrong(f"{mark} is opened here and never closed", (start, start + len(mark) - 1))


def _join_backticks(source: Source, tokens: Sequence[Token]) -> Iterator[Token]:
    rest = iter(tokens)
    for token in rest:
        if token.token_type != TokenType.UNKNOWN or source.text[token.start] != "`":
            yield token
            continue
        last = next((other for other in rest if source.text[other.start : other.end + 1] == "`"), None)
        if last is None:
            raise source.wrong("` is opened here and never closed", (token.start, token.end))
        name = source.text[token.start + 1 : last.start]
        # The words between backticks were cut at quotes before this function saw them.
        if not name or any(mark in name for mark in "'\"\n"):
            raise source.wrong(
                'a name in backticks has characters and no quotes or line breaks; write "..." instead',
                (token.start, last.end),
            )
        yield Token(TokenType.IDENTIFIER, name, last.line, last.col, token.start, last.end)


def for_parser(words: Words) -> list[Token]:
    """The tokens for the parser: called functions are marked, and int8 has 8 bits as in a join file, not 8 bytes."""
    tokens = list(words.tokens)
    for place, token in enumerate(tokens):
        if token.token_type == TokenType.BIGINT and token.text.upper() == "INT8":
            tokens[place] = _changed(token, TokenType.TINYINT, token.text)
        elif _is_call(words, place):
            tokens[place] = _changed(token, TokenType.VAR, CALL_MARK + token.text)
    return tokens


def _is_call(words: Words, place: int) -> bool:
    token = words.tokens[place]
    if token.token_type not in _NAMES and token.text.lower() not in CALLABLE:
        return False
    if words.kind(place + 1) != TokenType.L_PAREN or words.is_word(place, *_NEVER_CALLS):
        return False
    # CAST(x AS name(3)) names a type.
    return words.kind(place - 1) not in (TokenType.ALIAS, TokenType.DCOLON)


def _changed(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
