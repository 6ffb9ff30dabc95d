"""What the steps of units are made of: storing and probing in one batch, clocks and counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from streamjoin.engine.arranging import places
from streamjoin.engine.clocks import clocks_after
from streamjoin.engine.emit import Emitter, Met
from streamjoin.engine.routing import STORE
from streamjoin.engine.state import UnitState
from streamjoin.engine.unit import Given, Probing, QueryCounts, UnitReport, Work
from streamjoin.flow.block import Block
from streamjoin.flow.portions import together
from streamjoin.flow.punctuation import Punctuation, StreamClock, lowest_mark_us
from streamjoin.index.chain import Chain, Save
from streamjoin.index.segment import ProbeCounts, Segment, SegmentInfo
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.rounds import RoundPlan
from streamjoin.plan.values import Columns
from streamjoin.plan.window import CountWindow, FullHistory, R, S, TimeWindow, Window


class Described(Protocol):
    """Rows of a segment with what is known of them; `info.file` is empty until they are a file."""

    @property
    def rows(self) -> pa.RecordBatch: ...

    @property
    def info(self) -> SegmentInfo: ...


class Joining:
    """What steps are made of: a unit's storing and probing in one batch, and what is to be reported of them.

    As `Probing`, it is that of tuples that come in with the batch.

    Args:
        arrived: how many tuples R and S brought.
        met: is told of pairs, and says which of them are any; None where nobody asks.
        counts: what each query had so far.
        query: its number, while `probe` gives its results.
    """

    def __init__(self, work: Work) -> None:
        assert not isinstance(work.plan, AggregatePlan | RoundPlan)  # these have operators of their own
        self.plan = work.plan
        self.unit = work.unit
        self.before = work.before
        self.given = work.given
        self.save_segment = work.save_segment
        self.seconds = work.seconds
        self.report = UnitReport(work.unit.number, work.unit.label)
        self.query = 0
        self.met: Met | None = None
        self.counts = [QueryCounts() for _ in work.plan.queries]
        self._elsewhere: Mapping[int, StreamClock] = work.before.elsewhere
        self._starts = _piece_starts(work.given.punctuations)
        arrived = [sum(item.rows for item in work.given.punctuations if item.side == side) for side in (R, S)]
        self.arrived = (arrived[R], arrived[S])

    def gather(self, side: int, role: int) -> list[Block]:
        """The tuples of `side` that came for this role, and that this unit takes; see `Block.together`."""
        chosen = self.given.came(side, role)
        groups = together([given.block.rows.nbytes for given in chosen])
        found = [self._gathered(side, role, chosen[first:past]) for first, past in groups]
        return [block for block in found if len(block)]

    def _gathered(self, side: int, role: int, chosen: Sequence[Given]) -> Block:
        block = Block.concat([given.block for given in chosen])
        sizes = [len(given.block) for given in chosen]
        if block.positions is not None:
            starts = np.repeat([self._starts[side, given.piece].rows for given in chosen], sizes)
            block = replace(block, positions=block.positions + starts)
        if role == STORE and self.unit.turn is not None:
            ahead = self.before.clocks[side].routed
            firsts = [ahead + self._starts[side, given.piece].routed + given.first for given in chosen]
            ranks = np.concatenate(
                [first + np.arange(size, dtype=np.int64) for first, size in zip(firsts, sizes, strict=True)]
            )
            block = block.take(self.unit.turn.takes(ranks))
        return block

    def numbers(self, side: int, block: Block) -> np.ndarray | None:
        """See `Probing`."""
        if not self.plan.numbers_tuples:
            return None
        assert block.positions is not None
        alternate = isinstance(self.plan.window, CountWindow)
        return places(side, block.positions, self.arrived, alternate=alternate) + self.before.sequence

    def coordinates(self, window: Window, side: int, block: Block) -> np.ndarray:
        """See `Probing`."""
        match window:
            case TimeWindow():
                return block.ts_us
            case FullHistory():
                return np.zeros(0, np.int64)
            case CountWindow():
                assert block.positions is not None
                other = 1 - side
                before = block.positions + (1 if side == S else 0)
                return np.asarray(np.minimum(before, self.arrived[other]) + self.before.clocks[other].rows)

    def probed(self, query: int, segments: list[Segment], probing: int, block: Block) -> list[Segment]:
        """See `Probing`; they are probed as they are."""
        return segments

    @staticmethod
    def _columns(query: JoinPlan, side: int, block: Block) -> Columns:
        name = query.names[side]
        return {(name, column): block.rows.column(column) for column in block.rows.schema.names}

    def store(self, chain: Chain, side: int, block: Block, numbers: np.ndarray | None) -> None:
        """Add new tuples of `side`, with their sequence numbers, to those of a chain."""
        begun = self.seconds()
        ranks = None
        if isinstance(self.plan.window, CountWindow):
            assert block.positions is not None
            ranks = block.positions + self.before.clocks[side].rows
        if side in self.unit.counts and (mark_us := self.before.clocks[side].mark_us) is not None:
            self.report.late[side] += int(np.count_nonzero(block.ts_us < mark_us))
        columns = [self._columns(query, side, block) for query in self.plan.queries]
        chain.store(block, columns, ranks, numbers)
        self.report.seconds["store"] += self.seconds() - begun

    def probe(self, chain: Chain, stored: int, block: Block, probing: Probing) -> Iterator[pa.RecordBatch]:
        """Results of tuples that probe what a chain stores of side `stored`."""
        yield from self.report.timed(self._found(chain, stored, block, probing), self.seconds)

    def _found(self, chain: Chain, stored: int, block: Block, probing: Probing) -> Iterator[pa.RecordBatch]:
        """Results, query by query."""
        for query in range(len(self.plan.queries)):
            self.query = query
            mine = block.of(query)
            for batch in self._matches(chain, stored, mine, probing) if len(mine) else ():
                self.counts[self.query].results += batch.num_rows
                yield batch

    def _matches(self, chain: Chain, stored: int, block: Block, probing: Probing) -> Iterator[pa.RecordBatch]:
        """Results of the query that `query` says: its tuples of `block` with what the chain stores."""
        plan, layout = self.plan.queries[self.query], chain.layouts[self.query]
        side, counts = 1 - stored, ProbeCounts()
        segments = probing.probed(self.query, chain.segments, side, block)
        at = probing.coordinates(plan.window, side, block)
        probes = layout.probes(self._columns(plan, side, block), at, len(block))
        emitter = Emitter(plan, stored, block, probing.numbers(side, block), self.met)
        for segment in segments:
            for probe_rows, stored_rows in segment.probe(self.query, probes, layout, counts):
                yield from emitter.add(segment, probe_rows, stored_rows)
        yield from emitter.flush()
        self.counts[self.query].add(counts)

    def saved(self, segments: Iterable[Described]) -> tuple[SegmentInfo, ...]:
        """Descriptions of segments, of which those are written that are not files yet."""
        return saved(segments, self.save_segment)

    def clocks(self) -> tuple[StreamClock, StreamClock]:
        """How far R and S have come with this batch; those that are idle as far as the plan's other streams have."""
        (r, s), self._elsewhere = clocks_after(self.plan.streams, self.before, self.given)
        return r, s

    def after(
        self,
        stored: Mapping[int, tuple[SegmentInfo, ...]],
        clocks: tuple[StreamClock, StreamClock],
        totals: Mapping[str, int] | None = None,
    ) -> UnitState:
        """The next state, but for its tables, values and dropped files; completes the report.

        Args:
            stored: by side, all segments of tuples that the unit has.
            totals: what the operator counts beside the engine.
        """
        self.report.marks_us = (clocks[R].mark_us, clocks[S].mark_us)
        # Who keeps pairs waiting states a lower one afterwards.
        self.report.output_mark_us = lowest_mark_us(self.report.marks_us)
        self.report.ended = all(clock.ended for clock in clocks)
        self._count(stored)
        return UnitState(
            self.before.version + 1, clocks=clocks, totals=self._totals(totals or {}), elsewhere=self._elsewhere
        )

    def _count(self, kept: Mapping[int, tuple[SegmentInfo, ...]]) -> None:
        self.report.results = sum(found.results for found in self.counts)
        self.report.comparisons = sum(found.comparisons for found in self.counts)
        self.report.search_steps = sum(found.search_steps for found in self.counts)
        self.report.queries = [asdict(found) for found in self.counts]
        rows = [sum(info.rows for info in kept.get(side, ())) for side in (R, S)]
        self.report.stored_rows = (rows[R], rows[S])
        self.report.stored_bytes = sum(info.bytes for infos in kept.values() for info in infos)
        self.report.segments = sum(len(infos) for infos in kept.values())
        self.report.count_received(self.given.blocks)

    def _totals(self, more: Mapping[str, int]) -> dict[str, int]:
        gained = {
            "comparisons": self.report.comparisons,
            "search_steps": self.report.search_steps,
            "results": self.report.results,
            "late_r": self.report.late[R],
            "late_s": self.report.late[S],
            "expired_rows": self.report.expired_rows,
            **{name: value for name in ("unmatched_rows", "late_after_final") if (value := getattr(self.report, name))},
            **self.report.received_totals,
            **more,
        }
        return self.before.totals_after(gained)


def saved(segments: Iterable[Described], save: Save) -> tuple[SegmentInfo, ...]:
    """Descriptions of segments, of which those are written that are not files yet."""
    return tuple(segment.info if segment.info.file else save(segment.rows, segment.info) for segment in segments)


@dataclass(frozen=True, slots=True)
class _PieceStart:
    """Where a piece begins among its stream's tuples of the batch, and among those that were routed."""

    rows: int = 0
    routed: int = 0


def _piece_starts(punctuations: Sequence[Punctuation]) -> dict[tuple[int, str], _PieceStart]:
    """Pieces are ordered by name."""
    starts: dict[tuple[int, str], _PieceStart] = {}
    reached = [_PieceStart(), _PieceStart()]
    for item in sorted(punctuations, key=lambda item: item.piece):
        starts[item.side, item.piece] = before = reached[item.side]
        reached[item.side] = _PieceStart(before.rows + item.rows, before.routed + item.routed)
    return starts
