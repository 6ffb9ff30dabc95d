"""The text of a query: offsets to lines and columns, and the errors that point into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from streamjoin.errors import QueryError, Span, UnsupportedError

Range: TypeAlias = tuple[int, int]
"""(offset of the first character, offset of the last one)."""

SNIPPET_MAX = 40


class UnsupportedQueryError(QueryError, UnsupportedError):
    """The query is good SQL, but this version has no operator for it; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Source:
    """A query as written."""

    text: str

    def span(self, where: Range) -> Span:
        """Lines and columns of a range; a line ends at a line feed, columns count characters."""
        start, end = where
        return Span(*self._place(start), *self._place(end + 1))

    def _place(self, offset: int) -> tuple[int, int]:
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def snippet(self, where: Range) -> str:
        """The text of a range on one line, cut to what fits into a message."""
        words = " ".join(self.text[where[0] : where[1] + 1].split())
        return words if len(words) <= SNIPPET_MAX else words[: SNIPPET_MAX - 3] + "..."

    def wrong(self, message: str, where: Range) -> QueryError:
        """The error for a query that cannot be read or bound."""
        return QueryError(message, self.span(where))

    def unsupported(self, message: str, where: Range) -> UnsupportedQueryError:
        """The error for a query that a later version may run."""
        return UnsupportedQueryError(message, self.span(where))
