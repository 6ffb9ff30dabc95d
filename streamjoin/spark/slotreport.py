"""What a slot tells the driver of its batch. By stream, whatever stage and side a stream enters at."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from streamjoin.engine.slot import SlotStep
from streamjoin.engine.unit import QueryCounts, UnitReport
from streamjoin.plan.stages import Flow, Plan, Stage, answered_by, entry_of, is_divided, parts_at
from streamjoin.spec.job import Job
from streamjoin.state.root import ObjectRoot

_BY_SIDE = {"stored_rows": 0, "marks_us": None, "outbox_rows": 0}
"""Of what units report by side, what a stream has at other stages than its own."""

_NUMBERS = 1_000_000
"""Of each stage where units come and go."""


def slot_report(
    job: Job, stage: int, step: SlotStep, seconds: dict[str, float], received_at_s: float = 0.0
) -> dict[str, Any]:
    """A slot's report of one stage, whose results have all been taken.

    Args:
        received_at_s: when the slot had all that it was sent, in seconds of the epoch.
    """
    this = job.plan.stages[stage]
    return {
        "slot": step.slot,
        "stage": stage,
        "units": [_unit(job, this, unit) for unit in step.reports],
        "intake": [
            {**item.to_json(), "side": this.inputs[item.side]}
            for item in step.punctuations
            if (item.counts or item.file is not None) and not isinstance(this.inputs[item.side], Flow)
        ],
        "seconds": seconds,
        "at_s": {"received": received_at_s, "done": time.time()},
        # Of this process since its last slot; what goes on in the background comes with a later one.
        **({"traffic": job.state.opened()[0].traffic.taken()} if isinstance(job.state, ObjectRoot) else {}),
    }


def _units_before(job: Job, stage: int) -> int:
    """How many numbers the units of earlier stages take: as many in each batch."""
    before = job.operators[:stage]
    if any(operator.capabilities.adapts for operator in before):
        return stage * _NUMBERS
    return sum(len(operator.units) for operator in before)


def _unit(job: Job, stage: Stage, unit: UnitReport) -> dict[str, Any]:
    """A unit's report; units of several stages are numbered on, and have their stage's number before their label."""
    told = asdict(unit)
    if job.plan.pair is not None:
        return told
    if is_divided(job.plan):
        told["queries"] = _by_query(job.plan, stage.number, unit)
    if len(job.operators) > 1:
        told["unit"] += _units_before(job, stage.number)
        told["label"] = f"{stage.number + 1}.{unit.label}"
    told["stage"] = stage.number
    told["flow_rows"] = sum(
        rows for read, rows in zip(stage.inputs, told["stored_rows"], strict=True) if isinstance(read, Flow)
    )
    streams = range(len(job.plan.streams))
    for name, elsewhere in _BY_SIDE.items():
        told[name] = [_of_stream(stage, stream, told[name], elsewhere) for stream in streams]
    # A row that comes late is late once, however many stages it enters, and on however many sides.
    first = [entry_of(job.plan, stream) for stream in streams]
    told["late"] = [told["late"][side] if entered.number == stage.number else 0 for entered, side in first]
    return told


def _of_stream(stage: Stage, stream: int, by_side: Sequence[Any], elsewhere: Any) -> Any:
    """What a stream has of what is told by side; both sides' where both read it."""
    mine = [value for read, value in zip(stage.inputs, by_side, strict=True) if read == stream and value is not None]
    if not mine:
        return elsewhere
    return mine[0] if elsewhere is None else sum(mine)


def _by_query(plan: Plan, stage: int, unit: UnitReport) -> list[dict[str, int]]:
    """What each query had of a unit: of one that feeds other stages its comparisons alone, each query that it is of."""
    answered = answered_by(plan, stage)
    found = [asdict(QueryCounts()) for _ in plan.queries]
    for part in parts_at(plan, stage):
        if len(part.names) > 1:
            found[part.first_query : part.first_query + len(part.names)] = [dict(one) for one in unit.queries]
        else:
            results = unit.results if answered else 0
            found[part.first_query] = asdict(QueryCounts(results, unit.comparisons, unit.search_steps))
    return found
