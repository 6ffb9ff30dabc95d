"""Spark's own stream-stream joins over the benchmark's Parquet files.

    python -m benchmarks.baselines.spark_join --data DIR --window-s 60 --delay-s 1 --state rocksdb --out F.json

Joins r.key = s.key with r.ts within `window-s` of s.ts, in append mode. `--query` says what is
asked besides, see `spark_queries`. One batch takes `--files-per-batch` files of each stream. The report is written in
any case; the exit status is 1 when it holds an error.

How results are counted: with `noop`, from the rows the sink's own writers count, which every V2 sink does anyway; with
`parquet`, from the files' footers after the query has stopped. Neither adds work to the timed part.
How time is counted: from the progress events, first trigger's start to last trigger's end. Batches without rows,
which evict state and give what waited for the watermark, are left out; of a run to its end their results count.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.baselines.memory import PeakMemory
from benchmarks.baselines.report import Report
from benchmarks.baselines.spark_queries import QUERIES, Source
from benchmarks.baselines.termination import exit_on_terminate

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
# Version 2 is Spark's default; 3 keeps the join's four stores in one RocksDB; 4 indexes by time and is behind a switch.
STATE_FORMATS: dict[str, dict[str, str]] = {
    "default": {},
    "rocksdb": ROCKSDB,
    "rocksdb-v3": {**ROCKSDB, "spark.sql.streaming.join.stateFormatVersion": "3"},
    "rocksdb-v4": {
        **ROCKSDB,
        "spark.sql.streaming.join.stateFormatVersion": "4",
        "spark.sql.streaming.join.stateFormatV4.enabled": "true",
    },
}
POLL_INTERVAL_S = 0.1


def main() -> int:
    arguments = parse_arguments()
    exit_on_terminate()
    arguments.settings = STATE_FORMATS[arguments.state] | dict(pair.split("=", 1) for pair in arguments.set)
    report = Report(system="spark", state=arguments.state, settings=dict(arguments.settings))
    with tempfile.TemporaryDirectory(prefix="spark-join-") as scratch, PeakMemory() as memory:
        try:
            run(arguments, Path(scratch), report)
        except Exception as error:
            report.error = f"{type(error).__name__}: {error}"[:4000]
        report.peak_rss_bytes = memory.peak_bytes
    report.write(arguments.out)
    return 1 if report.error else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with r/ and s/")
    parser.add_argument("--query", choices=QUERIES, default="inner")
    parser.add_argument("--window-s", type=int, required=True, help="largest distance of two timestamps")
    parser.add_argument("--delay-s", type=int, default=1, help="watermark delay")
    parser.add_argument("--state", choices=STATE_FORMATS, default="default")
    parser.add_argument("--files-per-batch", type=int, default=1, help="files of each stream a batch takes")
    parser.add_argument("--sink", choices=("noop", "parquet"), default="noop")
    parser.add_argument("--results", type=Path, help="where Parquet goes; nobody keeps it otherwise")
    parser.add_argument("--out", type=Path, required=True, help="where the report goes")
    parser.add_argument("--max-batches", type=int, help="stop after so many batches; all files otherwise")
    parser.add_argument("--max-seconds", type=float, help="stop after so long; batches committed by then count")
    parser.add_argument("--memory-mb", type=int, default=6144, help="driver heap in MiB")
    parser.add_argument("--set", action="append", default=[], help="a further setting of the session, key=value")
    return parser.parse_args()


def run(arguments: argparse.Namespace, scratch: Path, report: Report) -> None:
    """Run the query to its end or to `max_batches`, filling `report` as far as it came."""
    spark = start_spark(arguments.settings, arguments.memory_mb, scratch)
    try:
        report.spark_version = spark.version
        output = arguments.results or scratch / "output"
        source = Source(spark, arguments.data, arguments.files_per_batch, arguments.delay_s)
        rows = QUERIES[arguments.query](source, arguments.window_s)
        writer = rows.writeStream.outputMode("append").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(scratch / "checkpoint")).format(arguments.sink)
        query = writer.start(str(output)) if arguments.sink == "parquet" else writer.start()
        batches = await_batches(query, arguments.max_batches, arguments.max_seconds)
        failure = query.exception()
        is_whole = not query.isActive and arguments.max_batches is None
        query.stop()
        fill(report, batches)
        if is_whole:
            fill_results(report, query.recentProgress)
        if failure is not None:
            raise failure
        if arguments.sink == "parquet":
            report.results = ds.dataset(output, format="parquet").count_rows() if report.rows_in else 0
            if arguments.max_batches or arguments.max_seconds:
                report.notes.append("results may hold files of a batch that was cut off")
    finally:
        spark.stop()


def start_spark(settings: dict[str, str], memory_mb: int, scratch: Path) -> SparkSession:
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("spark-join")
        .config("spark.driver.memory", f"{memory_mb}m")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", "100000")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def await_batches(
    query: StreamingQuery, batches_max: int | None, seconds_max: float | None
) -> Sequence[Mapping[str, Any]]:
    """The progress of the batches that had rows, oldest first, cut at `batches_max` batches or `seconds_max`."""
    deadline_s = time.monotonic() + (seconds_max if seconds_max is not None else float("inf"))
    while True:
        # Read before the progress: the last batch's event precedes the end of the query.
        ended = not query.isActive or time.monotonic() > deadline_s
        batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
        if ended or (batches_max is not None and len(batches) >= batches_max):
            return batches[:batches_max]
        time.sleep(POLL_INTERVAL_S)


def fill(report: Report, batches: Sequence[Mapping[str, Any]]) -> None:
    """Times, rows, results and state of `batches` into `report`."""
    if not batches:
        return
    begins_s = [datetime.fromisoformat(batch["timestamp"]).timestamp() for batch in batches]
    ends_s = [
        begin + batch["durationMs"]["triggerExecution"] / 1000 for begin, batch in zip(begins_s, batches, strict=True)
    ]
    report.set_batches([batch["numInputRows"] for batch in batches], ends_s, begins_s[0])
    # A query without state of Spark's own, such as a join by StreamJoin's units, reports none.
    if not any(batch["stateOperators"] for batch in batches):
        fill_results(report, batches)
        return
    report.state_rows = max(sum(state["numRowsTotal"] for state in batch["stateOperators"]) for batch in batches)
    report.rows_late = sum(state["numRowsDroppedByWatermark"] for batch in batches for state in batch["stateOperators"])
    fill_results(report, batches)


def fill_results(report: Report, batches: Sequence[Mapping[str, Any]]) -> None:
    """The rows that the sink took, where it counts them."""
    counts = [batch["sink"]["numOutputRows"] for batch in batches]
    if counts and min(counts) >= 0:  # -1: the sink does not count.
        report.results = sum(counts)


if __name__ == "__main__":
    raise SystemExit(main())
