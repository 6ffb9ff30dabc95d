"""Rows that are given once, by whether they were matched: those of outer, semi and anti joins.

Each such row has a home, the one unit that stores it and counts it. A match may be found there, or in a unit that it
probed; that unit then notes the row's number in its outbox, and home reads it one batch later. So at home three bits of
a row are enough: that it is at home, whether it was matched, and whether it was given as unmatched. Bits are kept by
sequence number, from that of the oldest row that home stores.

A row is unmatched once its `until` is below the mark that the other side had before the batch: no tuple inside the
allowed delay can match it any more, and all that did has been read. So that nothing comes twice, probes do not see a
row that was given as unmatched; what would have matched it later is counted. Where a row is stored besides its home,
that follows from its `until` alone, except for rows that were given because a stream had ended: if the job goes on,
home's bits are looked at.

Cost: three bits for each number between the oldest and the newest row at home, written once a batch; a look at those
segments in which rows became final.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.engine.emit import one_sided
from streamjoin.engine.joining import Joining
from streamjoin.engine.routing import ALONE
from streamjoin.engine.state import Table
from streamjoin.engine.unit import Work
from streamjoin.flow.block import TS
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.chain import Chain
from streamjoin.index.segment import Segment, SegmentInfo
from streamjoin.index.view import NUMBER
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.window import R, TimeWindow

BITS, NOTICES = "decided", "notices"
"""Tables: three bits for each row, and the numbers of rows that matches were found of elsewhere."""
_VALUES = "deciding"
_PLANES = ("mine", "matched", "given")
NEVER = (1 << 63) - 1


@dataclass(slots=True)
class _Bits:
    """Of the rows numbered from `first` on, which are at home, matched, and given, bool of shape (n,) each."""

    first: int
    mine: np.ndarray
    matched: np.ndarray
    given: np.ndarray

    @staticmethod
    def read(rows: pa.RecordBatch | None, new: int, past: int) -> _Bits:
        """Those that were packed, and none set of the numbers from `new` up to, not including, `past`."""
        first = new if rows is None else rows.column("first")[0].as_py()
        bits = _Bits(first, *(np.zeros(past - first, bool) for _ in _PLANES))
        if rows is not None:
            for name in _PLANES:
                packed = np.frombuffer(rows.column(name)[0].as_buffer(), np.uint8)
                getattr(bits, name)[: new - first] = np.unpackbits(packed, count=new - first)
        return bits

    def packed(self, first: int) -> pa.RecordBatch:
        """The bits of the numbers from `first` on, as `read` takes them."""
        cut = first - self.first
        planes = [pa.array([np.packbits(getattr(self, name)[cut:]).tobytes()], pa.binary()) for name in _PLANES]
        return pa.RecordBatch.from_arrays([pa.array([first]), *planes], ["first", *_PLANES])

    @property
    def open(self) -> np.ndarray:
        """The rows at home of which it is not known yet what they are, bool."""
        return np.asarray(self.mine & ~self.matched & ~self.given)

    def settled(self, numbers: np.ndarray) -> np.ndarray:
        """Of rows with these numbers, whether it is known what they are, bool."""
        at = numbers - self.first
        return np.asarray(self.matched[at] | self.given[at])


@dataclass(slots=True)
class _Reached:
    """What is known of one side's rows at home after a batch.

    Args:
        horizon_us: rows stored before number `sequence` whose `until` is below it are settled.
        floor_us: rows that are not settled are not older; NEVER where all are.
    """

    horizon_us: int | None = None
    sequence: int = 0
    floor_us: int = NEVER


class Deciding:
    """A unit's part in a join whose rows are decided on.

    Args:
        chains: what the unit stores, by side.
    """

    def __init__(self, work: Work, joining: Joining, chains: Mapping[int, Chain]) -> None:
        (self.plan,) = joining.plan.queries
        self.kind = self.plan.kind
        self.work = work
        self.joining = joining
        self.chains = chains
        unit = work.unit
        self.home = tuple(side for side in self.kind.decided if side in unit.stores and side in unit.counts)
        """The sides whose rows are at home here."""
        self._noticed: list[np.ndarray] = []
        self._newly: list[tuple[Segment, np.ndarray]] = []
        values = work.before.values.get(_VALUES, {})
        self._reached = {side: _Reached(**values.get(str(side), {})) for side in self.home}
        self._output_mark_us: int | None = values.get("output_mark_us")
        self._early = _early(values, self.home)
        self._bits = self._read_bits()
        self._given_elsewhere = self._read_given()
        self._told = self._read_notices()

    def _read_bits(self) -> _Bits:
        before = self.work.before
        infos = before.segments(BITS)
        rows = self.work.open_segment(infos[0]) if infos and self.home else None
        return _Bits.read(rows, before.sequence, before.sequence + sum(self.joining.arrived))

    def _read_notices(self) -> np.ndarray:
        """The numbers of rows that were matched elsewhere in the batch before, of those that may be at home here."""
        found = [np.zeros(0, np.int64)]
        for unit in self.work.numbers if self.home else ():
            for info in self.work.look(unit).segments(NOTICES):
                rows = self.work.open_segment(info.taken_over(unit, self.work.unit.number))
                found.append(rows.column(NUMBER).to_numpy())
        numbers = np.concatenate(found)
        numbers = numbers[numbers >= self._bits.first]
        new = np.unique(numbers[self._bits.open[numbers - self._bits.first]])
        self._bits.matched[new - self._bits.first] = True
        return new

    def _read_given(self) -> dict[int, np.ndarray]:
        """By side that is stored here and at home elsewhere, the numbers of rows that were given at an end, rising."""
        away = [side for side in self.kind.decided if side in self.work.unit.stores and side not in self.home]
        found: dict[int, list[np.ndarray]] = {side: [] for side in away}
        for unit in self.work.numbers if away else ():
            state = self.work.look(unit)
            early = _early(state.values.get(_VALUES, {}), away)
            infos = state.segments(BITS)
            if not infos or not any(early.values()):
                continue
            rows = self.work.open_segment(infos[0].taken_over(unit, self.work.unit.number))
            bits = _Bits.read(rows, state.sequence, state.sequence)
            given = bits.first + np.nonzero(bits.given)[0]
            for side in away:
                found[side].append(given[given < early[side]])
        return {side: np.unique(np.concatenate(some)) for side, some in found.items() if some}

    def stored(self, side: int, numbers: np.ndarray | None) -> None:
        """Tuples of a side with these numbers were stored."""
        if side in self.home and numbers is not None:
            self._bits.mine[numbers - self._bits.first] = True

    def met(self, stored: int, segment: Segment, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray | None:
        """See `Met`: note who is matched, and leave out what comes too late."""
        places: np.ndarray | None = None
        if stored in self.kind.decided:
            own = segment.rows.column(NUMBER).to_numpy()[rows]
            seen = self._seen(stored, segment, rows, own)
            if not seen.all():
                places = np.nonzero(seen)[0]
                self.joining.report.late_after_final += int(rows.size - places.size)
                rows, own, numbers = rows[places], own[places], numbers[places]
            if stored in self.home:
                at = own - self._bits.first
                if self.kind is JoinKind.SEMI:
                    self._newly.append((segment, np.unique(rows[~self._bits.matched[at]])))
                self._bits.matched[at] = True
            else:
                self._noticed.append(np.unique(own))
        if 1 - stored in self.kind.decided:
            self._noticed.append(np.unique(numbers))
        if not self.kind.gives_pairs:
            return np.zeros(0, np.int64)
        return places

    def _seen(self, stored: int, segment: Segment, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Which rows of a segment, with these numbers, probes see: none that was given as unmatched. bool"""
        if stored in self.home:
            return np.asarray(~self._bits.given[numbers - self._bits.first])
        # At home elsewhere: what may have been given there is not seen here.
        seen = np.ones(rows.size, bool)
        if (horizon_us := self.work.before.clocks[1 - stored].mark_us) is not None:
            seen = np.asarray(self._until_us(stored, segment)[rows] >= horizon_us)
        if (given := self._given_elsewhere.get(stored)) is not None:
            seen &= ~np.isin(numbers, given)
        return seen

    def results(self, clocks: tuple[StreamClock, StreamClock]) -> Iterator[pa.RecordBatch]:
        """The rows that became known as matched or unmatched with the batch, after all its probes."""
        for side in self.kind.preserved:
            for block in self.joining.gather(side, ALONE):
                yield from self._unmatched(side, block.rows, block.ts_us)
        if self.kind is JoinKind.SEMI:
            for segment, rows in (*self._newly, *self._found(self._told)):
                yield from one_sided(self.plan, R, *_rows_of(segment, rows))
        for side in self.home:
            for segment, rows in self._final(side, clocks):
                self._bits.given[segment.rows.column(NUMBER).to_numpy()[rows] - self._bits.first] = True
                if side in self.kind.preserved:
                    yield from self._unmatched(side, *_rows_of(segment, rows))

    def _unmatched(self, side: int, rows: pa.RecordBatch, ts_us: np.ndarray) -> Iterator[pa.RecordBatch]:
        self.joining.report.unmatched_rows += rows.num_rows
        yield from one_sided(self.plan, side, rows, ts_us)

    def _found(self, numbers: np.ndarray) -> Iterator[tuple[Segment, np.ndarray]]:
        """Where rows with these numbers, in rising order, are stored."""
        for segment in self.chains[R].segments if self.home and numbers.size else ():
            if segment.info.number_min <= numbers[-1] and segment.info.number_max >= numbers[0]:
                rows = np.nonzero(np.isin(segment.rows.column(NUMBER).to_numpy(), numbers))[0]
                if rows.size:
                    yield segment, rows

    def _final(self, side: int, clocks: tuple[StreamClock, StreamClock]) -> Iterator[tuple[Segment, np.ndarray]]:
        """The unmatched rows of a side that were stored before the batch and can match nothing any more."""
        other, before, reached = 1 - side, self.work.before, self._reached[side]
        over = before.clocks[other].ended or (clocks[other].ended and not self.joining.arrived[other])
        # A semi join gives nothing for an unmatched row, so if the job goes on it may still be matched.
        over = over and self.kind is not JoinKind.SEMI
        horizon_us = before.clocks[other].mark_us
        if not over and horizon_us is None:
            return
        for segment in self.chains[side].segments:
            info = segment.info
            if not over and not self._may_be_final(side, info, horizon_us):
                continue
            numbers = segment.rows.column(NUMBER).to_numpy()
            final = (numbers < before.sequence) & ~self._bits.settled(numbers)
            if not over:
                final &= self._until_us(side, segment) < horizon_us
            if final.any():
                yield segment, np.nonzero(final)[0]
        self._reached[side] = _Reached(horizon_us, before.sequence, reached.floor_us)
        if over:
            self._early[side] = before.sequence

    def _may_be_final(self, side: int, info: SegmentInfo, horizon_us: int | None) -> bool:
        """Whether a segment may hold rows that are final now and were not before."""
        reached, reach_us = self._reached[side], self._reach_us(side)
        least_us = info.ts_min_us if self.plan.untils[side] else info.ts_min_us + reach_us
        if horizon_us is None or least_us >= horizon_us:
            return False
        known = reached.horizon_us is not None and info.ts_max_us + reach_us < reached.horizon_us
        return not (known and info.number_max < reached.sequence)

    def _reach_us(self, side: int) -> int:
        """How far newer than itself a row's partner may be."""
        if not isinstance(self.plan.window, TimeWindow):
            return 1 << 62
        return self.plan.window.keeps_us(side)

    def _until_us(self, side: int, segment: Segment) -> np.ndarray:
        """Up to when a segment's rows meet others, int64."""
        if (until := self.plan.untils[side]) is not None:
            return np.asarray(segment.rows.column(until.name).to_numpy())
        return np.asarray(segment.rows.column(TS).to_numpy()) + self._reach_us(side)

    def expired(self, side: int, info: SegmentInfo) -> bool:
        """Whether a segment of rows at home can be dropped: all its rows are settled."""
        before = self.work.before
        horizon_us = before.clocks[1 - side].mark_us
        if horizon_us is None:
            return False
        return info.ts_max_us + self._reach_us(side) < horizon_us and info.number_max < before.sequence

    def finish(self) -> tuple[dict[str, Table], dict[str, object], list[str]]:
        """(tables, values, files let go) of the next state; completes the report. The chains are as they will be kept.

        A row that is not known yet to be matched or unmatched holds the mark of the output back to its own time.
        """
        report, before = self.joining.report, self.work.before
        for side in self.home:
            self._reached[side].floor_us = self._floor(side)
        report.open_rows = int(np.count_nonzero(self._bits.open))
        if report.output_mark_us is not None:
            mark_us = min([report.output_mark_us, *(reached.floor_us for reached in self._reached.values())])
            report.output_mark_us = mark_us if self._output_mark_us is None else max(mark_us, self._output_mark_us)
        noticed = np.unique(np.concatenate([np.zeros(0, np.int64), *self._noticed]))
        waits = report.open_rows > 0 and self.kind is not JoinKind.SEMI
        report.ended = report.ended and not noticed.size and not waits
        tables: dict[str, Table] = {}
        kept_from = 0
        if self.home:
            numbers = [segment.info.number_min for side in self.home for segment in self.chains[side].segments]
            past = self._bits.first + self._bits.matched.size
            kept_from = min(numbers, default=past)
            tables[BITS] = self._saved(self._bits.packed(kept_from))
        if noticed.size:
            tables[NOTICES] = self._saved(pa.RecordBatch.from_arrays([pa.array(noticed)], [NUMBER]))
        values: dict[str, object] = {str(side): asdict(one) for side, one in self._reached.items()}
        values["output_mark_us"] = report.output_mark_us
        if early := {str(side): number for side, number in self._early.items() if number > kept_from}:
            values["early"] = early
        gone = [info.file for name in (BITS, NOTICES) for info in before.segments(name)]
        return tables, {_VALUES: values}, gone

    def _saved(self, rows: pa.RecordBatch) -> Table:
        info = SegmentInfo("", rows.num_rows, rows.nbytes, 0, 0, 0)
        return Table(None, (self.joining.save_segment(rows, info),))

    def _floor(self, side: int) -> int:
        """The event time of the oldest row that is not settled."""
        known_us, before = self._reached[side].floor_us, self.work.before
        oldest = NEVER
        for segment in sorted(self.chains[side].segments, key=lambda segment: segment.info.ts_min_us):
            info = segment.info
            if info.ts_max_us < known_us and info.number_max < before.sequence:
                continue
            if info.ts_min_us >= oldest:
                break
            unsettled = ~self._bits.settled(segment.rows.column(NUMBER).to_numpy())
            if unsettled.any():
                oldest = min(oldest, int(segment.rows.column(TS).to_numpy()[unsettled].min()))
        return oldest


def _early(values: Mapping[str, Any], sides: Iterable[int]) -> dict[int, int]:
    """By side, below which number rows were given because a stream had ended."""
    return {side: values.get("early", {}).get(str(side), 0) for side in sides}


def all_matched(bits: pa.RecordBatch, sequence: int) -> pa.RecordBatch:
    """What `BITS` has, with every row at home as matched: none of them leaves for want of a partner.

    Args:
        sequence: of the state that has it.
    """
    found = _Bits.read(bits, sequence, sequence)
    found.matched |= found.mine
    return found.packed(found.first)


def _rows_of(segment: Segment, rows: np.ndarray) -> tuple[pa.RecordBatch, np.ndarray]:
    some = segment.rows.take(pa.array(rows))
    return some, some.column(TS).to_numpy()
