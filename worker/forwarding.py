"""What units hand on to one another, and how evenly they store what they keep, in the reports of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamjoin.counts import added
from streamjoin.operators.costs.handshake import imbalances

FORWARDED: Final = "forwarded"
"""Blocks, tuples and bytes that units of chains and rings, and hosts of segments, handed on in the span."""
IMBALANCE: Final = "imbalance"
"""By stream, ESJ's IF among these units as the span ended."""


def told_now(units: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Of a batch; nothing where no unit hands on."""
    if not (handing := [unit for unit in units if unit.get(FORWARDED)]):
        return {}
    found = dict(zip(names, imbalances(handing, len(names)), strict=True))
    kept = [name for side, name in enumerate(names) if any(unit["stored_rows"][side] for unit in handing)]
    return {
        FORWARDED: added([unit[FORWARDED] for unit in handing]),
        IMBALANCE: {name: round(found[name], 4) for name in kept},
    }


def merged(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All that was handed on, and how even it was in the last report that tells."""
    told = [body for body in bodies if FORWARDED in body]
    if not told:
        return {}
    return {FORWARDED: added([body[FORWARDED] for body in told]), IMBALANCE: told[-1][IMBALANCE]}
