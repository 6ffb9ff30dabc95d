"""A piece of a stream on its way to every stage where the stream enters.

It is stamped once, and what has no usable time is a dead letter once. Each stage then has of it what its own queries
select, routed by its own operator. What is counted of rows is counted where the stream enters first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamjoin.engine.operator import Operator
from streamjoin.engine.router import Router, announced
from streamjoin.flow.block import Block
from streamjoin.flow.punctuation import Punctuation
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import Intake, Piece, Routed
from streamjoin.plan.hearing import hearing
from streamjoin.plan.stages import Plan, entries_of

_OWN = "routed"
"""What a router counts for its own stage; all else that it counts of blocks adds up over the stages."""


class Entering:
    """The routers of one piece of one stream, which some stage reads.

    Args:
        operators: of each stage of the plan.
        shed_factor: see `Intake`; of a stream that enters at one stage.
    """

    def __init__(
        self,
        plan: Plan,
        stream: int,
        operators: Sequence[Operator],
        slots: int,
        on_dead_letters: Callable[[list[DeadLetter]], None],
        *,
        strict: bool = False,
        shed_factor: float = 0.0,
    ) -> None:
        self.stream = stream
        self.hearing = hearing(plan, stream)
        self.routers: list[tuple[int, Router]] = []
        for stage, side in entries_of(plan, stream):
            intake = Intake(stage.plan, side, on_dead_letters, strict, shed_factor)
            self.routers.append((stage.number, Router(intake, operators[stage.number], slots)))
        self.intake.places = any(router.intake.plan.counts_tuples for _, router in self.routers)

    @property
    def intake(self) -> Intake:
        """What reads the piece: of the first stage where it enters."""
        return self.routers[0][1].intake

    def take(
        self, rows: pa.RecordBatch, piece: Piece, positions: np.ndarray | None = None
    ) -> Iterator[tuple[int, Routed]]:
        """(stage, block) of rows of the stream's schema, in stream order; see `Router.take`."""
        if len(self.routers) == 1:
            ((stage, router),) = self.routers
            for routed in router.take(rows, piece, positions):
                yield stage, routed
            return
        if not rows.num_rows:
            return
        stamped = self.intake.stamped(rows, piece, positions)
        for stage, router in self.routers:
            for routed in router.send(*router.intake.selected(*stamped, piece), piece):
                yield stage, routed
        self._count_lost()

    def again(self, rows: pa.RecordBatch, ts_us: np.ndarray, piece: Piece) -> Iterator[tuple[int, Routed]]:
        """The same of rows that were stamped before, with the columns that the stages read; they move no mark."""
        places = np.arange(rows.num_rows, dtype=np.int64)
        block, positions = Block(rows, ts_us, places), places + piece.position
        self.intake.rows += rows.num_rows
        for stage, router in self.routers:
            for routed in router.send(*router.intake.selected(block, positions, piece), piece):
                yield stage, routed

    def _count_lost(self) -> None:
        """A row that one query takes is not lost, whatever the others make of it."""
        intakes = [router.intake for _, router in self.routers]
        selected = np.logical_or.reduce([intake.chosen[0] for intake in intakes])
        used = np.logical_or.reduce([intake.chosen[0 if intake.preserves else 1] for intake in intakes])
        self.intake.count_lost(selected, used, preserves=False)

    def rest(self, piece: Piece) -> Iterator[tuple[int, Routed]]:
        """(stage, block) of what of the piece has not been routed yet; `punctuate` comes after it."""
        for stage, router in self.routers:
            for routed in router.rest(piece):
                yield stage, routed

    def punctuate(self, piece: Piece) -> Iterator[tuple[int, int, int, Punctuation]]:
        """(stage, slot, rows sent there, punctuation): the piece is complete, for all that must hear it."""
        first, *others = self.routers
        for stage, router in others:
            router.intake.rows, router.intake.ts_max_us = self.intake.rows, self.intake.ts_max_us
            for name, value in router.intake.counts.items():
                if name != _OWN:
                    self.intake.count(name, value)
            told = (
                (slot, sent, replace(one, counts={}, ends_us=(), file=None))
                for slot, sent, one in router.punctuate(piece)
            )
            yield from announced(told, self.stream, stage, ())
        stage, router = first
        yield from announced(router.punctuate(piece), self.stream, stage, self.hearing)
