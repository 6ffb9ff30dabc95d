"""What the reports of a batch's slots add up to: for whoever watches, for sinks, and for the list of rejected rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamjoin.counts import add_counts
from streamjoin.flow.moment import Moment
from streamjoin.flow.periods import ended_by
from streamjoin.flow.punctuation import Punctuation, lowest_mark_us
from streamjoin.intake import rejected
from streamjoin.intake.intake import KEPT, REJECTED
from streamjoin.results.parts import BatchDone
from streamjoin.spec.job import Job


@dataclass(slots=True)
class BatchReport:
    """What one batch did.

    Args:
        units: a mapping for each unit, as `UnitReport` has it.
        intake: counts of both sides, by side and name.
        seconds: `units`, in the slowest slot; `receive`, until a slot had all its tuples; `gather`, in the slowest
            partition that gathers results, absent where none does; and from the batch's begin, as logged, `met` until
            all units and gatherers were through, and `committed` until the results were visible.
        traffic: with the store of its state, as `Traffic` counts it; empty where the state is in a folder.
    """

    batch: int
    results: int
    units: list[dict[str, Any]]
    intake: dict[int, dict[str, int]]
    seconds: dict[str, float]
    latest_us: dict[int, int] = field(default_factory=dict)
    traffic: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """How long one batch took, `BatchReport.seconds`, and how many results and tuples waited for it."""

    results: int
    tuples: int
    seconds: Mapping[str, float]


def batch_done(
    batch: int,
    now: Moment,
    slots: Sequence[dict[str, Any]],
    stage: int | None = None,
    streams: Sequence[int] | None = None,
) -> BatchDone:
    """What a sink is told with the parts of a batch.

    Args:
        now: when it began.
        stage: which one answers its query; None for the last one.
        streams: which ones its query reads; None for all.
    """
    units = [unit for slot in slots for unit in slot["units"]]
    last = max((slot["stage"] for slot in slots), default=0) if stage is None else stage
    shed = sum(item["shed"] for slot in slots for item in slot["intake"])
    output_mark_us = lowest_mark_us(unit["output_mark_us"] for unit in units if unit.get("stage", 0) == last)
    marks_us = marks_of(units)
    told = [Punctuation.from_json(item) for slot in slots for item in slot["intake"]]
    ended = tuple(ended_by(item for item in told if item.side == stream) for stream in range(len(marks_us)))
    if streams is not None and units:
        marks_us, ended = tuple(marks_us[stream] for stream in streams), tuple(ended[stream] for stream in streams)
    return BatchDone(batch, now.arrival_us, marks_us, shed, output_mark_us, ended)


def marks_of(units: Sequence[Mapping[str, Any]]) -> tuple[int | None, ...]:
    """How far each stream has come: every unit of the stage where it enters sees all its punctuations."""
    by_stream = zip(*(unit["marks_us"] for unit in units), strict=True)
    return tuple(next((mark for mark in marks if mark is not None), None) for marks in by_stream) or (None, None)


def batch_report(
    batch: int, now: Moment, slots: Sequence[dict[str, Any]], results: int, gather_s: Sequence[float]
) -> BatchReport:
    """What one batch did.

    Args:
        now: when it began.
        gather_s: the seconds of the partitions that gathered results, if any did.
    """
    intake: dict[int, dict[str, int]] = {}
    latest: dict[int, int] = {}
    traffic = Counter[str]()
    for slot in slots:
        traffic.update(slot.get("traffic", {}))
        for item in slot["intake"]:
            add_counts(intake.setdefault(item["side"], {}), item["counts"])
            if item["ts_max_us"] is not None:
                latest[item["side"]] = max(item["ts_max_us"], latest.get(item["side"], item["ts_max_us"]))
    return BatchReport(
        batch,
        results,
        [_for_people(unit, now) for slot in slots for unit in slot["units"]],
        intake,
        {
            "units": max((slot["seconds"]["all"] for slot in slots), default=0.0),
            "receive": max((slot["seconds"]["receive"] for slot in slots), default=0.0),
            **({"gather": max(gather_s)} if gather_s else {}),
        },
        latest,
        dict(traffic),
    )


def _for_people(unit: dict[str, Any], now: Moment) -> dict[str, Any]:
    """A unit's report where units come and go: units know logged time alone, and decide in this batch."""
    if not (told := unit.get("adapting")):
        return unit
    ahead_us = now.wall_us - now.clock_us
    decisions = [{**one, "at_us": one["at_us"] + ahead_us} for one in told["decisions"]]
    return {**unit, "adapting": {**told, "at_us": told["at_us"] + ahead_us, "decisions": decisions}}


def missing(job: Job, batch: int, slots: Sequence[dict[str, Any]]) -> tuple[rejected.Counts, list[rejected.Taken]]:
    """The rows of a batch that are missing from its results: how many, and where those are that are kept."""
    counts: rejected.Counts = {name: {} for name in job.plan.names}
    taken = []

    def count(name: str, reason: str, rows: int) -> None:
        if rows:
            counts[name][reason] = counts[name].get(reason, 0) + rows

    for item in (item for slot in slots for item in slot["intake"]):
        name, found = job.plan.names[item["side"]], item["counts"]
        for reason, rows in _with_start(REJECTED, found).items():
            count(name, reason, rows)
        count(name, rejected.NULL_KEY, found.get("null_keys", 0))
        count(name, rejected.SHED, found.get("shed", 0))
        if kept := _with_start(KEPT, found):
            taken.append(rejected.Taken(rejected.file_of(job.dead_letters, batch, item["piece"]), {name: kept}))
    for unit in (unit for slot in slots for unit in slot["units"]):
        for stream, name in enumerate(job.plan.names):
            count(name, rejected.LATE, unit["late"][stream])
    return counts, taken


def _with_start(start: str, counts: Mapping[str, int]) -> dict[str, int]:
    return {name.removeprefix(start): value for name, value in counts.items() if name.startswith(start)}
