"""A processing unit in one batch: what it is given, what it reports, and what its step is.

A step takes the unit's state before a batch and the batch's input, gives the batch's results, and leaves the state
after it. It is a pure function of the two: no clock, no randomness, no place to remember anything in between, so a
step that is repeated after a crash gives the same results and the same state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from streamjoin.engine.routing import ROLES, UnitSpec
from streamjoin.engine.state import UnitState
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import Punctuation
from streamjoin.index.chain import Open, Save
from streamjoin.index.segment import ProbeCounts, Segment
from streamjoin.index.table import Table
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import StagePlan
from streamjoin.plan.window import Window


@dataclass(frozen=True, slots=True)
class Given:
    """A routed block as one unit gets it.

    Args:
        first: how many tuples of the piece were routed before it.
    """

    side: int
    role: int
    piece: str
    first: int
    block: Block


@dataclass(slots=True)
class UnitInput:
    """What one batch brings to a unit.

    Args:
        blocks: every routed block.
        punctuations: one of every piece of the batch's input.
        now_us: when the batch began, as logged.
        begins: it is the first batch that its run has planned.
        elsewhere: streams that enter at other stages and whose clocks a unit keeps all the same, by number.
        heard: their punctuations.
    """

    blocks: list[Given]
    punctuations: Sequence[Punctuation]
    now_us: int
    begins: bool = False
    elsewhere: Mapping[int, StreamSchema] = field(default_factory=dict)
    heard: Sequence[Punctuation] = ()

    def came(self, side: int, role: int) -> list[Given]:
        """The blocks of a side that came for a role, without empty ones."""
        return [given for given in self.blocks if given.side == side and given.role & role and len(given.block)]


@dataclass(slots=True)
class QueryCounts:
    """What one query had of a step."""

    results: int = 0
    comparisons: int = 0
    search_steps: int = 0

    def add(self, probes: ProbeCounts) -> None:
        """Count what probes looked at."""
        self.comparisons += probes.comparisons
        self.search_steps += probes.search_steps


@dataclass(slots=True)
class UnitReport:
    """What one step did; every field but `seconds` and `spent` is a pure function of state and input.

    Stored tuples are there with those on their way out, `outbox_rows`; `forwarded` counts blocks, tuples and bytes.
    `queries` has what `QueryCounts` has, by query. `results` counts those that left, `waiting_results` those that wait.
    `folded` says what was made of tuples on their way here, and of those that came too late.
    The lowest `output_mark_us` of all units is the mark of the output: no later batch has a result whose newer event
    time is lower, but for those of late tuples; None before both streams have begun. Where all have `ended`, nothing
    comes any more. `open_rows` wait until it is known whether they are matched, `unmatched_rows` left as unmatched,
    `late_after_final` counts pairs that were none because a row of theirs had left as unmatched before. Where a
    relation is joined, `reading` counts what the batch did, and where it is read again and again `holding` has what is
    in memory and waits after it. Where units come and go, `adapting` of the unit that decides says which there are, and
    why. Where formulas ask what work takes, `spent` has what `Spent` has by kind.
    """

    unit: int
    label: str
    received: dict[str, int] = field(default_factory=lambda: {"store": 0, "probe": 0, "both": 0})
    received_bytes: dict[str, int] = field(default_factory=lambda: {"store": 0, "probe": 0, "both": 0})
    stored_rows: tuple[int, ...] = (0, 0)
    stored_bytes: int = 0
    segments: int = 0
    comparisons: int = 0
    search_steps: int = 0
    results: int = 0
    late: list[int] = field(default_factory=lambda: [0, 0])
    expired_rows: int = 0
    marks_us: tuple[int | None, ...] = (None, None)
    output_mark_us: int | None = None
    outbox_rows: tuple[int, ...] = (0, 0)
    forwarded: dict[str, int] = field(default_factory=dict)
    folded: dict[str, int] = field(default_factory=dict)
    waiting_results: int = 0
    ended: bool = False
    open_rows: int = 0
    unmatched_rows: int = 0
    late_after_final: int = 0
    reading: dict[str, int] = field(default_factory=dict)
    holding: dict[str, int] = field(default_factory=dict)
    queries: list[dict[str, int]] = field(default_factory=list)
    adapting: dict[str, Any] = field(default_factory=dict)
    spent: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: {"probe": 0.0, "store": 0.0, "expire": 0.0})

    def count_received(self, blocks: Iterable[Given]) -> None:
        """Note how much came, by the role that it came for."""
        for given in blocks:
            role, size = ROLES[given.role], given.block.rows.nbytes + given.block.ts_us.nbytes
            self.received[role] = self.received.get(role, 0) + len(given.block)
            self.received_bytes[role] = self.received_bytes.get(role, 0) + size

    @property
    def received_totals(self) -> dict[str, int]:
        """The same as counters of the state."""
        rows = {f"received_{role}": count for role, count in self.received.items()}
        return rows | {f"bytes_{role}": size for role, size in self.received_bytes.items()}

    def timed(self, rows: Iterable[pa.RecordBatch], seconds: Callable[[], float]) -> Iterator[pa.RecordBatch]:
        """Results, while the time that goes into finding them is counted.

        Whoever takes them may be slow; that is not time spent probing.
        """
        begun = seconds()
        for some in rows:
            self.seconds["probe"] += seconds() - begun
            yield some
            begun = seconds()
        self.seconds["probe"] += seconds() - begun


@dataclass(frozen=True, slots=True)
class Kept:
    """What a unit of another stage has after the batch, for a stage that only looks at it.

    Args:
        open_segment: as that of `Work`, for the segments of `state`.
    """

    state: UnitState
    open_segment: Open


def nothing_kept() -> Kept:
    """What a stage that keeps its own tuples has of another one's."""
    raise AssertionError("this stage keeps what it looks at")


def nothing_there(stage: int, unit: int) -> UnitState:
    """What a unit of the only stage that there is has of others'."""
    raise AssertionError("nobody has told where the states of other stages are")


def nothing_measured() -> Mapping[str, float]:
    """What is known of the times of steps where nobody logs them."""
    return {}


def no_table(version: int | None = None) -> Table:
    """What a stage without a relation has of it."""
    raise AssertionError("this stage joins no relation")


@dataclass(frozen=True, slots=True)
class Work:
    """What a unit has to do in one batch, and with what.

    Args:
        before: its state before the batch.
        open_segment: description -> the segment's rows, without copying where the store can.
        save_segment: rows and description -> the description with its file name, once it is durable.
        seconds: a stopwatch for the report only.
        processor_s: the same of this thread's processor time.
        look: any unit's state of the same version as `before`.
        numbers: of all units of the stage.
        table: the relation that the stage joins, in the batch's version of it or in that of one of the last ten
            batches; only where it joins one.
        kept: what the unit of the same number has in the stage that keeps tuples for this one, if another does.
        look_in: stage and unit -> the unit's state of the same version as `before`, which it was there for.
        measured: what single steps of this job's units take, in seconds by name, as far as it was measured and logged
            before the batch: the same in every attempt of it.
    """

    plan: StagePlan
    unit: UnitSpec
    before: UnitState
    given: UnitInput
    open_segment: Open
    save_segment: Save
    seconds: Callable[[], float]
    look: Callable[[int], UnitState]
    numbers: Sequence[int]
    table: Callable[..., Table] = no_table
    kept: Callable[[], Kept] = nothing_kept
    look_in: Callable[[int, int], UnitState] = nothing_there
    processor_s: Callable[[], float] = time.thread_time
    measured: Callable[[], Mapping[str, float]] = nothing_measured

    @property
    def units(self) -> int:
        """How many units the stage has."""
        return len(self.numbers)


class Step(Protocol):
    """One unit's work on one batch, as an operator does it.

    Iterate `results()` to its end, then take `state` and `report`. While it gives a batch of results, `query` is the
    number of the query that they are of; of what is joined further, how many sides after the first it enters there.
    `span` has the sequence numbers of the newer tuples of the results that leave; it is the same for all units.
    """

    state: UnitState
    report: UnitReport
    span: range

    @property
    def query(self) -> int:
        """Whose results come just now."""

    def results(self) -> Iterator[pa.RecordBatch]:
        """The batch's result rows, in parts of bounded size; afterwards `state` is the unit's next state."""


class Probing(Protocol):
    """How tuples that probe are compared with stored ones."""

    def numbers(self, side: int, block: Block) -> np.ndarray | None:
        """Sequence numbers of tuples of `side`; None where none are kept."""

    def coordinates(self, window: Window, side: int, block: Block) -> np.ndarray:
        """Where each tuple of `side` is in the window; with a count window, how many opposite tuples come before it."""

    def probed(self, query: int, segments: list[Segment], probing: int, block: Block) -> list[Segment]:
        """The stored segments as a query's tuples of side `probing` probe them."""
