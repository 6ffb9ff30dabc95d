"""A processing unit: it stores tuples of its sides and answers probes of the opposite ones.

A step takes the unit's state before a batch and the batch's input, gives the batch's results, and leaves the state
after it. It is a pure function of the two: no clock, no randomness, no place to remember anything in between, so a
step that is repeated after a crash gives the same results and the same state.

Which tuple of a pair probes is decided by one total order over both streams. Stored tuples of earlier batches come
before all new ones. Inside a batch R's tuples come before S's, so new tuples of S probe new ones of R and not the other
way round; with a count window, where ranks matter, tuples alternate by position, R first. Either way each pair is
found once (BiStream, section 3.2.3: R units join only if T_r <= T_s, S units only if T_s < T_r).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa

from streamjoin.block import Block
from streamjoin.engine.state import UnitState
from streamjoin.expression import Columns
from streamjoin.index.chain import Chain, Open, Save
from streamjoin.index.segment import ProbeCounts, Segment, SegmentInfo
from streamjoin.operators.emit import Emitter
from streamjoin.operators.routing import PROBE, STORE, UnitSpec
from streamjoin.operators.stored import stored, tables
from streamjoin.ordering import Ordering, places
from streamjoin.plan import JoinPlan
from streamjoin.punctuation import Punctuation, StreamClock
from streamjoin.sharing import Plan
from streamjoin.window import CountWindow, FullHistory, R, S, TimeWindow, Window


@dataclass(frozen=True, slots=True)
class Given:
    """A routed block as one unit gets it.

    Args:
        first: how many tuples of the piece were routed before it.
    """

    side: int
    role: int
    piece: str
    first: int
    block: Block


@dataclass(slots=True)
class UnitInput:
    """What one batch brings to a unit.

    Args:
        blocks: every routed block.
        punctuations: one of every piece of the batch's input.
        now_us: when the batch began, as logged.
        begins: it is the first batch that its run has planned.
    """

    blocks: list[Given]
    punctuations: Sequence[Punctuation]
    now_us: int
    begins: bool = False


@dataclass(slots=True)
class QueryCounts:
    """What one query had of a step."""

    results: int = 0
    comparisons: int = 0


@dataclass(slots=True)
class UnitReport:
    """What one step did; every field but `seconds` is a pure function of state and input.

    Stored tuples are there with those on their way out, `outbox_rows`; `forwarded` counts blocks, tuples and bytes.
    `queries` has what `QueryCounts` has, by query. `results` counts those that left, `waiting_results` those that wait.
    """

    unit: int
    label: str
    received: dict[str, int] = field(default_factory=lambda: {"store": 0, "probe": 0, "both": 0})
    received_bytes: dict[str, int] = field(default_factory=lambda: {"store": 0, "probe": 0, "both": 0})
    stored_rows: tuple[int, int] = (0, 0)
    stored_bytes: int = 0
    segments: int = 0
    comparisons: int = 0
    results: int = 0
    late: list[int] = field(default_factory=lambda: [0, 0])
    expired_rows: int = 0
    marks_us: tuple[int | None, int | None] = (None, None)
    outbox_rows: tuple[int, int] = (0, 0)
    forwarded: dict[str, int] = field(default_factory=dict)
    waiting_results: int = 0
    queries: list[dict[str, int]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: {"probe": 0.0, "store": 0.0, "expire": 0.0})


_ROLE_NAMES = {STORE: "store", PROBE: "probe", STORE | PROBE: "both"}


@dataclass(frozen=True, slots=True)
class Work:
    """What a unit has to do in one batch, and with what.

    Args:
        before: its state before the batch.
        open_segment: description -> the segment's rows, without copying where the store can.
        save_segment: rows and description -> the description with its file name, once it is durable.
        seconds: a stopwatch for the report only.
        look: any unit's state of the same version as `before`.
    """

    plan: Plan
    unit: UnitSpec
    before: UnitState
    given: UnitInput
    open_segment: Open
    save_segment: Save
    seconds: Callable[[], float]
    look: Callable[[int], UnitState]


class UnitStep:
    """One unit's work on one batch.

    Iterate `results()` to its end, then take `state` and `report`. While it gives a batch of results, `query` is the
    number of the query that they are of. `span` has the sequence numbers of the newer tuples of the results that leave;
    it is the same for all units.
    """

    def __init__(self, work: Work) -> None:
        self.plan = work.plan
        self.unit = work.unit
        self.before = work.before
        self.given = work.given
        self.save_segment = work.save_segment
        self.seconds = work.seconds
        self.report = UnitReport(work.unit.number, work.unit.label)
        self.state = work.before
        self.query = 0
        self._counts = [QueryCounts() for _ in work.plan.queries]
        self._starts = _piece_starts(work.given.punctuations)
        arrived = [sum(item.rows for item in work.given.punctuations if item.side == side) for side in (R, S)]
        self._arrived = (arrived[R], arrived[S])
        self.span = range(self.before.sequence, self.before.sequence + sum(arrived))
        self._chains = {side: self._attach(side, work.open_segment) for side in work.unit.stores}

    def _attach(self, side: int, open_segment: Open) -> Chain:
        layouts = tuple(query.layout(side) for query in self.plan.queries)
        segments = [Segment.attach(open_segment(info), info, layouts) for info in stored(self.before, side)]
        return Chain(layouts, self.plan.stored_columns(side), self.plan.archive_period, segments)

    def results(self) -> Iterator[pa.RecordBatch]:
        """The batch's result rows, in parts of bounded size; afterwards `state` is the unit's next state."""
        for side, chain in self._chains.items():
            arriving = self._gather(side, STORE)
            probing = self._gather(1 - side, PROBE)
            # R's new tuples come before S's; ranks order them finer, so both must be there to be compared.
            stored_first = side == R or isinstance(self.plan.window, CountWindow)
            if stored_first:
                self._store(chain, side, arriving)
            if probing is not None:
                yield from self._probe(chain, side, probing)
            if not stored_first:
                self._store(chain, side, arriving)
        self._finish()

    def _gather(self, side: int, role: int) -> Block | None:
        chosen = [given for given in self.given.blocks if given.side == side and given.role & role and len(given.block)]
        if not chosen:
            return None
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
        return block if len(block) else None

    def _numbers(self, side: int, block: Block) -> np.ndarray | None:
        """Sequence numbers of tuples of `side`; None where the order of results does not matter."""
        if self.plan.ordering is Ordering.NONE:
            return None
        assert block.positions is not None
        alternate = isinstance(self.plan.window, CountWindow)
        return places(side, block.positions, self._arrived, alternate=alternate) + self.before.sequence

    @staticmethod
    def _columns(query: JoinPlan, side: int, block: Block) -> Columns:
        name = query.names[side]
        return {(name, column): block.rows.column(column) for column in block.rows.schema.names}

    def _store(self, chain: Chain, side: int, block: Block | None) -> None:
        if block is None:
            return
        begun = self.seconds()
        ranks = None
        if isinstance(self.plan.window, CountWindow):
            assert block.positions is not None
            ranks = block.positions + self.before.clocks[side].rows
        if side in self.unit.counts and (mark_us := self.before.clocks[side].mark_us) is not None:
            self.report.late[side] += int(np.count_nonzero(block.ts_us < mark_us))
        columns = [self._columns(query, side, block) for query in self.plan.queries]
        chain.store(block, columns, ranks, self._numbers(side, block))
        self.report.seconds["store"] += self.seconds() - begun

    def _probe_coordinates(self, window: Window, side: int, block: Block) -> np.ndarray:
        """For count windows, how many tuples of the other stream come before each tuple of `side`."""
        match window:
            case TimeWindow():
                return block.ts_us
            case FullHistory():
                return np.zeros(0, np.int64)
            case CountWindow():
                assert block.positions is not None
                other = 1 - side
                before = block.positions + (1 if side == S else 0)
                return np.asarray(np.minimum(before, self._arrived[other]) + self.before.clocks[other].rows)

    def _probe(self, chain: Chain, stored: int, block: Block) -> Iterator[pa.RecordBatch]:
        begun = self.seconds()
        for query in range(len(self.plan.queries)):
            self.query = query
            mine = block.of(query)
            for batch in self._matches(chain, stored, mine) if len(mine) else ():
                self._counts[self.query].results += batch.num_rows
                # Whoever takes the results may be slow; that is not time spent probing.
                self.report.seconds["probe"] += self.seconds() - begun
                yield batch
                begun = self.seconds()
        self.report.seconds["probe"] += self.seconds() - begun

    def _matches(self, chain: Chain, stored: int, block: Block) -> Iterator[pa.RecordBatch]:
        """Results of the query that `query` says: its tuples of `block` with what the chain stores."""
        plan, layout = self.plan.queries[self.query], chain.layouts[self.query]
        probing, counts = 1 - stored, ProbeCounts()
        at = self._probe_coordinates(plan.window, probing, block)
        probes = layout.probes(self._columns(plan, probing, block), at, len(block))
        emitter = Emitter(plan, stored, block, self._numbers(probing, block))
        for segment in chain.segments:
            for probe_rows, stored_rows in segment.probe(self.query, probes, layout, counts):
                yield from emitter.add(segment, probe_rows, stored_rows)
        yield from emitter.flush()
        self._counts[self.query].comparisons += counts.comparisons

    def _finish(self) -> None:
        begun = self.seconds()
        clocks = (self._clock(R), self._clock(S))
        dropped: list[str] = []
        kept: dict[int, tuple[SegmentInfo, ...]] = {}
        for side, chain in self._chains.items():
            # After the probes: the oldest tuple of a batch may still need what its newest one lets go.
            expired = chain.expire(_expiry(self.plan, side, clocks))
            self.report.expired_rows += sum(segment.info.rows for segment in expired)
            gone = expired + chain.merge()
            dropped += [segment.info.file for segment in gone if segment.info.file]
            kept[side] = tuple(
                segment.info if segment.info.file else self.save_segment(segment.rows, segment.info)
                for segment in chain.segments
            )
        self.report.marks_us = (clocks[R].mark_us, clocks[S].mark_us)
        self._count(kept)
        self.report.seconds["expire"] += self.seconds() - begun
        self.state = UnitState(self.before.version + 1, tables(kept), {}, clocks, self._totals(), tuple(dropped))

    def _clock(self, side: int) -> StreamClock:
        return self.before.clocks[side].advance(
            [item for item in self.given.punctuations if item.side == side],
            self.plan.streams[side].delay_us,
            self.given.now_us,
            begins=self.given.begins,
        )

    def _count(self, kept: Mapping[int, tuple[SegmentInfo, ...]]) -> None:
        self.report.results = sum(found.results for found in self._counts)
        self.report.comparisons = sum(found.comparisons for found in self._counts)
        self.report.queries = [asdict(found) for found in self._counts]
        rows = [sum(info.rows for info in kept.get(side, ())) for side in (R, S)]
        self.report.stored_rows = (rows[R], rows[S])
        self.report.stored_bytes = sum(info.bytes for infos in kept.values() for info in infos)
        self.report.segments = sum(len(infos) for infos in kept.values())
        for given in self.given.blocks:
            self.report.received[_ROLE_NAMES[given.role]] += len(given.block)
            size = given.block.rows.nbytes + given.block.ts_us.nbytes
            self.report.received_bytes[_ROLE_NAMES[given.role]] += size

    def _totals(self) -> dict[str, int]:
        gained = {
            "comparisons": self.report.comparisons,
            "results": self.report.results,
            "late_r": self.report.late[R],
            "late_s": self.report.late[S],
            "expired_rows": self.report.expired_rows,
            **{f"received_{role}": rows for role, rows in self.report.received.items()},
            **{f"bytes_{role}": size for role, size in self.report.received_bytes.items()},
        }
        return {name: self.before.totals.get(name, 0) + value for name, value in gained.items()}


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


def _expiry(plan: Plan, side: int, clocks: tuple[StreamClock, ...]) -> Callable[[SegmentInfo], bool]:
    """When a segment stored on `side` can be dropped (BiStream, Theorem 1).

    R falls by S's mark and `after`, S by R's mark and `before`: the next opposite tuple inside its allowed delay is at
    the mark or later, so a stored tuple whose reach ends before the mark is met by none.
    """
    match plan.window:
        case TimeWindow() as window:
            mark_us = clocks[1 - side].mark_us
            if mark_us is None:
                return lambda info: False
            oldest_us = mark_us - window.keeps_us(side)
            return lambda info: info.ts_max_us < oldest_us
        case CountWindow(rows):
            first = clocks[side].rows - rows
            return lambda info: info.rank_max < first
        case FullHistory():
            return lambda info: False
