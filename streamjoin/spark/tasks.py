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

from streamjoin.engine.feeding import Feeding
from streamjoin.engine.router import Router, Sending, announced
from streamjoin.engine.slot import SlotStep
from streamjoin.flow.punctuation import HEARTBEAT, Punctuation, drain_punctuation
from streamjoin.intake.deadletter import DeadLetter
from streamjoin.intake.intake import Intake, Piece
from streamjoin.plan.hearing import hearing
from streamjoin.plan.stages import Flow, entry_of, stages_of
from streamjoin.plan.types import TIMESTAMP, TIMESTAMP_NS
from streamjoin.plan.window import R
from streamjoin.relations.noted import Noted
from streamjoin.relations.versions import Tables
from streamjoin.results.parts import PartWriter
from streamjoin.sources import Read
from streamjoin.spark.aside import put_aside
from streamjoin.spark.gather import Gathering, run_rows
from streamjoin.spark.offsetlog import Logged, carried_offsets, logged_in, partitions_read, versions_joined
from streamjoin.spark.slotreport import slot_report
from streamjoin.spark.wire import punctuation_row, receive, report_row, routed_row
from streamjoin.spec.job import Job
from streamjoin.state.places import AnyStates, open_states
from streamjoin.state.root import ObjectRoot, Root
from streamjoin.state.store import KEPT_VERSIONS

REPORT_SCHEMA = "report string"


def read_piece(job: Job, stream: int, read: Read, now_us: int) -> Iterator[pa.RecordBatch]:
    """Intake of one read of a source of ours, as rows of routed blocks; its punctuations come last."""
    letters: list[DeadLetter] = []
    router, stage = _router(job, stream, letters)
    piece = Piece(f"{stream}-{read.name}", read.router, read.identity, read.position, now_us, read.place, read.file)
    for rows, bad in read.rows(job.read_columns(stream)):
        router.intake.bad_records(list(bad))
        for routed in router.take(rows, piece):
            yield routed_row(routed, stage)
    _keep_dead_letters(job, piece, read.located(letters))
    yield from _punctuated(job, stream, router, piece)


def without_tuples(job: Job, now_us: int, *, drains: bool) -> Iterator[pa.RecordBatch]:
    """A punctuation for every slot: time passes though nothing arrives, and where the batch drains, tuples move on."""
    told = drain_punctuation(now_us) if drains else Punctuation(R, HEARTBEAT, HEARTBEAT, 0, None, now_us)
    for stage in stages_of(job.plan):
        for slot in range(job.slots):
            yield punctuation_row(slot, 0, told, stage.number)


def _router(job: Job, stream: int, letters: list[DeadLetter]) -> tuple[Router, int]:
    """A stream's router, and the stage that it sends to."""
    stage, side = entry_of(job.plan, stream)
    job = _in_batch(job)
    intake = Intake(stage.plan, side, letters.extend, job.strict, _shed_factor(job, stream, stage.number))
    return Router(intake, job.operators[stage.number], job.slots), stage.number


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
    looks = [
        functools.partial(_store(job.state, stage.keeper, job.sync).load, version=batch)
        for stage in stages_of(job.plan)
    ]
    return replace(
        job, operators=tuple(operator.in_batch(look) for operator, look in zip(job.operators, looks, strict=True))
    )


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
        put_aside(job, _batch(), piece.name, letters, piece.now_us)


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
"""A record batch from Spark, whose last column is the batch's logged time -> its rows by source partition."""


def intake_rows(job: Job, stream: int, decode: Decode, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Intake of a partition of a Spark DataFrame."""
    routers: dict[str, tuple[Router, Piece, list[DeadLetter]]] = {}
    stage = entry_of(job.plan, stream)[0].number
    for batch in batches:
        if batch.num_rows == 0:
            continue
        now_us = int(batch.column(batch.num_columns - 1).view(pa.int64())[0].as_py())
        for part in decode(batch):
            if part.piece not in routers:
                letters: list[DeadLetter] = []
                router, _ = _router(job, stream, letters)
                piece = Piece(f"{stream}-{part.piece}", part.router, part.identity, 0, now_us, part.place)
                routers[part.piece] = router, piece, letters
            router, piece, _ = routers[part.piece]
            router.intake.bad_records(part.bad)
            for routed in router.take(part.rows, piece, part.positions):
                yield routed_row(routed, stage)
    for router, piece, letters in routers.values():
        _keep_dead_letters(job, piece, letters)
        yield from _punctuated(job, stream, router, piece)


def _punctuated(job: Job, stream: int, router: Router, piece: Piece) -> Iterator[pa.RecordBatch]:
    """What of a piece of a stream has not been sent, and that it is complete, to every stage that must hear it."""
    own = entry_of(job.plan, stream)[0].number
    for routed in router.rest(piece):
        yield routed_row(routed, own)
    for stage, slot, sent, told in announced(router.punctuate(piece), stream, own, hearing(job.plan, stream)):
        yield punctuation_row(slot, sent, told, stage)


@functools.lru_cache(maxsize=8)
def _store(root: Root, stage: int, sync: bool) -> AnyStates:
    # One a worker and stage: mapped segments stay mapped from batch to batch.
    return open_states(root, stage, sync=sync)


@functools.lru_cache(maxsize=2)
def _tables(folder: Path) -> Tables:
    return Tables(folder)


def _step(job: Job, stage: int) -> SlotStep:
    """A slot's step, which has yet to receive its rows."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    store = _store(job.state, stage, job.sync)
    step = SlotStep(job.stage(stage), context.partitionId(), _batch(), store)
    if step.job.keeps is not None:
        step.kept = _store(job.state, step.job.keeps, job.sync)
    logged = _logged(job)
    if job.relations:
        step.tables, step.versions = _tables(job.tables), _versions(job, step.version, logged)
    for punctuation in partitions_read(logged, step.version, job.topics):
        stream = punctuation.side
        entered, side = entry_of(job.plan, stream)
        if entered.number == stage:
            step.punctuate(replace(punctuation, side=side), 0)
        elif stage in hearing(job.plan, stream):
            step.punctuate(replace(punctuation, elsewhere=stream), 0)
    return step


def _versions(job: Job, batch: int, logged: Logged) -> dict[str, int]:
    """Which version of each relation a batch joins, by name."""
    if job.notes_versions:
        return Noted(job.noted, job.tables, KEPT_VERSIONS, sync=job.sync).versions(batch, job.relations)
    return versions_joined(logged, batch)


def _logged(job: Job) -> Logged:
    """How a task reads Spark's offset log: another machine has no folder of it."""
    if isinstance(job.state, ObjectRoot):
        return carried_offsets(job.state)
    return logged_in(job.offsets)


def feeding_rows(job: Job, stage: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A slot's units of a stage that another one joins further; gives the rows of that one, and the slot's report."""
    begun = time.perf_counter()
    job = _in_batch(job)
    step = _step(job, stage)
    yield from receive(batches, step, stage)
    received_s = time.perf_counter() - begun
    after, side = entry_of(job.plan, Flow(stage))
    feeding = Feeding(Sending(after.plan, side, job.operators[after.number], job.slots), step.version)
    for rows in step.results():
        for routed in feeding.take(rows, step.unit, step.query):
            yield routed_row(routed, after.number)
    for routed in feeding.rest(step.slot):
        yield routed_row(routed, after.number)
    for slot, sent, punctuation in feeding.punctuate(step.reports, step.now_us):
        yield punctuation_row(slot, sent, punctuation, after.number)
    seconds = {"receive": received_s, "all": time.perf_counter() - begun}
    yield report_row(step.slot, slot_report(job, stage, step, seconds))


def unit_rows(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A slot's units of the last stage; gives result rows, typed."""
    last = len(job.operators) - 1
    step = _step(_in_batch(job), last)
    for _ in receive(batches, step, last):
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
    """A slot's units of the last stage; writes result rows to a part of their query's sink, and gives reports."""
    begun = time.perf_counter()
    job, last = _in_batch(job), len(job.operators) - 1
    step = _step(job, last)
    for told in receive(batches, step, last):
        yield _report_row(json.loads(told.column("meta")[0].as_py())["report"])
    received_s = time.perf_counter() - begun
    with ExitStack() as open_parts:
        parts = [
            open_parts.enter_context(writer.part(step.version, step.slot, query.emitted))
            for writer, query in zip(results, job.plan.queries, strict=True)
        ]
        for rows in step.results():
            parts[step.query].write(rows, step.unit)
    seconds = {"receive": received_s, "all": time.perf_counter() - begun}
    yield _report_row({**slot_report(job, last, step, seconds), "parts": [part.summary() for part in parts]})


def unit_runs(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A slot's units; gives result rows and the slot's report to the gather stage."""
    begun = time.perf_counter()
    job = _in_batch(job)
    step = _step(job, 0)
    yield from receive(batches, step)
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
