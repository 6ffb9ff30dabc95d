"""Routed blocks and punctuations, and result blocks and reports, as rows of a DataFrame.

A row is (slot, meta, block): `meta` is a small JSON text, `block` an Arrow IPC stream, or NULL for a punctuation or a
report. Rows for a later stage than the first say so; until there they are passed on as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from streamjoin.engine.slot import SlotStep
from streamjoin.flow.punctuation import Punctuation
from streamjoin.intake.intake import Routed

ROUTED_SCHEMA = "slot int, meta string, block binary"
_ARROW = pa.schema([("slot", pa.int32()), ("meta", pa.string()), ("block", pa.binary())])


def row(slot: int, meta: Mapping[str, Any], block: pa.Buffer | None) -> pa.RecordBatch:
    """One row, for the partition `slot`."""
    text = json.dumps(meta, separators=(",", ":"))
    if block is None:
        blocks = pa.array([None], pa.binary())
    else:
        # The buffer becomes the column as it is: from offsets and data, without a copy.
        offsets = pa.py_buffer(b"\x00" * 4 + block.size.to_bytes(4, "little"))
        blocks = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, block])
    return pa.RecordBatch.from_arrays([pa.array([slot], pa.int32()), pa.array([text]), blocks], schema=_ARROW)


def routed_row(routed: Routed, stage: int = 0) -> pa.RecordBatch:
    """A block as a row."""
    meta = {"side": routed.side, "piece": routed.piece, "targets": routed.targets, "rows": routed.rows,
            "first": routed.first, **_for(stage)}  # fmt: skip
    return row(routed.slot, meta, routed.block)


def punctuation_row(slot: int, sent: int, punctuation: Punctuation, stage: int = 0) -> pa.RecordBatch:
    """A punctuation as a row."""
    return row(slot, {"sent": sent, "punctuation": punctuation.to_json(), **_for(stage)}, None)


def report_row(slot: int, report: Mapping[str, Any]) -> pa.RecordBatch:
    """A slot's report, which a later stage hands on."""
    return row(slot, {"report": report}, None)


def _for(stage: int) -> dict[str, int]:
    return {"stage": stage} if stage else {}


def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[dict[str, Any], pa.Buffer | None]]:
    """(meta, block) of every row that came to a partition."""
    for batch in batches:
        blocks = batch.column("block")
        for place, text in enumerate(batch.column("meta").to_pylist()):
            yield json.loads(text), blocks[place].as_buffer()


def receive(batches: Iterator[pa.RecordBatch], steps: Mapping[int, SlotStep]) -> Iterator[pa.RecordBatch]:
    """Give the steps, by stage, every row of theirs; gives those of other stages as they are, among them reports.

    The latest clock of all punctuations is the batch's, for each step, although only other stages may read what came.
    """
    clock_us = 0
    for batch in batches:
        blocks = batch.column("block")
        for place, text in enumerate(batch.column("meta").to_pylist()):
            meta = json.loads(text)
            if "punctuation" in meta:
                clock_us = max(clock_us, meta["punctuation"]["clock_us"])
            if "report" in meta or (step := steps.get(meta.get("stage", 0))) is None:
                yield batch.slice(place, 1)
            elif (buffer := blocks[place].as_buffer()) is None:
                step.punctuate(Punctuation.from_json(meta["punctuation"]), meta["sent"])
            else:
                targets = tuple((unit, role) for unit, role in meta["targets"])
                step.take(Routed(step.slot, meta["side"], meta["piece"], targets, meta["rows"], buffer, meta["first"]))
    for step in steps.values():
        step.clock_us = max(step.clock_us, clock_us)
