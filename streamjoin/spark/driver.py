"""The driver loop of one job: start the query, commit results batch by batch, report progress."""

from __future__ import annotations

import functools
import json
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streamjoin.errors import RunError, StreamJoinError, UnsupportedError
from streamjoin.failpoints import failpoint
from streamjoin.flow.punctuation import lowest_mark_us
from streamjoin.intake import rejected
from streamjoin.intake.intake import KEPT, REJECTED
from streamjoin.plan.sharing import SharedPlan
from streamjoin.results.parts import BatchDone, Sink
from streamjoin.spark import checkpoint
from streamjoin.spark.join import fed, gather, own_sources, routed_dataframe, units
from streamjoin.spark.kafka import Topic, decode_records, read_topic
from streamjoin.spark.tasks import REPORT_SCHEMA, gathered_reports, unit_reports
from streamjoin.spec.job import Job

_log = logging.getLogger("streamjoin.driver")
POLL_S = 0.25
STOPPING_POLL_S = 0.05
_OF_SPARK = re.compile(r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
_TRACEBACK = "Traceback (most recent call last):"
_PYTHON_NAME = re.compile(r"(?!org\.|java\.|py4j\.)[A-Za-z_][\w.]*(:|$)")
_WORKER_DIED = "Python worker exited unexpectedly"
NOT_CONNECTED = "to connect back"
"""Spark gives the process that keeps a source's offsets ten seconds from its start until it connects, after Python has
loaded half of PySpark. No setting makes that longer, and a machine that has more to do than it can may need more."""
_INTERRUPTED = "py4j.protocol.Py4JJavaError: An error occurred while calling collect: java.lang.InterruptedException"
"""By these words in what a callback raised Spark knows its own interruption. It looks for them with an expression that
overflows Java's stack on a text as long as a real failure's, and then takes that for a failure of the query."""
STARTS_MAX = 4
BATCH_GRACE_S = 60.0
"""How long a stop waits for the running batch; one that is cut off is repeated at the next start."""
TIMES_KEPT = 10_000
"""Batches whose times a job remembers: it may run for months."""


@dataclass(slots=True)
class BatchReport:
    """What one batch did.

    Args:
        units: a mapping for each unit, as `UnitReport` has it.
        intake: counts of both sides, by side and name.
        seconds: `units`, in the slowest slot; `receive`, until a slot had all its tuples; `gather`, in the slowest
            partition that gathers results, absent where none does; and from the batch's begin, as logged, `met` until
            all units and gatherers were through, and `committed` until the results were visible.
    """

    batch: int
    results: int
    units: list[dict[str, Any]]
    intake: dict[int, dict[str, int]]
    seconds: dict[str, float]
    latest_us: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """How long one batch took, `BatchReport.seconds`, and how many results and tuples waited for it."""

    results: int
    tuples: int
    seconds: Mapping[str, float]


@dataclass(slots=True)
class Progress:
    """A job so far, in this run.

    Lists are by stream; `stored_rows` are the tuples that units store, and `flow_rows` what they store of other stages.
    `reconnects` counts how often its query was started again because a Python worker did not connect to Spark in time.
    """

    streams: int = 2
    batches: int = 0
    results: int = 0
    tuples_in: list[int] = field(default_factory=list)
    counts: list[dict[str, int]] = field(default_factory=list)
    comparisons: int = 0
    received: dict[str, int] = field(default_factory=dict)
    received_bytes: dict[str, int] = field(default_factory=dict)
    forwarded: dict[str, int] = field(default_factory=dict)
    late: list[int] = field(default_factory=list)
    expired_rows: int = 0
    stored_rows: tuple[int, ...] = ()
    flow_rows: int = 0
    state_bytes: int = 0
    state_bytes_max: int = 0
    stored_rows_max: int = 0
    waiting_results_max: int = 0
    segments: int = 0
    units: dict[int, dict[str, Any]] = field(default_factory=dict)
    queries: list[dict[str, int]] = field(default_factory=list)
    reconnects: int = 0
    batch_ms: list[int] = field(default_factory=list)
    times: deque[BatchTimes] = field(default_factory=lambda: deque(maxlen=TIMES_KEPT))
    first_begun_s: float | None = None
    last_done_s: float | None = None

    def __post_init__(self) -> None:
        self.tuples_in, self.late = [0] * self.streams, [0] * self.streams
        self.counts, self.stored_rows = [{} for _ in range(self.streams)], (0,) * self.streams

    def add(self, report: BatchReport) -> None:
        """Count a batch."""
        self.batches += 1
        self.results += report.results
        for side, counts in report.intake.items():
            self.tuples_in[side] += counts.get("rows", 0)
            for name, value in counts.items():
                self.counts[side][name] = self.counts[side].get(name, 0) + value
        stored, waiting = [0] * self.streams, 0
        self.state_bytes = self.segments = self.flow_rows = 0
        for unit in report.units:
            self.comparisons += unit["comparisons"]
            self.expired_rows += unit["expired_rows"]
            self.state_bytes += unit["stored_bytes"]
            self.segments += unit["segments"]
            self.flow_rows += unit.get("flow_rows", 0)
            waiting += unit["waiting_results"]
            for stream in range(self.streams):
                self.late[stream] += unit["late"][stream]
                stored[stream] += unit["stored_rows"][stream]
            for role, rows in unit["received"].items():
                self.received[role] = self.received.get(role, 0) + rows
                size = unit["received_bytes"][role]
                self.received_bytes[role] = self.received_bytes.get(role, 0) + size
            for what, count in unit.get("forwarded", {}).items():
                self.forwarded[what] = self.forwarded.get(what, 0) + count
            self._add_unit(unit)
            self._add_queries(unit["queries"])
        self.stored_rows = tuple(stored)
        self.state_bytes_max = max(self.state_bytes_max, self.state_bytes)
        self.stored_rows_max = max(self.stored_rows_max, sum(stored) + self.flow_rows)
        self.waiting_results_max = max(self.waiting_results_max, waiting)
        tuples = sum(counts.get("rows", 0) for counts in report.intake.values())
        self.times.append(BatchTimes(report.results, tuples, report.seconds))

    def rename(self, before: Sequence[str], after: Sequence[str]) -> None:
        """There are other queries from now on; whoever stays keeps its counts."""
        known = dict(zip(before, self.queries, strict=True)) if self.queries else {}
        self.queries = [known.get(name, {"results": 0, "comparisons": 0}) for name in after]

    def _add_queries(self, queries: Sequence[Mapping[str, int]]) -> None:
        self.queries = self.queries or [{} for _ in queries]
        for known, counts in zip(self.queries, queries, strict=True):
            for name, count in counts.items():
                known[name] = known.get(name, 0) + count

    def _add_unit(self, unit: dict[str, Any]) -> None:
        known = self.units.setdefault(
            unit["unit"],
            {"unit": unit["unit"], "label": unit["label"], "comparisons": 0, "results": 0, "received": 0,
             "stored_bytes_max": 0, "seconds": {"probe": 0.0, "store": 0.0, "expire": 0.0}},
        )  # fmt: skip
        known["comparisons"] += unit["comparisons"]
        known["results"] += unit["results"]
        known["received"] += sum(unit["received"].values())
        known["stored_rows"] = sum(unit["stored_rows"]) + unit.get("flow_rows", 0)
        known["stored_bytes"] = unit["stored_bytes"]
        known["stored_bytes_max"] = max(known["stored_bytes_max"], unit["stored_bytes"])
        known["segments"] = unit["segments"]
        for name, seconds in unit["seconds"].items():
            known["seconds"][name] += seconds


OnBatch = Callable[[Progress, BatchReport], None]


class Driver:
    """Runs one job in a Spark session.

    Args:
        sinks: where each query's results go.
        topics: by side, for the sides that Spark reads from Kafka.
        ending: where the results go of queries that this start stops, by name.
        on_unit: told how many units have their tuples stored for other queries, of how many.
        on_batch: called after each committed batch, from another thread.
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
    ) -> None:
        self.session = session
        self.job = job
        self.sinks = tuple(sinks)
        self.topics = topics or {}
        self.on_batch = on_batch
        self.ending = ending or {}
        self.on_unit = on_unit
        self.progress = Progress(len(job.plan.streams))
        self._failure: BaseException | None = None
        self._begun: dict[int, float] = {}
        self._is_ending = False

    def run(self, *, until_end: bool, stop: threading.Event | None = None) -> Progress:
        """Join until the end of what is there, or until `stop`; holds the job's checkpoint meanwhile.

        Raises:
            InputError: the checkpoint is in use or belongs to another join.
            UnsupportedError: the operator has to be drained at the end, and a stream comes from Kafka.
            RunError: a batch failed; the message is the first cause.
        """
        stop = stop or threading.Event()
        with checkpoint.opened(self.job) as held:
            self.job = replace(
                self.job,
                resizes=held.resizes,
                shedding=checkpoint.shedding(self.job, self.job.shedding.rules),
                topics={side: topic.topic for side, topic in self.topics.items()},
                begins=checkpoint.begins(self.job),
            )
            if not held.requeries_for(self.job):
                self.job = replace(self.job, earlier=None)
            resizes = held.resizes_for(self.job)
            self._check_end(until_end, replace(self.job, resizes=held.resizes + resizes))
            if resizes or held.requeries_for(self.job):
                if not self._done(held, stop):
                    return self.progress
                self._change(held)
            ended = self._join(held, stop, **({"availableNow": True} if until_end else {}))
            if ended and until_end:
                for sink in self.sinks:
                    sink.finish()
        return self.progress

    def _check_end(self, until_end: bool, job: Job) -> None:
        if until_end and self.topics and job.drain_batches:
            raise UnsupportedError(
                f"pairs of {job.operator.name} meet some batches after their tuples came in, and the end of a "
                "Kafka topic brings no more batches; run without --until-end, or choose biclique, matrix or splitjoin",
                field="operator.name",
            )

    def _done(self, held: checkpoint.Held, stop: threading.Event) -> bool:
        """Do a pending batch as it was begun, by as many units and for the same queries. False if stopped.

        Sinks may have taken its results.
        """
        if checkpoint.pending(self.job):
            asked, sinks, earlier = self.job, self.sinks, self.job.earlier
            self.job = replace(asked, operators=held.operators(asked), plan=earlier or asked.plan)
            if earlier is not None:
                by_name = {**self.ending, **dict(zip(_names(asked), sinks, strict=True))}
                self.sinks = tuple(by_name[name] for name in earlier.names_of_queries)
            self._join(held, stop, once=True)
            self.job, self.sinks = asked, sinks
            if earlier is not None:
                self.progress.rename(earlier.names_of_queries, _names(asked))
        return not checkpoint.pending(self.job)

    def _change(self, held: checkpoint.Held) -> None:
        """Give the state the job's queries and units."""
        if held.requeries_for(self.job):
            for sink in self.ending.values():
                sink.begin(held.id)
                sink.finish(for_good=True)
            held.requery(self.job, self.on_unit)
        if held.resizes_for(self.job):
            held.resize(self.job)
        self.job = replace(self.job, resizes=held.resizes, earlier=None)

    def _join(self, held: checkpoint.Held, stop: threading.Event, **trigger: bool) -> bool:
        """Run the query until it ends, or until `stop`; whether it ended.

        A query one of whose Python workers did not connect in time goes on with the batch that it had come to, if it is
        started again: `STARTS_MAX` times in all without a batch in between.
        """
        start = 0
        while True:
            start, done = start + 1, self.progress.batches
            query = self._start(held.id, **trigger)
            try:
                ended = self._wait(query, stop)
                break
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

    def _routed(self) -> DataFrame:
        """What comes to the last stage."""
        frames = [own_sources(self.session, self.job)] if self.job.sources or self.job.heartbeat_us else []
        topics = {}
        for number, topic in self.topics.items():
            stream = self.job.plan.streams[number]
            records = read_topic(self.session, topic, self.job.slots)
            decode = decode_records(stream.name, topic, stream.columns)
            topics[number] = routed_dataframe(self.job, number, records, decode)
        return fed(self.job, frames, topics)

    def _start(self, origin: str, **trigger: bool) -> StreamingQuery:
        stage, work = (gather, gathered_reports) if self.job.plan.gathered else (units, unit_reports)
        run = functools.partial(work, self.job, [sink.begin(origin) for sink in self.sinks])
        reports = stage(self.job, self._routed(), run, REPORT_SCHEMA)
        writer = reports.writeStream.option("checkpointLocation", str(self.job.offsets)).foreachBatch(self._commit)
        return (writer.trigger(**trigger) if trigger else writer).start()

    def _commit(self, frame: DataFrame, batch: int) -> None:
        try:
            # A slot tells of its units, and of its parts of the results unless gather partitions do.
            reports = [json.loads(row.report) for row in frame.collect()]
            met_s = time.time()
            slots = [report for report in reports if "slot" in report]
            parts = [report["parts"] for report in reports if "parts" in report]
            failpoint("batch.before_commit")
            # A batch that some of the sinks have taken when the driver dies is repeated for all: they know it again.
            for query, sink in enumerate(self.sinks):
                sink.commit(_batch_done(batch, slots), [part[query] for part in parts])
            committed_s = time.time()
            failpoint("batch.after_commit")
            rejected.add(self.job.dead_letters, batch, *_missing(self.job, batch, slots), sync=self.job.sync)
            gather_s = [report["gather_s"] for report in reports if "gather_s" in report]
            report = _batch_report(batch, slots, sum(one["rows"] for part in parts for one in part), gather_s)
            begun_s = max((slot["clock_us"] for slot in slots), default=0) / 1e6
            report.seconds |= {"met": met_s - begun_s, "committed": committed_s - begun_s}
            self.progress.add(report)
            if self.on_batch:
                self.on_batch(self.progress, report)
        except BaseException as failure:
            self._failure = failure
            if self._is_ending:
                raise RunError(_INTERRUPTED) from None
            raise

    def _wait(self, query: StreamingQuery, stop: threading.Event) -> bool:
        """Until the end, or until the batch that runs when `stop` is set has been committed; whether it is the end."""
        asked_s: float | None = None
        batches = 0
        while True:
            self._note_begin(query)
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


def _names(job: Job) -> tuple[str, ...]:
    assert isinstance(job.plan, SharedPlan)
    return job.plan.names_of_queries


def _epoch_s(timestamp: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(timestamp).timestamp()


def _batch_done(batch: int, slots: Sequence[dict[str, Any]]) -> BatchDone:
    units = [unit for slot in slots for unit in slot["units"]]
    last = max((slot["stage"] for slot in slots), default=0)
    shed = sum(item["shed"] for slot in slots for item in slot["intake"])
    clock_us = max((slot["clock_us"] for slot in slots), default=0)
    output_mark_us = lowest_mark_us(unit["output_mark_us"] for unit in units if unit.get("stage", 0) == last)
    return BatchDone(batch, clock_us, marks_of(units), shed, output_mark_us)


def marks_of(units: Sequence[Mapping[str, Any]]) -> tuple[int | None, ...]:
    """How far each stream has come: every unit of the stage where it enters sees all its punctuations."""
    by_stream = zip(*(unit["marks_us"] for unit in units), strict=True)
    return tuple(next((mark for mark in marks if mark is not None), None) for marks in by_stream) or (None, None)


def _batch_report(batch: int, slots: Sequence[dict[str, Any]], results: int, gather_s: Sequence[float]) -> BatchReport:
    intake: dict[int, dict[str, int]] = {}
    latest: dict[int, int] = {}
    for slot in slots:
        for item in slot["intake"]:
            counts = intake.setdefault(item["side"], {})
            for name, value in item["counts"].items():
                counts[name] = counts.get(name, 0) + value
            if item["ts_max_us"] is not None:
                latest[item["side"]] = max(item["ts_max_us"], latest.get(item["side"], item["ts_max_us"]))
    return BatchReport(
        batch,
        results,
        [unit for slot in slots for unit in slot["units"]],
        intake,
        {
            "units": max((slot["seconds"]["all"] for slot in slots), default=0.0),
            "receive": max((slot["seconds"]["receive"] for slot in slots), default=0.0),
            **({"gather": max(gather_s)} if gather_s else {}),
        },
        latest,
    )


def _missing(job: Job, batch: int, slots: Sequence[dict[str, Any]]) -> tuple[rejected.Counts, list[rejected.Taken]]:
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


def first_cause(failure: BaseException) -> StreamJoinError:
    """A failure of Spark's as one of ours: the first cause in one sentence, without stacks."""
    if isinstance(failure, StreamJoinError):
        return failure
    text = str(failure)
    for line in reversed(text.splitlines()):
        for kind in ("StateError", "RunError", "InputError", "UnsupportedError"):
            marker = f"streamjoin.errors.{kind}: "
            if marker in line:
                return RunError(line.split(marker, 1)[1].strip())
    if (raised := _raised_in_worker(text)) is not None:
        return RunError(raised[:500])
    if _WORKER_DIED in text:
        return RunError(
            "a Python worker exited without a message, as it does when the system ends it for lack of memory; smaller "
            "batches or a shorter window need less"
        )
    for line in text.splitlines():
        if line.strip().startswith(("Caused by:", "org.apache", "pyspark.errors")) and "STREAM_FAILED" not in line:
            return RunError(line.strip().removeprefix("Caused by:").strip()[:500])
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(failure).__name__)
    return RunError(_OF_SPARK.sub("", first)[:500])


def _raised_in_worker(text: str) -> str | None:
    """The line that names an exception of Python's in a worker, whatever it is called; None without a traceback."""
    _, traceback, rest = text.rpartition(_TRACEBACK)
    lines = [line for line in rest.splitlines()[1:] if line.strip()]
    # Its own lines are indented, down to the exception's.
    named = next((line for line in lines if not line[0].isspace()), None) if traceback else None
    return named if named is None or _PYTHON_NAME.match(named) else None
