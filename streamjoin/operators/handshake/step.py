"""One worker's work on one batch (ESJ, "Message passing", as a rule for batches).

In batch v a worker has its own state of version v, and takes in what its neighbours' outboxes of version v hold for it:
R from the left, S from the right; a stream's head takes in what the batch brings. Then

    R that comes in  meets  S at rest, and S in the own outbox: those are crossing it just now
    S that comes in  meets  R at rest, and R that comes in, but not R in the own outbox

so two tuples that cross between two workers meet in one of them, and once. Afterwards nobody needs the old outboxes;
new ones are chosen from what is at rest. A pair (r, s) has met iff r's place in the line is not left of s's: this holds
after every batch, whatever the outboxes hold, so when and how much is sent on is about balance and never about results.

For the same reason a tuple may leave only at the far end of its stream, where it has met all that is ahead of it. One
that has outlived its window before is sent on whatever the loads, and meets the rest on its way.

Where results have an order, those wait whose newer tuple is newer than that of a pair that has not met yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import attrgetter

import numpy as np
import pyarrow as pa

from streamjoin.engine.joining import Joining
from streamjoin.engine.routing import STORE
from streamjoin.engine.unit import Work
from streamjoin.flow.block import QUERIES, TS, Block
from streamjoin.flow.portions import together
from streamjoin.flow.punctuation import StreamClock, drains, lowest_mark_us
from streamjoin.index.chain import Chain
from streamjoin.index.columns import carried_rows
from streamjoin.index.layout import layout_of
from streamjoin.index.segment import Segment, SegmentInfo
from streamjoin.index.view import NUMBER, RANK
from streamjoin.intake.intake import BLOCK_ROWS
from streamjoin.operators.handshake.blocks import automatic_block
from streamjoin.operators.handshake.counted import OPPOSITE, open_ended, stored_columns
from streamjoin.operators.handshake.forwarding import balancing, idle, outlived
from streamjoin.operators.handshake.line import Line
from streamjoin.operators.handshake.passing import Passing
from streamjoin.operators.handshake.settled import NO_TUPLE, settled
from streamjoin.operators.handshake.state import ChainState
from streamjoin.operators.handshake.waiting import Run, Waiting
from streamjoin.plan.ordering import Ordering
from streamjoin.plan.window import CountWindow, R, S


@dataclass(slots=True)
class Flow:
    """One stream in one worker.

    Args:
        closed: blocks, oldest first; they are files that stay as they are until their last worker.
        open: segments at the stream's head that together do not fill a block yet.
        outgoing: what the worker sent in the version before, and what is on its way during this batch.
        leaving: blocks that set out now.
    """

    chain: Chain
    closed: list[Segment]
    open: list[Segment]
    outgoing: list[Segment]
    leaving: list[Segment] = field(default_factory=list)
    dropped: list[Segment] = field(default_factory=list)

    @property
    def at_rest(self) -> list[Segment]:
        """Everything but what is on its way."""
        return [*self.closed, *self.open]

    @property
    def open_rows(self) -> int:
        """Tuples that do not fill a block yet."""
        return rows_of(self.open)

    def joined(self, segments: list[Segment]) -> list[Segment]:
        """`segments` as one, or as few as hold so many bytes; none stay none."""
        found: list[Segment] = []
        for first, past in together([segment.info.bytes for segment in segments]):
            some = segments[first:past]
            if len(some) > 1:
                self.dropped += some
                some = [self.chain.merged(some)]
            found += some
        return found


class ChainStep:
    """A worker of the chain; see `Step`."""

    def __init__(self, line: Line, work: Work) -> None:
        # Blocks arrive in any order; the tuples' own decides where one block ends.
        blocks = sorted(work.given.blocks, key=attrgetter("piece", "first"))
        work = replace(work, given=replace(work.given, blocks=blocks))
        self.line = line
        self.unit, self.before, self.given = work.unit, work.before, work.given
        self.seconds = work.seconds
        self.look = cache(lambda worker: ChainState.of(work.look(worker)))
        self.mine = ChainState.of(work.before)
        self.open_segment = work.open_segment
        self.joining = Joining(work)
        self.plan = self.joining.plan
        self.passing = Passing(self.joining)
        self.report = self.joining.report
        self.state = work.before
        self.span = range(self.before.sequence, self.before.sequence + sum(self.joining.arrived))
        self._chains = {side: self._chain(side) for side in (R, S)}
        self.waiting: Waiting | None = None
        if self.plan.ordering is not Ordering.NONE:
            self.span = range(self.mine.settled, self._settled())
            self.waiting = Waiting(self.mine.waiting, self.span.stop, work.open_segment)
        self.flows = {side: self._flow(side) for side in (R, S)}

    @property
    def query(self) -> int:
        """See `Step`."""
        return self.joining.query

    def _chain(self, side: int) -> Chain:
        layouts = tuple(open_ended(layout_of(query, side)) for query in self.plan.queries)
        return Chain(layouts, stored_columns(self.plan, side), self.plan.archive_period, [])

    def _flow(self, side: int) -> Flow:
        chain = self._chains[side]
        closed, kept_open, outgoing = (
            [self._segment(side, info) for info in infos[side]]
            for infos in (self.mine.closed, self.mine.open, self.mine.sent)
        )
        return Flow(chain, closed, kept_open, outgoing)

    def _segment(self, side: int, info: SegmentInfo) -> Segment:
        return Segment.attach(self.open_segment(info), info, self._chains[side].layouts)

    def results(self) -> Iterator[pa.RecordBatch]:
        """See `Step`."""
        yield from self._found() if self.waiting is None else self._in_turn(self.waiting)
        self._finish()

    def _in_turn(self, waiting: Waiting) -> Iterator[pa.RecordBatch]:
        """What may leave, of what has waited and of what the batch finds."""
        left = [0] * len(self.plan.queries)
        for self.joining.query, rows in waiting.leaving():
            left[self.query] += rows.num_rows
            yield rows
        for found in self._found():
            rows = waiting.take(self.query, found)
            left[self.query] += rows.num_rows
            if rows.num_rows:
                yield rows
        for counts, results in zip(self.joining.counts, left, strict=True):
            counts.results = results

    def _settled(self) -> int:
        """Up to which sequence number all results are found once this batch is over.

        Where tuples are then follows from the states before it: what is on its way arrives. What the batch brings is
        newer than all of them, and has met everything only if there is one worker.
        """
        most = self.before.sequence + (sum(self.joining.arrived) if self.line.workers == 1 else 0)
        return settled(*self._oldest(lambda info: info.number_min), most)

    def _oldest(self, of: Callable[[SegmentInfo], int]) -> tuple[np.ndarray, np.ndarray]:
        """The lowest number of R's and of S's earlier tuples in each worker once the batch is over, left to right."""
        oldest = np.full((2, self.line.workers), NO_TUPLE)
        for worker in range(self.line.workers):
            state = self.look(worker)
            for side in (R, S):
                for info in state.at_rest(side):
                    oldest[side, worker] = min(oldest[side, worker], of(info))
                for info in state.sent[side]:
                    successor = self.line.successor(side, worker)
                    oldest[side, successor] = min(oldest[side, successor], of(info))
        return oldest[R], oldest[S]

    def _output_mark_us(self, waiting: Sequence[Run]) -> int | None:
        """How far the output has come: up to the newer tuple of any pair that has not met, and of results that wait.

        Like `_settled`, by event times: what the batch brings is not older than the marks before it.
        """
        before_us = lowest_mark_us(clock.mark_us for clock in self.before.clocks)
        most_us = self.report.output_mark_us if self.line.workers == 1 else before_us
        met_us = None if most_us is None else settled(*self._oldest(lambda info: info.ts_min_us), most_us)
        if not waiting:
            return met_us
        keyed = all(query.keyed for query in self.plan.queries)  # else results have no times
        return lowest_mark_us((met_us, *(run.info.ts_min_us for run in waiting))) if keyed else None

    def _found(self) -> Iterator[pa.RecordBatch]:
        """All results of the batch, as tuples meet."""
        for r_files, s_files in self.mine.unmet:
            stored = self._chain_over(S, [self._segment(S, info) for info in self.mine.found(S, s_files)])
            for block in self._as_blocks(R, [self._segment(R, info) for info in self.mine.found(R, r_files)]):
                yield from self._probe(stored, S, block)
        r, s = self.flows[R], self.flows[S]
        # What is at rest, before anything comes in.
        s_met = [*s.at_rest, *s.outgoing]
        r_in = self._come_in(R)
        s_in = self._come_in(S)
        for block in r_in:
            yield from self._probe(self._chain_over(S, s_met), S, block)
        for block in s_in:
            yield from self._probe(self._chain_over(R, r.at_rest), R, block)

    def _probe(self, chain: Chain, stored: int, block: Block) -> Iterator[pa.RecordBatch]:
        return self.joining.probe(chain, stored, block, self.passing)

    def _chain_over(self, side: int, segments: list[Segment]) -> Chain:
        return replace(self._chains[side], segments=segments)

    def _come_in(self, side: int) -> list[Block]:
        """Store what comes in, and give it as blocks that probe."""
        predecessor = self.line.predecessor(side, self.unit.number)
        if predecessor is None:
            return [self._take_in(side, block) for block in self.joining.gather(side, STORE)]
        infos = self.look(predecessor).sent[side]
        segments = [self._segment(side, info.taken_over(predecessor, self.unit.number)) for info in infos]
        self.flows[side].closed += segments
        return self._as_blocks(side, segments)

    def _as_blocks(self, side: int, segments: list[Segment]) -> list[Block]:
        """Stored tuples as blocks that probe; small ones together, since each block is a search in every segment."""
        names = list(self._chains[side].names)
        if self.waiting is not None:
            names.append(NUMBER)
        ahead = self.before.clocks[side].rows
        groups: list[list[Block]] = []
        rows = 0
        for segment in segments:
            positions = segment.rows.column(RANK).to_numpy() - ahead if OPPOSITE in names else None
            queries = segment.rows.column(QUERIES).to_numpy() if segment.info.members else None
            block = Block(
                carried_rows(segment.rows.select(names)), segment.rows.column(TS).to_numpy(), positions, queries
            )
            if not groups or rows + len(block) > BLOCK_ROWS:
                groups.append([])
                rows = 0
            groups[-1].append(block)
            rows += len(block)
        return [block for group in groups for block in Block.together(group)]

    def _take_in(self, side: int, block: Block) -> Block:
        """New tuples at the stream's head, in blocks where there is a successor."""
        if isinstance(self.plan.window, CountWindow):
            block = block.with_column(OPPOSITE, self.joining.coordinates(self.plan.window, side, block))
        if (numbers := self.joining.numbers(side, block)) is not None:
            block = block.with_column(NUMBER, numbers)
        flow = self.flows[side]
        if self.line.successor(side, self.unit.number) is None:
            flow.closed += self._stored(flow.chain, side, block)
            return block
        size = self._block_tuples(side, len(block))
        unsplit = replace(flow.chain, archive_period=None)
        done = 0
        while flow.open_rows + len(block) - done >= size:
            upto = done + max(size - flow.open_rows, 0)
            flow.open += self._stored(unsplit, side, block.slice(done, upto))
            flow.closed += flow.joined(flow.open)
            flow.open = []
            done = upto
        flow.open += self._stored(unsplit, side, block.slice(done, len(block)))
        return block

    def _stored(self, chain: Chain, side: int, block: Block) -> list[Segment]:
        """A part of a batch as new segments."""
        chain = replace(chain, segments=[])
        if len(block):
            self.joining.store(chain, side, block, self.passing.numbers(side, block))
        return chain.segments

    def _block_tuples(self, side: int, arriving: int) -> int:
        if self.line.block is not None:
            return self.line.block
        states = [self.look(worker) for worker in range(self.line.workers)]
        live = sum(info.rows for state in states for infos in (state.at_rest(side), state.sent[side]) for info in infos)
        return automatic_block(live + arriving, self.line.workers)

    def _finish(self) -> None:
        begun = self.seconds()
        clocks = self.joining.clocks()
        dropped: list[str] = []
        closed: dict[int, tuple[SegmentInfo, ...]] = {}
        kept_open: dict[int, tuple[SegmentInfo, ...]] = {}
        sent: dict[int, tuple[SegmentInfo, ...]] = {}
        for side, flow in self.flows.items():
            if self.line.successor(side, self.unit.number) is None:
                self._let_go(side, flow, clocks)
            else:
                self._send_on(side, flow, clocks)
            dropped += [segment.info.file for segment in flow.dropped if segment.info.file]
            closed[side] = self.joining.saved(flow.closed)
            kept_open[side] = self.joining.saved(flow.open)
            sent[side] = self.joining.saved(flow.leaving)
        waiting: tuple[Run, ...] = ()
        if self.waiting is not None:
            waiting = self.waiting.finish(self.joining.save_segment)
            dropped += self.waiting.dropped
        self._count_forwarded(sent)
        after = self.joining.after(
            {side: closed[side] + kept_open[side] + sent[side] for side in (R, S)},
            clocks,
            {f"forwarded_{name}": value for name, value in self.report.forwarded.items()},
        )
        self.report.output_mark_us = self._output_mark_us(waiting)
        self.report.ended = self.report.ended and not waiting and not any(self.report.outbox_rows)
        self.report.waiting_results = sum(run.rows for run in waiting)
        self.report.stored_bytes += sum(run.info.bytes for run in waiting)
        settled = self.span.stop if self.waiting is not None else 0
        mine = ChainState((closed[R], closed[S]), (kept_open[R], kept_open[S]), (sent[R], sent[S]), waiting, settled)
        self.state = replace(after, tables=mine.tables, values=mine.values, dropped=tuple(dropped))
        self.report.seconds["expire"] += self.seconds() - begun

    def _let_go(self, side: int, flow: Flow, clocks: tuple[StreamClock, StreamClock]) -> None:
        """At the far end: drop what has outlived its window, and merge the rest."""
        chain = self._chain_over(side, flow.at_rest)
        expired = chain.expire(outlived(self.plan, side, clocks, 1, 1))
        self.report.expired_rows += rows_of(expired)
        flow.dropped += expired + chain.merge()
        flow.closed, flow.open = chain.segments, []

    def _send_on(self, side: int, flow: Flow, clocks: tuple[StreamClock, StreamClock]) -> None:
        """Elsewhere: the sweep first, then what evens out the loads."""
        own = rows_of(flow.at_rest)
        swept = self._swept(side, clocks)
        closed, flow.closed = flow.closed, []
        for segment in closed:
            (flow.leaving if swept(segment.info) else flow.closed).append(segment)
        flow.leaving += flow.joined([segment for segment in flow.open if swept(segment.info)])
        if self.line.balance:
            count = balancing(
                [segment.info.rows for segment in flow.closed],
                own - rows_of(flow.leaving),
                self._successor_rows(side, flow) + rows_of(flow.leaving),
                self.line.threshold,
            )
            flow.leaving += flow.closed[:count]
            flow.closed = flow.closed[count:]
        waiting = self._chain_over(side, [segment for segment in flow.open if not swept(segment.info)])
        flow.dropped += waiting.merge()
        flow.open = waiting.segments

    def _swept(self, side: int, clocks: tuple[StreamClock, StreamClock]) -> Callable[[SegmentInfo], bool]:
        if drains(self.given.punctuations) or idle(clocks, self.given.now_us):
            return lambda info: True
        parts = self.line.workers
        share = parts if self.line.balance else self.line.position(side, self.unit.number) + 1
        return outlived(self.plan, side, clocks, share, parts)

    def _successor_rows(self, side: int, flow: Flow) -> int:
        """The successor's load: what it has at rest, and what it is taking in during this batch."""
        successor = self.line.successor(side, self.unit.number)
        assert successor is not None
        return sum(info.rows for info in self.look(successor).at_rest(side)) + rows_of(flow.outgoing)

    def _count_forwarded(self, outbox: Mapping[int, tuple[SegmentInfo, ...]]) -> None:
        infos = [info for found in outbox.values() for info in found]
        self.report.outbox_rows = (sum(info.rows for info in outbox[R]), sum(info.rows for info in outbox[S]))
        self.report.forwarded = {
            "blocks": len(infos),
            "tuples": sum(info.rows for info in infos),
            "bytes": sum(info.bytes for info in infos),
        }


def rows_of(segments: list[Segment]) -> int:
    """Tuples in segments."""
    return sum(segment.info.rows for segment in segments)
