"""One slot's work on one batch: the units that run there, their input, their state.

A slot is a Spark partition, or a turn of a loop in a test. It reads version b of its units' state, and writes version
b + 1 once all results of the batch have been handed on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import pyarrow as pa

from streamjoin.block import Block
from streamjoin.errors import StateError
from streamjoin.failpoints import failpoint
from streamjoin.index.chain import Save
from streamjoin.intake.intake import Routed
from streamjoin.operators.operator import Operator, Relay, UnitSpec
from streamjoin.operators.unit import Given, UnitInput, UnitReport, UnitState, UnitStep, Work
from streamjoin.punctuation import Punctuation
from streamjoin.sharing import Plan
from streamjoin.state.store import StateStore


@dataclass(frozen=True, slots=True)
class StageJob:
    """A stage of a job, as every slot knows it.

    Args:
        slots: how many there are; unit u runs in slot u mod slots.
        state: the job's state directory.
        sync: fsync state files.
        begins: see `Job`.
    """

    plan: Plan
    operator: Operator
    slots: int
    state: Path
    stage: int = 0
    sync: bool = True
    begins: Collection[int] = ()


@dataclass(slots=True)
class SlotStep:
    """Collects a batch's blocks and punctuations for one slot, then runs its units.

    Args:
        version: the state's version before the batch, which is the batch's number.
        unit, query: whose results come just now, and of which query.
        span: sequence numbers of the newer tuples of the results that leave, once there are any.
    """

    job: StageJob
    slot: int
    version: int
    store: StateStore
    unit: int = -1
    query: int = 0
    span: range = range(0)
    reports: list[UnitReport] = field(default_factory=list)
    punctuations: list[Punctuation] = field(default_factory=list)
    _blocks: list[Routed] = field(default_factory=list)
    _expected: int = 0

    def take(self, routed: Routed) -> None:
        """A block arrived."""
        self._blocks.append(routed)

    def punctuate(self, punctuation: Punctuation, sent: int) -> None:
        """A piece is complete; it sent this slot `sent` tuples."""
        self.punctuations.append(punctuation)
        self._expected += sent

    @property
    def now_us(self) -> int:
        """When the batch began, as logged; every slot sees the same punctuations."""
        return max((item.clock_us for item in self.punctuations), default=0)

    def results(self) -> Iterator[pa.RecordBatch]:
        """All units' results; afterwards their next state is durable, and `reports` says what they did.

        Raises:
            StateError: a block got lost on the way, or the state cannot be read.
        """
        arrived = sum(routed.rows for routed in self._blocks)
        if arrived != self._expected:
            raise StateError(
                f"slot {self.slot} got {arrived} tuples of batch {self.version} where its routers sent {self._expected}"
            )
        blocks = [(routed, Block.from_ipc(routed.block)) for routed in self._blocks]
        self.store.check_units(len(self.job.operator.units), self.version)
        # Units of a chain look at all the others; a manifest is read once.
        look = cache(partial(self.store.load, version=self.version))
        for unit in self.job.operator.units:
            if unit.number % self.job.slots != self.slot:
                continue
            mine = [
                Given(routed.side, role, routed.piece, routed.first, block)
                for routed, block in blocks
                for number, role in routed.targets
                if number == unit.number
            ]
            given = UnitInput(mine, self.punctuations, self.now_us, self.version in self.job.begins)
            self.unit = unit.number
            writer = self.store.writer(unit.number, self.version + 1)
            step = self._step(unit, given, writer.save, look)
            self.span = step.span
            failpoint("unit.before_probe")
            for rows in step.results():
                self.query = step.query
                yield rows
                failpoint("unit.mid_results")
            writer.finish()
            self.store.commit(unit.number, step.state, step.report)
            self.store.collect(unit.number, self.version + 1)
            self.store.detach_except(unit.number, step.state)
            self.reports.append(step.report)

    def _step(self, unit: UnitSpec, given: UnitInput, save: Save, look: Callable[[int], UnitState]) -> UnitStep:
        open_segment = partial(self.store.open_segment, unit.number)
        work = Work(self.job.plan, unit, look(unit.number), given, open_segment, save, time.perf_counter, look)
        operator = self.job.operator
        return operator.step(work) if isinstance(operator, Relay) else UnitStep(work)
