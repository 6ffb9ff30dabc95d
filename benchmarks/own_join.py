"""StreamJoin on join files, with the report that its peers give.

    python -m benchmarks.own_join JOIN.yaml ... --via driver --out F.json

Several join files run one after the other in one session, which the first one warms up; `--out` gets a list with a
report for each, and is written anew after each.

    driver       what `streamjoin run` does: our Parquet reader, or Spark's Kafka source; `results:` as the file says
    dataframe    `stream_join` over Spark's own Parquet reader; typed result rows go into Spark's `noop` sink
    spark        Spark's own join of the same join file, in the same session settings, into `noop`

Times are from Spark's progress events, first trigger's start to last trigger's end, as for Spark's own join.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.baselines.report import Report
from benchmarks.baselines.spark_join import await_batches, fill
from benchmarks.baselines.termination import exit_on_terminate
from streamjoin.sources.file_kinds import FileSettings
from streamjoin.spark import baseline
from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.driver import Driver
from streamjoin.spark.join import Stream, stream_join
from streamjoin.spark.progress import Progress
from streamjoin.spark.run import report as figures
from streamjoin.spark.run import topics_of
from streamjoin.spark.session import open_session
from streamjoin.spec.joinfile import load
from streamjoin.spec.prepare import Bound, bind

WAYS = ("driver", "dataframe", "spark")


def main() -> int:
    arguments = parse_arguments()
    exit_on_terminate()
    reports: list[Report] = []
    session: SparkSession | None = None
    try:
        for file in arguments.files:
            report = Report(system="spark" if arguments.via == "spark" else "streamjoin", state=arguments.via)
            reports.append(report)
            try:
                bound = bind(load(file))
                session = session or open_session(bound.file)
                report.spark_version = session.version
                run(session, bound, arguments.via, arguments.max_seconds, report)
            except Exception as error:
                report.error = f"{type(error).__name__}: {error}"[:4000]
            write(arguments.out, reports)
    finally:
        if session is not None:
            session.stop()
    return 1 if any(report.error for report in reports) else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="join files")
    parser.add_argument("--via", choices=WAYS, default="driver")
    parser.add_argument("--out", type=Path, required=True, help="where the reports go")
    parser.add_argument("--max-seconds", type=float, help="stop each join after so long; committed batches count")
    return parser.parse_args()


def run(session: SparkSession, bound: Bound, via: str, seconds_max: float | None, report: Report) -> None:
    """Run one join to its end or for `seconds_max`, filling `report` as far as it came."""
    match via:
        case "driver":
            drive(session, bound, seconds_max, report)
        case "dataframe":
            await_sink(typed_rows(session, bound), bound, seconds_max, report)
        case _:
            await_sink(baseline.join(session, bound), bound, seconds_max, report)


def drive(session: SparkSession, bound: Bound, seconds_max: float | None, report: Report) -> None:
    """By the driver of `streamjoin run`."""
    rows: dict[int, int] = {}
    rounds: list[dict[str, Any]] = []
    queries: list[StreamingQuery] = []

    def on_batch(progress: Progress, batch: BatchReport) -> None:
        rows[batch.batch] = sum(counts.get("rows", 0) for counts in batch.intake.values())
        told = [unit["adapting"] for unit in batch.units if unit.get("adapting")]
        rounds.extend({"batch": batch.batch, "asked": one["round"]} for one in told if one["round"])
        if not queries:
            queries.extend(session.streams.active)

    job = bound.job(heartbeat=False)
    driver = Driver(session, job, bound.sinks(), topics_of(bound), on_batch)
    stop = threading.Event()
    timer = threading.Timer(seconds_max or threading.TIMEOUT_MAX, stop.set)
    timer.daemon = True
    timer.start()
    try:
        driver.run(until_end=True, stop=stop)
    finally:
        timer.cancel()
        fill_batches(report, queries[0].recentProgress if queries else (), rows)
    progress = driver.progress
    report.results = progress.results
    report.rows_late = sum(progress.late)
    report.state_bytes = progress.state_bytes_max
    report.figures = figures(bound, job, progress, report.seconds or 0.0, 0)
    # Where dead letters are is a path of this machine.
    report.figures.pop("dead_letter_folder", None)
    if rounds:
        report.figures["rounds"] = rounds


def fill_batches(report: Report, progress: Sequence[Any], rows: Mapping[int, int]) -> None:
    """Times of the committed batches that had rows."""
    batches = [batch for batch in progress if rows.get(batch["batchId"])]
    if not batches:
        return
    begins_s = [datetime.fromisoformat(batch["timestamp"]).timestamp() for batch in batches]
    ends_s = [begin_s + batch["batchDuration"] / 1000 for begin_s, batch in zip(begins_s, batches, strict=True)]
    report.set_batches([rows[batch["batchId"]] for batch in batches], ends_s, begins_s[0])


def typed_rows(session: SparkSession, bound: Bound) -> DataFrame:
    """The join as a DataFrame over Spark's own Parquet reader."""
    file = bound.file
    streams: dict[str, Stream] = {}
    for schema in bound.plan.streams:
        described = file.streams[schema.name]
        assert isinstance(described, FileSettings)
        rows = (
            session.readStream.schema(from_arrow_schema(schema.columns, prefer_timestamp_ntz=False))
            .options(**baseline.files_a_batch(file))
            .parquet(str(file.resolve(described.path)))
        )
        streams[schema.name] = Stream(rows, schema.time, schema.delay_us, described.time_unit)
    assert file.query is not None
    operator = bound.job(heartbeat=False).operator
    return stream_join(streams, file.query, operator=operator, checkpoint=file.checkpoint / "join", slots=file.slots)


def await_sink(rows: DataFrame, bound: Bound, seconds_max: float | None, report: Report) -> None:
    """Run a streaming DataFrame into Spark's `noop` sink."""
    writer = rows.writeStream.outputMode("append").format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(bound.file.checkpoint / "query")).start()
    try:
        batches = await_batches(query, None, seconds_max)
        failure = query.exception()
    finally:
        query.stop()
    fill(report, batches)
    if failure is not None:
        raise failure


def write(path: Path, reports: Sequence[Report]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(report) for report in reports], indent=2) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
