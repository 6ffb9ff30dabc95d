"""What a slot tells the driver of its batch. By stream, whatever stage and side a stream enters at."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from streamjoin.engine.slot import SlotStep
from streamjoin.engine.unit import UnitReport
from streamjoin.plan.stages import Cascade, Flow, Stage, stages_of
from streamjoin.spec.job import Job
from streamjoin.state.root import ObjectRoot

_BY_SIDE = {"stored_rows": 0, "late": 0, "marks_us": None, "outbox_rows": 0}
"""Of what units report by side, what a stream has at other stages than its own."""

_NUMBERS = 1_000_000
"""Of each stage where units come and go."""


def slot_report(job: Job, stage: int, step: SlotStep, seconds: dict[str, float]) -> dict[str, Any]:
    """A slot's report of one stage."""
    this = stages_of(job.plan)[stage]
    return {
        "slot": step.slot,
        "stage": stage,
        "clock_us": step.now_us,
        "units": [_unit(job, this, unit) for unit in step.reports],
        "intake": [
            {**item.to_json(), "side": this.inputs[item.side]}
            for item in step.punctuations
            if (item.counts or item.file is not None) and not isinstance(this.inputs[item.side], Flow)
        ],
        "seconds": seconds,
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
    if not isinstance(job.plan, Cascade):
        return told
    if len(job.operators) > 1:
        told["unit"] += _units_before(job, stage.number)
        told["label"] = f"{stage.number + 1}.{unit.label}"
    told["stage"] = stage.number
    told["flow_rows"] = sum(
        rows for read, rows in zip(stage.inputs, told["stored_rows"], strict=True) if isinstance(read, Flow)
    )
    for name, elsewhere in _BY_SIDE.items():
        of_stage = dict(zip(stage.inputs, told[name], strict=True))
        told[name] = [of_stage.get(stream, elsewhere) for stream in range(len(job.plan.streams))]
    return told
