"""Syntax: query text to a checked syntax tree."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from streamjoin.errors import QueryError
from streamjoin.query.changing import WrittenChanges, take_changes
from streamjoin.query.hopping import WrittenWindow, take_hopping
from streamjoin.query.limits import NESTING_MAX, check_text, check_tokens, room_to_recurse
from streamjoin.query.online import take_online
from streamjoin.query.parser import TooManySteps, parse_tokens
from streamjoin.query.refused import check_words
from streamjoin.query.source import Range
from streamjoin.query.tokens import Words, for_parser, read_words
from streamjoin.query.within import Asked, take_within


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A SELECT ONLINE whose syntax is right; no name and no type has been looked at.

    Args:
        text: the query as written.
        window: what WITHIN asks for.
        tree: the query without ONLINE and WITHIN.
        words: the words the tree was made from; they give its places.
        within: where WITHIN stands.
        windows: the windows that groups are made in.
        changes: what is said of groups that change.
        distinct: where DISTINCT stands.
    """

    text: str
    window: Asked
    tree: exp.Select
    words: Words
    within: Range
    windows: WrittenWindow | None = None
    changes: WrittenChanges = field(default_factory=WrittenChanges)
    distinct: Range | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The names in FROM, as written."""
        return tuple(table.name for table in self.tree.find_all(exp.Table))


def parse(text: str) -> ParsedQuery:
    """Read a query.

    Raises:
        QueryError: it is not a SELECT ONLINE, or too long, too deep or too slow to read; `span` says where.
        UnsupportedQueryError: it has a clause this version cannot run.
    Cost: linear in the text, as the parser's steps are bounded; 64 KiB may take two seconds.
    """
    check_text(text)
    words = read_words(text)
    check_tokens(words.source, words.tokens)
    words, distinct = take_online(words)
    words, changes = take_changes(words)
    words, window, within = take_within(words)
    check_words(words)
    words, windows = take_hopping(words)
    return ParsedQuery(text, window, syntax_tree(words), words, within, windows, changes, distinct)


def syntax_tree(words: Words) -> exp.Select:
    """The tree of words that are one plain SELECT."""
    try:
        with room_to_recurse():
            trees = parse_tokens(for_parser(words), words.source.text)
    except ParseError as failure:
        raise _syntax_error(words, failure) from None
    except TooManySteps:
        raise words.source.wrong(
            "the query takes too long to be read; nest fewer calls inside each other", _whole(words)
        ) from None
    except RecursionError:
        raise words.source.wrong(f"the query is nested more than {NESTING_MAX} levels deep", words.range(0)) from None
    except (SqlglotError, ValueError, TypeError, AttributeError, KeyError, IndexError) as failure:
        # The parser stumbled over its own feet; the text is as wrong as if it had said so.
        raise words.source.wrong(f"the query cannot be read: {type(failure).__name__}", _whole(words)) from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Select):
        raise words.source.wrong("this is not one SELECT ONLINE query", _whole(words))
    _check_closed(words)
    return tree


def _check_closed(words: Words) -> None:
    """The parser does not miss the bracket that closes CAST and EXTRACT."""
    opened: list[int] = []
    for place in range(len(words.tokens)):
        if words.kind(place) == TokenType.L_PAREN:
            opened.append(place)
        elif words.kind(place) == TokenType.R_PAREN and opened:
            opened.pop()
    if opened:
        raise words.source.wrong("this bracket is never closed", words.range(opened[-1]))


def _whole(words: Words) -> Range:
    return words.range(0, len(words.tokens) - 1)


def _syntax_error(words: Words, failure: ParseError) -> QueryError:
    first = failure.errors[0] if failure.errors else {}
    last = len(words.tokens) - 1
    ends = (first.get("line"), first.get("col"))
    place = next((at for at, token in enumerate(words.tokens) if (token.line, token.col) == ends), last)
    where = words.range(place)
    description = str(first.get("description", ""))
    if description.startswith("Expecting )"):
        message = "a closing bracket is missing after this"
    elif description.startswith("Required keyword"):
        message = f'an operand is missing at "{words.source.snippet(where)}"'
    elif place == last and "got" in description:
        message = f'the query ends too early, after "{words.source.snippet(where)}"'
    else:
        message = f'"{words.source.snippet(where)}" cannot stand here'
    strange = [token for token in words.tokens if token.token_type == TokenType.VAR and not token.text.isascii()]
    if strange:
        message += f'; "{words.text(strange[0])}" has letters that only look like Latin ones, or is a name to be quoted'
    return words.source.wrong(message, where)
