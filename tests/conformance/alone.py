"""A driver without Spark: its tasks, sinks and checkpoint are the real ones, and it writes logs as Spark does."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from streamjoin.spark import checkpoint, tasks
from streamjoin.spark.driver import Driver, OnBatch
from streamjoin.spark.source import StreamJoinReader, pack
from streamjoin.spec.prepare import Bound
from streamjoin.state.root import Root

KEPT = 10


@dataclass(frozen=True)
class SparkLog:
    """Spark's logs of a query: it renames each entry to its name, and syncs nothing."""

    folder: Path

    def write(self, path: str, text: str) -> None:
        """Put an entry into place."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
        temporary.write_text(text)
        os.rename(temporary, target)

    def begin(self) -> None:
        """The query has an id."""
        metadata = self.folder / "metadata"
        if metadata.exists():
            assert json.loads(metadata.read_text())["id"]
        else:
            self.write("metadata", json.dumps({"id": str(uuid.uuid4())}))

    def last(self, log: str) -> tuple[int, list[str]]:
        """The last entry; -1 where there is none."""
        number = max((int(path.name) for path in (self.folder / log).glob("[0-9]*")), default=-1)
        if number < 0:
            return -1, []
        version, *lines = (self.folder / log / str(number)).read_text().splitlines()
        if version != "v1" or not lines:
            raise ValueError("Incomplete log file")  # where Spark stops
        return number, lines

    def offset(self, batch: int) -> Any:
        """What a batch reads up to."""
        return json.loads((self.folder / "offsets" / str(batch)).read_text().splitlines()[2])

    def purge(self, batch: int) -> None:
        """Forget what is before the last entries."""
        for log in ("offsets", "commits"):
            for path in (self.folder / log).glob("[0-9]*"):
                if int(path.name) <= batch - KEPT:
                    path.unlink()


class Alone(Driver):
    """A driver that runs its tasks itself, batch by batch.

    Args:
        before: called before each batch is planned; the run ends where it gives False.
    """

    before: Callable[[int], bool] = staticmethod(lambda batch: True)

    def _anchored(self) -> AbstractContextManager[None]:
        return nullcontext()  # there are no machines

    def _join(self, held: checkpoint.Held, stop: threading.Event, **trigger: bool) -> bool:
        log = SparkLog(self.job.offsets)
        log.begin()
        writers = [sink.begin(held.id) for sink in self.sinks]
        reader = StreamJoinReader(pack(self.job))
        if trigger:
            reader.prepareForTriggerAvailableNow()
        planned, lines = log.last("offsets")
        done, _ = log.last("commits")
        batch, repeats = planned, planned > done
        end = json.loads(lines[1]) if lines else reader.initialOffset()
        while True:
            if repeats:
                start = log.offset(batch - 1) if batch else reader.initialOffset()
            else:
                batch, start = batch + 1, end
                if not self.before(batch):
                    return False
                end = reader.latestOffset(start, cast(Any, None))
                if end == start:
                    return True
                log.write(f"offsets/{batch}", f"v1\n{json.dumps({'batchTimestampMs': 0})}\n{json.dumps(end)}")
            repeats = False
            with task(batch, 0):
                self._commit(
                    cast(Any, Reports(lambda a=start, b=end, n=batch: self._work(reader, writers, a, b, n))), batch
                )
            log.write(f"commits/{batch}", "v1\n{}")
            log.purge(batch)
            if trigger.get("once"):
                return True

    def _work(self, reader: StreamJoinReader, writers: Any, start: Any, end: Any, batch: int) -> Iterator[str]:
        coming = [rows for partition in reader.partitions(start, end) for rows in reader.read(partition)]
        for floor in range(len(self.job.plan.floors) - 1):
            before, coming = self._by_slot(coming), []
            for slot, rows in enumerate(before):
                with task(batch, slot):
                    coming += tasks.feeding_rows(self.job, floor, writers, iter(rows))
        for slot, rows in enumerate(self._by_slot(coming)):
            with task(batch, slot):
                for told in tasks.unit_reports(self.job, writers, iter(rows)):
                    yield from told.column("report").to_pylist()

    def _by_slot(self, rows: Sequence[pa.RecordBatch]) -> list[list[pa.RecordBatch]]:
        found: list[list[pa.RecordBatch]] = [[] for _ in range(self.job.slots)]
        for part in rows:
            found[part.column("slot")[0].as_py()].append(part)
        return found


@dataclass(frozen=True)
class Reports:
    """What the driver takes for a DataFrame of reports."""

    work: Callable[[], Iterator[str]]

    def collect(self) -> list[SimpleNamespace]:
        """Runs the tasks."""
        return [SimpleNamespace(report=report) for report in self.work()]


@contextmanager
def task(batch: int, slot: int) -> Iterator[None]:
    import pyspark

    context = SimpleNamespace(getLocalProperty=lambda name: str(batch), partitionId=lambda: slot)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyspark.TaskContext, "get", lambda: context)
        yield


def run_alone(
    bound: Bound,
    before: Callable[[int], bool] | None = None,
    states: Root | None = None,
    on_batch: OnBatch | None = None,
) -> Alone:
    """Run a job: to the end of what is there, or as long as `before` says.

    Args:
        before: called before each batch is planned.
        states: where its state is, if not in its checkpoint.
        on_batch: see `Driver`.
    """
    tasks._store.cache_clear()  # another process would have to open what is there
    job = bound.job(heartbeat=False)
    job = job if states is None else replace(job, states=states)
    driver = Alone(cast(Any, None), job, bound.sinks(), on_batch=on_batch, ending=bound.ending())
    if before is not None:
        driver.before = before  # type: ignore[method-assign]
    driver.run(until_end=before is None)
    return driver
