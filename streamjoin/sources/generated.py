"""Generated streams: a workload of the papers, at a set rate or as fast as it can be joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError
from streamjoin.generate import generator
from streamjoin.generate.stream import BASE_US
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import BLOCK_ROWS
from streamjoin.sources.source import Read


@dataclass
class GeneratorSource:
    """Rows 0, 1, 2, ... of a generator.

    Args:
        kind: a key of `streamjoin.generate.GENERATORS`.
        rate_per_s: nominal rows a second of event time, and while the job is live also of the clock; of Nexmark the
            events of all three streams, so that streams of one rate keep step.
        rows: where the stream ends; None for where the generator does.
        rows_per_batch: at most so many rows a batch.
        begins_now: event times begin when the first batch does, and not at the generator's own beginning. That time is
            in the offsets, so a repeated batch has the same rows.
    """

    kind: str
    rate_per_s: float
    rows: int | None
    seed: int
    rows_per_batch: int
    options: Mapping[str, float] = field(default_factory=dict)
    begins_now: bool = False
    _frozen: bool = False

    def __post_init__(self) -> None:
        made = generator(self.kind)
        made.check_options(self.options)
        length = made.length(self.options)
        if length is not None:
            self.rows = length if self.rows is None else min(self.rows, length)

    @property
    def schema(self) -> pa.Schema:
        """The generator's columns."""
        return generator(self.kind).schema

    def initial(self) -> dict[str, Any]:
        """No row, and no beginning yet: the clock starts with the first batch."""
        return {"rows": 0, "begun_us": 0}

    def freeze(self, now_us: int) -> None:
        """All rows are there; the rate then only spaces event times."""
        if self.rows is None:
            raise InputError(f"generator {self.kind} never ends; give it `rows` to run until the end")
        self._frozen = True

    def latest(self, start: dict[str, Any], now_us: int) -> dict[str, Any]:
        """As many rows as are due."""
        begun_us = start["begun_us"] or now_us
        due = (now_us - begun_us) * self.rate_per_s * generator(self.kind).share / 1e6 + 1
        reached = start["rows"] + self.rows_per_batch
        if not self._frozen:
            reached = min(reached, int(due))
        if self.rows is not None:
            reached = min(reached, self.rows)
        if reached <= start["rows"]:
            return start
        return {"rows": reached, "begun_us": begun_us}

    def sample(self, rows: int) -> Read | None:
        """The first rows."""
        stop = rows if self.rows is None else min(rows, self.rows)
        return GeneratorRead(self.kind, 0, stop, self.seed, self.rate_per_s, dict(self.options))

    def backlog(self, start: dict[str, Any]) -> int | None:
        """Rows to come."""
        return None if self.rows is None else self.rows - int(start["rows"])

    def reads(self, start: dict[str, Any], end: dict[str, Any], tasks: int) -> list[Read]:
        """Equal parts, in blocks."""
        rows = end["rows"] - start["rows"]
        shift_us = end["begun_us"] - BASE_US if self.begins_now else 0
        size = max(-(-rows // max(tasks, 1)), 1)
        return [
            GeneratorRead(
                self.kind,
                first,
                min(first + size, end["rows"]),
                self.seed,
                self.rate_per_s,
                dict(self.options),
                shift_us,
            )
            for first in range(start["rows"], end["rows"], size)
        ]


@dataclass(frozen=True, slots=True)
class GeneratorRead:
    """Rows position..stop-1 of a generator, with all their times `shift_us` later."""

    kind: str
    position: int
    stop: int
    seed: int
    rate_per_s: float
    options: dict[str, float]
    shift_us: int = 0

    @property
    def name(self) -> str:
        """The first row."""
        return f"{self.position:018d}"

    @property
    def router(self) -> str:
        """The generator."""
        return self.kind

    @property
    def identity(self) -> str:
        """The generator; positions count its rows."""
        return self.kind

    @property
    def file(self) -> int | None:
        """None."""
        return None

    def place(self, position: int) -> tuple[str, int, str]:
        """See `Read.place`."""
        return self.identity, position, "row"

    def located(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """See `Read.located`: rows of a generator are where they are."""
        return list(letters)

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Sequence[DeadLetter]]]:
        """The rows, block by block."""
        made = generator(self.kind)
        for first in range(self.position, self.stop, BLOCK_ROWS):
            stop = min(first + BLOCK_ROWS, self.stop)
            rows = made.rows(first, stop, seed=self.seed, rate=self.rate_per_s, options=self.options)
            yield _later(rows.select(list(columns)), self.shift_us), ()


def _later(rows: pa.RecordBatch, shift_us: int) -> pa.RecordBatch:
    if not shift_us:
        return rows
    shift = pa.scalar(shift_us, pa.duration("us"))
    moved = [pc.add(column, shift) if pa.types.is_timestamp(column.type) else column for column in rows.columns]
    return pa.RecordBatch.from_arrays(moved, schema=rows.schema)


def open_generator(stream: str, log: Path, schema: pa.Schema | None, **settings: Any) -> GeneratorSource:
    """A generator as a task opens it; it keeps no log, and its columns are its own."""
    return GeneratorSource(**settings)
