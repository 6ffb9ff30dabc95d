"""The papers' formulas for the very input of a run, in the report's units.

The formulas speak of streams that flow on for ever; an input has a first tuple and a last one. So a "second" of theirs
is the whole run here: rates are the tuples that were routed, comparisons a second are those of the run. Windows fill up
from nothing: memory is told for the most tuples that are live at once, comparisons for as many as are on average.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamjoin.engine.operator import Operator
from streamjoin.operators import registry
from streamjoin.operators.costs import StreamStatistics, UnitCosts

Sample = tuple[StreamStatistics, StreamStatistics]

NOT_ROUTED = ("null_keys", "dropped_by_selection", "shed")
"""What a report counts of the tuples that came in and went to no unit."""


def predicted(
    operator: Operator, sample: Sample | None, figures: Mapping[str, Any], unit_costs: UnitCosts | None = None
) -> dict[str, Any] | None:
    """What the formulas say of a run that has been measured; None where the operator has none.

    Args:
        sample: of (R, S), `stored` being that of a full window, infinite where there is none; None where the streams
            could not be sampled, and then only the replication is known.
        figures: the run's report.
        unit_costs: what single steps took in the run; None where nothing was measured.
    Returns:
        `replication` a tuple in, `memory_bytes` at its peak, `comparisons` of the run with a nested loop, and where the
        operator's paper has it `latency_us` of one tuple (`processing`, `visiting`) and `block_tuples` by stream.
    """
    names, routed = list(figures["tuples_in"]), _routed(figures)
    known = sample or (StreamStatistics(0.0, 0.0, 0.0),) * 2
    most, mean = (
        [
            replace(stream, rate_per_s=count, stored=stored(stream.stored, count))
            for stream, count in zip(known, routed, strict=True)
        ]
        for stored in (min, mean_stored)
    )
    at_most = registry.predict(operator, most[0], most[1], 0.0, unit_costs)
    on_average = registry.predict(operator, mean[0], mean[1], 0.0)
    if at_most is None or on_average is None:
        return None
    arrived = sum(figures["tuples_in"].values())
    out: dict[str, Any] = {
        "replication": at_most.replication * sum(routed) / arrived if arrived else 0.0,
        "memory_bytes": round(at_most.memory_bytes) if sample else None,
        "comparisons": round(on_average.comparisons_per_s) if sample else None,
    }
    if at_most.latency:
        out["latency_us"] = {"processing": at_most.latency.processing_us, "visiting": at_most.latency.visiting_us}
    if at_most.block and sample:
        out["block_tuples"] = dict(zip(names, at_most.block.tuples, strict=True))
    return out


def mean_stored(full: float, tuples: int) -> float:
    """How many of a stream's tuples are stored on average, while its window fills up to `full` of them and goes on."""
    if math.isinf(full) or full >= tuples:
        return tuples / 2
    return full * (1 - full / (2 * tuples))


def _routed(figures: Mapping[str, Any]) -> Sequence[int]:
    """Tuples of (R, S) that went to units."""
    return [count - sum(figures[what][name] for what in NOT_ROUTED) for name, count in figures["tuples_in"].items()]
