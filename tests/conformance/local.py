"""Runs an operator over a recorded history without Spark: the same intake, units and state, in one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import Intake, Piece
from streamjoin.operators.operator import Operator
from streamjoin.operators.slot import SlotStep, StageJob
from streamjoin.operators.unit import UnitReport
from streamjoin.plan import JoinPlan
from streamjoin.state.store import StateStore

Batch = tuple[Sequence[pa.RecordBatch], Sequence[pa.RecordBatch]]
"""What R and S bring in one batch, as pieces."""


class LocalRun:
    """A job in this process. `store` is opened anew for every batch, so nothing survives but the files."""

    def __init__(self, plan: JoinPlan, operator: Operator, state: Path, slots: int = 2) -> None:
        self.plan = plan
        self.operator = operator
        self.state = state
        self.slots = slots
        self.version = 0
        self.positions = [0, 0]
        self.reports: list[list[UnitReport]] = []
        self.dead: list[DeadLetter] = []
        self.counts: dict[str, int] = {}

    def batch(self, pieces: Batch, *, commit: bool = True) -> list[pa.RecordBatch]:
        """Join one batch; with commit=False it counts as not done, and the next call repeats it."""
        steps = [
            SlotStep(
                StageJob(self.plan, self.operator, self.slots, self.state, sync=False),
                slot,
                self.version,
                StateStore(self.state, sync=False),
            )
            for slot in range(self.slots)
        ]
        positions = list(self.positions)
        for side in (0, 1):
            for number, rows in enumerate(pieces[side]):
                piece = Piece(f"{side}-{number:04d}", "all", "history", positions[side], 1_000_000 * self.version)
                intake = Intake(self.plan, side, self.operator, self.slots, self.dead.extend)
                for routed in intake.take(rows, piece):
                    steps[routed.slot].take(routed)
                for slot, sent, punctuation in intake.punctuate(piece):
                    steps[slot].punctuate(punctuation, sent)
                    for name, value in punctuation.counts.items():
                        self.counts[name] = self.counts.get(name, 0) + value
                positions[side] += rows.num_rows
        results = [rows for step in steps for rows in step.results()]
        if commit:
            self.reports.append([report for step in steps for report in step.reports])
            self.positions = positions
            self.version += 1
        return results

    def run(self, batches: Sequence[Batch]) -> Iterator[pa.RecordBatch]:
        """Join all batches in order."""
        for batch in batches:
            yield from self.batch(batch)
