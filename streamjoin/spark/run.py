"""Running a join file: a session, a driver, progress, and the report."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from streamjoin.engine.unit import QueryCounts
from streamjoin.errors import InputError
from streamjoin.explain.drift import drift
from streamjoin.explain.order import ordered
from streamjoin.explain.reading import predicted
from streamjoin.operators import registry
from streamjoin.operators.aggregate.keeping import FOLDED, LATE
from streamjoin.operators.reading import measured
from streamjoin.plan.aggregate import AggregatePlan
from streamjoin.plan.stages import decided_stages
from streamjoin.results.parts import Sink
from streamjoin.sources import FileSource
from streamjoin.sources.filelog import name_order_hint
from streamjoin.sources.kafka_kind import KafkaSettings, avro_schema_of
from streamjoin.spark import checkpoint
from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.cluster import watched
from streamjoin.spark.driver import Driver
from streamjoin.spark.figures import quantiles, rho, weighted
from streamjoin.spark.kafka import Topic
from streamjoin.spark.memory import MemorySampler
from streamjoin.spark.progress import Progress
from streamjoin.spark.session import open_session
from streamjoin.spec.job import Job
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.owners import check_owners
from streamjoin.spec.prepare import Bound, bind
from streamjoin.state.places import newest_states

Show = Callable[[str], None]
_log = logging.getLogger("streamjoin")


def run_file(
    file: JoinFile, *, until_end: bool, stop: threading.Event | None = None, show: Show | None = None
) -> dict[str, Any]:
    """Run a join file, and return the report.

    Raises:
        InputError: the file, query or data description is wrong.
        RunError: the job failed while it was running.
    """
    begun = time.monotonic()
    checkpoint.brought(file)
    bound = ordered(bind(file))
    check_owners(bound)
    if registry.is_sparks(bound.operator):
        from streamjoin.spark.baseline import run_baseline

        return run_baseline(bound, until_end=until_end, stop=stop, show=show)
    job = bound.job(heartbeat=not until_end)
    if show:
        show("starting Spark")
    with MemorySampler() as memory:
        session = open_session(file, show)
        try:
            with watched(session, file.cluster, show):
                progress = run_job(session, bound, job, bound.sinks(), until_end=until_end, stop=stop, show=show)
        finally:
            session.stop()
    return report(bound, job, progress, time.monotonic() - begun, memory.peak_bytes)


def topics_of(bound: Bound) -> dict[int, Topic]:
    """The Kafka topics of a join, by the number of the stream."""
    found: dict[int, Topic] = {}
    for side, schema in enumerate(bound.plan.streams):
        stream = bound.file.streams[schema.name]
        if isinstance(stream, KafkaSettings):
            found[side] = Topic(
                stream.servers, stream.topic, stream.format, stream.starting, bound.file.run.offsets_per_batch,
                _avro_schema(bound.file, stream, schema.name), stream.client,
            )  # fmt: skip
    return found


def _avro_schema(file: JoinFile, stream: KafkaSettings, name: str) -> Any:
    try:
        return avro_schema_of(stream, file.resolve)
    except InputError as wrong:
        raise InputError(wrong.message, field=f"streams.{name}.{wrong.field}") from None


def run_job(
    session: SparkSession,
    bound: Bound,
    job: Job,
    sinks: Sequence[Sink],
    *,
    until_end: bool,
    stop: threading.Event | None = None,
    show: Show | None = None,
) -> Progress:
    """Run a job in a session that is there already."""
    on_batch = _progress_text(show) if show else None
    on_unit = change_text(show) if show else None
    on_relation = relation_text(show) if show else None
    driver = Driver(session, job, sinks, topics_of(bound), on_batch, bound.ending(), on_unit, on_relation)
    driver.progress.predicted = foretold(bound)
    return driver.run(until_end=until_end, stop=stop)


def foretold(bound: Bound) -> dict[str, Any] | None:
    """What is predicted of a job that joins a relation, for its reports; warns of what a start should not surprise."""
    reading = predicted(bound)
    if reading is None:
        return None
    if isinstance(reading, str):
        return {"text": reading}
    if reading.problem:
        _log.warning("%s", reading.problem)
    return reading.to_json()


def change_text(show: Show) -> Callable[[int, int], None]:
    """Shows how many units of the state were given the job's queries."""
    return lambda done, units: show(f"storing tuples for other queries: {done} of {units} units")


def relation_text(show: Show) -> Callable[[str, int], None]:
    """Shows how many rows of a relation were read."""
    return lambda relation, rows: show(relation_words(relation, rows))


def relation_words(relation: str, rows: int) -> str:
    """How many rows of a relation were read."""
    return f"reading relation {relation}: {rows:,} rows"


def _progress_text(show: Show) -> Callable[[Progress, BatchReport], None]:
    times: list[tuple[float, int]] = [(time.monotonic(), 0)]

    def on_batch(progress: Progress, batch: BatchReport) -> None:
        now, count = time.monotonic(), sum(progress.tuples_in)
        times.append((now, count))
        del times[:-10]
        elapsed = now - times[0][0]
        rate = (count - times[0][1]) / elapsed if elapsed else 0.0
        # Of the tuples of this batch: without any, time goes on and the lag does not.
        latest = min(batch.latest_us.values(), default=None)
        lag_s = None if latest is None else time.time() - latest / 1e6
        live = sum(progress.stored_rows) + progress.flow_rows
        lag = f"lag {lag_s:,.1f} s  " if lag_s is not None and 0 <= lag_s < 86_400 else ""
        show(
            f"batch {batch.batch}  {rate:,.0f} tuples/s  {lag}live {live:,} tuples, "
            f"{progress.state_bytes / 2**20:,.0f} MiB  results {progress.results:,}"
            + (f"  late {sum(progress.late):,}" if any(progress.late) else "")
            + _shed_text(progress, batch)
            + _reading_text(progress)
        )

    return on_batch


def _shed_text(progress: Progress, batch: BatchReport) -> str:
    shed = sum(counts.get("shed", 0) for counts in progress.counts)
    if not shed:
        return ""
    now = sum(counts.get("shed", 0) for counts in batch.intake.values())
    return f"  shed {shed:,}" + (f" ({now:,} just now; results are partial)" if now else "; results are partial")


def _reading_text(progress: Progress) -> str:
    """Which relations are being read anew, meanwhile."""
    # A copy: a thread of its own keeps it up to date.
    told = {name: known.get("reading_rows") for name, known in dict(progress.relations).items()}
    return "".join(f"  {relation_words(name, rows)}" for name, rows in told.items() if rows is not None)


def was_shed(job: Job) -> bool:
    """Whether load shedding has dropped a tuple since the checkpoint began."""
    return any(clock.shed for _, state in newest_states(job.state) for clock in state.clocks)


def report(bound: Bound, job: Job, progress: Progress, seconds_total: float, peak_bytes: int) -> dict[str, Any]:
    """`report.json`: what docs/join-file.md describes."""
    names = bound.plan.names
    arrived = sum(progress.tuples_in)
    seconds = (progress.last_done_s or 0.0) - (progress.first_begun_s or 0.0)
    received = sum(progress.received.values()) + _handed_on(job, progress)
    ordered = [batch for batch in progress.times if "gather" in batch.seconds]

    def by_name(counts: Sequence[int]) -> dict[str, int]:
        return dict(zip(names, counts, strict=True))

    def counted(what: str) -> dict[str, int]:
        return by_name([counts.get(what, 0) for counts in progress.counts])

    return {
        "operator": bound.operator,
        "batches": progress.batches,
        "tuples_in": by_name(progress.tuples_in),
        "late": by_name(progress.late),
        **({"late_files": found} if (found := late_files(job, progress.late)) else {}),
        "null_keys": counted("null_keys"),
        "dropped_by_selection": counted("dropped_by_selection"),
        "dead_letters": counted("dead_letters"),
        "dead_letter_folder": str(job.dead_letters),
        "results": progress.results,
        **_looked_at(progress, arrived),
        "replication": received / arrived if arrived else 0.0,
        "seconds": seconds,
        "seconds_total": seconds_total,
        "tuples_per_second": arrived / seconds if seconds else 0.0,
        "batch_ms": quantiles(progress.batch_ms),
        "latency_ms": weighted(progress.times, lambda seconds: seconds["committed"]),
        "visiting_ms": weighted(progress.times, lambda seconds: seconds["met"] - seconds.get("gather", 0.0)),
        "order_delay_ms": weighted(ordered, lambda seconds: seconds["gather"]) if ordered else None,
        "state_bytes_max": progress.state_bytes_max,
        "state_rows_max": progress.stored_rows_max,
        "peak_rss_bytes": peak_bytes,
        "shed": counted("shed"),
        "approximate": was_shed(job),
        "sent_bytes": counted("sent_bytes"),
        "bytes_by_role": progress.received_bytes,
        "forwarded": progress.forwarded,
        **_imbalance(bound, job, progress),
        **_groups(bound, progress),
        **_decided(bound, progress),
        **_reading(bound, progress),
        "expired_rows": progress.expired_rows,
        "waiting_results_max": progress.waiting_results_max,
        "reconnects": progress.reconnects,
        **({"state_traffic": progress.traffic} if progress.traffic else {}),
        **({"relations": progress.relations} if progress.relations else {}),
        **_by_query(bound, progress),
        **progress.adapting.to_json(),
        **({"step_times": progress.step_times} if progress.step_times else {}),
        **_order(bound, progress),
        "units": [unit for _, unit in sorted(progress.units.items(), key=lambda one: (one[0][0], one[1]["unit"]))],
    }


def _looked_at(progress: Progress, arrived: int) -> dict[str, Any]:
    """What probes looked at, in all and for each tuple that came in."""
    return {
        "comparisons": progress.comparisons,
        "search_steps": progress.search_steps,
        "comparisons_per_tuple": progress.comparisons / arrived if arrived else 0.0,
        "search_steps_per_tuple": progress.search_steps / arrived if arrived else 0.0,
        "rho": rho(progress.results, progress.comparisons, progress.search_steps),
    }


def late_files(job: Job, late: Sequence[int]) -> dict[str, str]:
    """Of streams with late rows whose files were read in another order than that of their numbers, that they were.

    Args:
        late: rows by the number of the stream.
    """
    opened = {job.plan.names[number]: job.open_source(number) for number in job.sources if late[number]}
    return {
        name: said
        for name, source in opened.items()
        if isinstance(source, FileSource) and (said := name_order_hint(name, source.log.files))
    }


@dataclass(slots=True)
class LateFiles:
    """`late_files` of a job that goes on. A look reads the log of all files; the next is twice as long after it."""

    job: Job
    said: dict[str, str] = field(default_factory=dict)
    _seen: Sequence[int] = ()
    _next_s: float = 0.0
    _pause_s: float = 60.0

    def look(self, late: Sequence[int]) -> dict[str, str]:
        """What there is to say now, by stream; looks where rows of one came late of which nothing is said yet."""
        before = self._seen or [0] * len(late)
        told = zip(self.job.plan.names, before, late, strict=True)
        new = [count if count > seen and name not in self.said else 0 for name, seen, count in told]
        if any(new) and time.monotonic() >= self._next_s:
            self._seen, self._pause_s = list(late), 2 * self._pause_s
            self._next_s = time.monotonic() + self._pause_s
            self.said |= late_files(self.job, new)
        return self.said


def _handed_on(job: Job, progress: Progress) -> int:
    """Tuples that units got from other units without counting them as received."""
    if any(operator.capabilities.receives_forwarded for operator in job.operators):
        return 0
    return progress.forwarded.get("tuples", 0)


def _imbalance(bound: Bound, job: Job, progress: Progress) -> dict[str, Any]:
    """How unevenly the workers of a chain have a stream's stored tuples: ESJ's IF, by stream."""
    if not any(operator.capabilities.hands_on for operator in job.operators):
        return {}
    batches = max(progress.batches, 1)
    return {
        "imbalance": {
            name: {"mean": total / batches, "max": most, "last": last}
            for name, (total, most, last) in zip(bound.plan.names, progress.imbalances, strict=True)
        }
    }


def _groups(bound: Bound, progress: Progress) -> dict[str, Any]:
    """What travelled in place of tuples, where a query has groups, and how many came too late for a window."""
    if not any(isinstance(query, AggregatePlan) for query in bound.plan.queries):
        return {}
    return {"groups": {name: progress.folded.get(name, 0) for name in (*FOLDED, LATE)}}


def _reading(bound: Bound, progress: Progress) -> dict[str, Any]:
    """How relations were joined, beside what was predicted of it."""
    if not progress.reading:
        return {}
    found = measured(progress.reading, min(len(progress.readers), bound.file.slots))
    return {"reading": {**progress.reading, **progress.holding, **found, "predicted": progress.predicted}}


def _decided(bound: Bound, progress: Progress) -> dict[str, Any]:
    """What became of the rows that a query decides on, at all stages."""
    if not decided_stages(bound.plan):
        return {}
    return {
        "open_rows": progress.open_rows,
        "unmatched_rows": progress.unmatched_rows,
        "late_after_final": progress.late_after_final,
    }


def _order(bound: Bound, progress: Progress) -> dict[str, Any]:
    """In which order streams were joined, where `auto` chose it, and whether it would choose another now."""
    if bound.order is None:
        return {}
    found = drift(bound.order, progress.rates.per_s(bound.plan.names))
    return {"order": {**bound.order.words(), "drift": found and found.to_json()}}


def _by_query(bound: Bound, progress: Progress) -> dict[str, Any]:
    """What each query had, where there are several."""
    if not bound.single:
        return {}
    counted = progress.queries or [asdict(QueryCounts()) for _ in bound.single]
    return {
        "queries": {
            query.name: {**counts, "rho": rho(counts["results"], counts["comparisons"], counts["search_steps"])}
            for query, counts in zip(bound.single, counted, strict=True)
        }
    }
