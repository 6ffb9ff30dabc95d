"""Plans that run without Spark on made-up streams, batch by batch: what the tests of several kinds of joins share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.operators import registry
from streamjoin.plan.stages import Plan, decided_stages
from streamjoin.state.store import StateStore

BATCHES = 5
OPERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "biclique by hash": ("biclique", {"routing": "hash", "r_units": 3, "s_units": 2}),
    "biclique at random": ("biclique", {"routing": "random", "r_units": 2, "s_units": 3}),
    "biclique in between": ("biclique", {"routing": "contrand", "r_units": 4, "s_units": 4}),
    "matrix": ("matrix", {"rows": 2, "columns": 3}),
    "splitjoin": ("splitjoin", {"cores": 3, "turn_tuples": 5}),
    "handshake": ("handshake", {"workers": 3, "block": 4}),
}

AT_ONCE = ("ring", "aligned", "coordinated")
"""Operators that join all streams at once."""


def cut(
    streams: Sequence[pa.RecordBatch], batches: int = BATCHES, pieces: int = 2
) -> Iterator[list[list[pa.RecordBatch]]]:
    """By batch, the pieces of each stream."""
    for number in range(batches):
        of_batch = []
        for stream in streams:
            size = -(-stream.num_rows // batches)
            mine = stream.slice(number * size, size)
            part = -(-mine.num_rows // pieces)
            of_batch.append([mine.slice(place * part, part) for place in range(pieces)])
        yield of_batch


def loop_of(plan: Plan, operator: str, folder: Path, slots: int = 2, units: int | None = None) -> Loop:
    """A loop whose state is in a folder.

    Args:
        operator: one of OPERATORS, or the name of one with default knobs.
        units: of operators that have as many as there are slots, if it is another number.
    """
    name, knobs = OPERATORS.get(operator, (operator, {}))
    plan = registry.planned(name, knobs, plan, units or slots)
    operators = registry.build_all(name, knobs, plan, units or slots)
    return Loop(plan, operators, lambda stage: StateStore(folder, stage, sync=False), slots)


def given(
    loop: Loop,
    streams: Sequence[pa.RecordBatch],
    batches: int = BATCHES,
    pieces: int = 2,
    *,
    repeated: bool = False,
    ends: bool = True,
) -> Iterator[list[pa.RecordBatch]]:
    """The results of each batch, those of the end of input last.

    Args:
        repeated: every batch is done by one number of slots and then again by another before it counts.
        ends: say that the input has ended; without, rows that wait go on waiting.
    """
    drains = sum(operator.drain_batches for operator in loop.operators)
    if ends:
        drains += decided_stages(loop.plan) + any(operator.capabilities.waits for operator in loop.operators)
    for number, brought_pieces in enumerate([*cut(streams, batches, pieces), *[[[] for _ in streams]] * drains]):
        brought = Brought(brought_pieces, 1_000_000 * number, drains=number >= batches)
        if repeated:
            loop.slots = 1 + number % 4
            list(loop.batch(brought))
            loop.slots = 1 + (number + 2) % 3
        yield [part for _, part in loop.batch(brought)]
        loop.commit(brought)


def joined(
    loop: Loop,
    streams: Sequence[pa.RecordBatch],
    batches: int = BATCHES,
    pieces: int = 2,
    *,
    repeated: bool = False,
    ends: bool = True,
) -> Counter[Any]:
    """All results of `given`, as tuples, and how often each was given."""
    return Counter(
        row
        for parts in given(loop, streams, batches, pieces, repeated=repeated, ends=ends)
        for part in parts
        for row in zip(*(column.to_pylist() for column in part.columns), strict=True)
    )
