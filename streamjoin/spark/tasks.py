"""What runs inside Spark's tasks: intake of a piece, and the units of a slot."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.index import kernels
from streamjoin.intake.deadletter import DeadLetter, write_dead_letters
from streamjoin.intake.intake import Intake, Piece
from streamjoin.job import Job
from streamjoin.operators.slot import SlotStep, StageJob
from streamjoin.punctuation import Punctuation
from streamjoin.results.parts import PartWriter
from streamjoin.sources import Read
from streamjoin.spark.wire import punctuation_row, receive, routed_row
from streamjoin.state.store import StateStore
from streamjoin.window import R

REPORT_SCHEMA = "report string"


def warm_up() -> None:
    """Load every kernel, so that workers forked from this process have them compiled."""
    one = np.zeros(1, np.int64)
    kernels.mix(one)
    kernels.radix_order(one, one)
    kernels.is_sorted(one)
    kernels.hash_bytes(np.zeros(2, np.int64), np.zeros(1, np.uint8))
    empty = np.zeros(0, np.int64)
    for cells, window in ((one, np.zeros(2, np.int64)), (empty, empty)):
        kernels.probe_segment(
            cells, one, empty, np.array([0, 0, 1]), one, cells, one, one, one, window, np.zeros(6, np.int64), one, one
        )


def read_piece(job: Job, side: int, read: Read, now_us: int) -> Iterator[pa.RecordBatch]:
    """Intake of one read of a source of ours, as rows of routed blocks; its punctuations come last."""
    letters: list[DeadLetter] = []
    intake = Intake(job.plan, side, job.operator, job.slots, letters.extend, job.strict)
    piece = Piece(f"{side}-{read.name}", read.router, read.identity, read.position, now_us)
    for rows, bad in read.rows(job.read_columns(side)):
        intake.bad_records(list(bad))
        for routed in intake.take(rows, piece):
            yield routed_row(routed)
    _keep_dead_letters(job, side, piece, letters)
    for slot, sent, punctuation in intake.punctuate(piece):
        yield punctuation_row(slot, sent, punctuation)


def heartbeat(job: Job, now_us: int) -> Iterator[pa.RecordBatch]:
    """A punctuation without tuples for every slot: time passes though nothing arrives."""
    for slot in range(job.slots):
        yield punctuation_row(slot, 0, Punctuation(R, "heartbeat", "heartbeat", 0, None, now_us))


def _keep_dead_letters(job: Job, side: int, piece: Piece, letters: list[DeadLetter]) -> None:
    if letters:
        name = piece.name.replace("/", "_").replace(":", "_")
        job.dead_letters.mkdir(parents=True, exist_ok=True)
        write_dead_letters(job.dead_letters / f"{job.plan.names[side]}-{name}.jsonl", letters)


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Rows of one source partition, as Spark brought them.

    Args:
        router, piece, identity: see `Piece`.
        positions: int64, each row's place in the identity; None to count on.
        bad: records that could not be read.
    """

    router: str
    piece: str
    identity: str
    rows: pa.RecordBatch
    positions: np.ndarray | None
    bad: list[DeadLetter]


Decode = Callable[[pa.RecordBatch], Iterator[SourceRows]]
"""A record batch from Spark, whose last column is the batch's logged time -> its rows by source partition."""


def intake_rows(job: Job, side: int, decode: Decode, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Intake of a partition of a Spark DataFrame."""
    intakes: dict[str, tuple[Intake, Piece, list[DeadLetter]]] = {}
    for batch in batches:
        if batch.num_rows == 0:
            continue
        now_us = int(batch.column(batch.num_columns - 1).view(pa.int64())[0].as_py())
        for part in decode(batch):
            if part.piece not in intakes:
                letters: list[DeadLetter] = []
                intake = Intake(job.plan, side, job.operator, job.slots, letters.extend, job.strict)
                piece = Piece(f"{side}-{part.piece}", part.router, part.identity, 0, now_us)
                intakes[part.piece] = intake, piece, letters
            intake, piece, _ = intakes[part.piece]
            intake.bad_records(part.bad)
            for routed in intake.take(part.rows, piece, part.positions):
                yield routed_row(routed)
    for intake, piece, letters in intakes.values():
        _keep_dead_letters(job, side, piece, letters)
        for slot, sent, punctuation in intake.punctuate(piece):
            yield punctuation_row(slot, sent, punctuation)


@functools.lru_cache(maxsize=8)
def _store(root: Path, sync: bool) -> StateStore:
    # One a worker: mapped segments stay mapped from batch to batch.
    return StateStore(root, sync=sync)


def _step(job: Job, batches: Iterator[pa.RecordBatch]) -> SlotStep:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    batch = context.getLocalProperty("streaming.sql.batchId")
    assert batch is not None, "units run in streaming queries only"
    stage = StageJob(job.plan, job.operator, job.slots, job.state, sync=job.sync)
    step = SlotStep(stage, context.partitionId(), int(batch), _store(job.state, job.sync))
    receive(batches, step)
    return step


def unit_rows(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A slot's units; gives result rows, typed."""
    yield from _step(job, batches).results()


def unit_reports(job: Job, results: PartWriter, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A slot's units; writes result rows to a part of the result sink, and gives one report."""
    begun = time.perf_counter()
    step = _step(job, batches)
    received = time.perf_counter()
    with results.part(step.version, step.slot, job.plan.emitted) as part:
        for rows in step.results():
            part.write(rows, step.unit)
    report: dict[str, Any] = {
        "slot": step.slot,
        "part": part.summary(),
        "clock_us": step.now_us,
        "units": [asdict(unit) for unit in step.reports],
        "intake": [item.to_json() for item in step.punctuations if item.counts],
        "seconds": {"receive": received - begun, "all": time.perf_counter() - begun},
    }
    yield pa.RecordBatch.from_arrays([pa.array([json.dumps(report)])], ["report"])
