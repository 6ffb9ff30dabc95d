"""Handing over blocks: a worker's outbox names files, and the successor's state goes on naming them.

The outbox of version v is what a worker sends in batch v. The barrier between two batches acknowledges it: the
successor has joined and stored it in its version v + 1, and the sender's version v + 1 has another outbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.unit import UnitState


def message(side: int, blocks: Iterable[SegmentInfo]) -> Mapping[str, Any]:
    """Blocks of `side` as an entry of an outbox."""
    return {"side": side, "blocks": [info.to_json() for info in blocks]}


def sent(state: UnitState, side: int) -> tuple[SegmentInfo, ...]:
    """The blocks of `side` in a state's outbox, as their sender names them."""
    return tuple(
        SegmentInfo.from_json(block) for entry in state.outbox if entry["side"] == side for block in entry["blocks"]
    )
