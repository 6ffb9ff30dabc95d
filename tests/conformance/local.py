"""Runs an operator over a recorded history without Spark: the same intake, units and state, in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import Intake, Piece
from streamjoin.intake.shedding import Rules
from streamjoin.operators.operator import Elastic, Operator, drain_batches, drain_punctuation
from streamjoin.operators.requery import Requery
from streamjoin.operators.slot import SlotStep, StageJob
from streamjoin.operators.unit import UnitReport, UnitState
from streamjoin.punctuation import Punctuation
from streamjoin.sharing import Plan, SharedPlan
from streamjoin.state import rewrite
from streamjoin.state.store import StateStore

Batch = tuple[Sequence[pa.RecordBatch], Sequence[pa.RecordBatch]]
"""What R and S bring in one batch, as pieces."""

DRAIN: Batch = ((), ())
"""This very object is a batch that drains; one that is only equal brings nothing."""


class LocalRun:
    """A job in this process. `store` is opened anew for every batch, so nothing survives but the files.

    `of_queries` says which queries the last batch's results are of, one by one. `begins` has the batches that begin a
    run; with `partitioned` each piece of a batch is of a router of its own, as partitions of a Kafka topic are.
    """

    def __init__(self, plan: Plan, operator: Operator, state: Path, slots: int = 2, shed: Rules | None = None) -> None:
        self.plan = plan
        self.operator = operator
        self.state = state
        self.slots = slots
        self.shed = shed or {}
        self.version = 0
        self.span = range(0)
        self.positions = [0, 0]
        self.reports: list[list[UnitReport]] = []
        self.dead: list[DeadLetter] = []
        self.counts: dict[str, int] = {}
        self.of_queries: list[int] = []
        self.requeries = 0
        self.begins: set[int] = set()
        self.partitioned = False

    def batch(self, pieces: Batch, *, commit: bool = True, clock_us: int | None = None) -> list[pa.RecordBatch]:
        """Join one batch; with commit=False it counts as not done, and the next call repeats it.

        Args:
            clock_us: when the batch begins; None for a second after the one before.
        """
        steps = [
            SlotStep(
                StageJob(self.plan, self.operator, self.slots, self.state, sync=False, begins=self.begins),
                slot,
                self.version,
                StateStore(self.state, sync=False),
            )
            for slot in range(self.slots)
        ]
        positions = list(self.positions)
        passing = [drain_punctuation(1_000_000 * self.version)] if pieces is DRAIN else []
        if clock_us is not None:
            passing.append(Punctuation(0, "heartbeat", "heartbeat", 0, None, clock_us))
        for step in steps:
            for punctuation in passing:
                step.punctuate(punctuation, 0)
        for side in (0, 1):
            for number, rows in enumerate(pieces[side]):
                router = f"t/{number}" if self.partitioned else "all"
                piece = Piece(f"{side}-{number:04d}", router, "history", positions[side], 1_000_000 * self.version)
                factor = self.shed_factor(side)
                intake = Intake(self.plan, side, self.operator, self.slots, self.dead.extend, shed_factor=factor)
                for routed in intake.take(rows, piece):
                    steps[routed.slot].take(routed)
                for slot, sent, punctuation in intake.punctuate(piece):
                    steps[slot].punctuate(punctuation, sent)
                    for name, value in punctuation.counts.items():
                        self.counts[name] = self.counts.get(name, 0) + value
                positions[side] += rows.num_rows
        told = [(step.query, rows) for step in steps for rows in step.results()]
        self.of_queries = [query for query, _ in told]
        results = [rows for _, rows in told]
        (self.span,) = {step.span for step in steps if step.reports}  # all units' is one
        if commit:
            self.reports.append([report for step in steps for report in step.reports])
            self.positions = positions
            self.version += 1
        return results

    def resize(self, operator: Elastic) -> None:
        """What a start with another number of units does."""
        store = StateStore(self.state, sync=False)
        after = rewrite.resized(store, self.version, len(self.operator.units), operator)
        self._rewrite(store, operator, after)
        self.operator = operator

    def requery(self, plan: SharedPlan) -> None:
        """What a start with other queries does."""
        assert isinstance(self.plan, SharedPlan)
        store = StateStore(self.state, sync=False)
        change = Requery(self.operator, self.plan, plan)
        before = {unit.number: store.load(unit.number, self.version) for unit in self.operator.units}
        after = rewrite.requeried(store, self.version, self.requeries, change, before)
        self._rewrite(store, self.operator, dict(after))
        self.plan = plan
        self.requeries += 1

    def _rewrite(self, store: StateStore, operator: Operator, after: Mapping[int, UnitState]) -> None:
        rewrite.begin(store, self.version, operator.units, after, {})
        assert rewrite.complete(store) == {}
        rewrite.forget(store)
        store.sweep()

    def drain(self) -> list[Batch]:
        """The batches that the end of both streams asks for."""
        return [DRAIN] * drain_batches(self.operator)

    def shed_factor(self, side: int) -> float:
        """The share of a side's tuples that the next batch sheds."""
        rule = self.shed.get(side)
        if rule is None:
            return 0.0
        units = [unit.number for unit in self.operator.units]
        return rule.factor(StateStore(self.state, sync=False).live_tuples(units, self.version), len(units))

    def run(self, batches: Sequence[Batch]) -> Iterator[pa.RecordBatch]:
        """Join all batches in order."""
        for batch in batches:
            yield from self.batch(batch)
