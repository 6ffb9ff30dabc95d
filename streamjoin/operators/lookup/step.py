"""A unit's work on one batch: its rows are looked up in one version of the relation, and none of them is kept.

A result has the time of the stream's row, as a relation's rows have none; so the mark of the output is the stream's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamjoin.engine.emit import ProbingTimes, one_sided
from streamjoin.engine.joining import Joining
from streamjoin.engine.routing import ALONE, PROBE
from streamjoin.engine.unit import Work
from streamjoin.flow.block import Block
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import ProbeCounts, Segment
from streamjoin.index.table import Table
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.window import R, S

RELATION, VERSION = "relation", "version"
"""In a unit's values: which relation it looked up last, and in which version."""


class LookupStep:
    """See `Step`."""

    def __init__(self, work: Work) -> None:
        self.joining = Joining(work)
        self.report = self.joining.report
        self.state = work.before
        self.span = range(work.before.sequence, work.before.sequence)
        self._work = work

    @property
    def query(self) -> int:
        """See `Step`; there is one."""
        return 0

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        table = self._work.table()
        (query,) = self._work.plan.queries
        assert isinstance(query, JoinPlan)
        (counted,) = self.joining.counts
        for rows in self._given(query, table):
            counted.results += rows.num_rows
            yield rows
        clocks = self.joining.clocks()
        name = self._work.plan.streams[S].name
        self.state = replace(self.joining.after({}, clocks), values={RELATION: name, VERSION: table.version})
        self.report.output_mark_us, self.report.ended = clocks[R].mark_us, clocks[R].ended

    def _given(self, query: JoinPlan, table: Table) -> Iterator[pa.RecordBatch]:
        for arrived in self.joining.gather(R, PROBE):
            self.report.reading["tuples"] = self.report.reading.get("tuples", 0) + len(arrived)
            yield from self.report.timed(self._looked_up(query, arrived, table), self._work.seconds)
        for alone in self.joining.gather(R, ALONE) if R in query.kind.preserved else ():
            yield from self._alone(query, alone, table.version)

    def _looked_up(self, query: JoinPlan, block: Block, table: Table) -> Iterator[pa.RecordBatch]:
        layout, counts = layout_of(query, S), ProbeCounts()
        columns = {(query.names[R], name): block.rows.column(name) for name in block.rows.schema.names}
        probes = layout.probes(columns, np.zeros(0, np.int64), len(block))
        matched = np.zeros(len(block), bool)

        def met(stored: int, segment: Segment, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray | None:
            matched[numbers] = True
            return None if query.kind.gives_pairs else np.zeros(0, np.int64)

        asks = bool(query.kind.decided)
        emitter = ProbingTimes(query, S, block, np.arange(len(block)) if asks else None, met if asks else None)

        for segment, probe_rows, stored_rows in table.probe(probes, layout, counts):
            yield from emitter.add(segment, probe_rows, stored_rows)
        yield from emitter.flush()
        if query.kind is JoinKind.SEMI:
            some = block.take(np.nonzero(matched)[0])
            yield from one_sided(query, R, some.rows, some.ts_us)
        elif R in query.kind.preserved:
            yield from self._alone(query, block.take(np.nonzero(~matched)[0]), table.version)
        self.joining.counts[0].add(counts)

    def _alone(self, query: JoinPlan, block: Block, version: int) -> Iterator[pa.RecordBatch]:
        """Rows that nothing in the relation matches."""
        self.report.unmatched_rows += len(block)
        yield from one_sided(query, R, block.rows, block.ts_us, version)
