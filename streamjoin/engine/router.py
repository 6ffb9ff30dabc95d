"""Routers (BiStream's shuffler and dispatcher in one): tuples become blocks on their way to units.

A router sends what intake took of one stream. Routed blocks and, at the end of each piece, punctuations go out. What a
stage found is sent on to the next one in the same way; see `feeding.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamjoin.engine.operator import Operator, RoutesBy
from streamjoin.engine.routing import Tuples
from streamjoin.failpoints import failpoint
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import Punctuation
from streamjoin.index.kernels import mix
from streamjoin.index.keys import key_ranges, order_key
from streamjoin.index.layout import equality_cells
from streamjoin.intake.intake import Intake, Piece, Routed
from streamjoin.plan.evaluation import evaluate
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.sharing import Plan
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
    """

    plan: Plan
    side: int
    operator: Operator
    slots: int
    sent: dict[int, int] = field(default_factory=dict)
    sent_bytes: int = 0

    def route(self, block: Block, positions: np.ndarray, identity: str, piece: str, first: int) -> Iterator[Routed]:
        """A block's tuples on their way.

        Args:
            positions: with `identity`, who each tuple is: the same in every attempt of a batch, int64 of shape (n,).
            piece: which part of the batch's input they are of.
            first: how many tuples of the piece were routed before.
        """
        for route in self.operator.route(self.side, self._tuples(block, positions, identity)):
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
        base = zlib.crc32(f"{name}/{identity_of}".encode()) ^ SEED << 32
        identity = mix(mix(positions) + np.int64(base))
        equal = key = lows = highs = None
        if keys := plan.equality_keys(side):
            equal = equality_cells([evaluate(expression, columns, len(block)) for expression in keys])
        # By value ranges only single queries are routed.
        if self.operator.capabilities.routes_by is RoutesBy.RANGE and isinstance(plan, JoinPlan):
            main = plan.main_range
            values = evaluate(main.keys[side], columns, len(block))
            key = order_key(values)
            # What R's tuple may meet are S's keys in [r - high, r - low].
            facing = main.mirrored() if side == R else main
            lows, highs = key_ranges(values, facing)
            # What can meet nothing is sent to one group all the same.
            lows = np.minimum(lows, highs)
        return Tuples(identity, equal, key, lows, highs)


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
        block, positions = self.intake.take(rows, piece, positions)
        if len(block):
            first, before = self.intake.counts.get("routed", 0), self.sending.sent_bytes
            self.intake.count("routed", len(block))
            yield from self.sending.route(block, positions, piece.identity, piece.name, first)
            self.intake.count("sent_bytes", self.sending.sent_bytes - before)

    def punctuate(self, piece: Piece) -> Iterator[tuple[int, int, Punctuation]]:
        """(slot, rows sent there, punctuation) for every slot: this piece is complete."""
        failpoint("router.before_punctuation")
        intake = self.intake
        for slot in range(self.sending.slots):
            # Counts go along once, or reports would add them up once a slot.
            counts = intake.counts if slot == 0 else {}
            yield (
                slot,
                self.sending.sent.get(slot, 0),
                Punctuation(
                    intake.side, piece.router, piece.name, intake.rows, intake.ts_max_us, piece.now_us, counts,
                    intake.counts.get("shed", 0), intake.counts.get("routed", 0),
                ),
            )  # fmt: skip
