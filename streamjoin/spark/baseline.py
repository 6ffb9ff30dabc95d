"""The operator `spark`: Spark's own stream-stream join over the same streams, as the baseline everybody knows."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import TimestampType

from streamjoin.errors import UnsupportedError
from streamjoin.operators import registry
from streamjoin.plan.expression import Call, Expression, Literal, conjunction
from streamjoin.plan.expression import Column as StreamColumn
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.schema import ARRIVAL
from streamjoin.plan.window import R, S, TimeWindow
from streamjoin.sources.file_kinds import CsvSettings, FileSettings
from streamjoin.sources.filelog import root_of
from streamjoin.sources.files import BATCH_BYTES
from streamjoin.sources.kafka_kind import KafkaSettings
from streamjoin.spark.batchreport import BatchTimes
from streamjoin.spark.driver import POLL_S
from streamjoin.spark.failures import first_cause
from streamjoin.spark.figures import quantiles, weighted
from streamjoin.spark.memory import MemorySampler
from streamjoin.spark.session import open_session
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.prepare import Bound

_TIME = "__time"


def refusal(bound: Bound) -> str | None:
    """Why Spark's join cannot run this join file, or None if it can."""
    if reason := registry.REGISTRY[registry.SPARK].refuses(bound.plan):
        return reason
    for name, stream in bound.file.streams.items():
        if stream.source in ("generator", "arrow"):
            return f"Spark has no source for stream {name}: it is {stream.source}; write it to Parquet first"
        if isinstance(stream, KafkaSettings) and stream.format != "json":
            return f"Spark's side of the comparison reads JSON from Kafka, and stream {name} is {stream.format}"
        if isinstance(stream, CsvSettings) and (not stream.csv.header or stream.csv.names is not None):
            return (
                f"Spark's side of the comparison reads CSV with a line of column names, and stream {name} has csv.names"
            )
        if isinstance(stream, FileSettings) and "**" in stream.path:
            return f"Spark's patterns have no **, and the path of stream {name} has; name its folders with *"
        if nested := [
            one for schema in bound.plan.streams if schema.name == name for one in schema.columns.names if "." in one
        ]:
            return f'Spark\'s side of the comparison reads no fields of structs, and stream {name} has "{nested[0]}"'
        if any(len(set(map(str.lower, one.columns.names))) < len(one.columns.names) for one in bound.plan.streams):
            return "Spark does not tell columns apart whose names differ by case only"
        if stream.time == ARRIVAL:
            return f"stream {name} is stamped on arrival, so two systems would not see the same times"
    return None


def run_baseline(
    bound: Bound,
    *,
    until_end: bool,
    stop: threading.Event | None = None,
    show: Callable[[str], None] | None = None,
    session: SparkSession | None = None,
    checkpoint: Path | None = None,
) -> dict[str, Any]:
    """Run the join with Spark's own operator; same report, without what only our units know.

    Raises:
        UnsupportedError: Spark cannot run this query; the message says why.
    """
    if reason := refusal(bound):
        raise UnsupportedError(reason, field="operator.name")
    begun = time.monotonic()
    own = session is None
    with MemorySampler() as memory:
        session = session or open_session(bound.file)
        try:
            query = _write(bound, join(session, bound), checkpoint or bound.file.checkpoint, until_end)
            batches = _batches(query, stop, show)
            query.stop()
        finally:
            if own:
                session.stop()
    worked = [batch for batch in batches if batch["durationMs"].get("addBatch")]
    return _report(bound, worked, time.monotonic() - begun, memory.peak_bytes)


def _batches(query: Any, stop: threading.Event | None, show: Callable[[str], None] | None) -> list[dict[str, Any]]:
    """What Spark tells of the batches of a query, when it has ended or is to end."""
    while not (stop and stop.is_set()):
        try:
            ended = query.awaitTermination(POLL_S)
        except Exception as failure:
            raise first_cause(failure) from None
        if show and query.lastProgress is not None:
            show(f"batch {query.lastProgress.batchId}  Spark's own join")
        if ended:
            break
    return [json.loads(progress.json) for progress in query.recentProgress]


def _report(bound: Bound, batches: list[dict[str, Any]], seconds_total: float, peak_bytes: int) -> dict[str, Any]:
    """The report of a run.

    Args:
        batches: those that joined something.
    """
    names = bound.joined.names
    arrived = _arrived(bound, batches)
    seconds = sum(batch["batchDuration"] for batch in batches) / 1000
    return {
        "operator": registry.SPARK,
        "batches": len(batches),
        "tuples_in": dict(zip(names, arrived, strict=True)),
        # Spark counts the rows it drops for being late over both streams.
        "late": {"both": sum(_dropped(batch) for batch in batches)},
        "null_keys": dict.fromkeys(names, 0),
        "dead_letters": dict.fromkeys(names, 0),
        "dead_letter_folder": None,
        "results": sum(_results(batch) for batch in batches),
        "comparisons": None,
        "replication": None,
        "seconds": seconds,
        "seconds_total": seconds_total,
        "tuples_per_second": sum(arrived) / seconds if seconds else 0.0,
        "batch_ms": quantiles([batch["batchDuration"] for batch in batches]),
        "latency_ms": weighted([_times(batch) for batch in batches], lambda seconds: seconds["committed"]),
        "state_bytes_max": _most(batches, "memoryUsedBytes"),
        "state_rows_max": _most(batches, "numRowsTotal"),
        "peak_rss_bytes": peak_bytes,
        "units": [],
    }


def _most(batches: list[dict[str, Any]], what: str) -> int:
    """The most that a batch left in the state."""
    return max((sum(part[what] for part in batch["stateOperators"]) for batch in batches), default=0)


def _arrived(bound: Bound, batches: list[dict[str, Any]]) -> list[int]:
    # Spark lists a batch's sources in the order of the plan: R's, then S's.
    return [sum(batch["sources"][side]["numInputRows"] for batch in batches) for side in (R, S)]


def _results(batch: dict[str, Any]) -> int:
    return int((batch.get("observedMetrics") or {}).get("results", {}).get("rows", 0))


def _times(batch: dict[str, Any]) -> BatchTimes:
    """From the moment a batch's input is known until its results are there, as it counts for our own operators."""
    parts = ("walCommit", "getBatch", "queryPlanning", "addBatch")
    committed_ms = sum(batch["durationMs"].get(part, 0) for part in parts)
    return BatchTimes(_results(batch), int(batch["numInputRows"]), {"committed": committed_ms / 1e3})


def _dropped(batch: dict[str, Any]) -> int:
    return sum(int(part.get("numRowsDroppedByWatermark", 0)) for part in batch["stateOperators"])


def _write(bound: Bound, frame: DataFrame, checkpoint: Path, until_end: bool) -> Any:
    results = bound.file.results
    counted = frame.observe("results", F.count(F.lit(1)).alias("rows"))
    writer = counted.writeStream.outputMode("append").option("checkpointLocation", str(checkpoint / "spark"))
    if results.parquet is not None:
        writer = writer.format("parquet").option("path", str(bound.file.resolve(results.parquet)))
    elif results.jsonl is not None and results.jsonl != "-":
        writer = writer.format("json").option("path", str(bound.file.resolve(results.jsonl)))
    else:
        writer = writer.format("noop")
    return writer.trigger(availableNow=True).start() if until_end else writer.start()


def join(session: SparkSession, bound: Bound) -> DataFrame:
    """The join in Spark's terms: equality, time bounds, everything else as a condition, watermarks for the delays.

    At the end of input Spark keeps back the rows of outer joins that its watermark has not reached.
    """
    plan = bound.joined
    sides = [_side(session, bound, side) for side in (R, S)]
    condition = spark_column(conjunction([plan.predicate.whole, *plan.predicate.eligible]), plan)
    if isinstance(plan.window, TimeWindow):
        gap = F.col(f"{plan.names[S]}.{_TIME}"), F.col(f"{plan.names[R]}.{_TIME}")
        condition &= gap[0] >= gap[1] - _interval(plan.window.before_us)
        condition &= gap[0] <= gap[1] + _interval(plan.window.after_us)
    joined = sides[R].join(sides[S], condition, _HOW[plan.kind])
    if not isinstance(plan.filter, Literal):
        joined = joined.where(spark_column(plan.filter, plan))
    return joined.select(*[spark_column(expression, plan).alias(name) for name, expression in plan.select])


_HOW = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left_outer",
    JoinKind.RIGHT: "right_outer",
    JoinKind.FULL: "full_outer",
    JoinKind.SEMI: "left_semi",
}


def _interval(us: int) -> Column:
    return F.lit(timedelta(microseconds=us))


def _side(session: SparkSession, bound: Bound, side: int) -> DataFrame:
    plan = bound.joined
    schema = plan.streams[side]
    stream = bound.file.streams[schema.name]
    spark_schema = from_arrow_schema(schema.columns, prefer_timestamp_ntz=False)
    reader = session.readStream
    if isinstance(stream, KafkaSettings):
        frame = (
            reader.format("kafka")
            .option("kafka.bootstrap.servers", stream.servers)
            .option("subscribe", stream.topic)
            .option("startingOffsets", stream.starting)
            .option("maxOffsetsPerTrigger", bound.file.run.offsets_per_batch)
            .load()
            .select(F.from_json(F.col("value").cast("string"), spark_schema).alias("row"))
            .select("row.*")
        )
    else:
        assert isinstance(stream, FileSettings)
        path, csv = bound.file.resolve(stream.path), stream.dialect
        frame = (
            reader.format({"jsonl": "json"}.get(stream.source, stream.source))
            .schema(spark_schema)
            .options(header=True, sep=csv.delimiter, quote=csv.quote, nullValue=csv.null)
            .options(**files_a_batch(bound.file))
            .options(**_below(path))
            .load(str(path.parent if path.is_file() else path))
        )
    frame = frame.withColumn(
        _TIME, _event_time(schema.columns.field(schema.time).type, schema.time, schema.time_unit_us)
    )
    frame = frame.withWatermark(_TIME, f"{schema.delay_us} microseconds").alias(plan.names[side])
    selection = plan.predicate.selections[side]
    return frame if isinstance(selection, Literal) else frame.where(spark_column(selection, plan))


def _below(path: Path) -> dict[str, str]:
    if path.is_dir():
        return {}
    # Spark lists folders only; a single file is its folder with all others filtered out.
    return {"pathGlobFilter": path.name} if path.exists() else {"basePath": str(root_of(path))}


def files_a_batch(file: JoinFile) -> dict[str, Any]:
    """What Spark's file source is told of how much a batch takes."""
    count = file.run.files_per_batch
    return {"maxBytesPerTrigger": BATCH_BYTES} if count is None else {"maxFilesPerTrigger": count}


def _event_time(kind: pa.DataType, name: str, unit_us: int) -> Column:
    column = F.col(name)
    if pa.types.is_integer(kind):
        return F.timestamp_micros(column.cast("long") * unit_us)
    return column.cast(TimestampType())


_BINARY: dict[str, Callable[[Column, Column], Column]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "same": lambda a, b: a.eqNullSafe(b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: F.try_divide(a, b),
    "modulo": lambda a, b: F.try_mod(a, b),
}
_FUNCTIONS: dict[str, Callable[..., Column]] = {
    "not": lambda a: ~a,
    "is_null": lambda a: a.isNull(),
    "negate": lambda a: -a,
    "abs": F.abs,
    "floor": F.floor,
    "ceil": F.ceil,
    "sqrt": F.sqrt,
    "coalesce": F.coalesce,
    "lower": F.lower,
    "upper": F.upper,
    "length": F.length,
    "concat": F.concat,
    "least": F.least,
    "greatest": F.greatest,
    "case": lambda when, then, otherwise: F.when(when, then).otherwise(otherwise),
    "if": lambda when, then, otherwise: F.when(when, then).otherwise(otherwise),
}


def spark_column(expression: Expression, plan: JoinPlan) -> Column:
    """One of our expressions as Spark's; built call by call, no text is handed to Spark's parser.

    Raises:
        UnsupportedError: the function means something else in Spark, or does not exist there.
    """
    match expression:
        case StreamColumn(stream, name, _):
            return F.col(f"`{stream}`.`{name}`")
        case Literal(value, kind):
            if pa.types.is_duration(kind):
                return _interval(value)
            return F.lit(value).cast(from_arrow_type(kind))
        case Call("cast", (inner,), kind) if pa.types.is_timestamp(kind) != pa.types.is_timestamp(inner.type) and (
            pa.types.is_integer(kind) or pa.types.is_integer(inner.type)
        ):
            raise UnsupportedError(
                "a timestamp as an integer is in microseconds here and in seconds in Spark's own join"
            )
        case Call("cast", (inner,), kind):
            return spark_column(inner, plan).cast(from_arrow_type(kind))
        case Call(function, args, _):
            values = [spark_column(arg, plan) for arg in args]
            if function in _BINARY:
                return _BINARY[function](values[0], values[1])
            if function in _FUNCTIONS:
                return _FUNCTIONS[function](*values)
            raise UnsupportedError(f"{function.upper()} is not part of the comparison with Spark's own join")
