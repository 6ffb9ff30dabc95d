"""What a source is: offsets that only grow, and reads that give the same rows whenever they are repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from streamjoin.intake.deadletter import DeadLetter


class Read(Protocol):
    """A part of a batch's input, small enough for one task. Reads travel to the tasks, so they can be pickled."""

    @property
    def name(self) -> str:
        """Unique in the batch and the stream; names are in the stream's order."""

    @property
    def router(self) -> str:
        """Whose event times rise together."""

    @property
    def identity(self) -> str:
        """With a row's position, the identity of a tuple."""

    @property
    def position(self) -> int:
        """Position of the first row."""

    @property
    def file(self) -> int | None:
        """The number of the file that it is of, the last one of several; None where the source has none."""

    def place(self, position: int) -> tuple[str, int, str]:
        """Where a row that was read comes from: the source, position and unit of its dead letter."""

    def located(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """The dead letters of this read with the places that people look for: lines of text files, not records."""

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
        """The rows' given columns, in order, in parts of bounded size, and the records that could not be read."""


class Source(Protocol):
    """A stream's input."""

    @property
    def schema(self) -> pa.Schema:
        """All its columns."""

    def initial(self) -> dict[str, Any]:
        """The offset before the first row."""

    def latest(self, start: dict[str, Any], now_us: int) -> dict[str, Any]:
        """How far the next batch may go; `start` itself where there is nothing new."""

    def freeze(self, now_us: int) -> None:
        """From now on, offer nothing but what is there at this moment (`--until-end`)."""

    def reads(self, start: dict[str, Any], end: dict[str, Any], tasks: int) -> list[Read]:
        """The rows between two offsets, in about `tasks` parts."""

    def sample(self, rows: int) -> Read | None:
        """A read of the first `rows` rows or more, for estimates; None where there are none yet."""

    def backlog(self, start: dict[str, Any]) -> int | None:
        """How many units of input (files, rows) wait behind `start`; None where nobody can know."""


def first_rows(source: Source, columns: pa.Schema, limit: int) -> tuple[pa.RecordBatch, list[DeadLetter]]:
    """Up to `limit` of a source's first rows, none where there are none, and the bad records before and among them."""
    read = source.sample(limit)
    letters: list[DeadLetter] = []
    for rows, bad in read.rows(columns.names) if read else ():
        letters += bad
        if rows.num_rows:
            return rows.slice(0, limit), letters
    return pa.RecordBatch.from_pylist([], schema=columns), letters
