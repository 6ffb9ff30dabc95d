"""What runs inside Spark's tasks: intake of a piece, and the units of a slot."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.engine.entering import Entering
from streamjoin.engine.feeding import Feeding
from streamjoin.engine.operator import Operator
from streamjoin.engine.router import Sending
from streamjoin.engine.slot import SlotStep
from streamjoin.flow.moment import Moment
from streamjoin.flow.punctuation import HEARTBEAT, Punctuation, drain_punctuation
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import Piece
from streamjoin.plan.hearing import hearing
from streamjoin.plan.stages import Flow, Stage, answered_by, entries_of, entry_of, running
from streamjoin.plan.types import TIMESTAMP, TIMESTAMP_NS
from streamjoin.plan.window import R
from streamjoin.relations.noted import Noted
from streamjoin.relations.versions import Tables
from streamjoin.results.parts import PartWriter
from streamjoin.sources import Read
from streamjoin.spark.aside import put_aside
from streamjoin.spark.gather import Gathering, run_rows
from streamjoin.spark.measuring import measured_before
from streamjoin.spark.offsetlog import Logged, began, carried_offsets, logged_in, partitions_read, versions_joined
from streamjoin.spark.slotreport import slot_report
from streamjoin.spark.wire import punctuation_row, receive, report_row, routed_row
from streamjoin.spec.job import Job
from streamjoin.state.places import AnyStates, open_states
from streamjoin.state.root import ObjectRoot, Root
from streamjoin.state.store import KEPT_VERSIONS

REPORT_SCHEMA = "report string"
STORES_MAX = 64
"""Stages of whose units a worker keeps segments mapped."""


def read_piece(job: Job, stream: int, read: Read, now: Moment) -> Iterator[pa.RecordBatch]:
    """Intake of one read of a source of ours, as rows of routed blocks; its punctuations come last."""
    letters: list[DeadLetter] = []
    entering = _entering(job, stream, letters)
    piece = Piece(
        f"{stream}-{read.name}", read.router, read.identity, read.position, now.clock_us, read.place, read.file,
        now.arrival_us,
    )  # fmt: skip
    for rows, bad in read.rows(job.read_columns(stream)):
        entering.intake.bad_records(list(bad))
        for stage, routed in entering.take(rows, piece):
            yield routed_row(routed, stage)
    _keep_dead_letters(job, piece, read.located(letters))
    yield from _punctuated(entering, piece)


def without_tuples(job: Job, now_us: int, *, drains: bool) -> Iterator[pa.RecordBatch]:
    """A punctuation for every slot: time passes though nothing arrives, and where the batch drains, tuples move on."""
    told = drain_punctuation(now_us) if drains else Punctuation(R, HEARTBEAT, HEARTBEAT, 0, None, now_us)
    for stage in running(job.plan):
        for slot in range(job.slots):
            yield punctuation_row(slot, 0, told, stage.number)


def _entering(job: Job, stream: int, letters: list[DeadLetter]) -> Entering:
    """A stream's routers, to every stage where it enters."""
    job = _in_batch(job)
    shed = _shed_factor(job, stream, entry_of(job.plan, stream)[0].number)
    return Entering(job.plan, stream, job.operators, job.slots, letters.extend, strict=job.strict, shed_factor=shed)


def _shed_factor(job: Job, stream: int, stage: int) -> float:
    """From the state version that the batch starts from: complete before the batch begins, and kept until it ended."""
    if not (job.shedding.rules or job.shedding.before):
        return 0.0
    batch = _batch()
    rule = job.shedding.rule(stream, batch)
    if rule is None:
        return 0.0
    units = [unit.number for unit in job.operators[stage].units if not unit.begins_at(batch)]
    return rule.factor(_store(job.state, stage, job.sync).live_tuples(units, batch), len(job.operators[stage].units))


def _in_batch(job: Job) -> Job:
    """The job with its operators as they are in this task's batch."""
    if not any(operator.capabilities.looks for operator in job.operators):
        return job
    batch = _batch()

    def looking(stage: Stage, operator: Operator) -> Operator:
        if stage.number in job.plan.resting:
            return operator
        return operator.in_batch(functools.partial(_store(job.state, stage.keeper, job.sync).load, version=batch))

    return replace(job, operators=tuple(map(looking, job.plan.stages, job.operators)))


def _batch() -> int:
    """The number of the batch that this task is of; it is the version of the state before it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty("streaming.sql.batchId")
    assert batch is not None, "joins run in streaming queries only"
    return int(batch)


def _keep_dead_letters(job: Job, piece: Piece, letters: list[DeadLetter]) -> None:
    if letters:
        put_aside(job, _batch(), piece.name, letters, piece.arrived_us)


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of one source partition, as Spark brought them.

    Args:
        router, piece, identity: see `Piece`.
        positions: int64, each row's place in the identity; None to count on.
        bad: records that could not be read.
        place: see `Piece`.
    """

    router: str
    piece: str
    identity: str
    rows: pa.RecordBatch
    positions: np.ndarray | None
    bad: list[DeadLetter]
    place: Callable[[int], tuple[str, int, str]] | None = None


Decode = Callable[[pa.RecordBatch], Iterator[SourceRows]]
"""A record batch from Spark, whose last column is Spark's time of the batch -> its rows by source partition."""


def intake_rows(job: Job, stream: int, decode: Decode, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Intake of a partition of a Spark DataFrame; see `read_piece`."""
    is_read = bool(entries_of(job.plan, stream))
    pieces: dict[str, tuple[Entering, Piece, list[DeadLetter]]] = {}
    now: Moment | None = None
    for batch in batches:
        if batch.num_rows == 0 or not is_read:
            continue
        now = now or _began(job, stream, batch)
        for part in decode(batch):
            if part.piece not in pieces:
                letters: list[DeadLetter] = []
                piece = Piece(
                    f"{stream}-{part.piece}", part.router, part.identity, 0, now.clock_us, part.place,
                    arrival_us=now.arrival_us,
                )  # fmt: skip
                pieces[part.piece] = _entering(job, stream, letters), piece, letters
            entering, piece, _ = pieces[part.piece]
            entering.intake.bad_records(part.bad)
            for stage, routed in entering.take(part.rows, piece, part.positions):
                yield routed_row(routed, stage)
    for entering, piece, letters in pieces.values():
        _keep_dead_letters(job, piece, letters)
        yield from _punctuated(entering, piece)


def _began(job: Job, stream: int, rows: pa.RecordBatch) -> Moment:
    """When a batch began that Spark brings rows of; nobody but Spark knows it of a DataFrame."""
    if stream in job.topics:
        return began(_logged(job), _batch(), job)
    return Moment().begun(int(rows.column(rows.num_columns - 1).view(pa.int64())[0].as_py()))


def _punctuated(entering: Entering, piece: Piece) -> Iterator[pa.RecordBatch]:
    """What of a piece of a stream has not been sent, and that it is complete, to every stage that must hear it."""
    for stage, routed in entering.rest(piece):
        yield routed_row(routed, stage)
    for stage, slot, sent, told in entering.punctuate(piece):
        yield punctuation_row(slot, sent, told, stage)


@functools.lru_cache(maxsize=STORES_MAX)
def _store(root: Root, stage: int, sync: bool) -> AnyStates:
    # One a worker and stage: mapped segments stay mapped from batch to batch.
    return open_states(root, stage, sync=sync)


def _stage_store(root: Root, sync: bool, stage: int) -> AnyStates:
    return _store(root, stage, sync)


@functools.lru_cache(maxsize=2)
def _tables(folder: Path) -> Tables:
    return Tables(folder)


def _step(job: Job, stage: int) -> SlotStep:
    """A slot's step, which has yet to receive its rows."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    store = _store(job.state, stage, job.sync)
    stores = functools.partial(_stage_store, job.state, job.sync)
    step = SlotStep(job.stage(stage), context.partitionId(), _batch(), store, stores=stores)
    step.measured = functools.partial(measured_before, job, step.version)
    if step.job.keeps is not None:
        step.kept = _store(job.state, step.job.keeps, job.sync)
    logged = _logged(job)
    if job.relations:
        step.tables, step.versions = _tables(job.tables), _versions(job, step.version, logged)
    if job.topics:  # what a source of ours says comes by every slot, but a topic may bring no row
        step.clock_us = began(logged, step.version, job).clock_us
    for punctuation in partitions_read(logged, step.version, job.topics):
        stream = punctuation.side
        for entered, side in entries_of(job.plan, stream):
            if entered.number == stage:
                step.punctuate(replace(punctuation, side=side), 0)
        if stage in hearing(job.plan, stream):
            step.punctuate(replace(punctuation, elsewhere=stream), 0)
    return step


def _versions(job: Job, batch: int, logged: Logged) -> dict[str, int]:
    """Which version of each relation a batch joins, by name."""
    if job.notes_versions:
        return Noted(job.noted, job.tables, KEPT_VERSIONS, sync=job.sync).versions(batch, job.joined_relations)
    return versions_joined(logged, batch)


def _logged(job: Job) -> Logged:
    """How a task reads Spark's offset log: another machine has no folder of it."""
    if isinstance(job.state, ObjectRoot):
        return carried_offsets(job.state)
    return logged_in(job.offsets)


def _steps(job: Job, floor: int) -> dict[int, SlotStep]:
    """By stage, a slot's steps on a floor, which have yet to receive their rows."""
    return {stage.number: _step(job, stage.number) for stage in job.plan.floors[floor]}


def feeding_rows(
    job: Job, floor: int, results: Sequence[PartWriter], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A slot's units of a floor that is not the last; gives the rows of later floors, and the slot's reports.

    Args:
        results: where the results of each query go, of those that the floor answers; none where it answers none.
    """
    begun = time.perf_counter()
    job = _in_batch(job)
    steps = _steps(job, floor)
    yield from receive(batches, steps)
    received_s, received_at_s = time.perf_counter() - begun, time.time()
    for stage, step in steps.items():
        parts = {}
        if answered_by(job.plan, stage):
            parts = {"parts": _written(job, stage, step, results)}
        else:
            yield from _fed(job, stage, step)
        seconds = {"receive": received_s, "all": time.perf_counter() - begun}
        yield report_row(step.slot, {**slot_report(job, stage, step, seconds, received_at_s), **parts})


def _fed(job: Job, stage: int, step: SlotStep) -> Iterator[pa.RecordBatch]:
    """What a slot's units of a stage find, as rows of the stages that join it further."""
    feedings = {
        after.number: Feeding(Sending(after.plan, side, job.operators[after.number], job.slots), step.version)
        for after, side in entries_of(job.plan, Flow(stage))
    }
    for rows in step.results():
        for after, feeding in feedings.items():
            for routed in feeding.take(rows, step.unit, step.query):
                yield routed_row(routed, after)
    for after, feeding in feedings.items():
        for routed in feeding.rest(step.slot):
            yield routed_row(routed, after)
        for slot, sent, punctuation in feeding.punctuate(step.reports, step.now_us):
            yield punctuation_row(slot, sent, punctuation, after)


def _written(job: Job, stage: int, step: SlotStep, results: Sequence[PartWriter]) -> list[dict[str, Any] | None]:
    """Write what a slot's units of a stage find to parts of sinks; by query, None for those of other stages."""
    answered = answered_by(job.plan, stage)
    with ExitStack() as open_parts:
        parts = [
            open_parts.enter_context(results[query].part(step.version, step.slot, job.plan.queries[query].emitted))
            for query in answered
        ]
        for rows in step.results():
            parts[step.query].write(rows, step.unit)
    summaries: list[dict[str, Any] | None] = [None] * len(job.plan.queries)
    for query, part in zip(answered, parts, strict=True):
        summaries[query] = part.summary()
    return summaries


def unit_rows(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A slot's units of the last stage; gives result rows, typed."""
    last = len(job.operators) - 1
    step = _step(_in_batch(job), last)
    for _ in receive(batches, {last: step}):
        pass  # the reports are for sinks of ours
    yield from map(_for_spark, step.results())


def _for_spark(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows whose times are in microseconds, the finest that Spark knows; what is finer is cut off."""
    for place, field in enumerate(rows.schema):
        if field.type == TIMESTAMP_NS:
            us = pc.floor_temporal(rows.column(place), unit="microsecond").cast(TIMESTAMP)
            rows = rows.set_column(place, field.name, us)
    return rows


def unit_reports(
    job: Job, results: Sequence[PartWriter], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A slot's units of the last floor; writes result rows to a part of their query's sink, and gives reports."""
    begun = time.perf_counter()
    job = _in_batch(job)
    steps = _steps(job, len(job.plan.floors) - 1)
    for told in receive(batches, steps):
        yield _report_row(json.loads(told.column("meta")[0].as_py())["report"])
    received_s, received_at_s = time.perf_counter() - begun, time.time()
    for stage, step in steps.items():
        parts = _written(job, stage, step, results)
        seconds = {"receive": received_s, "all": time.perf_counter() - begun}
        yield _report_row({**slot_report(job, stage, step, seconds, received_at_s), "parts": parts})


def unit_runs(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A slot's units; gives result rows and the slot's report to the gather stage."""
    begun = time.perf_counter()
    job = _in_batch(job)
    step = _step(job, 0)
    yield from receive(batches, {0: step})
    received_s = time.perf_counter() - begun
    for rows in step.results():
        yield from run_rows(rows, step.query, step.span, job.slots)
    seconds = {"receive": received_s, "all": time.perf_counter() - begun}
    yield report_row(step.slot, slot_report(job, 0, step, seconds))


def gathered_rows(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A gather partition; gives its share of the batch's results in order, typed."""
    gathering = Gathering(job.plan.queries)
    for _ in gathering.receive(batches):
        pass  # the reports are for sinks of ours
    yield from map(_for_spark, gathering.results(0))


def gathered_reports(
    job: Job, results: Sequence[PartWriter], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A gather partition; writes its share in order to a part of each query's sink, and hands on the slots' reports."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    gathering = Gathering(job.plan.queries)
    for report in gathering.receive(batches):
        yield _report_row(report)
    begun = time.perf_counter()
    summaries = []
    for number, (writer, query) in enumerate(zip(results, job.plan.queries, strict=True)):
        with writer.part(_batch(), context.partitionId(), query.delivered) as part:
            for rows in gathering.results(number):
                part.write(rows)
        summaries.append(part.summary())
    yield _report_row({"parts": summaries, "gather_s": time.perf_counter() - begun})


def _report_row(report: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(report)])], ["report"])
