"""sqlglot's parser with a bound on its work: what it cannot read in a number of steps, it does not read at all.

The parser tries what begins like a type, such as `date(`, as a type first and then as a call, and inside of both it
does so again: the time doubles with each level, so that 60 levels, which are within the limits on text, never end.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, exp
from sqlglot.parsers.duckdb import DuckDBParser

from streamjoin.query.tokens import DIALECT

_STEPS_MIN = 4_000
_STEPS_A_TOKEN = 4
"""A query needs one to two steps for each of its tokens; of all that the tests read, `a JOIN b JOIN c ON` most: 2.1."""


class TooManySteps(Exception):
    """A text takes the parser more steps than its length allows; a ParseError it would catch itself, and go on."""


class _BoundedParser(DuckDBParser):
    """Counts how often the parser goes on to another token, or back to one."""

    _steps_left = 0

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        self._steps_left = _STEPS_MIN + _STEPS_A_TOKEN * len(raw_tokens)
        return super().parse(raw_tokens, sql)

    def _advance(self, times: int = 1) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise TooManySteps
        super()._advance(times)


def parse_tokens(tokens: Sequence[Token], text: str) -> list[exp.Expr | None]:
    """The trees of tokens, one for each statement.

    Raises:
        TooManySteps: it takes too long to tell.
        ParseError: they are no SQL.
    """
    return _BoundedParser(dialect=DIALECT).parse(list(tokens), text)
