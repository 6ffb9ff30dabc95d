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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.block import Block
from streamjoin.expression import Columns
from streamjoin.index.chain import Chain, Open, Save
from streamjoin.index.segment import ProbeCounts, Segment, SegmentInfo
from streamjoin.operators.emit import Emitter
from streamjoin.operators.operator import PROBE, STORE, UnitSpec
from streamjoin.plan import JoinPlan
from streamjoin.punctuation import Punctuation, StreamClock
from streamjoin.window import CountWindow, FullHistory, R, S, TimeWindow


@dataclass(frozen=True, slots=True)
class UnitState:
    """A unit between two batches: what its manifest says.

    Args:
        version: the number of batches it has seen.
        segments: descriptions of the stored tuples' segments, by side.
        clocks: how far R and S have come.
        totals: counters since the job began.
        dropped: files that the batch before this version let go.
        outbox: messages to other units, read by them in the next batch.
    """

    version: int
    segments: Mapping[int, tuple[SegmentInfo, ...]]
    clocks: tuple[StreamClock, StreamClock] = (StreamClock(), StreamClock())
    totals: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    outbox: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True)
class UnitInput:
    """What one batch brings to a unit.

    Args:
        blocks: (side, role, piece, block) of every routed block.
        punctuations: one of every piece of the batch's input.
        now_us: when the batch began, as logged.
    """

    blocks: list[tuple[int, int, str, Block]]
    punctuations: Sequence[Punctuation]
    now_us: int


@dataclass(slots=True)
class UnitReport:
    """What one step did; every field but `seconds` is a pure function of state and input."""

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
    seconds: dict[str, float] = field(default_factory=lambda: {"probe": 0.0, "store": 0.0, "expire": 0.0})


_ROLE_NAMES = {STORE: "store", PROBE: "probe", STORE | PROBE: "both"}


class UnitStep:
    """One unit's work on one batch.

    Iterate `results()` to its end, then take `state` and `report`.

    Args:
        open_segment: description -> the segment's rows, without copying where the store can.
        save_segment: rows and description -> the description with its file name, once it is durable.
        seconds: a stopwatch for the report only.
    """

    def __init__(
        self,
        plan: JoinPlan,
        unit: UnitSpec,
        before: UnitState,
        given: UnitInput,
        open_segment: Open,
        save_segment: Save,
        seconds: Callable[[], float],
    ) -> None:
        self.plan = plan
        self.unit = unit
        self.before = before
        self.given = given
        self.save_segment = save_segment
        self.seconds = seconds
        self.report = UnitReport(unit.number, unit.label)
        self.state = before
        self._starts = _piece_starts(given.punctuations)
        self._chains = {side: self._attach(side, open_segment) for side in unit.stores}

    def _attach(self, side: int, open_segment: Open) -> Chain:
        layout = self.plan.layout(side)
        segments = [Segment.attach(open_segment(info), info, layout) for info in self.before.segments.get(side, ())]
        return Chain(layout, self.plan.stored_columns(side), self.plan.archive_period, segments)

    def results(self) -> Iterator[pa.RecordBatch]:
        """The batch's result rows, in parts of bounded size; afterwards `state` is the unit's next state."""
        counts = ProbeCounts()
        for side, chain in self._chains.items():
            arriving = self._gather(side, STORE)
            probing = self._gather(1 - side, PROBE)
            # R's new tuples come before S's; ranks order them finer, so both must be there to be compared.
            stored_first = side == R or isinstance(self.plan.window, CountWindow)
            if stored_first:
                self._store(chain, side, arriving)
            if probing is not None:
                yield from self._probe(chain, side, probing, counts)
            if not stored_first:
                self._store(chain, side, arriving)
        self.report.comparisons = counts.comparisons
        self._finish()

    def _gather(self, side: int, role: int) -> Block | None:
        chosen = [
            (piece, block)
            for of, given, piece, block in self.given.blocks
            if of == side and given & role and len(block)
        ]
        if not chosen:
            return None
        block = Block.concat([block for _, block in chosen])
        if block.positions is not None:
            starts = np.repeat([self._starts[side, piece] for piece, _ in chosen], [len(block) for _, block in chosen])
            block = Block(block.rows, block.ts_us, block.positions + starts)
        return block

    def _columns(self, side: int, block: Block) -> Columns:
        name = self.plan.names[side]
        return {(name, column): block.rows.column(column) for column in block.rows.schema.names}

    def _store(self, chain: Chain, side: int, block: Block | None) -> None:
        if block is None:
            return
        begun = self.seconds()
        ranks = None if block.positions is None else block.positions + self.before.clocks[side].rows
        coordinates = self._no_coordinates() if ranks is None else ranks
        if isinstance(self.plan.window, TimeWindow):
            coordinates = block.ts_us
        if side in self.unit.counts and (mark_us := self.before.clocks[side].mark_us) is not None:
            self.report.late[side] += int(np.count_nonzero(block.ts_us < mark_us))
        chain.store(block, self._columns(side, block), coordinates, ranks)
        self.report.seconds["store"] += self.seconds() - begun

    @staticmethod
    def _no_coordinates() -> np.ndarray:
        return np.zeros(0, np.int64)

    def _probe_coordinates(self, side: int, block: Block) -> np.ndarray:
        """For count windows, how many tuples of the other stream come before each tuple of `side`."""
        match self.plan.window:
            case TimeWindow():
                return block.ts_us
            case FullHistory():
                return self._no_coordinates()
            case CountWindow():
                assert block.positions is not None
                other = 1 - side
                arrived = sum(item.rows for item in self.given.punctuations if item.side == other)
                before = block.positions + (1 if side == S else 0)
                return np.asarray(np.minimum(before, arrived) + self.before.clocks[other].rows)

    def _probe(self, chain: Chain, stored: int, block: Block, counts: ProbeCounts) -> Iterator[pa.RecordBatch]:
        begun = self.seconds()
        probing = 1 - stored
        probes = chain.layout.probes(self._columns(probing, block), self._probe_coordinates(probing, block), len(block))
        emitter = Emitter(self.plan, stored, block)
        for segment in chain.segments:
            for probe_rows, stored_rows in segment.probe(probes, chain.layout, counts):
                for batch in emitter.add(segment, probe_rows, stored_rows):
                    self.report.results += batch.num_rows
                    # Whoever takes the results may be slow; that is not time spent probing.
                    self.report.seconds["probe"] += self.seconds() - begun
                    yield batch
                    begun = self.seconds()
        for batch in emitter.flush():
            self.report.results += batch.num_rows
            self.report.seconds["probe"] += self.seconds() - begun
            yield batch
            begun = self.seconds()
        self.report.seconds["probe"] += self.seconds() - begun

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
        self.state = UnitState(self.before.version + 1, kept, clocks, self._totals(), tuple(dropped))

    def _clock(self, side: int) -> StreamClock:
        return self.before.clocks[side].advance(
            [item for item in self.given.punctuations if item.side == side],
            self.plan.streams[side].delay_us,
            self.given.now_us,
        )

    def _count(self, kept: Mapping[int, tuple[SegmentInfo, ...]]) -> None:
        rows = [sum(info.rows for info in kept.get(side, ())) for side in (R, S)]
        self.report.stored_rows = (rows[R], rows[S])
        self.report.stored_bytes = sum(info.bytes for infos in kept.values() for info in infos)
        self.report.segments = sum(len(infos) for infos in kept.values())
        for _, role, _, block in self.given.blocks:
            self.report.received[_ROLE_NAMES[role]] += len(block)
            self.report.received_bytes[_ROLE_NAMES[role]] += block.rows.nbytes + block.ts_us.nbytes

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


def _piece_starts(punctuations: Sequence[Punctuation]) -> dict[tuple[int, str], int]:
    """Where each piece begins among its stream's tuples of the batch: pieces are ordered by name."""
    starts: dict[tuple[int, str], int] = {}
    reached = [0, 0]
    for item in sorted(punctuations, key=lambda item: item.piece):
        starts[item.side, item.piece] = reached[item.side]
        reached[item.side] += item.rows
    return starts


def _expiry(plan: JoinPlan, side: int, clocks: tuple[StreamClock, ...]) -> Callable[[SegmentInfo], bool]:
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
