"""What tables have in common that a server or a database file gives row by row, and not in files of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from streamjoin.intake.deadletter import DeadLetter


@dataclass(frozen=True, slots=True)
class ServedTable(ABC):
    """A table that is what it is when it is read.

    Args:
        name: what queries call it.
        columns: those that are read.
        refresh_us: see `Relation`.
    """

    name: str
    columns: pa.Schema
    refresh_us: int | None

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, for people."""

    @abstractmethod
    def carried(self) -> dict[str, str]:
        """See `Relation`."""

    @abstractmethod
    def rows(self, schema: pa.Schema, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """All rows with these columns, or about so many.

        Raises:
            InputError, RunError: it cannot be read, or a value has no place in its column's type.
        """

    @property
    def guesses_types(self) -> bool:
        """Whether a later look may take a column for something else; no, unless a table has no types of its own."""
        return False

    @property
    def is_listed(self) -> bool:
        """Whether `origin` says that it has changed; a table's rows do, and nothing else."""
        return False

    @property
    def file_count(self) -> int | None:
        """None: it is in no files of its own."""
        return None

    def listed_again(self) -> Self:
        """The same."""
        return self

    def origin(self) -> str:
        """Which table it is, and how it is read."""
        return f"{self.place}\n{self.columns}"

    def has_origin(self, origin: str) -> bool:
        """Whether it is still the same table, read as it was."""
        return origin == self.origin()

    def blocks(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
        """All rows; no record is bad, as a table knows its types.

        Raises:
            InputError, RunError: as `rows` does.
        """
        for rows in self.rows(pa.schema([self.columns.field(name) for name in columns])):
            yield rows, 0

    def first_rows(self, limit: int) -> tuple[pa.RecordBatch, list[DeadLetter]]:
        """Up to so many rows."""
        found = [pa.RecordBatch.from_pylist([], schema=self.columns), *self.rows(self.columns, limit)]
        return pa.concat_batches(found).slice(0, limit), []

    def row_count(self) -> int | None:
        """None: only reading it would tell."""
        return None

    def about_rows(self) -> int | None:
        """None, likewise."""
        return None

    def bytes(self) -> int | None:
        """None: servers do not count them alike, or each only its own."""
        return None


def quoted(name: str) -> str:
    """A name as SQL and CQL take it literally."""
    return '"' + name.replace('"', '""') + '"'
