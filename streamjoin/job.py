"""A job as its tasks know it: plain data that travels to every worker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.errors import InputError
from streamjoin.expression import columns_of
from streamjoin.intake.shedding import Shedding
from streamjoin.operators.operator import Operator, Relay, drain_batches
from streamjoin.sharing import Plan
from streamjoin.sources import FileSource, GeneratorSource, Source

IDENTITY_FILE = "job.json"
"""Says what a checkpoint belongs to."""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """How to open a source; opening it reads its log.

    Args:
        kind: parquet, arrow, jsonl, csv or generator. Kafka is Spark's own source and not opened by us.
        settings: the arguments of the source's class.
        schema: the stream's columns.
    """

    kind: str
    settings: Mapping[str, Any]
    schema: pa.Schema | None = None

    def open(self, stream: str, log: Path) -> Source:
        """The source; `log` is where a file source keeps its log."""
        if self.kind == "generator":
            return GeneratorSource(**self.settings)
        if self.kind in ("parquet", "arrow", "jsonl", "csv"):
            return FileSource(stream, self.kind, log=log, schema=self.schema, **self.settings)
        raise InputError(f'"{self.kind}" is no source that can be opened here')


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a task needs.

    Args:
        slots: Spark partitions of the unit stage.
        checkpoint: the job's directory: offsets, state, file logs, dead letters.
        sources: by side, for the sides that StreamJoin reads itself.
        strict: a row that cannot be joined stops the job.
        heartbeat_us: while nothing arrives, a batch runs so often all the same, and expires what is due; 0 for never.
        sync: fsync state files.
        shedding: what is shed under overload.
        resizes: how often its state was given another number of units.
    """

    plan: Plan
    operator: Operator
    slots: int
    checkpoint: Path
    sources: Mapping[int, SourceSpec] = field(default_factory=dict)
    strict: bool = False
    heartbeat_us: int = 0
    sync: bool = True
    shedding: Shedding = field(default_factory=Shedding)
    resizes: int = 0

    @property
    def drain_batches(self) -> int:
        """How many batches without input it takes until every pair has met.

        A chain of one worker needs none by itself, but it may have been several.
        """
        least = 1 if self.resizes and isinstance(self.operator, Relay) else 0
        return max(drain_batches(self.operator), least)

    @property
    def state(self) -> Path:
        """Where the units' state is."""
        return self.checkpoint / "state"

    @property
    def offsets(self) -> Path:
        """Where Spark keeps offsets and commits."""
        return self.checkpoint / "offsets"

    @property
    def dead_letters(self) -> Path:
        """Where rows that cannot be joined are kept."""
        return self.checkpoint / "dead-letters"

    def open_source(self, side: int) -> Source:
        """The source of a side that StreamJoin reads itself."""
        name = self.plan.names[side]
        return self.sources[side].open(name, self.checkpoint / "sources" / f"{side}-{name}.jsonl")

    def read_columns(self, side: int) -> tuple[str, ...]:
        """The columns intake has to see: the routed ones, those the selection reads, and the event time."""
        stream = self.plan.streams[side]
        wanted = set(self.plan.routed_columns(side))
        for query in self.plan.queries:
            wanted |= {name for _, name in columns_of(query.predicate.selections[side])}
        wanted.add(stream.time)
        return tuple(name for name in stream.columns.names if name in wanted)


def recorded_slots(checkpoint: Path) -> int | None:
    """How many slots a checkpoint's job had when it was first started; None where it never was."""
    try:
        slots = json.loads((checkpoint / IDENTITY_FILE).read_text())["slots"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # whoever opens the checkpoint looks closer
    return slots if isinstance(slots, int) else None
