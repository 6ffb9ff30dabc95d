"""The errors StreamJoin shows to people: each names the thing and the way out.

Exit status of the command line: 2 for every `InputError`, 1 for every other `StreamJoinError`.
"""

from __future__ import annotations

from dataclasses import dataclass


def _writable(text: str) -> str:
    """A text that can be written anywhere; names of files in it may be any bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


class StreamJoinError(Exception):
    """Something failed that we can name. The message is one sentence, without a stack.

    It is text that can be written anywhere, although names of files in it may be any bytes.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_writable(message))


class InputError(StreamJoinError):
    """The file, query or data description is wrong.

    Args:
        message: what is wrong, and what would be right.
        field: dotted path of the offending field of a join file, such as `streams.orders.delay`.
    """

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message: str = self.args[0]
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(frozen=True, slots=True)
class Span:
    """Where a piece of a query stands; lines and columns count from 1, `end_column` is past the last character."""

    line: int
    column: int
    end_line: int
    end_column: int


class QueryError(InputError):
    """A query cannot be read or bound.

    `span` says where, and is None only where no place can be named; `place` is the field of the join file that holds
    the query.
    """

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.span = span
        self.place = "query"

    def __str__(self) -> str:
        if self.span is None:
            return f"{self.place}: {self.message}"
        return f"{self.place}, line {self.span.line}, column {self.span.column}: {self.message}"


class UnsupportedError(InputError):
    """The query is right, but this operator or version cannot run it; the message says why and what can."""


class QueriesStayError(UnsupportedError):
    """A checkpoint is of other queries, and what is stored is not all that a new one asks for."""


class OtherJoinError(InputError):
    """A checkpoint was begun by another join, or is in a format that this version does not read.

    `differs` says what is different, without the way out, and `changed` names the parts of the checkpoint's identity
    that are.
    """

    def __init__(self, message: str, differs: str = "", changed: tuple[str, ...] = ()) -> None:
        super().__init__(message, field="run.checkpoint")
        self.differs = _writable(differs)
        self.changed = changed


class StateError(StreamJoinError):
    """The saved state cannot be used: a segment is missing or damaged, or it belongs to another job."""


class RunError(StreamJoinError):
    """A job failed while it was running; the message is the first cause in one sentence."""
