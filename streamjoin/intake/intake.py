"""Intake of one stream: stamp, select, shed, project, route (BiStream's router: shuffler and dispatcher in one).

Rows come in as record batches of the stream's schema; routed blocks and, at the end of each piece, punctuations go out.
What cannot be joined is counted, never silently lost: rows without a usable event time become dead letters, rows with
a NULL key match nothing and stay behind, and so does what load shedding drops.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamjoin.block import Block
from streamjoin.errors import RunError
from streamjoin.expression import Columns, evaluate
from streamjoin.failpoints import failpoint
from streamjoin.index.kernels import mix
from streamjoin.index.keys import key_ranges, order_key
from streamjoin.index.layout import equality_cells
from streamjoin.intake.deadletter import NO_TIME, TIME_OUT_OF_RANGE, DeadLetter
from streamjoin.intake.event_time import MISSING, OUT_OF_RANGE, event_times
from streamjoin.intake.selection import bits_of, select
from streamjoin.intake.shedding import kept
from streamjoin.operators.operator import Operator, RoutesBy
from streamjoin.operators.routing import Tuples
from streamjoin.plan import JoinPlan
from streamjoin.punctuation import Punctuation
from streamjoin.sharing import Plan
from streamjoin.window import R

BLOCK_ROWS = 1 << 18
"""Rows routed at a time: large enough that a block's fixed cost does not show, small enough for a worker's memory."""

LETTERS_BYTES_MAX = 16 << 20
"""Dead letters of a piece that are kept, in bytes; further ones are counted only. They wait in a worker's memory."""

REJECTED = "rejected:"
KEPT = "kept:"
"""With a reason behind them, counts of rows that cannot be joined, and of those of them that are kept."""

SEED = 0x5EED


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
        now_us: when the batch began, as logged.
        place: where the row at a position comes from, for people, as source, position and unit of a dead letter; None
            where identity and position say it.
    """

    name: str
    router: str
    identity: str
    position: int
    now_us: int
    place: Callable[[int], tuple[str, int, str]] | None = None


@dataclass(slots=True)
class Intake:
    """The intake of one side of a join.

    Args:
        slots: Spark partitions of the unit stage.
        on_dead_letters: takes the rows that cannot be joined.
        shed_factor: the share of tuples to drop in this batch; see `shedding`.
    """

    plan: Plan
    side: int
    operator: Operator
    slots: int
    on_dead_letters: Callable[[list[DeadLetter]], None]
    strict: bool = False
    shed_factor: float = 0.0
    _sent: dict[int, int] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _ts_max_us: int | None = None
    _rows: int = 0
    _read: int = 0
    _letters_bytes: int = 0

    def take(self, rows: pa.RecordBatch, piece: Piece, positions: np.ndarray | None = None) -> Iterator[Routed]:
        """Route rows of the stream's schema, in stream order.

        Args:
            positions: int64, the identity of each row within the piece; None where rows simply count on.
        """
        if rows.num_rows == 0:
            return
        if positions is None:
            positions = np.arange(rows.num_rows, dtype=np.int64) + (piece.position + self._read)
        self._read += rows.num_rows
        block, positions = self._stamped(rows, positions, piece)
        self._add("rows", len(block))
        self._add("bytes", block.rows.nbytes)
        if len(block):
            latest = int(block.ts_us.max())
            self._ts_max_us = latest if self._ts_max_us is None else max(self._ts_max_us, latest)
        self._rows += len(block)
        block, positions = self._selected(block, positions, piece)
        if len(block):
            yield from self._route(block, positions, piece)

    def bad_records(self, letters: list[DeadLetter]) -> None:
        """Hand on records that could not even be decoded."""
        for reason in sorted({letter.reason for letter in letters}):
            chosen = [letter for letter in letters if letter.reason == reason]
            self._dead(reason, len(chosen), iter(chosen))

    def punctuate(self, piece: Piece) -> Iterator[tuple[int, int, Punctuation]]:
        """(slot, rows sent there, punctuation) for every slot: this piece is complete."""
        failpoint("router.before_punctuation")
        for slot in range(self.slots):
            # Counts go along once, or reports would add them up once a slot.
            counts = self._counts if slot == 0 else {}
            yield (
                slot,
                self._sent.get(slot, 0),
                Punctuation(
                    self.side, piece.router, piece.name, self._rows, self._ts_max_us, piece.now_us, counts,
                    self._counts.get("shed", 0), self._counts.get("routed", 0),
                ),
            )  # fmt: skip

    def _stamped(self, rows: pa.RecordBatch, positions: np.ndarray, piece: Piece) -> tuple[Block, np.ndarray]:
        ts_us, missing, out_of_range = event_times(rows, self.plan.streams[self.side], piece.now_us)
        bad = missing | out_of_range
        if bad.any():
            for mask, reason, detail in ((missing, NO_TIME, MISSING), (out_of_range, TIME_OUT_OF_RANGE, OUT_OF_RANGE)):
                at = np.nonzero(mask)[0]
                self._dead(
                    reason, at.size, (self._letter(rows, positions, piece, row, reason, detail) for row in at.tolist())
                )
            good = np.nonzero(~bad)[0]
            rows, ts_us, positions = rows.take(pa.array(good)), ts_us[good], positions[good]
        places = np.arange(rows.num_rows, dtype=np.int64) + self._rows if self.plan.counts_tuples else None
        return Block(rows, ts_us, places), positions

    def _selected(self, block: Block, positions: np.ndarray, piece: Piece) -> tuple[Block, np.ndarray]:
        chosen = [select(query, self.side, block.rows) for query in self.plan.queries]
        selected = np.logical_or.reduce([one.selected for one in chosen])
        joinable = np.logical_or.reduce([one.joinable for one in chosen])
        for name, lost in (("dropped_by_selection", ~selected), ("null_keys", selected & ~joinable)):
            if lost.any():
                self._add(name, int(np.count_nonzero(lost)))
        bits = self.plan.bits
        queries = bits_of([one.joinable for one in chosen], bits) if bits > 1 else None
        names = self.plan.routed_columns(self.side)
        block = Block(block.rows.select(list(names)), block.ts_us, block.positions, queries)
        block, positions = _keep(block, positions, joinable)
        if self.shed_factor:
            # Last, so that what is counted as shed could have joined.
            keep = kept(self.shed_factor, self.plan.streams[self.side].name, piece.identity, positions)
            self._add("shed", int(np.count_nonzero(~keep)))
            block, positions = _keep(block, positions, keep)
        return block, positions

    def _route(self, block: Block, positions: np.ndarray, piece: Piece) -> Iterator[Routed]:
        first = self._counts.get("routed", 0)
        self._add("routed", len(block))
        for route in self.operator.route(self.side, self._tuples(block, positions, piece)):
            routed = block if route.rows.size == len(block) else block.take(route.rows)
            buffer = routed.to_ipc()
            by_slot: dict[int, list[tuple[int, int]]] = {}
            for unit, role in route.targets:
                by_slot.setdefault(unit % self.slots, []).append((unit, role))
            for slot, targets in sorted(by_slot.items()):
                self._sent[slot] = self._sent.get(slot, 0) + len(routed)
                self._add("sent_bytes", buffer.size)
                yield Routed(slot, self.side, piece.name, tuple(targets), len(routed), buffer, first)

    def _tuples(self, block: Block, positions: np.ndarray, piece: Piece) -> Tuples:
        columns = self._columns(block.rows)
        base = zlib.crc32(f"{self.plan.names[self.side]}/{piece.identity}".encode()) ^ SEED << 32
        identity = mix(mix(positions) + np.int64(base))
        equal = key = lows = highs = None
        if keys := self.plan.equality_keys(self.side):
            equal = equality_cells([evaluate(expression, columns, len(block)) for expression in keys])
        # By value ranges only single queries are routed.
        if self.operator.capabilities.routes_by is RoutesBy.RANGE and isinstance(self.plan, JoinPlan):
            main = self.plan.main_range
            values = evaluate(main.keys[self.side], columns, len(block))
            key = order_key(values)
            # What R's tuple may meet are S's keys in [r - high, r - low].
            facing = main.mirrored() if self.side == R else main
            lows, highs = key_ranges(values, facing)
            # What can meet nothing is sent to one group all the same.
            lows = np.minimum(lows, highs)
        return Tuples(identity, equal, key, lows, highs)

    def _columns(self, rows: pa.RecordBatch) -> Columns:
        name = self.plan.names[self.side]
        return {(name, column): rows.column(column) for column in rows.schema.names}

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
        self._add("dead_letters", count)
        self._add(f"{REJECTED}{reason}", count)
        if kept:
            self._add(f"{KEPT}{reason}", len(kept))
            self.on_dead_letters(kept)

    def _add(self, name: str, value: int) -> None:
        self._counts[name] = self._counts.get(name, 0) + value


def _keep(block: Block, positions: np.ndarray, mask: np.ndarray) -> tuple[Block, np.ndarray]:
    if mask.all():
        return block, positions
    rows = np.nonzero(mask)[0]
    return block.take(rows), positions[rows]


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
    except UnicodeDecodeError:  # files may call text what is none
        return value.cast(pa.binary()).as_py().decode("utf-8", "backslashreplace")
