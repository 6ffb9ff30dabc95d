"""Routed blocks and punctuations as rows of a DataFrame.

A row is (slot, meta, block): `meta` is a small JSON text, `block` an Arrow IPC stream, or NULL for a punctuation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from streamjoin.intake.intake import Routed
from streamjoin.operators.slot import SlotStep
from streamjoin.punctuation import Punctuation

ROUTED_SCHEMA = "slot int, meta string, block binary"
_ARROW = pa.schema([("slot", pa.int32()), ("meta", pa.string()), ("block", pa.binary())])


def routed_row(routed: Routed) -> pa.RecordBatch:
    """A block as a row."""
    meta = json.dumps(
        {"side": routed.side, "piece": routed.piece, "targets": routed.targets, "rows": routed.rows},
        separators=(",", ":"),
    )
    # The buffer becomes the column as it is: from offsets and data, without a copy.
    offsets = pa.py_buffer(b"\x00" * 4 + routed.block.size.to_bytes(4, "little"))
    block = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, routed.block])
    return pa.RecordBatch.from_arrays([pa.array([routed.slot], pa.int32()), pa.array([meta]), block], schema=_ARROW)


def punctuation_row(slot: int, sent: int, punctuation: Punctuation) -> pa.RecordBatch:
    """A punctuation as a row."""
    meta = json.dumps({"sent": sent, "punctuation": punctuation.to_json()}, separators=(",", ":"))
    return pa.RecordBatch.from_arrays(
        [pa.array([slot], pa.int32()), pa.array([meta]), pa.array([None], pa.binary())], schema=_ARROW
    )


def receive(batches: Iterator[pa.RecordBatch], step: SlotStep) -> None:
    """Give every row of a slot to its step."""
    for batch in batches:
        blocks = batch.column("block")
        for row, text in enumerate(batch.column("meta").to_pylist()):
            meta = json.loads(text)
            if "punctuation" in meta:
                step.punctuate(Punctuation.from_json(meta["punctuation"]), meta["sent"])
                continue
            targets = tuple((unit, role) for unit, role in meta["targets"])
            buffer = blocks[row].as_buffer()
            step.take(Routed(step.slot, meta["side"], meta["piece"], targets, meta["rows"], buffer))
