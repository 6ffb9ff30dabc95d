"""Tasks that lose Spark's shuffle files in the middle of a batch, and write down what they sent."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

from streamjoin.results.parts import PartWriter
from streamjoin.spark import tasks
from streamjoin.spec.job import Job

LOST_BATCH = 2
WAIT_S_MAX = 60


def feeding_rows(
    notes: Path, job: Job, floor: int, results: Sequence[PartWriter], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """See `tasks`; a note of each task has the hashes of all that it sent, but for reports, which tell seconds."""
    sent = []
    for rows in tasks.feeding_rows(job, floor, results, batches):
        sent += [
            hashlib.sha256(repr(row).encode()).hexdigest() for row in rows.to_pylist() if '"report"' not in row["meta"]
        ]
        yield rows
    context = _context()
    name = f"{context.getLocalProperty('streaming.sql.batchId')}-{context.partitionId()}-{context.taskAttemptId()}"
    (notes / f"{name}.json").write_text(json.dumps(sorted(sent)))


def unit_reports(
    notes: Path, job: Job, results: Sequence[PartWriter], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """See `tasks`; in one batch, the first that has its input deletes what the stages before wrote for the others.

    Nobody lets go of a core before, so whoever begins later finds nothing.
    """
    lost = notes / "lost"
    if _context().getLocalProperty("streaming.sql.batchId") == str(LOST_BATCH) and not lost.exists():
        batches = iter(list(batches))
        try:
            (notes / "first").touch(exist_ok=False)
        except FileExistsError:
            until_s = time.monotonic() + WAIT_S_MAX
            while not lost.exists() and time.monotonic() < until_s:
                time.sleep(0.01)
        else:
            for file in (file for folder in _shuffles() for file in folder.rglob("shuffle_*")):
                file.unlink()
            lost.touch()
    yield from tasks.unit_reports(job, results, batches)


def sent(notes: Path) -> dict[tuple[int, int], list[list[str]]]:
    """By batch and slot, what each task of it sent."""
    found: dict[tuple[int, int], list[list[str]]] = defaultdict(list)
    for note in sorted(notes.glob("*.json")):
        batch, slot, _ = map(int, note.stem.split("-"))
        found[batch, slot].append(json.loads(note.read_text()))
    return found


def _shuffles() -> list[Path]:
    """Where Spark keeps shuffle files; it tells its Python workers."""
    return list(map(Path, os.environ["SPARK_LOCAL_DIRS"].split(",")))


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None
    return context
