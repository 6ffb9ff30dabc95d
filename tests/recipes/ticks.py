"""A source for tests: rows with a time each second, and a number. All that a source is, in one module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from streamjoin.intake.deadletter import DeadLetter
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Count
from streamjoin.sources.kind import Columns, SourceKind
from streamjoin.sources.source import Read

COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64())])


class TickSettings(Settings):
    """How many there are."""

    ticks: Annotated[Count, setting("how many ticks there are")]


@dataclass(frozen=True)
class TickRead:
    """Ticks position..stop-1."""

    position: int
    stop: int
    name: str = "0"
    router: str = "clock"
    identity: str = "clock"

    def place(self, position: int) -> tuple[str, int, str]:
        """See `Read`."""
        return self.identity, position, "row"

    def located(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """See `Read`."""
        return list(letters)

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
        """See `Read`."""
        numbers = range(self.position, self.stop)
        every = [pa.array([at * 1_000_000 for at in numbers], COLUMNS.field("ts").type), pa.array(numbers, pa.int64())]
        yield pa.RecordBatch.from_arrays(every, schema=COLUMNS).select(list(columns)), ()


@dataclass(frozen=True)
class TickSource:
    """See `Source`."""

    ticks: int
    schema: pa.Schema = COLUMNS

    def initial(self) -> dict[str, Any]:
        """See `Source`."""
        return {"rows": 0}

    def latest(self, start: dict[str, Any], now_us: int) -> dict[str, Any]:
        """See `Source`."""
        return {"rows": self.ticks}

    def freeze(self, now_us: int) -> None:
        """See `Source`."""

    def reads(self, start: dict[str, Any], end: dict[str, Any], tasks: int) -> list[Read]:
        """See `Source`."""
        return [TickRead(start["rows"], end["rows"])]

    def sample(self, rows: int) -> Read | None:
        """See `Source`."""
        return TickRead(0, min(rows, self.ticks))

    def backlog(self, start: dict[str, Any]) -> int | None:
        """See `Source`."""
        return self.ticks - int(start["rows"])


def open_ticks(stream: str, log: Path, schema: pa.Schema | None, ticks: int) -> TickSource:
    """The source, in a task."""
    return TickSource(ticks)


TICKS = SourceKind(
    "ticks",
    "a clock that ticks each second",
    TickSettings,
    Columns.OWN,
    lambda settings, columns, resolve: COLUMNS,
    "tests.recipes.ticks:open_ticks",
    lambda settings, resolve, limits: {"ticks": settings.ticks},
    is_bounded=lambda settings, resolve: True,
)
