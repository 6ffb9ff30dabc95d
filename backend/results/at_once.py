"""What may be answered without waiting, in the event loop itself.

A thread for a question costs as much as a short answer: it is woken, and then both want the interpreter. A question
needs none if it waits for nothing and is over in about a millisecond: results in a local file whose head is where a
reader left it, rows of few blocks that are in memory, and few of them. Whatever turns out otherwise raises `NotAtOnce`,
and is asked again in a thread.
"""

from __future__ import annotations

from backend.results.question import QueryIn

STORES = ("sqlite",)
"""Whose heads are read without a network."""
BLOCKS_STORED = 20_000
"""Of so many blocks at most it is settled which can hold an answer."""
BLOCKS_READ = 64
CELLS = 2_048
"""Rows times columns that are written."""
FORMATS = ("json", "ndjson", "csv")


class NotAtOnce(Exception):
    """It takes waiting, or too long."""


def may_be(asked: QueryIn) -> bool:
    """Whether a question is of the kind; a condition would be parsed, and aggregates read everything."""
    return (
        asked.where is None
        and asked.aggregate is None
        and asked.by is None
        and asked.key_from is None
        and asked.key_to is None
        and asked.format in FORMATS
    )
