"""Manifests: a unit's state at one version, as JSON.

A manifest names the unit's segments, clocks, counters and outbox. Batch b reads version b and writes version b + 1.
Writing a version again is harmless, because everything in it is a function of version b and the input of batch b.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streamjoin.errors import StateError
from streamjoin.index.segment import SegmentInfo
from streamjoin.operators.unit import UnitReport, UnitState
from streamjoin.operators.waiting import Run
from streamjoin.punctuation import StreamClock

FORMAT = 1
"""The layout of manifests and segments; a newer one is refused, an older one would be converted."""


def dump(state: UnitState, report: UnitReport) -> bytes:
    """The manifest of `state`; `report` says what the batch before it did."""
    return json.dumps(
        {
            "format": FORMAT,
            "version": state.version,
            "unit": report.unit,
            "label": report.label,
            "segments": {str(side): [info.to_json() for info in infos] for side, infos in state.segments.items()},
            "clocks": [clock.to_json() for clock in state.clocks],
            "totals": dict(state.totals),
            "dropped": list(state.dropped),
            "outbox": list(state.outbox),
            "open_rows": list(state.open_rows),
            "waiting": [run.to_json() for run in state.waiting],
            "settled": state.settled,
            "unmet": [[[info.to_json() for info in infos] for infos in pair] for pair in state.unmet],
            "batch": {
                "received": report.received,
                "received_bytes": report.received_bytes,
                "comparisons": report.comparisons,
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
        indent=1,
    ).encode()


def load(text: bytes, name: str) -> UnitState:
    """The state a manifest describes.

    Raises:
        StateError: it is damaged or of an unknown format.
    """
    try:
        value: Mapping[str, Any] = json.loads(text)
        if value["format"] != FORMAT:
            raise StateError(f"{name} has format {value['format']}; this version reads format {FORMAT}")
        clocks = [StreamClock.from_json(clock) for clock in value["clocks"]]
        # A manifest written before units sent blocks on, or before results waited, says nothing of these.
        open_rows = value.get("open_rows", (0, 0))
        return UnitState(
            value["version"],
            {int(side): _infos(infos) for side, infos in value["segments"].items()},
            (clocks[0], clocks[1]),
            value["totals"],
            tuple(value["dropped"]),
            tuple(value["outbox"]),
            (open_rows[0], open_rows[1]),
            tuple(map(Run.from_json, value.get("waiting", ()))),
            value.get("settled", 0),
            tuple((_infos(r), _infos(s)) for r, s in value.get("unmet", ())),
        )
    except (ValueError, KeyError, TypeError, IndexError) as damage:
        raise StateError(
            f"manifest {name} is damaged ({damage}); restore the checkpoint from a copy, or start the job anew with "
            "another checkpoint"
        ) from None


def _infos(values: Iterable[Mapping[str, Any]]) -> tuple[SegmentInfo, ...]:
    return tuple(map(SegmentInfo.from_json, values))


def named(state: UnitState) -> Iterator[SegmentInfo]:
    """Every file that a state names: segments it stores, blocks of its outbox, then results that wait."""
    yield from tuples(state)
    for run in state.waiting:
        yield run.info


def tuples(state: UnitState) -> Iterator[SegmentInfo]:
    """The segments of a state's tuples: those it stores, then the blocks of its outbox."""
    for infos in state.segments.values():
        yield from infos
    for message in state.outbox:
        yield from map(SegmentInfo.from_json, message["blocks"])
