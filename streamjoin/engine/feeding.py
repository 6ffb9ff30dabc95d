"""What the units of a stage found, on its way to the stage that joins it further.

A stage's output is a flow like a stream: blocks, and punctuations that say how many tuples there were and how far event
time has come. Its mark is what each unit states of its own output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamjoin.engine.router import Sending
from streamjoin.engine.unit import UnitReport
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import Punctuation
from streamjoin.index.columns import carried_rows, routed_columns
from streamjoin.intake.intake import Routed
from streamjoin.intake.selection import select
from streamjoin.plan.join import RESULT_TIME
from streamjoin.plan.stages import Query


@dataclass(slots=True)
class _OfUnit:
    """What one unit has sent on: tuples, those of them that can join further, and their latest event time."""

    rows: int = 0
    routed: int = 0
    ts_max_us: int | None = None


class Feeding:
    """Sends results of one slot's units to the next stage.

    A tuple is known by the unit that found it and its place among what that unit found in the batch, which are the same
    in every attempt.

    Args:
        sending: to the units of the next stage, on the side on which the flow enters, or the first one of several.
        batch: the number of the batch.
    """

    def __init__(self, sending: Sending, batch: int) -> None:
        self._sending = sending
        self._sides = {sending.side: sending}
        self._batch = batch
        self._units: dict[int, _OfUnit] = {}

    def take(self, rows: pa.RecordBatch, unit: int, query_number: int = 0) -> Iterator[Routed]:
        """Results of one unit, in the order in which it found them.

        Args:
            query_number: what the unit's step says of them; see `Step`.
        """
        known = self._units.setdefault(unit, _OfUnit())
        sending = self._to(self._sending.side + query_number)
        (query,) = sending.plan.queries
        side = sending.side
        ts_us = rows.column(RESULT_TIME).to_numpy()
        positions = np.arange(known.rows, known.rows + rows.num_rows, dtype=np.int64)
        known.rows += rows.num_rows
        if rows.num_rows:
            latest = int(ts_us.max())
            known.ts_max_us = latest if known.ts_max_us is None else max(known.ts_max_us, latest)
        places = positions if query.counts_tuples else None
        block = block_of(query, side, rows, places)
        picked = select(query, side, rows)
        if not picked.joinable.all():
            alone = np.nonzero(picked.selected & ~picked.joinable)[0]
            if side in query.kind.preserved and alone.size:
                yield from sending.route_alone(block.take(alone), positions[alone], _piece(unit))
            kept = np.nonzero(picked.joinable)[0]
            block, positions = block.take(kept), positions[kept]
        if len(block):
            first, known.routed = known.routed, known.routed + len(block)
            yield from sending.route(block, positions, f"{self._batch}/{unit}", _piece(unit), first)

    def _to(self, side: int) -> Sending:
        if side not in self._sides:
            first = self._sending
            self._sides[side] = Sending(first.plan, side, first.operator, first.slots)
        return self._sides[side]

    def rest(self, slot: int) -> Iterator[Routed]:
        """What the slot's units found and was not sent yet, once all of it has been taken; before `punctuate`."""
        for sending in self._sides.values():
            yield from sending.rest(f"{self._batch}/slot {slot}", f"slot-{slot:06d}")

    def punctuate(self, reports: list[UnitReport], now_us: int) -> Iterator[tuple[int, int, Punctuation]]:
        """(slot, rows sent there, punctuation) for every unit and every slot of the next stage: all was sent.

        Args:
            reports: of all units of the slot.
        """
        for number, report in enumerate(reports):
            found = self._units.get(report.unit, _OfUnit())
            for slot in range(self._sending.slots):
                # What was sent is said once, by the first unit.
                sent = 0 if number else sum(sending.sent.get(slot, 0) for sending in self._sides.values())
                counts = {} if number or slot else self._sending.counts
                told = Punctuation(
                    self._sending.side, f"unit {report.unit}", _piece(report.unit), found.rows, found.ts_max_us, now_us,
                    counts, routed=found.routed, states=True, mark_us=report.output_mark_us, ended=report.ended,
                )  # fmt: skip
                yield slot, sent, told


def block_of(query: Query, side: int, rows: pa.RecordBatch, places: np.ndarray | None = None) -> Block:
    """What was found, as tuples of a side that joins it further.

    Args:
        places: see `Block.positions`.
    """
    ts_us = rows.column(RESULT_TIME).to_numpy()
    return Block(carried_rows(rows.select(list(routed_columns(query, side)))), ts_us, places)


def _piece(unit: int) -> str:
    return f"unit-{unit:06d}"
