"""A job batch by batch in this process: the intake, units and state that Spark runs, without Spark.

A batch is what it is there: every side's pieces are routed, every slot's units take them in, and the state of version b
becomes that of version b + 1. `spark/` lays the same parts out over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from streamjoin.engine.operator import Operator, drain_punctuation
from streamjoin.engine.router import Router
from streamjoin.engine.slot import SlotStep, StageJob, States
from streamjoin.engine.unit import UnitReport
from streamjoin.flow.punctuation import Punctuation
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import Intake, Piece
from streamjoin.plan.sharing import Plan


@dataclass(frozen=True, slots=True)
class Brought:
    """What a batch brings.

    Args:
        pieces: of R and of S, rows of the stream's schema; each piece is read as one.
        now_us: when the batch begins.
        routers: by side, each piece's router; None for one router a side.
        drains: it brings no input, and moves on what units hand to one another.
        begins: it is the first batch of its run.
        shed: the share of R's and of S's tuples to drop.
        passing: further punctuations, which every slot sees.
    """

    pieces: tuple[Sequence[pa.RecordBatch], Sequence[pa.RecordBatch]]
    now_us: int
    routers: tuple[Sequence[str], Sequence[str]] | None = None
    drains: bool = False
    begins: bool = False
    shed: tuple[float, float] = (0.0, 0.0)
    passing: tuple[Punctuation, ...] = ()


@dataclass(slots=True)
class Loop:
    """A job of some slots.

    Args:
        open_states: where states are; called for each batch, which may find there what the last one left.
        on_dead_letters: takes the rows that cannot be joined.
        version: how many batches are done, which is the number of the next one.
        positions: how many rows of R and of S the batches that are done brought.
        counts: what intake counted of R and of S in all batches so far, those that are repeated each time.
        reports: of the last batch, by unit.
        span: sequence numbers of the newer tuples of the last batch's results.
    """

    plan: Plan
    operator: Operator
    open_states: Callable[[], States]
    slots: int = 1
    on_dead_letters: Callable[[list[DeadLetter]], None] = lambda letters: None
    version: int = 0
    positions: tuple[int, int] = (0, 0)
    counts: tuple[dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}))
    reports: list[UnitReport] = field(default_factory=list)
    span: range = range(0)

    def batch(self, brought: Brought) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Join one batch: (query, its results) in parts of bounded size.

        Until `commit` is called it counts as not done, and the next call repeats it.

        Raises:
            StateError: the state cannot be read.
        """
        begins = (self.version,) if brought.begins else ()
        job = StageJob(self.plan, self.operator, self.slots, begins)
        steps = [SlotStep(job, slot, self.version, self.open_states()) for slot in range(self.slots)]
        passing = [*brought.passing, *([drain_punctuation(brought.now_us)] if brought.drains else [])]
        for step in steps:
            for punctuation in passing:
                step.punctuate(punctuation, 0)
        for side in (0, 1):
            self._route(side, brought, steps)
        for step in steps:
            for rows in step.results():
                yield step.query, rows
        self.reports = [report for step in steps for report in step.reports]
        (self.span,) = {step.span for step in steps if step.reports}  # all units' is one

    def commit(self, brought: Brought) -> None:
        """The batch is done: all its results have been taken."""
        r, s = (sum(rows.num_rows for rows in pieces) for pieces in brought.pieces)
        self.positions = (self.positions[0] + r, self.positions[1] + s)
        self.version += 1

    def _route(self, side: int, brought: Brought, steps: Sequence[SlotStep]) -> None:
        position = self.positions[side]
        for number, rows in enumerate(brought.pieces[side]):
            name = brought.routers[side][number] if brought.routers else "all"
            piece = Piece(f"{side}-{number:04d}", name, "history", position, brought.now_us)
            intake = Intake(self.plan, side, self.on_dead_letters, shed_factor=brought.shed[side])
            router = Router(intake, self.operator, self.slots)
            for routed in router.take(rows, piece):
                steps[routed.slot].take(routed)
            for slot, sent, punctuation in router.punctuate(piece):
                steps[slot].punctuate(punctuation, sent)
                for name, value in punctuation.counts.items():
                    self.counts[side][name] = self.counts[side].get(name, 0) + value
            position += rows.num_rows
