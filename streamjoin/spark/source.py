"""StreamJoin's sources as one Spark data source: it reads and routes in the same task.

Spark logs the offset of every batch before it runs, and gives the same offsets to a repeated batch; an offset carries
when the batch began, so a repeated batch also sees the same time.

Spark starts three Python processes, one after the other, that import this module before the first batch: to create the
source, to keep its offsets, and to plan its tasks. What only one of them needs is imported where it is needed.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from streamjoin.flow.moment import Moment
from streamjoin.flow.punctuation import last_seen_us
from streamjoin.flow.silence import Silence
from streamjoin.spark.offsetlog import HEARTBEAT, RELATIONS, began, logged_in
from streamjoin.spark.wire import ROUTED_SCHEMA
from streamjoin.state.generation import last_logged

if TYPE_CHECKING:
    import pyarrow as pa

    from streamjoin.sources import Read, Source
    from streamjoin.spec.job import Job

NAME = "streamjoin"
DRAINED = "drained"
"""In an offset: how many batches without input have moved tuples on since the last one with input."""
RESIZES = "resizes"
"""In an offset: how often the state had been given another number of units then."""
SILENCE = "silence"
"""In an offset: a `Silence`."""


def pack(job: Job) -> str:
    """A job as an option of the data source."""
    return base64.b64encode(cloudpickle.dumps(job)).decode()  # type: ignore[no-untyped-call]


class StreamJoinSource(DataSource):
    """Routed blocks of all the job's file and generator streams, and its heartbeat."""

    @classmethod
    def name(cls) -> str:
        """What `readStream.format` takes."""
        return NAME

    def schema(self) -> str:
        """Rows of `wire`."""
        return ROUTED_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """A reader of the packed job."""
        return StreamJoinReader(self.options["job"])


class Task(InputPartition):
    """What one Spark task reads."""

    def __init__(self, now: Moment, reads: Sequence[tuple[int, Read]], *, drains: bool) -> None:
        super().__init__(None)
        self.now = now
        self.reads = reads
        self.drains = drains


class StreamJoinReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver, and reads them in tasks.

    Where pairs meet in later batches than their own, the input that is there now is followed by as many batches without
    input as it takes. An offset says how many of them in a row it is the end of, so a start goes on where the one
    before it stopped, and a start after the end does nothing.
    """

    def __init__(self, packed: str) -> None:
        self.packed = packed
        self._sources: dict[int, Source] | None = None
        self._ends = False
        self._now: Moment | None = None
        self._steady_us = 0
        self._found_us: int | None = None
        self._looked_us = 0
        self._input_us: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_sources": None}

    @property
    def job(self) -> Job:
        """The unpacked job."""
        return _unpack(self.packed)

    @property
    def sources(self) -> dict[int, Source]:
        """Opened sources, by the number of the stream; opening reads their logs, so only the driver does."""
        if self._sources is None:
            self._sources = {side: self.job.open_source(side) for side in self.job.sources}
        return self._sources

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Before the first row of every stream."""
        streams = {str(side): source.initial() for side, source in self.sources.items()}
        return {**self._logged(Moment(), streams), SILENCE: Silence().to_json()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Offer only what is there now, and then drain."""
        self._ends = True
        for source in self.sources.values():
            source.freeze(_clocks()[0])

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """How far the next batch goes; `start` where nothing arrived, nothing drains and no heartbeat is due.

        A new version of a relation has a batch of its own, which is a heartbeat: it is not input, and ends no silence.
        So has a wall clock that was set, and a run with another heartbeat, where Spark says when a batch begins: see
        `began`.
        """
        now = self._look(start)
        now_us = now.clock_us
        if self._found_us is None:
            self._found_us = start["clock_us"]
        streams = {
            str(side): source.latest(start["streams"][str(side)], now_us) for side, source in self.sources.items()
        }
        offset = self._logged(now, streams)
        if self.job.relations:
            offset[RELATIONS] = newest_versions(self.job)
        if streams != start["streams"]:
            return {**offset, SILENCE: Silence(now_us).to_json()}
        # A chain of another length begins anew: what is under way in it may be further from its end.
        same = start.get(RESIZES, 0) == self.job.resizes
        drained = start.get(DRAINED, 0) if same else 0
        # Rows that another source reads would be joined with the version of the batch before. At the end of what is
        # there nothing else waits for a new one.
        takes = offset.get(RELATIONS) != start.get(RELATIONS) and (bool(self.job.topics) or not self._ends)
        takes |= bool(self.job.topics) and now.is_off(Moment.from_json(start))
        if not takes and self._ends and drained < self.job.drain_batches:
            return {**offset, DRAINED: drained + 1}
        takes |= offset.get(HEARTBEAT) != start.get(HEARTBEAT)
        heartbeat_us, passed_us = self.job.heartbeat_us, now_us - start["clock_us"]
        if not takes and start["clock_us"] == 0 and not self.sources:
            return {**offset, SILENCE: Silence(now_us).to_json()}  # the first batch, of streams that Spark reads
        if not takes and (not heartbeat_us or passed_us < heartbeat_us):
            return start
        # An offset that does not tell is of a drain, or of before they told: there was input until then.
        known = Silence.from_json(start[SILENCE]) if SILENCE in start and same else Silence(start["clock_us"])
        if start["clock_us"] == self._found_us:
            known = known.after_stop(passed_us)
        silence = known.until(self._last_input_us(known, now_us))
        if not takes and passed_us < silence.pause_us(heartbeat_us, self.job.drain_batches):
            return start
        return {**offset, SILENCE: silence.beat(now_us, self.job.idle_us).to_json()}

    def _logged(self, now: Moment, streams: dict[str, Any]) -> dict[str, Any]:
        """What every offset has."""
        offset = {**now.to_json(), "streams": streams, RESIZES: self.job.resizes}
        return {**offset, HEARTBEAT: self.job.heartbeat_us} if self.job.topics else offset

    def _look(self, start: dict[str, Any]) -> Moment:
        """Now, by the clocks; Spark asks for offsets every few milliseconds, and before each batch."""
        wall_us, steady_us = _clocks()
        if self._now is None:
            batch = last_logged(self.job.offsets, "offsets") if self.job.topics else -1
            before = Moment.from_json(start) if batch < 0 else began(logged_in(self.job.offsets), batch, self.job)
            self._now = before.begun(wall_us)
        else:
            self._now = self._now.after(steady_us - self._steady_us, wall_us)
        self._steady_us = steady_us
        return self._now

    def _last_input_us(self, known: Silence, now_us: int) -> int | None:
        """When there was input last; of streams that another source reads the state tells, looked at now and then."""
        if len(self.sources) == len(self.job.plan.streams):
            return known.since_us
        if now_us - self._looked_us >= self.job.heartbeat_us:
            from streamjoin.state.places import newest_states, stages_at

            # Every unit of a stage knows it, and one is asked.
            units = [next(newest_states(self.job.state, stage), None) for stage in stages_at(self.job.state)]
            seen = (last_seen_us(unit[1].clocks) for unit in units if unit)
            self._looked_us = now_us
            self._input_us = max((one for one in seen if one is not None), default=None)
        return self._input_us

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The reads of a batch, dealt out to at most as many tasks as there are slots.

        Of a stream that no query reads any more nothing is read.
        """
        from streamjoin.plan.stages import entries_of

        tasks = -(-self.job.slots // max(len(self.sources), 1))
        reads: list[tuple[int, Read]] = []
        for side, source in self.sources.items():
            if not entries_of(self.job.plan, side):
                continue
            span = start["streams"][str(side)], end["streams"][str(side)]
            reads += [(side, read) for read in source.reads(*span, tasks)]
        count = max(min(self.job.slots, len(reads)), 1)
        drains = end.get(DRAINED, 0) > 0
        return [Task(Moment.from_json(end), reads[number::count], drains=drains) for number in range(count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of routed blocks."""
        from streamjoin.spark.tasks import read_piece, without_tuples

        assert isinstance(partition, Task)
        job = self.job
        if partition.drains or not partition.reads:
            yield from without_tuples(job, partition.now.clock_us, drains=partition.drains)
        for side, read in partition.reads:
            yield from read_piece(job, side, read, partition.now)


_unpacked: dict[str, Job] = {}


def _unpack(packed: str) -> Job:
    if packed not in _unpacked:
        _unpacked.clear()
        _unpacked[packed] = cloudpickle.loads(base64.b64decode(packed))
    return _unpacked[packed]


def newest_versions(job: Job) -> dict[str, int]:
    """The newest version of each relation: what the next batch joins."""
    from streamjoin.relations.versions import Versions

    return {name: Versions(job.tables, name).newest() for name in sorted(job.joined_relations)}


def _clocks() -> tuple[int, int]:
    """The wall clock, and one that is never set and, on Linux, stands still while the machine sleeps; both in us."""
    return time.time_ns() // 1_000, time.monotonic_ns() // 1_000
