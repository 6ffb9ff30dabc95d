"""Routers (BiStream's shuffler and dispatcher in one): tuples become blocks on their way to units.

A router sends what intake took of one stream. Routed blocks and, at the end of each piece, punctuations go out. What a
stage found is sent on to the next one in the same way; see `feeding.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streamjoin.engine.operator import Folding, Operator, RoutesBy
from streamjoin.engine.routing import ALONE, Route, Tuples, split
from streamjoin.failpoints import failpoint
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import Punctuation
from streamjoin.index.kernels import mix
from streamjoin.index.keys import key_ranges, order_key
from streamjoin.index.layout import equality_cells
from streamjoin.intake.intake import Intake, Piece, Routed, Taken
from streamjoin.plan.ending import EndsByFile
from streamjoin.plan.evaluation import evaluate_carried
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.stages import StagePlan
from streamjoin.plan.values import Columns
from streamjoin.plan.window import R

SEED = 0x5EED


@dataclass(slots=True)
class Sending:
    """Sends blocks of one side to the units of a stage.

    Args:
        slots: Spark partitions of the stage.
        sent: rows sent, by slot.
        sent_bytes: size of the blocks that were sent.
        alone: tuples sent that are unmatched in any case; a block's place among these says which comes first.
    """

    plan: StagePlan
    side: int
    operator: Operator
    slots: int
    sent: dict[int, int] = field(default_factory=dict)
    sent_bytes: int = 0
    alone: int = 0
    folding: Folding | None = field(init=False)

    def __post_init__(self) -> None:
        self.folding = self.operator.folding(self.side)

    def route(self, block: Block, positions: np.ndarray, identity: str, piece: str, first: int) -> Iterator[Routed]:
        """A block's tuples on their way.

        Args:
            positions: with `identity`, who each tuple is: the same in every attempt of a batch, int64 of shape (n,).
            piece: which part of the batch's input they are of.
            first: how many tuples of the piece were routed before.
        """
        if self.folding is None:
            yield from self._route(block, positions, identity, piece, first)
            return
        for folded in self.folding.add(block):
            yield from self._folded(folded, identity, piece)

    def rest(self, identity: str, piece: str) -> Iterator[Routed]:
        """What was folded and has not been sent, once all has been routed."""
        for folded in self.folding.rest() if self.folding else ():
            yield from self._folded(folded, identity, piece)

    @property
    def counts(self) -> dict[str, int]:
        """What became of the tuples on their way, where they were folded."""
        if self.folding is None:
            return {}
        return {**self.folding.counts, "views": sum(self.sent.values()), "view_bytes": self.sent_bytes}

    def _folded(self, block: Block, identity: str, piece: str) -> Iterator[Routed]:
        first = sum(self.sent.values())
        yield from self._route(block, np.arange(first, first + len(block), dtype=np.int64), identity, piece, first)

    def _route(self, block: Block, positions: np.ndarray, identity: str, piece: str, first: int) -> Iterator[Routed]:
        yield from self._sent(
            block, self.operator.route(self.side, self._tuples(block, positions, identity)), piece, first
        )

    def route_alone(self, block: Block, positions: np.ndarray, piece: str) -> Iterator[Routed]:
        """A block's tuples that are unmatched in any case: evenly to all units, which give them."""
        first, self.alone = self.alone, self.alone + len(block)
        units = self.operator.units
        evenly = split(positions % len(units))
        routes = [Route(rows, ((units[place].number, ALONE),)) for place, rows in evenly]
        yield from self._sent(block, routes, piece, first)

    def _sent(self, block: Block, routes: Sequence[Route], piece: str, first: int) -> Iterator[Routed]:
        for route in routes:
            routed = block if route.rows.size == len(block) else block.take(route.rows)
            buffer = routed.to_ipc()
            by_slot: dict[int, list[tuple[int, int]]] = {}
            for unit, role in route.targets:
                by_slot.setdefault(unit % self.slots, []).append((unit, role))
            for slot, targets in sorted(by_slot.items()):
                self.sent[slot] = self.sent.get(slot, 0) + len(routed)
                self.sent_bytes += buffer.size
                yield Routed(slot, self.side, piece, tuple(targets), len(routed), buffer, first)

    def _tuples(self, block: Block, positions: np.ndarray, identity_of: str) -> Tuples:
        plan, side = self.plan, self.side
        name = plan.names[side]
        columns: Columns = {(name, column): block.rows.column(column) for column in block.rows.schema.names}
        base = zlib.crc32(f"{name}/{identity_of}".encode("utf-8", "surrogateescape")) ^ SEED << 32
        identity = mix(mix(positions) + np.int64(base))
        equal = key = lows = highs = None
        if keys := plan.equality_keys(side):
            equal = equality_cells([evaluate_carried(expression, columns, len(block)) for expression in keys])
        # By value ranges only single queries are routed.
        if self.operator.capabilities.routes_by is RoutesBy.RANGE and isinstance(plan, JoinPlan):
            main = plan.main_range
            values = evaluate_carried(main.keys[side], columns, len(block))
            key = order_key(values)
            # What R's tuple may meet are S's keys in [r - high, r - low].
            facing = main.mirrored() if side == R else main
            lows, highs = key_ranges(values, facing)
            # What can meet nothing is sent to one group all the same.
            lows = np.minimum(lows, highs)
        return Tuples(identity, equal, key, lows, highs, block.ts_us)


class Router:
    """The router of one piece of one side's input.

    Args:
        slots: Spark partitions of the unit stage.
    """

    def __init__(self, intake: Intake, operator: Operator, slots: int) -> None:
        self.intake = intake
        self.sending = Sending(intake.plan, intake.side, operator, slots)

    def take(self, rows: pa.RecordBatch, piece: Piece, positions: np.ndarray | None = None) -> Iterator[Routed]:
        """Route rows of the stream's schema, in stream order.

        Args:
            positions: see `Intake.take`.
        """
        if rows.num_rows == 0:
            return
        yield from self.send(*self.intake.take(rows, piece, positions), piece)

    def send(self, taken: Taken, alone: Taken, piece: Piece) -> Iterator[Routed]:
        """Route what intake took, and what of it is unmatched in any case."""
        block, positions = taken
        before = self.sending.sent_bytes
        if len(block):
            first = self.intake.counts.get("routed", 0)
            self.intake.count("routed", len(block))
            yield from self.sending.route(block, positions, piece.identity, piece.name, first)
        if len(alone.block):
            yield from self.sending.route_alone(*alone, piece.name)
        self._count_sent(before)

    def rest(self, piece: Piece) -> Iterator[Routed]:
        """What of the piece has not been routed yet; `punctuate` comes after it."""
        before = self.sending.sent_bytes
        yield from self.sending.rest(piece.identity, piece.name)
        for name, value in self.sending.counts.items():
            self.intake.count(name, value)
        self._count_sent(before)

    def _count_sent(self, before: int) -> None:
        if sent_bytes := self.sending.sent_bytes - before:
            self.intake.count("sent_bytes", sent_bytes)

    def punctuate(self, piece: Piece) -> Iterator[tuple[int, int, Punctuation]]:
        """(slot, rows sent there, punctuation) for every slot: this piece is complete."""
        failpoint("router.before_punctuation")
        intake = self.intake
        by_file = isinstance(intake.plan.streams[intake.side].ending, EndsByFile)
        for slot in range(self.sending.slots):
            # Counts go along once, or reports would add them up once a slot; so do the ends of periods.
            counts = intake.counts if slot == 0 else {}
            yield (
                slot,
                self.sending.sent.get(slot, 0),
                Punctuation(
                    intake.side, piece.router, piece.name, intake.rows, intake.ts_max_us, piece.now_us, counts,
                    intake.counts.get("shed", 0), intake.counts.get("routed", 0),
                    ends_us=tuple(intake.ends_us) if slot == 0 else (),
                    file=piece.file if by_file and slot == 0 else None,
                ),
            )  # fmt: skip


def announced(
    told: Iterable[tuple[int, int, Punctuation]], stream: int, stage: int, hearing: Sequence[int]
) -> Iterator[tuple[int, int, int, Punctuation]]:
    """(stage, slot, rows sent there, punctuation) of a piece of a stream: to its own stage, and to those that hear it.

    Args:
        told: what a router says to each slot of the stream's own stage.
        hearing: see `plan.stages.hearing`.
    """
    for slot, sent, punctuation in told:
        yield stage, slot, sent, punctuation
        for other in hearing:
            yield other, slot, 0, replace(punctuation, elsewhere=stream, counts={}, ends_us=(), file=None)
