"""Spark's own joins over the same streams and relations, as the baselines everybody knows.

`spark` joins two streams. `spark-broadcast` and `spark-shuffled` join a stream with a static DataFrame, whose files
Spark reads again in each batch.
"""

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
from streamjoin.intake.dialect import Dialect
from streamjoin.operators import registry
from streamjoin.operators.sparks import BROADCAST
from streamjoin.plan.expression import Call, Expression, Literal, conjunction
from streamjoin.plan.expression import Column as StreamColumn
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.kinds import JoinKind
from streamjoin.plan.schema import ARRIVAL, StreamSchema
from streamjoin.plan.window import R, S, TimeWindow
from streamjoin.sources.file_kinds import FileSettings
from streamjoin.sources.filelog import is_pattern, root_of
from streamjoin.sources.files import BATCH_BYTES
from streamjoin.sources.guess import first_schema
from streamjoin.sources.kafka_kind import KafkaSettings
from streamjoin.spark import pace
from streamjoin.spark.batchreport import BatchTimes
from streamjoin.spark.driver import POLL_S
from streamjoin.spark.failures import first_cause, too_large
from streamjoin.spark.figures import quantiles, weighted
from streamjoin.spark.memory import MemorySampler
from streamjoin.spark.session import open_session
from streamjoin.spec.joinfile import JoinFile
from streamjoin.spec.owners import SPARKS, owned_by_spark
from streamjoin.spec.prepare import Bound
from streamjoin.spec.sparks import FORMATS, entry_of, refusal

_TIME = "__time"


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

    Args:
        bound: its operator is one of Spark's own.
    Raises:
        UnsupportedError: Spark cannot run this query; the message says why.
    """
    if reason := refusal(bound):
        raise UnsupportedError(reason, field="operator.name")
    begun = time.monotonic()
    own = session is None
    checkpoint = checkpoint or bound.file.checkpoint
    with owned_by_spark(bound, checkpoint), MemorySampler() as memory:
        session = session or open_session(bound.file)
        try:
            query = _write(bound, join(session, bound), checkpoint, until_end)
            batches = _batches(bound, query, stop, show)
            query.stop()
        finally:
            if own:
                session.stop()
    worked = [batch for batch in batches if batch["durationMs"].get("addBatch")]
    return _report(bound, worked, time.monotonic() - begun, memory.peak_bytes)


def _batches(
    bound: Bound, query: Any, stop: threading.Event | None, show: Callable[[str], None] | None
) -> list[dict[str, Any]]:
    """What Spark tells of the batches of a query, when it has ended or is to end."""
    while not (stop and stop.is_set()):
        try:
            ended = query.awaitTermination(POLL_S)
        except Exception as failure:
            is_broadcast = bound.operator == BROADCAST
            raise (too_large(failure) if is_broadcast else None) or first_cause(failure) from None
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
    names = bound.plan.names
    arrived = _arrived(bound, batches)
    seconds = sum(batch["batchDuration"] for batch in batches) / 1000
    return {
        "operator": bound.operator,
        "batches": len(batches),
        "tuples_in": dict(zip(names, arrived, strict=True)),
        # Spark counts the rows it drops for being late over both streams.
        "late": {"both": sum(_dropped(batch) for batch in batches)},
        "null_keys": dict.fromkeys(names, 0),
        "dead_letters": dict.fromkeys(names, 0),
        "dead_letter_folder": None,
        "results": sum(_results(batch) for batch in batches),
        "comparisons": None,
        "search_steps": None,
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
    # Spark lists a batch's sources in the order of the plan: R's, then S's if that is a stream, too.
    sides = range(len(bound.plan.names))
    return [sum(batch["sources"][side]["numInputRows"] for batch in batches) for side in sides]


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
    writer = counted.writeStream.outputMode("append").option("checkpointLocation", str(checkpoint / SPARKS))
    if results.parquet is not None:
        writer = writer.format("parquet").option("path", str(bound.file.resolve(results.parquet)))
    elif results.jsonl is not None and results.jsonl != "-":
        writer = writer.format("json").option("path", str(bound.file.resolve(results.jsonl)))
    else:
        writer = writer.format("noop")
    return pace.started(writer, bound.file.run.every, **({"availableNow": True} if until_end else {}))


def join(session: SparkSession, bound: Bound) -> DataFrame:
    """The join in Spark's terms: equality, time bounds, everything else as a condition, watermarks for the delays.

    At the end of input Spark keeps back the rows of outer joins of streams that its watermark has not reached.
    """
    plan, hint = bound.joined, registry.entry(bound.operator).hint
    r, s = (_side(session, bound, side) for side in (R, S))
    condition = spark_column(conjunction([plan.predicate.whole, *plan.predicate.eligible]), plan)
    if isinstance(plan.window, TimeWindow):
        gap = F.col(f"{plan.names[S]}.{_TIME}"), F.col(f"{plan.names[R]}.{_TIME}")
        condition &= gap[0] >= gap[1] - _interval(plan.window.before_us)
        condition &= gap[0] <= gap[1] + _interval(plan.window.after_us)
    joined = r.join(s.hint(hint) if hint else s, condition, _HOW[plan.kind])
    if not isinstance(plan.filter, Literal):
        joined = joined.where(spark_column(plan.filter, plan))
    return joined.select(*[spark_column(expression, plan).alias(name) for name, expression in plan.select])


_HOW = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left_outer",
    JoinKind.RIGHT: "right_outer",
    JoinKind.FULL: "full_outer",
    JoinKind.SEMI: "left_semi",
    JoinKind.ANTI: "left_anti",
}


def _interval(us: int) -> Column:
    return F.lit(timedelta(microseconds=us))


def _side(session: SparkSession, bound: Bound, side: int) -> DataFrame:
    plan = bound.joined
    schema = plan.streams[side]
    frame = _rows(session, bound, schema)
    if not schema.is_relation and schema.time != ARRIVAL:
        kind = schema.columns.field(schema.time).type
        frame = frame.withColumn(_TIME, _event_time(kind, schema.time, schema.time_unit_us))
        if plan.streams[S].is_relation:  # no watermark, as no row is late; without a time it is not joined here either
            frame = frame.where(F.col(_TIME).isNotNull())
        else:
            frame = frame.withWatermark(_TIME, f"{schema.delay_us} microseconds")
    frame = frame.alias(plan.names[side])
    selection = plan.predicate.selections[side]
    return frame if isinstance(selection, Literal) else frame.where(spark_column(selection, plan))


def _rows(session: SparkSession, bound: Bound, schema: StreamSchema) -> DataFrame:
    """A stream as a streaming DataFrame, a relation as a static one."""
    entry = entry_of(bound, schema)
    if isinstance(entry, KafkaSettings):
        columns = from_arrow_schema(schema.columns, prefer_timestamp_ntz=False)
        return (
            session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", entry.servers)
            .option("subscribe", entry.topic)
            .option("startingOffsets", entry.starting)
            .option("maxOffsetsPerTrigger", bound.file.run.offsets_per_batch)
            .load()
            .select(F.from_json(F.col("value").cast("string"), columns).alias("row"))
            .select("row.*")
        )
    assert isinstance(entry, FileSettings)
    path, csv = bound.file.resolve(entry.path), entry.dialect
    columns = from_arrow_schema(_written(entry.source, path, csv, schema.columns), prefer_timestamp_ntz=False)
    text = {
        "header": True, "sep": csv.delimiter, "quote": csv.quote, "nullValue": csv.null,
        "enforceSchema": False,  # a file with its columns in another order is an error, not other values
        "mode": "DROPMALFORMED",  # as here, where such a record is put aside
    }  # fmt: skip
    if schema.is_relation:
        # A pattern alone would hide from Spark that folders below it are columns.
        below = {"basePath": str(root_of(path))} if is_pattern(path) and not path.exists() else {}
        return session.read.format(FORMATS[entry.source]).schema(columns).options(**text, **below).load(str(path))
    return (
        session.readStream.format(FORMATS[entry.source])
        .schema(columns)
        .options(**text, **files_a_batch(bound.file), **_below(path))
        .load(str(path.parent if path.is_file() else path))
    )


def _written(source: str, path: Path, csv: Dialect, columns: pa.Schema) -> pa.Schema:
    """Columns as Spark is to be told of them: it reads those of CSV by their place, all others by name."""
    if source != "csv":
        return columns
    carried = first_schema(source, path, csv).names
    others = [pa.field(name, pa.string()) for name in carried]
    return pa.schema([columns.field(one.name) if one.name in columns.names else one for one in others])


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
