"""A processing unit in one batch: what it is given, what it reports, and what its step is.

A step takes the unit's state before a batch and the batch's input, gives the batch's results, and leaves the state
after it. It is a pure function of the two: no clock, no randomness, no place to remember anything in between, so a
step that is repeated after a crash gives the same results and the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from streamjoin.engine.routing import UnitSpec
from streamjoin.engine.state import UnitState
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import Punctuation
from streamjoin.index.chain import Open, Save
from streamjoin.index.segment import Segment
from streamjoin.plan.sharing import Plan
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
    """

    blocks: list[Given]
    punctuations: Sequence[Punctuation]
    now_us: int
    begins: bool = False


@dataclass(slots=True)
class QueryCounts:
    """What one query had of a step."""

    results: int = 0
    comparisons: int = 0


@dataclass(slots=True)
class UnitReport:
    """What one step did; every field but `seconds` is a pure function of state and input.

    Stored tuples are there with those on their way out, `outbox_rows`; `forwarded` counts blocks, tuples and bytes.
    `queries` has what `QueryCounts` has, by query. `results` counts those that left, `waiting_results` those that wait.
    The lowest `output_mark_us` of all units is the mark of the output: no later batch has a result whose newer event
    time is lower, but for those of late tuples; None before both streams have begun.
    """

    unit: int
    label: str
    received: dict[str, int] = field(default_factory=lambda: {"store": 0, "probe": 0, "both": 0})
    received_bytes: dict[str, int] = field(default_factory=lambda: {"store": 0, "probe": 0, "both": 0})
    stored_rows: tuple[int, int] = (0, 0)
    stored_bytes: int = 0
    segments: int = 0
    comparisons: int = 0
    results: int = 0
    late: list[int] = field(default_factory=lambda: [0, 0])
    expired_rows: int = 0
    marks_us: tuple[int | None, int | None] = (None, None)
    output_mark_us: int | None = None
    outbox_rows: tuple[int, int] = (0, 0)
    forwarded: dict[str, int] = field(default_factory=dict)
    waiting_results: int = 0
    queries: list[dict[str, int]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: {"probe": 0.0, "store": 0.0, "expire": 0.0})


@dataclass(frozen=True, slots=True)
class Work:
    """What a unit has to do in one batch, and with what.

    Args:
        before: its state before the batch.
        open_segment: description -> the segment's rows, without copying where the store can.
        save_segment: rows and description -> the description with its file name, once it is durable.
        seconds: a stopwatch for the report only.
        look: any unit's state of the same version as `before`.
    """

    plan: Plan
    unit: UnitSpec
    before: UnitState
    given: UnitInput
    open_segment: Open
    save_segment: Save
    seconds: Callable[[], float]
    look: Callable[[int], UnitState]


class Step(Protocol):
    """One unit's work on one batch, as an operator does it.

    Iterate `results()` to its end, then take `state` and `report`. While it gives a batch of results, `query` is the
    number of the query that they are of. `span` has the sequence numbers of the newer tuples of the results that leave;
    it is the same for all units.
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
        """Sequence numbers of tuples of `side`; None where the order of results does not matter."""

    def coordinates(self, window: Window, side: int, block: Block) -> np.ndarray:
        """Where each tuple of `side` is in the window; with a count window, how many opposite tuples come before it."""

    def probed(self, query: int, segments: list[Segment], probing: int, block: Block) -> list[Segment]:
        """The stored segments as a query's tuples of side `probing` probe them."""
