"""The driver loop of one job: start the query, commit results batch by batch, report progress."""

from __future__ import annotations

import functools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streamjoin.errors import RunError, UnsupportedError
from streamjoin.failpoints import failpoint
from streamjoin.plan.stages import answering
from streamjoin.results.parts import Sink
from streamjoin.spark import checkpoint, pace, started
from streamjoin.spark.aside import take_aside
from streamjoin.spark.batchreport import BatchReport, batch_done, batch_report, missing
from streamjoin.spark.failures import NOT_CONNECTED, first_cause
from streamjoin.spark.join import fed, gather, own_sources, routed_dataframe, topics_in_order, units
from streamjoin.spark.kafka import Topic, decode_records, read_topic
from streamjoin.spark.measuring import Measuring
from streamjoin.spark.offsetlog import began, logged_in, logs_own, sync_log
from streamjoin.spark.progress import Progress
from streamjoin.spark.refresh import first_versions, refreshing
from streamjoin.spark.relations import keep_versions, note_use, told
from streamjoin.spark.requerying import requery
from streamjoin.spark.staying import Staying, staying
from streamjoin.spark.tasks import REPORT_SCHEMA, gathered_reports, unit_reports
from streamjoin.spec.job import Job
from streamjoin.spec.moved import settle_moved
from streamjoin.spec.owners import owned_places
from streamjoin.spec.relations import OnRelation
from streamjoin.state.generation import Generation
from streamjoin.state.root import ObjectRoot

_log = logging.getLogger("streamjoin.driver")
POLL_S = 0.25
STOPPING_POLL_S = 0.05
_INTERRUPTED = "py4j.protocol.Py4JJavaError: An error occurred while calling collect: java.lang.InterruptedException"
"""By these words in what a callback raised Spark knows its own interruption. It looks for them with an expression that
overflows Java's stack on a text as long as a real failure's, and then takes that for a failure of the query."""
STARTS_MAX = 4
BATCH_GRACE_S = 60.0
"""How long a stop waits for the running batch; one that is cut off is repeated at the next start."""
OnBatch = Callable[[Progress, BatchReport], None]


class Driver:
    """Runs one job in a Spark session.

    Args:
        sinks: where each query's results go.
        topics: by side, for the sides that Spark reads from Kafka.
        ending: where the results go of queries that this start stops, by name.
        on_unit: told how many units have their tuples stored for other queries, of how many.
        on_relation: told of a relation that is read, and how many of its rows were.
        on_batch: called after each committed batch, from another thread.
        on_quiet: called once, unless a batch was committed before: the first look at the streams found nothing to do.
    """

    def __init__(
        self,
        session: SparkSession,
        job: Job,
        sinks: Sequence[Sink],
        topics: dict[int, Topic] | None = None,
        on_batch: OnBatch | None = None,
        ending: Mapping[str, Sink] | None = None,
        on_unit: Callable[[int, int], None] | None = None,
        on_relation: OnRelation | None = None,
        on_quiet: Callable[[], None] | None = None,
    ) -> None:
        self.session = session
        self.job = job
        self.sinks = tuple(sinks)
        self.topics = topics or {}
        self.on_batch = on_batch
        self.ending = ending or {}
        self.on_unit = on_unit
        self.on_relation = on_relation
        self.on_quiet = on_quiet
        self.progress = Progress(len(job.plan.streams))
        self._failure: BaseException | None = None
        self._begun: dict[int, float] = {}
        self._is_ending = False
        self._generation: Generation | None = None
        self._staying: Staying | None = None
        self._measuring: Measuring | None = None

    def run(self, *, until_end: bool, stop: threading.Event | None = None) -> Progress:
        """Join until the end of what is there, or until `stop`; holds the job's checkpoint meanwhile.

        Raises:
            InputError: the checkpoint is in use or belongs to another join.
            UnsupportedError: the operator has to be drained at the end, and a stream comes from Kafka.
            RunError: a batch failed; the message is the first cause.
        """
        stop = stop or threading.Event()
        with checkpoint.opened(self.job) as held, self._owning():
            self.job = replace(
                self.job,
                resizes=held.resizes,
                shedding=started.shedding(self.job, self.job.shedding.rules),
                topics=topics_in_order(self.job, {number: topic.topic for number, topic in self.topics.items()}),
                begins=started.begins(self.job),
                states=held.place(self.job),
            )
            self._generation = held.generation
            settle_moved(self.job.checkpoint, self._sinks_by_name(), held.id)
            self._measuring = Measuring.of(self.job)
            if (versions := first_versions(self.job, stop, self.on_relation)) is None:
                return self.progress
            for name, version in versions.items():
                self.progress.relations[name] = told(version)
            if not held.requeries_for(self.job):
                self.job = replace(self.job, earlier=None)
            resizes = held.resizes_for(self.job)
            self._check_end(until_end, replace(self.job, resizes=held.resizes + resizes))
            with self._anchored():
                if resizes or held.requeries_for(self.job):
                    if not self._done(held, stop):
                        return self.progress
                    self._change(held)
                with refreshing(self.job, self.progress.relations):
                    ended = self._join(held, stop, **({"availableNow": True} if until_end else {}))
            if ended and until_end:
                for sink in self.sinks:
                    sink.finish()
        return self.progress

    def _sinks_by_name(self) -> dict[str, Sink]:
        return {**self.ending, **dict(zip(self.job.plan.names_of_queries, self.sinks, strict=True))}

    def _owning(self) -> AbstractContextManager[None]:
        """Hold the places of results."""
        plans = [*([self.job.earlier] if self.job.earlier else []), self.job.plan]
        is_fenced = isinstance(self.job.state, ObjectRoot)  # whoever becomes the owner of its states
        return owned_places(self.job.checkpoint, plans, self._sinks_by_name(), is_fenced=is_fenced)

    def _check_end(self, until_end: bool, job: Job) -> None:
        if until_end and self.topics and job.meeting_batches:
            hands_on = any(operator.capabilities.hands_on for operator in job.operators)
            other = ", or choose biclique, matrix or splitjoin" if hands_on else ""
            raise UnsupportedError(
                "rows of this join leave some batches after their tuples came in, and the end of a Kafka topic brings "
                "no more batches; run without --until-end" + other,
                field="operator.name",
            )

    def _done(self, held: checkpoint.Held, stop: threading.Event) -> bool:
        """Do a pending batch as it was begun, by as many units and for the same queries. False if stopped.

        Sinks may have taken its results.
        """
        if started.pending(self.job):
            asked, sinks, earlier = self.job, self.sinks, self.job.earlier
            self.job = replace(asked, operators=held.operators(asked), plan=earlier or asked.plan)
            if earlier is not None:
                by_name = {**self.ending, **dict(zip(asked.plan.names_of_queries, sinks, strict=True))}
                self.sinks = tuple(by_name[name] for name in earlier.names_of_queries)
            self._join(held, stop, once=True)
            self.job, self.sinks = asked, sinks
            if earlier is not None:
                self.progress.rename(earlier.names_of_queries, asked.plan.names_of_queries)
        return not started.pending(self.job)

    def _change(self, held: checkpoint.Held) -> None:
        """Give the state the job's queries and units."""
        if held.requeries_for(self.job):
            requery(held, self.job, self.on_unit, lambda: self._complete(held.id))
        if held.resizes_for(self.job):
            held.resize(self.job)
        self.job = replace(self.job, resizes=held.resizes, earlier=None, states=held.place(self.job))

    def _complete(self, origin: str) -> None:
        """Complete the results of queries that end."""
        for sink in self.ending.values():
            sink.begin(origin)
            sink.finish(for_good=True)

    def _join(self, held: checkpoint.Held, stop: threading.Event, **trigger: bool) -> bool:
        """Run the query until it ends, or until `stop`; whether it ended.

        A query one of whose Python workers did not connect in time goes on with the batch that it had come to, if it is
        started again: `STARTS_MAX` times in all without a batch in between. So does one that waits too long.
        """
        start = 0
        while True:
            start, done = start + 1, self.progress.batches
            self._failure = None  # it ended an earlier query
            query = self._start(held.id, **trigger)
            try:
                ended = self._wait(query, stop, pace.Watch(0 if trigger else self.job.every_us))
                if ended is not None:
                    break
                start = 0
                _log.warning("the wall clock was set back, for which Spark would wait, and the query is started again")
            except RunError as failure:
                start = start if self.progress.batches == done else 1
                if NOT_CONNECTED not in str(failure) or start == STARTS_MAX or stop.is_set():
                    raise
                self.progress.reconnects += 1
                _log.warning(
                    "a Python worker did not connect to Spark in time, and the query is started again (%d so far)",
                    self.progress.reconnects,
                )
            finally:
                if query.isActive:
                    self._end(query)
            # It begins at the wall clock's time, which may be hours later where that was set: no stream was silent.
            self.job = replace(self.job, begins=started.begins(self.job))
        self._take_durations(query)
        return ended

    def _end(self, query: StreamingQuery) -> None:
        """Stop a query, whose next batch may have begun; it is done again at the next start."""
        self._is_ending = True
        try:
            with _callbacks_may_fail():
                query.stop()
        finally:
            self._is_ending = False

    @contextmanager
    def _anchored(self) -> Iterator[None]:
        """On a cluster slots stay on the machines that have their segments."""
        self._staying = staying(self.session, self.job.slots)
        try:
            yield
        finally:
            if self._staying is not None:
                self._staying.close()

    def _routed(self) -> tuple[list[DataFrame], dict[int, DataFrame]]:
        """What `fed` takes: routed blocks of any streams, and by stream of those that Spark reads."""
        # It is there also where it brings nothing: a later start may have a heartbeat, and Spark wants it all along.
        own = self.job.sources or self.job.relations or logs_own(self.job.offsets)
        frames = [own_sources(self.session, self.job)] if own else []
        if self.job.heartbeat_us and not own:
            _log.warning("this checkpoint was begun without a heartbeat by an earlier version, and goes on without one")
        topics = {}
        for number, topic in self.topics.items():
            stream = self.job.plan.streams[number]
            records = read_topic(self.session, topic, self.job.slots)
            decode = decode_records(stream.name, topic, stream.columns)
            topics[number] = routed_dataframe(self.job, number, records, decode)
        return frames, topics

    def _start(self, origin: str, **trigger: bool) -> StreamingQuery:
        stage, work = (gather, gathered_reports) if self.job.plan.gathered else (units, unit_reports)
        results = [sink.begin(origin) for sink in self.sinks]
        run = functools.partial(work, self.job, results)

        def reports(frames: list[DataFrame], topics: dict[int, DataFrame]) -> DataFrame:
            fed_rows = fed(self.job, frames, topics, results, self._staying)
            return stage(self.job, fed_rows, run, REPORT_SCHEMA, self._staying)

        def anchored(frame: DataFrame, batch: int) -> None:
            # Where slots are may change from batch to batch, and a query's plan may not.
            self._commit(frame, batch, lambda blocks: reports([blocks], {}))

        try:
            frames, topics = self._routed()
            if self._staying is None:
                writer = reports(frames, topics).writeStream.foreachBatch(self._commit)
            else:
                frames += [topics[number] for number in self.job.topics]
                writer = functools.reduce(DataFrame.unionAll, frames).writeStream.foreachBatch(anchored)
            writer = writer.option("checkpointLocation", str(self.job.offsets))
            return pace.started(writer, self.job.every_us, **trigger)
        except Py4JJavaError as failure:  # as where Python cannot start what plans the batches
            raise first_cause(failure) from None

    def _commit(
        self, frame: DataFrame, batch: int, reports_of: Callable[[DataFrame], DataFrame] = lambda frame: frame
    ) -> None:
        try:
            self._plan_lasts(batch)
            now = began(logged_in(self.job.offsets), batch, self.job)
            if self._staying is not None:
                self._staying.look()
            # A slot tells of its units, and of its parts of the results unless gather partitions do.
            reports = [json.loads(row.report) for row in reports_of(frame).collect()]
            met_s = time.time()
            slots = [report for report in reports if "slot" in report]
            parts = [report["parts"] for report in reports if "parts" in report]
            failpoint("batch.before_commit")
            if self._generation is not None:
                self._generation.check()
            # A batch that some of the sinks have taken when the driver dies is repeated for all: they know it again.
            for query, sink in enumerate(self.sinks):
                mine = [part[query] for part in parts if part[query] is not None]
                sink.commit(batch_done(batch, now, slots, *answering(self.job.plan, query)), mine)
            committed_s = time.time()
            failpoint("batch.after_commit")
            note_use(self.job, batch, self.progress.relations)
            keep_versions(self.job, batch)
            take_aside(self.job, batch, *missing(self.job, batch, slots))
            gather_s = [report["gather_s"] for report in reports if "gather_s" in report]
            report = batch_report(
                batch, now, slots, sum(one["rows"] for part in parts for one in part if one), gather_s
            )
            begun_s = now.wall_us / 1e6
            report.seconds |= {"met": met_s - begun_s, "committed": committed_s - begun_s}
            if self._measuring is not None:
                self._measuring.add(slots)
                self.progress.step_times = self._measuring.to_json()
            self.progress.add(report)
            if self.on_batch:
                self.on_batch(self.progress, report)
        except BaseException as failure:
            self._failure = failure
            if self._is_ending:
                raise RunError(_INTERRUPTED) from None
            raise

    def _plan_lasts(self, batch: int) -> None:
        """Before a batch's job begins: what it reads outlasts a power cut, and is where another host finds it."""
        if self._measuring is not None:
            self._measuring.log(batch)
        if self.job.sync:
            sync_log(self.job.offsets, batch, first=batch in self.job.begins)
        if self._generation is not None:
            self._generation.put_checked(batch)
            failpoint("generation.after_put")

    def _wait(self, query: StreamingQuery, stop: threading.Event, watch: pace.Watch) -> bool | None:
        """Until the end, or until the batch that runs when `stop` is set has been committed; whether it is the end.

        None where the query waits too long for its next batch, and has to be started again.
        """
        asked_s: float | None = None
        batches = 0
        while True:
            self._note_begin(query)
            self._note_quiet(query)
            if watch.waits_too_long(query) and not stop.is_set():
                return None
            if stop.is_set():
                asked_s, batches = (time.monotonic(), self.progress.batches) if asked_s is None else (asked_s, batches)
                committed = self.progress.batches > batches or not query.status["isTriggerActive"]
                if committed or time.monotonic() - asked_s > BATCH_GRACE_S:
                    return False
            try:
                if query.awaitTermination(POLL_S if asked_s is None else STOPPING_POLL_S):  # type: ignore[arg-type]  # it takes fractions
                    return True
            except Exception as failure:
                raise first_cause(self._failure or failure) from None

    def _note_begin(self, query: StreamingQuery) -> None:
        # Spark keeps the progress of the last thousand batches only, so the first must be looked at in time.
        if self.progress.first_begun_s is None and self.progress.batches and query.recentProgress:
            self.progress.first_begun_s = _epoch_s(json.loads(query.recentProgress[0].json)["timestamp"])

    def _note_quiet(self, query: StreamingQuery) -> None:
        if self.on_quiet is not None and not self.progress.batches and pace.is_waiting(query):
            self.on_quiet()
            self.on_quiet = None

    def _take_durations(self, query: StreamingQuery) -> None:
        for entry in query.recentProgress:
            batch = json.loads(entry.json)
            if batch["numInputRows"] == 0 and not batch["durationMs"].get("addBatch"):
                continue
            begun = _epoch_s(batch["timestamp"])
            self.progress.batch_ms.append(batch["batchDuration"])
            if self.progress.first_begun_s is None:
                self.progress.first_begun_s = begun
            self.progress.last_done_s = begun + batch["batchDuration"] / 1000


@contextmanager
def _callbacks_may_fail() -> Iterator[None]:
    """For a batch that is interrupted on purpose, py4j logs no stack."""
    logger = logging.getLogger("py4j.clientserver")

    def drop(record: logging.LogRecord) -> bool:
        return False

    logger.addFilter(drop)
    try:
        yield
    finally:
        logger.removeFilter(drop)


def _epoch_s(timestamp: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(timestamp).timestamp()
