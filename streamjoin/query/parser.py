"""sqlglot's parser with a bound on its steps.

The parser reads what begins like a type, such as `date(`, first as a type and then as a call, and does so again inside
both: the time doubles with each level, so that 60 levels, which the limits on text allow, never end.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, exp
from sqlglot.parsers.duckdb import DuckDBParser

from streamjoin.query.tokens import DIALECT

_STEPS_MIN = 4_000
_STEPS_A_TOKEN = 4
"""A query needs one to two steps per token; of the tests' queries `a JOIN b JOIN c ON` needs most: 2.1."""


class TooManySteps(Exception):
    """The text takes more steps than its length allows. Not a ParseError: the parser catches those and goes on."""


class _BoundedParser(DuckDBParser):
    """Counts the steps: each move to another token, forward or back."""

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
    """The syntax trees, one per statement.

    Raises:
        TooManySteps: reading them takes too long.
        ParseError: they are not SQL.
    """
    return _BoundedParser(dialect=DIALECT).parse(list(tokens), text)
