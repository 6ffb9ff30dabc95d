"""Manifests: a unit's state at one version, as JSON.

A manifest has the unit's tables of segments and its values, both by name, its clocks and its counters. Batch b reads
version b and writes version b + 1. Writing a version again is harmless, because everything in it is a function of
version b and the input of batch b.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from streamjoin.engine.state import Table, UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import StateError
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.segment import SegmentInfo

FORMAT = 2
"""The layout of manifests and segments; any other one is refused. Before 2, a manifest had the fields of a chain."""
WAY_OUT = (
    "use another run.checkpoint and place for results to start anew, or go on with the version of StreamJoin that "
    "wrote this one"
)
"""What to do with a checkpoint of another format."""


def dump(state: UnitState, report: UnitReport) -> bytes:
    """The manifest of `state`; `report` says what the batch before it did."""
    return json.dumps(
        {
            "format": FORMAT,
            "version": state.version,
            "unit": report.unit,
            "label": report.label,
            "tables": {
                name: {"input": table.input, "segments": [info.to_json() for info in table.segments]}
                for name, table in state.tables.items()
            },
            "values": dict(state.values),
            "clocks": [clock.to_json() for clock in state.clocks],
            "totals": dict(state.totals),
            "dropped": list(state.dropped),
            "elsewhere": {number: clock.to_json() for number, clock in state.elsewhere.items()},
            "batch": {
                "received": report.received,
                "received_bytes": report.received_bytes,
                "comparisons": report.comparisons,
                "search_steps": report.search_steps,
                "results": report.results,
                "late": list(report.late),
                "expired_rows": report.expired_rows,
                "stored_rows": list(report.stored_rows),
                "stored_bytes": report.stored_bytes,
                "segments": report.segments,
                "outbox_rows": list(report.outbox_rows),
                "forwarded": report.forwarded,
                "waiting_results": report.waiting_results,
            },
        },
    ).encode()


def load(text: bytes, name: str) -> UnitState:
    """The state a manifest describes.

    Raises:
        StateError: it is damaged or of an unknown format.
    """
    try:
        value: Mapping[str, Any] = json.loads(text)
        if value["format"] != FORMAT:
            raise StateError(
                f"manifest {name} has format {value['format']} and this version of StreamJoin reads format {FORMAT}; "
                f"{WAY_OUT}"
            )
        clocks = [StreamClock.from_json(clock) for clock in value["clocks"]]
        return UnitState(
            value["version"],
            {name: Table(table["input"], _infos(table["segments"])) for name, table in value["tables"].items()},
            value["values"],
            tuple(clocks),
            value["totals"],
            tuple(value["dropped"]),
            {int(number): StreamClock.from_json(clock) for number, clock in value.get("elsewhere", {}).items()},
            value.get("label", ""),
        )
    except (ValueError, KeyError, TypeError, IndexError) as damage:
        raise StateError(
            f"manifest {name} is damaged ({damage}); restore the checkpoint from a copy, or start the job anew with "
            "another checkpoint"
        ) from None


def _infos(values: Iterable[Mapping[str, Any]]) -> tuple[SegmentInfo, ...]:
    return tuple(map(SegmentInfo.from_json, values))
