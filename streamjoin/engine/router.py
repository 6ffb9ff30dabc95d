"""Router of one stream (BiStream's shuffler and dispatcher in one): it sends what intake took to the units.

Routed blocks and, at the end of each piece, punctuations go out.
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
from streamjoin.plan.values import Columns
from streamjoin.plan.window import R

SEED = 0x5EED


@dataclass(slots=True)
class Router:
    """The router of one piece of one side's input.

    Args:
        slots: Spark partitions of the unit stage.
    """

    intake: Intake
    operator: Operator
    slots: int
    _sent: dict[int, int] = field(default_factory=dict)

    def take(self, rows: pa.RecordBatch, piece: Piece, positions: np.ndarray | None = None) -> Iterator[Routed]:
        """Route rows of the stream's schema, in stream order.

        Args:
            positions: see `Intake.take`.
        """
        if rows.num_rows == 0:
            return
        block, positions = self.intake.take(rows, piece, positions)
        if len(block):
            yield from self._route(block, positions, piece)

    def punctuate(self, piece: Piece) -> Iterator[tuple[int, int, Punctuation]]:
        """(slot, rows sent there, punctuation) for every slot: this piece is complete."""
        failpoint("router.before_punctuation")
        intake = self.intake
        for slot in range(self.slots):
            # Counts go along once, or reports would add them up once a slot.
            counts = intake.counts if slot == 0 else {}
            yield (
                slot,
                self._sent.get(slot, 0),
                Punctuation(
                    intake.side, piece.router, piece.name, intake.rows, intake.ts_max_us, piece.now_us, counts,
                    intake.counts.get("shed", 0), intake.counts.get("routed", 0),
                ),
            )  # fmt: skip

    def _route(self, block: Block, positions: np.ndarray, piece: Piece) -> Iterator[Routed]:
        side, first = self.intake.side, self.intake.counts.get("routed", 0)
        self.intake.count("routed", len(block))
        for route in self.operator.route(side, self._tuples(block, positions, piece)):
            routed = block if route.rows.size == len(block) else block.take(route.rows)
            buffer = routed.to_ipc()
            by_slot: dict[int, list[tuple[int, int]]] = {}
            for unit, role in route.targets:
                by_slot.setdefault(unit % self.slots, []).append((unit, role))
            for slot, targets in sorted(by_slot.items()):
                self._sent[slot] = self._sent.get(slot, 0) + len(routed)
                self.intake.count("sent_bytes", buffer.size)
                yield Routed(slot, side, piece.name, tuple(targets), len(routed), buffer, first)

    def _tuples(self, block: Block, positions: np.ndarray, piece: Piece) -> Tuples:
        plan, side = self.intake.plan, self.intake.side
        name = plan.names[side]
        columns: Columns = {(name, column): block.rows.column(column) for column in block.rows.schema.names}
        base = zlib.crc32(f"{name}/{piece.identity}".encode()) ^ SEED << 32
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
