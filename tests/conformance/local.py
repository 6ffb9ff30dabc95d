"""Runs an operator over a recorded history without Spark: the same intake, units and state, in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.engine.operator import Operator
from streamjoin.engine.requery import Requery
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.flow.punctuation import Punctuation
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.shedding import Rules
from streamjoin.plan.sharing import Pairs, SharedJoin
from streamjoin.plan.window import R, S
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

    def __init__(self, plan: Pairs, operator: Operator, state: Path, slots: int = 2, shed: Rules | None = None) -> None:
        self.plan = plan
        self.operator = operator
        self.state = state
        self.slots = slots
        self.shed = shed or {}
        self.dead: list[DeadLetter] = []
        self.loop = Loop(plan, (operator,), lambda stage: StateStore(state, stage, sync=False), slots, self.dead.extend)
        self.span = range(0)
        self.reports: list[list[UnitReport]] = []
        self.of_queries: list[int] = []
        self.requeries = 0
        self.begins: set[int] = set()
        self.partitioned = False

    @property
    def version(self) -> int:
        """How many batches are done."""
        return self.loop.version

    @property
    def now(self) -> Operator:
        """The operator as it is in the next batch."""
        store = StateStore(self.state, sync=False)
        return self.operator.in_batch(lambda unit: store.load(unit, self.version))

    @property
    def counts(self) -> dict[str, int]:
        """What intake counted of both sides."""
        r, s = self.loop.counts
        return {name: r.get(name, 0) + s.get(name, 0) for name in r | s}

    def batch(self, pieces: Batch, *, commit: bool = True, clock_us: int | None = None) -> list[pa.RecordBatch]:
        """Join one batch; with commit=False it counts as not done, and the next call repeats it.

        Args:
            clock_us: when the batch begins; None for a second after the one before.
        """
        beat = [] if clock_us is None else [Punctuation(R, "heartbeat", "heartbeat", 0, None, clock_us)]
        r, s = ([f"t/{number}" if self.partitioned else "all" for number in range(len(rows))] for rows in pieces)
        brought = Brought(
            pieces,
            1_000_000 * self.version,
            (r, s),
            pieces is DRAIN,
            self.version in self.begins,
            (self.shed_factor(R) if r else 0.0, self.shed_factor(S) if s else 0.0),
            tuple(beat),
        )
        self.loop.plan, self.loop.operators, self.loop.slots = self.plan, (self.operator,), self.slots
        told = list(self.loop.batch(brought))
        self.of_queries = [query for query, _ in told]
        self.span = self.loop.span
        if commit:
            self.reports.append(self.loop.reports)
            self.loop.commit(brought)
        return [rows for _, rows in told]

    def resize(self, operator: Operator) -> None:
        """What a start with another number of units does."""
        store = StateStore(self.state, sync=False)
        after = rewrite.resized(store, self.version, len(self.operator.units), operator)
        self._rewrite(store, operator, after)
        self.operator = operator

    def requery(self, plan: SharedJoin) -> None:
        """What a start with other queries does."""
        assert isinstance(self.plan, SharedJoin)
        store = StateStore(self.state, sync=False)
        operator = self.now
        change = Requery(operator, self.plan, plan)
        stored = [unit.number for unit in operator.units if not unit.begins_at(self.version)]
        before = {unit: store.load(unit, self.version) for unit in stored}
        after = rewrite.requeried(store, self.version, self.requeries, change, before)
        self._rewrite(store, operator, dict(after))
        self.plan = plan
        self.requeries += 1

    def _rewrite(self, store: StateStore, operator: Operator, after: Mapping[int, UnitState]) -> None:
        rewrite.begin(store, self.version, {store.stage: (operator.units, after)}, {})
        assert rewrite.complete(store) == {}
        rewrite.forget(store)
        store.sweep()

    def drain(self) -> list[Batch]:
        """The batches that the end of both streams asks for."""
        return [DRAIN] * self.operator.drain_batches

    def shed_factor(self, side: int) -> float:
        """The share of a side's tuples that the next batch sheds."""
        rule = self.shed.get(side)
        if rule is None:
            return 0.0
        units = self.now.units
        stored = [unit.number for unit in units if not unit.begins_at(self.version)]
        return rule.factor(StateStore(self.state, sync=False).live_tuples(stored, self.version), len(units))

    def run(self, batches: Sequence[Batch]) -> Iterator[pa.RecordBatch]:
        """Join all batches in order."""
        for batch in batches:
            yield from self.batch(batch)
