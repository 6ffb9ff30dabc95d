"""One slot's work on one batch: the units that run there, their input, their state.

A slot is a Spark partition, or a turn of a loop in a test. It reads version b of its units' state, and writes version
b + 1 once all results of the batch have been handed on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Protocol

import pyarrow as pa

from streamjoin.engine.operator import Operator
from streamjoin.engine.routing import UnitSpec
from streamjoin.engine.spent import HANDED, RECEIVED
from streamjoin.engine.state import Opened, UnitState
from streamjoin.engine.unit import Given, Kept, Step, UnitInput, UnitReport, Work, nothing_measured
from streamjoin.errors import StateError
from streamjoin.failpoints import failpoint
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import Punctuation
from streamjoin.index.chain import Save
from streamjoin.index.segment import SegmentInfo
from streamjoin.index.table import Table
from streamjoin.intake.intake import Routed
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.stages import StagePlan
from streamjoin.plan.window import S


class Writer(Protocol):
    """Where the segments go that one unit makes in a batch."""

    def save(self, rows: pa.RecordBatch, info: SegmentInfo) -> SegmentInfo:
        """Keep a segment, and return its description with the name it got."""

    def finish(self) -> None:
        """All of them last from now on."""


class States(Protocol):
    """Where the states of units are kept, by version."""

    def load(self, unit: int, version: int) -> UnitState:
        """A unit's state; version 0 is empty. StateError: it is missing or damaged."""

    def check_units(self, units: int, version: int) -> None:
        """StateError: the state of `version` is of more units than so many."""

    def collect_left(self, units: Collection[int], version: int) -> None:
        """Remove what is no longer needed of units that left: all but these, which are about to reach `version`."""

    def open_segment(self, unit: int, info: SegmentInfo) -> pa.RecordBatch:
        """A segment's rows, by the name that `unit` has for it. StateError: it is missing or damaged."""

    def prepare(self, units: Collection[int], version: int, opened: Opened = UnitState.named) -> None:
        """These units are about to open what they had at `version`; `opened` says which of a unit's files."""

    def writer(self, unit: int, version: int) -> Writer:
        """Where the segments that first appear in `version` go."""

    def commit(self, unit: int, state: UnitState, report: UnitReport) -> None:
        """Make `state` the unit's state of its version, in one step, once `settle` has returned."""

    def settle(self) -> None:
        """All that was committed lasts from now on. StateError: some of it could not be kept."""

    def collect(self, unit: int, version: int) -> None:
        """Remove what is not needed any more once a unit is at `version`."""

    def detach_except(self, unit: int, state: UnitState) -> None:
        """Let go what is held open of segments that the state no longer names."""


class Tables(Protocol):
    """Where the versions of relations are kept."""

    def open(self, relation: str, stage: int, version: int, plan: JoinPlan) -> Table:
        """A version of a relation as the units of a stage probe it; StateError: it is missing or damaged.

        Args:
            plan: the stage's join, of which the relation is S.
        """


def states_before(store: States, units: Iterable[UnitSpec], version: int) -> Callable[[int], UnitState]:
    """The state of each of a stage's units before a batch; each is read once.

    One that begins with the batch stores nothing, and its streams have come as far as everybody's.
    """
    new = {unit.number for unit in units if unit.begins_at(version)}

    @cache
    def look(unit: int) -> UnitState:
        if unit not in new:
            return store.load(unit, version)
        first = look(0)
        return UnitState(version, clocks=first.clocks, elsewhere=first.elsewhere)

    return look


@dataclass(frozen=True, slots=True)
class StageJob:
    """A stage of a job, as every slot knows it.

    Args:
        number: the stage's.
        slots: how many there are; unit u runs in slot u mod slots.
        begins: see `Job`.
        fed_by: how many units the stage has whose output is an input of this one; 0 where both inputs are streams.
        elsewhere: see `UnitInput`.
        entries: where these streams enter; see `plan.hearing.entries_elsewhere`.
        keeps: see `plan.stages.Stage`.
    """

    plan: StagePlan
    operator: Operator
    slots: int
    begins: Collection[int] = ()
    fed_by: int = 0
    elsewhere: Mapping[int, StreamSchema] = field(default_factory=dict)
    number: int = 0
    keeps: int | None = None
    entries: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class SlotStep:
    """Collects a batch's blocks and punctuations for one slot, then runs its units.

    Args:
        version: the state's version before the batch, which is the batch's number.
        tables: the relations of the job; None where it has none.
        versions: which version of each relation the batch joins, by name.
        kept: the states of the stage that keeps tuples for this one; None where it keeps its own.
        stores: where a stage's states are, by its number.
        measured: see `Work`.
        processor_s: see `Work`.
        clock_us: when the batch began, as logged, where that is known: a batch may bring nothing that this stage hears.
        unit, query: whose results come just now, and of which query.
        span: sequence numbers of the newer tuples of the results that leave, once there are any.
    """

    job: StageJob
    slot: int
    version: int
    store: States
    tables: Tables | None = None
    versions: Mapping[str, int] = field(default_factory=dict)
    kept: States | None = None
    stores: Callable[[int], States] | None = None
    measured: Callable[[], Mapping[str, float]] = nothing_measured
    processor_s: Callable[[], float] = time.thread_time
    clock_us: int = 0
    unit: int = -1
    query: int = 0
    span: range = range(0)
    reports: list[UnitReport] = field(default_factory=list)
    punctuations: list[Punctuation] = field(default_factory=list)
    _heard: list[Punctuation] = field(default_factory=list)
    _blocks: list[Routed] = field(default_factory=list)
    _expected: int = 0

    def take(self, routed: Routed) -> None:
        """A block arrived."""
        self._blocks.append(routed)

    def punctuate(self, punctuation: Punctuation, sent: int) -> None:
        """A piece is complete; it sent this slot `sent` tuples."""
        (self.punctuations if punctuation.elsewhere is None else self._heard).append(punctuation)
        self._expected += sent

    @property
    def now_us(self) -> int:
        """When the batch began, as logged; every slot sees the same punctuations."""
        return max([self.clock_us, *(item.clock_us for item in (*self.punctuations, *self._heard))])

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
        if (told := sum(item.states for item in self.punctuations)) != self.job.fed_by:
            raise StateError(
                f"slot {self.slot} heard of {told} units of the stage before in batch {self.version}, and that stage "
                f"has {self.job.fed_by}"
            )
        # As sent and not as fetched: a task that is repeated gives the same rows in the same order.
        self._blocks.sort(key=lambda routed: (routed.side, routed.piece, routed.first, routed.targets))
        begun_s = self.processor_s()
        blocks = [(routed, Block.from_ipc(routed.block)) for routed in self._blocks]
        decoded_s = self.processor_s() - begun_s
        units = self.job.operator.units
        self.store.check_units(self.job.operator.numbers_end, self.version)
        # Units of a chain look at all the others; a manifest is read once.
        look = states_before(self.store, units, self.version)
        here = [unit for unit in units if unit.number % self.job.slots == self.slot]
        stored = [unit.number for unit in here if not unit.begins_at(self.version)]
        self.store.prepare(stored, self.version, self.job.operator.opened)
        for unit in here:
            mine = [
                Given(routed.side, role, routed.piece, routed.first, block)
                for routed, block in blocks
                for number, role in routed.targets
                if number == unit.number
            ]
            begins = self.version in self.job.begins
            given = UnitInput(mine, self.punctuations, self.now_us, begins, self.job.elsewhere, self._heard)
            self.unit = unit.number
            writer = self.store.writer(unit.number, self.version + 1)
            step = self._step(unit, given, writer.save, look)
            self.span = step.span
            failpoint("unit.before_probe")
            handed_s = 0.0
            for rows in step.results():
                self.query = step.query
                begun_s = self.processor_s()
                yield rows
                handed_s += self.processor_s() - begun_s
                failpoint("unit.mid_results")
            _note_slots(step.report, decoded_s / len(here), handed_s)
            writer.finish()
            self.store.commit(unit.number, step.state, step.report)
            self.store.collect(unit.number, self.version + 1)
            self.store.detach_except(unit.number, step.state)
            if self.kept is not None:
                self.kept.detach_except(unit.number, self._kept(unit.number).state)
            self.reports.append(step.report)
        if not self.slot and self.job.operator.capabilities.adapts:
            self.store.collect_left({unit.number for unit in units}, self.version + 1)
        self.store.settle()

    def _step(self, unit: UnitSpec, given: UnitInput, save: Save, look: Callable[[int], UnitState]) -> Step:
        open_segment = partial(self.store.open_segment, unit.number)
        work = Work(
            self.job.plan,
            unit,
            self._informed(look(unit.number)),
            given,
            open_segment,
            save,
            time.perf_counter,
            look,
            [unit.number for unit in self.job.operator.units],
            self._table,
            partial(self._kept, unit.number),
            self._look_in,
            self.processor_s,
            self.measured,
        )
        return self.job.operator.step(work)

    def _informed(self, before: UnitState) -> UnitState:
        """A unit's state that has the clock of every stream that it must know.

        A stage that did not have to until now, as none of its streams had `idle`, has it from where the stream enters.
        """
        new = sorted(self.job.entries.keys() - before.elsewhere.keys())
        if not new or not self.version:
            return before
        found = {}
        for stream in new:
            stage, side = self.job.entries[stream]
            found[stream] = self._look_in(stage, 0).clock(side)  # every unit of a stage has the same clocks
        return replace(before, elsewhere={**before.elsewhere, **found})

    def _kept(self, unit: int) -> Kept:
        # All units of that stage are done with the batch: this one's input has come from them.
        assert self.kept is not None
        return Kept(self.kept.load(unit, self.version + 1), partial(self.kept.open_segment, unit))

    def _look_in(self, stage: int, unit: int) -> UnitState:
        assert self.stores is not None
        return self.stores(stage).load(unit, self.version)

    def _table(self, version: int | None = None) -> Table:
        (query,) = self.job.plan.queries
        assert self.tables is not None and isinstance(query, JoinPlan)
        relation = query.streams[S].name
        if relation not in self.versions:
            raise StateError(f"nothing says which version of relation {relation} batch {self.version} joins")
        return self.tables.open(relation, self.job.number, version or self.versions[relation], query)


def _note_slots(report: UnitReport, decoded_s: float, handed_s: float) -> None:
    """Add what a slot spent on a unit to what the unit did, where it counts that."""
    if RECEIVED in report.spent:
        report.spent[RECEIVED][0] += decoded_s
        report.spent[HANDED] = [handed_s, 0.0, 0.0]
