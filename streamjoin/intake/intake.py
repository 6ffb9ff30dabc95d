"""Intake of one stream: stamp, select, shed, project.

Rows come in as record batches of the stream's schema; blocks of those that can join go out, for a router to send on.
What cannot be joined is counted, never silently lost: rows without a usable event time become dead letters, rows with
a NULL key match nothing and stay behind, and so does what load shedding drops.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streamjoin.errors import RunError
from streamjoin.flow import periods
from streamjoin.flow.block import Block
from streamjoin.index.columns import carried_rows, routed_columns
from streamjoin.intake.deadletter import NO_TIME, TIME_OUT_OF_RANGE, DeadLetter
from streamjoin.intake.event_time import MISSING, OUT_OF_RANGE, event_times
from streamjoin.intake.selection import bits_of, select, with_ends
from streamjoin.intake.shedding import kept
from streamjoin.plan.ending import EndsByRow
from streamjoin.plan.stages import StagePlan

BLOCK_ROWS = 1 << 18
"""Rows routed at a time: large enough that a block's fixed cost does not show, small enough for a worker's memory."""

LETTERS_BYTES_MAX = 16 << 20
"""Dead letters of a piece that are kept, in bytes; further ones are counted only. They wait in a worker's memory."""

REJECTED = "rejected:"
KEPT = "kept:"
"""With a reason behind them, counts of rows that cannot be joined, and of those of them that are kept."""


@dataclass(frozen=True, slots=True)
class Routed:
    """A block on its way.

    Args:
        slot: the Spark partition it goes to.
        targets: (unit number, role) of the units of that slot it is for.
        rows: tuples in it.
        first: how many tuples of the piece were routed before the block that it is a part of.
    """

    slot: int
    side: int
    piece: str
    targets: tuple[tuple[int, int], ...]
    rows: int
    block: pa.Buffer
    first: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a batch's input that one task reads.

    Args:
        name: unique in the batch and in the stream's order.
        router: whose event times rise together with this piece's.
        identity: with a row's position, the identity of a tuple: the same in every replay and with every number of
            slots.
        position: position of the piece's first row.
        now_us: when the batch began, by logged time.
        place: where the row at a position comes from, for people, as source, position and unit of a dead letter; None
            where identity and position say it.
        file: the number of the file that it is of, or of the last one; None where its source has none.
        arrival_us: when its rows arrived, by the time that is told to people; None where that is logged time.
    """

    name: str
    router: str
    identity: str
    position: int
    now_us: int
    place: Callable[[int], tuple[str, int, str]] | None = None
    file: int | None = None
    arrival_us: int | None = None

    @property
    def arrived_us(self) -> int:
        """When its rows arrived; their event time where their stream's is `arrival`."""
        return self.now_us if self.arrival_us is None else self.arrival_us


class Taken(NamedTuple):
    """Tuples, and the position of each, int64 of shape (n,)."""

    block: Block
    positions: np.ndarray


@dataclass(slots=True)
class Intake:
    """The intake of one piece of one side's input.

    Args:
        on_dead_letters: takes the rows that cannot be joined.
        shed_factor: the share of tuples to drop in this batch; see `shedding`.
        counts: what happened to how many rows, by name.
        rows: how many rows had a usable event time, and `ts_max_us` is the latest.
        ends_us: where rows end periods, rising; what becomes of these rows does not matter.
        places: each tuple gets its place in the piece, whether or not the plan asks for it.
        chosen: of the rows taken last, which the plan selects, and which of these can join; bool.
    """

    plan: StagePlan
    side: int
    on_dead_letters: Callable[[list[DeadLetter]], None]
    strict: bool = False
    shed_factor: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    ts_max_us: int | None = None
    ends_us: Sequence[int] = ()
    places: bool = False
    chosen: tuple[np.ndarray, np.ndarray] = (np.empty(0, bool), np.empty(0, bool))
    _read: int = 0
    _letters_bytes: int = 0

    def take(self, rows: pa.RecordBatch, piece: Piece, positions: np.ndarray | None = None) -> tuple[Taken, Taken]:
        """Of n rows of the stream's schema, in stream order, those that can join, and those unmatched in any case.

        The latter are empty unless the join gives unmatched rows of the side.

        Args:
            positions: int64 of shape (n,), the identity of each row within the piece; None where rows simply count on.
        """
        stamped = self.stamped(rows, piece, positions)
        taken = self.selected(*stamped, piece)
        self.count_lost(*self.chosen, preserves=self.preserves)
        return taken

    def stamped(self, rows: pa.RecordBatch, piece: Piece, positions: np.ndarray | None = None) -> Taken:
        """Those of n rows that have a time, with it, all columns that came, and the position of each."""
        if positions is None:
            positions = np.arange(rows.num_rows, dtype=np.int64) + (piece.position + self._read)
        self._read += rows.num_rows
        block, positions = self._stamped(rows, positions, piece)
        self.count("rows", len(block))
        self.count("bytes", block.rows.nbytes)
        if len(block):
            latest = int(block.ts_us.max())
            self.ts_max_us = latest if self.ts_max_us is None else max(self.ts_max_us, latest)
        self.rows += len(block)
        ending = self.plan.streams[self.side].ending
        if isinstance(ending, EndsByRow):
            ends_us = np.sort(block.ts_us[ending.marked(block.rows)] + 1)
            most = periods.PERIODS_AHEAD_MAX  # where every row is a marker they stay columns
            told_us = ends_us[:most].tolist() + ends_us[most:][-1:].tolist()
            self.ends_us = periods.capped(sorted([*self.ends_us, *told_us]))
        return Taken(block, positions)

    def count(self, name: str, value: int) -> None:
        """That many rows more, or bytes."""
        self.counts[name] = self.counts.get(name, 0) + value

    def bad_records(self, letters: list[DeadLetter]) -> None:
        """Hand on records that could not even be decoded."""
        for reason in sorted({letter.reason for letter in letters}):
            chosen = [letter for letter in letters if letter.reason == reason]
            self._dead(reason, len(chosen), iter(chosen))

    def _stamped(self, rows: pa.RecordBatch, positions: np.ndarray, piece: Piece) -> tuple[Block, np.ndarray]:
        ts_us, missing, out_of_range = event_times(rows, self.plan.streams[self.side], piece.arrived_us)
        bad = missing | out_of_range
        if bad.any():
            for mask, reason, detail in ((missing, NO_TIME, MISSING), (out_of_range, TIME_OUT_OF_RANGE, OUT_OF_RANGE)):
                at = np.nonzero(mask)[0]
                self._dead(
                    reason, at.size, (self._letter(rows, positions, piece, row, reason, detail) for row in at.tolist())
                )
            good = np.nonzero(~bad)[0]
            rows, ts_us, positions = rows.take(pa.array(good)), ts_us[good], positions[good]
        counts = self.places or self.plan.counts_tuples
        places = np.arange(rows.num_rows, dtype=np.int64) + self.rows if counts else None
        return Block(rows, ts_us, places), positions

    @property
    def preserves(self) -> bool:
        """Whether a row that can join nothing leaves all the same."""
        return self.side in self.plan.queries[0].kind.preserved

    def count_lost(self, selected: np.ndarray, joinable: np.ndarray, *, preserves: bool) -> None:
        """Count the rows that are nobody's, and those that can join nothing; both bool, of the rows taken last."""
        for name, lost in (
            ("dropped_by_selection", ~selected),
            ("alone" if preserves else "null_keys", selected & ~joinable),
        ):
            if lost.any():
                self.count(name, int(np.count_nonzero(lost)))

    def selected(self, block: Block, positions: np.ndarray, piece: Piece) -> tuple[Taken, Taken]:
        """Of stamped rows, those that can join, and those unmatched in any case; see `take`."""
        chosen = [select(query, self.side, block.rows) for query in self.plan.queries]
        selected = np.logical_or.reduce([one.selected for one in chosen])
        joinable = np.logical_or.reduce([one.joinable for one in chosen])
        self.chosen = selected, joinable
        alone = selected & ~joinable
        bits = self.plan.bits
        queries = bits_of([one.joinable for one in chosen], bits) if bits > 1 else None
        names = routed_columns(self.plan, self.side)
        sent = with_ends(self.plan.queries[0], self.side, carried_rows(block.rows.select(list(names))), block.rows)
        block = Block(sent, block.ts_us, block.positions if self.plan.counts_tuples else None, queries)
        unmatched = _keep(block, positions, alone) if self.preserves else Taken(block.slice(0, 0), positions[:0])
        taken = _keep(block, positions, joinable)
        if self.shed_factor:
            # Last, so that what is counted as shed could have joined.
            keep = kept(self.shed_factor, self.plan.streams[self.side].name, piece.identity, taken.positions)
            self.count("shed", int(np.count_nonzero(~keep)))
            taken = _keep(*taken, keep)
        return taken, unmatched

    def _letter(
        self, rows: pa.RecordBatch, positions: np.ndarray, piece: Piece, row: int, reason: str, detail: str
    ) -> DeadLetter:
        position = int(positions[row])
        source, position, unit = piece.place(position) if piece.place else (piece.identity, position, "row")
        stream = self.plan.streams[self.side].name
        return DeadLetter(stream, source, position, reason, detail, _row_text(rows, row), unit)

    def _dead(self, reason: str, count: int, letters: Iterator[DeadLetter]) -> None:
        """Count rows that cannot be joined, and hand on as many as are kept."""
        if not count:
            return
        if self.strict:
            first = next(letters)
            raise RunError(
                f"stream {first.stream}, {first.source}, {first.unit} {first.position}: {first.detail}; the job is "
                "strict, so it stops"
            )
        kept: list[DeadLetter] = []
        while self._letters_bytes < LETTERS_BYTES_MAX and (letter := next(letters, None)) is not None:
            kept.append(letter.cut())
            self._letters_bytes += letter.kept_bytes
        self.count("dead_letters", count)
        self.count(f"{REJECTED}{reason}", count)
        if kept:
            self.count(f"{KEPT}{reason}", len(kept))
            self.on_dead_letters(kept)


def _keep(block: Block, positions: np.ndarray, mask: np.ndarray) -> Taken:
    if mask.all():
        return Taken(block, positions)
    rows = np.nonzero(mask)[0]
    return Taken(block.take(rows), positions[rows])


def _row_text(rows: pa.RecordBatch, row: int) -> bytes:
    """A row for people to read."""
    values = {name: _plain(rows.column(name)[row]) for name in rows.schema.names}
    return json.dumps(values, default=str, ensure_ascii=False).encode()


def _plain(value: pa.Scalar) -> object:
    # Python's datetime ends in the year 9999, and a time beyond may be why the row is here.
    if pa.types.is_timestamp(value.type):
        return value.cast(pa.int64()).as_py()
    try:
        return value.as_py()
    except OverflowError:  # so does its date: the days since 1970
        return value.cast(pa.int32()).as_py()
    except UnicodeDecodeError:  # files may call text what is none
        return value.cast(pa.binary()).as_py().decode("utf-8", "backslashreplace")
