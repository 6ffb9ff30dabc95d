"""A job batch by batch in this process: the intake, units and state that Spark runs, without Spark.

A batch is what it is there: every stream's pieces are routed, stage by stage every slot's units take them in, and the
state of version b becomes that of version b + 1. `spark/` lays the same parts out over tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from streamjoin.counts import add_counts
from streamjoin.engine.entering import Entering
from streamjoin.engine.feeding import Feeding
from streamjoin.engine.operator import Operator
from streamjoin.engine.router import Sending
from streamjoin.engine.slot import SlotStep, StageJob, States, Tables
from streamjoin.engine.unit import UnitReport
from streamjoin.flow.periods import Ended, ended_by
from streamjoin.flow.punctuation import Punctuation, drain_punctuation
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import Piece, Routed
from streamjoin.plan.hearing import elsewhere, entries_elsewhere
from streamjoin.plan.stages import Flow, Plan, answered_by, entries_of


@dataclass(frozen=True, slots=True)
class Brought:
    """What a batch brings.

    Args:
        pieces: of each stream, rows of its schema; each piece is read as one, and counts as a file.
        now_us: when the batch begins.
        routers: by stream, each piece's router; None for one router a stream.
        drains: it brings no input, and moves on what units hand to one another.
        begins: it is the first batch of its run.
        shed: the share of each stream's tuples to drop; empty where none sheds.
        passing: further punctuations, which every slot sees.
        versions: which version of each relation is joined, by name.
    """

    pieces: Sequence[Sequence[pa.RecordBatch]]
    now_us: int
    routers: Sequence[Sequence[str]] | None = None
    drains: bool = False
    begins: bool = False
    shed: Sequence[float] = ()
    passing: tuple[Punctuation, ...] = ()
    versions: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Loop:
    """A job of some slots.

    Args:
        operators: of each stage.
        open_states: where a stage's states are; called for each batch, which may find there what the last one left.
        on_dead_letters: takes the rows that cannot be joined.
        tables: the relations of the plan; None where it has none.
        on_fed: is told what goes on to a next stage, in parts of bounded size; what it raises ends the batch.
        measured: by batch, see `Work`.
        processor_s: see `Work`.
        version: how many batches are done, which is the number of the next one.
        positions: how many rows of each stream the batches that are done brought.
        counts: what intake counted of each stream in all batches so far, those that are repeated each time.
        ended: what each stream's input said in the last batch of where periods end.
        reports: of the last batch, stage by stage and by unit.
        span: sequence numbers of the newer tuples of the last batch's results.
    """

    plan: Plan
    operators: tuple[Operator, ...]
    open_states: Callable[[int], States]
    slots: int = 1
    on_dead_letters: Callable[[list[DeadLetter]], None] = lambda letters: None
    on_fed: Callable[[pa.RecordBatch], None] = lambda rows: None
    tables: Tables | None = None
    measured: Callable[[int], Mapping[str, float]] = lambda batch: {}
    processor_s: Callable[[], float] = time.thread_time
    version: int = 0
    positions: tuple[int, ...] = ()
    counts: tuple[dict[str, int], ...] = ()
    ended: tuple[Ended, ...] = ()
    reports: list[UnitReport] = field(default_factory=list)
    span: range = range(0)

    def __post_init__(self) -> None:
        self.positions = self.positions or tuple(0 for _ in self.plan.streams)
        self.counts = self.counts or tuple({} for _ in self.plan.streams)

    def batch(self, brought: Brought) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Join one batch: (query, its results) in parts of bounded size.

        Until `commit` is called it counts as not done, and the next call repeats it.

        Raises:
            StateError: the state cannot be read.
        """
        stages, resting = self.plan.stages, self.plan.resting
        begins = (self.version,) if brought.begins else ()
        steps: list[list[SlotStep]] = []
        operators = [
            operator
            if stage.number in resting
            else operator.in_batch(partial(self.open_states(stage.keeper).load, version=self.version))
            for stage, operator in zip(stages, self.operators, strict=True)
        ]
        for stage, operator in zip(stages, operators, strict=True):
            fed_by = sum(len(operators[number].units) for number in stage.fed_by)
            others, entries = elsewhere(self.plan, stage.number), entries_elsewhere(self.plan, stage.number)
            job = StageJob(stage.plan, operator, self.slots, begins, fed_by, others, stage.number, stage.keeps, entries)
            kept = None if stage.keeps is None else self.open_states(stage.keeps)
            steps.append(
                [
                    SlotStep(
                        job,
                        slot,
                        self.version,
                        self.open_states(stage.number),
                        self.tables,
                        dict(brought.versions),
                        kept,
                        self.open_states,
                        partial(self.measured, self.version),
                        self.processor_s,
                        brought.now_us,
                    )
                    for slot in range(0 if stage.number in resting else self.slots)
                ]
            )
        passing = [*brought.passing, *([drain_punctuation(brought.now_us)] if brought.drains else [])]
        for step in (step for of_stage in steps for step in of_stage):
            for punctuation in passing:
                step.punctuate(punctuation, 0)
        said: list[Ended] = []
        for stream in range(len(self.plan.streams)):
            said.append(ended_by(self._route(stream, brought, steps, operators)))
        self.ended = tuple(said)
        self.reports = []
        for stage, mine in zip(stages, steps, strict=True):
            answered = answered_by(self.plan, stage.number)
            for step in mine:
                if not answered:
                    self._feed(step, stage.number, steps, operators)
                else:
                    for rows in step.results():
                        yield answered[step.query], rows
                self.reports += step.reports
        # All units' is one; of a bundle results leave in no order.
        self.span = next((step.span for step in steps[-1] if step.reports), range(0))

    def commit(self, brought: Brought) -> None:
        """The batch is done: all its results have been taken."""
        brought_rows = [sum(rows.num_rows for rows in pieces) for pieces in brought.pieces]
        self.positions = tuple(map(sum, zip(self.positions, brought_rows, strict=True)))
        self.version += 1

    def _feed(
        self, step: SlotStep, stage: int, steps: Sequence[Sequence[SlotStep]], operators: Sequence[Operator]
    ) -> None:
        """What a slot's units of a stage find, into the stages that join it further."""
        feedings = {
            after.number: Feeding(Sending(after.plan, side, operators[after.number], self.slots), self.version)
            for after, side in entries_of(self.plan, Flow(stage))
        }
        for rows in step.results():
            self.on_fed(rows)
            for after, feeding in feedings.items():
                for routed in feeding.take(rows, step.unit, step.query):
                    steps[after][routed.slot].take(routed)
        for after, feeding in feedings.items():
            for routed in feeding.rest(step.slot):
                steps[after][routed.slot].take(routed)
            for slot, sent, punctuation in feeding.punctuate(step.reports, step.now_us):
                steps[after][slot].punctuate(punctuation, sent)

    def _route(
        self, stream: int, brought: Brought, steps: Sequence[Sequence[SlotStep]], operators: Sequence[Operator]
    ) -> list[Punctuation]:
        position = self.positions[stream]
        own: list[Punctuation] = []
        if not entries_of(self.plan, stream):
            return own
        for number, rows in enumerate(brought.pieces[stream]):
            name = brought.routers[stream][number] if brought.routers else "all"
            piece = Piece(
                f"{stream}-{number:04d}", name, "history", position, brought.now_us, file=self.version << 16 | number
            )
            shed = brought.shed[stream] if brought.shed else 0.0
            entering = Entering(self.plan, stream, operators, self.slots, self.on_dead_letters, shed_factor=shed)
            for where, routed in self._taken(entering, rows, piece):
                steps[where][routed.slot].take(routed)
            for where, routed in entering.rest(piece):
                steps[where][routed.slot].take(routed)
            for where, slot, sent, punctuation in entering.punctuate(piece):
                steps[where][slot].punctuate(punctuation, sent)
                own.append(punctuation)
                add_counts(self.counts[stream], punctuation.counts)
            position += rows.num_rows
        return own

    def _taken(self, entering: Entering, rows: pa.RecordBatch, piece: Piece) -> Iterator[tuple[int, Routed]]:
        """(stage, block) of rows of a piece, as they enter."""
        return entering.take(rows, piece)
