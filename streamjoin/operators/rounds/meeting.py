"""Partial results meet what a node keeps of the next stream of their order (PSP, steps 2-3 and 3-2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pyarrow as pa

from streamjoin.engine.clocks import clocks_after
from streamjoin.engine.emit import Emitter
from streamjoin.engine.routing import PROBE
from streamjoin.engine.spent import RECEIVED, Spent
from streamjoin.engine.unit import QueryCounts, UnitReport, Work
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import ProbeCounts, Segment
from streamjoin.operators.rounds.views import Views
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.window import S

COMPARED = "compared"
"""Kind of work: pairs that are compared, with what it takes to find and to give them."""
BLOCK_S, SEGMENT_S, LOOK_UP_S = 100e-6, 50e-6, 0.05e-6
"""What a block, a segment that is probed, and a row in it take on a slow machine, whatever is compared."""


class Meeting:
    """A node's work in one round, as far as all rounds have it; or in all of them, where they are one stage.

    Args:
        sides: how many inputs the round has; all origins come in by one after the first round.
        query: see `Step`: the origin of what is found, or 0 of results.
        origins: by origin, what was compared and found; of all rounds, where they are one stage.
    """

    def __init__(self, work: Work, sides: int) -> None:
        assert isinstance(work.plan, RoundPlan)
        self.plan = work.plan
        self.work = work
        self.query = 0
        self.origins = [QueryCounts() for _ in self.plan.orders]
        self.spent = Spent(work.processor_s)
        self.report = UnitReport(
            work.unit.number, work.unit.label, stored_rows=(0,) * sides, late=[0] * sides, outbox_rows=(0,) * sides
        )
        self.report.spent = self.spent.by_kind
        self.clocks, self.elsewhere = clocks_after(self.plan.streams[:sides], work.before, work.given)

    def arrived(self, origin: int, role: int = PROBE) -> list[Block]:
        """What came of an origin for this role; see `Block.together`."""
        begun_s = self.spent.now_s()
        chosen = self.work.given.came(origin, role)
        blocks = Block.together([given.block for given in chosen])
        self.spent.since(begun_s, RECEIVED)
        return blocks

    def found(
        self, origin: int, block: Block, segments: Sequence[Segment], views: Views, plan: RoundPlan | None = None
    ) -> Iterator[pa.RecordBatch]:
        """What partial results of an origin make with stored tuples of the stream that they meet.

        Args:
            plan: of the round, where the stage does them all.
        """
        plan = plan or self.plan
        self.query = 0 if self.plan.is_last else origin
        leaves = plan.is_last or not self.plan.is_last  # or this node joins them further
        for rows in self.report.timed(self._matches(plan, origin, block, segments, views), self.work.seconds):
            self.origins[origin].results += rows.num_rows
            self.report.results += rows.num_rows if leaves else 0
            yield rows

    def _matches(
        self, plan: RoundPlan, origin: int, block: Block, segments: Sequence[Segment], views: Views
    ) -> Iterator[pa.RecordBatch]:
        join, spent = plan.steps[origin][plan.number], self.spent
        layout, counts = layout_of(join, S), ProbeCounts()
        begun_s = spent.now_s()
        columns = {(join.names[0], name): block.rows.column(name) for name in block.rows.schema.names}
        probes = layout.probes(columns, block.ts_us, len(block))
        spent.since(begun_s, RECEIVED, len(block), BLOCK_S)
        emitter = Emitter(join, S, block)

        def pairs() -> Iterator[pa.RecordBatch]:
            for segment in segments:
                for probe_rows, stored_rows in segment.probe(views.number[origin], probes, layout, counts):
                    yield from emitter.add(segment, probe_rows, stored_rows)
            yield from emitter.flush()

        begun_s = spent.now_s()
        for rows in pairs():
            # What those do with them who take them is not what it takes to find them.
            spent.since(begun_s, COMPARED)
            yield rows
            begun_s = spent.now_s()
        found_anyway_s = len(segments) * (SEGMENT_S + len(block) * LOOK_UP_S)
        spent.since(begun_s, COMPARED, counts.comparisons, found_anyway_s)
        self.origins[origin].add(counts)
        self.report.comparisons += counts.comparisons
        self.report.search_steps += counts.search_steps

    def finish(self) -> dict[str, int]:
        """Completes the report; gives the counters of the next state."""
        report = self.report
        report.marks_us = tuple(clock.mark_us for clock in self.clocks)
        report.output_mark_us = lowest_mark_us(report.marks_us)
        report.ended = all(clock.ended for clock in self.clocks)
        report.queries = [asdict(QueryCounts(report.results, report.comparisons, report.search_steps))]
        report.count_received(self.work.given.blocks)
        gained = {
            "comparisons": report.comparisons,
            "search_steps": report.search_steps,
            "results": report.results,
            "late": sum(report.late),
            "expired_rows": report.expired_rows,
            **report.received_totals,
            **{f"forwarded_{name}": value for name, value in report.forwarded.items()},
        }
        return self.work.before.totals_after(gained)
