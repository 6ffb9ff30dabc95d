"""What Spark is asked as a baseline: streaming DataFrames over the benchmark's Parquet files.

Equal keys and times at most so many seconds apart in all of them. Times have microseconds, and Spark's watermarks
milliseconds, which the data keep to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

SCHEMA = "ts timestamp, key long, val double, g long, x long"
"""What a file may have; columns it does not have are not asked for."""


@dataclass(frozen=True, slots=True)
class Source:
    """The files below `data`, so many of each stream a batch, with a watermark."""

    spark: SparkSession
    data: Path
    files_per_batch: int
    delay_s: int

    def read(self, stream: str, *names: str) -> DataFrame:
        """ts and the columns `names` of a stream, each with the stream's name before it."""
        rows = (
            self.spark.readStream.schema(SCHEMA)
            .option("maxFilesPerTrigger", self.files_per_batch)
            .parquet(str(self.data / stream))
            .withWatermark("ts", f"{self.delay_s} seconds")
        )
        return rows.select(*[sf.col(name).alias(f"{stream}_{name}") for name in ("ts", *names)])


def inner(source: Source, window_s: int) -> DataFrame:
    """The join: r_ts, r_key, r_val, s_ts, s_key, s_val."""
    return _two(source, window_s, "inner")


def left(source: Source, window_s: int) -> DataFrame:
    """The left outer join; a row of r without a partner comes once the watermark has passed its window."""
    return _two(source, window_s, "left_outer")


def _two(source: Source, window_s: int, how: str) -> DataFrame:
    r, s = (source.read(stream, "key", "val") for stream in ("r", "s"))
    return r.join(s, sf.expr(_near("r", "s", window_s)), how)


def groups(source: Source, window_s: int) -> DataFrame:
    """Aggregates of the inner join by r's g and windows of r's time, as long as the join's window.

    Spark drops the watermark of a time that is computed of two, so windows cannot be those of the later of both.
    """
    r, s = source.read("r", "key", "g"), source.read("s", "key", "x", "val")
    pairs = r.join(s, sf.expr(_near("r", "s", window_s))).select("r_ts", "r_g", "s_x", "s_val")
    return (
        pairs.groupBy(sf.window("r_ts", f"{window_s} seconds"), "r_g")
        .agg(
            sf.count(sf.lit(1)).alias("n"), sf.sum("s_x").alias("total"), sf.avg("s_val").alias("mean"),
            sf.max("s_val").alias("top"),
        )
        .select(sf.col("window.start").alias("since"), sf.col("r_g").alias("g"), "n", "total", "mean", "top")
    )  # fmt: skip


def three(source: Source, window_s: int) -> DataFrame:
    """r, s and t with equal keys, the times of any two at most `window_s` apart, as one query with both joins.

    A join takes rows with one event time only: that of r goes on as a number.
    """
    r, s, t = (source.read(stream, "key", "val") for stream in ("r", "s", "t"))
    pairs = r.join(s, sf.expr(_near("r", "s", window_s)))
    pairs = pairs.select(sf.expr("unix_micros(r_ts)").alias("r_us"), "r_val", "s_ts", "s_key", "s_val")
    apart = f"abs(unix_micros(t_ts) - r_us) <= {window_s * 1_000_000}"
    return pairs.join(t, sf.expr(f"{_near('s', 't', window_s)} and {apart}"))


def _near(one: str, other: str, window_s: int) -> str:
    window = f"interval {window_s} seconds"
    return f"{one}_key = {other}_key and {one}_ts between {other}_ts - {window} and {other}_ts + {window}"


QUERIES: Mapping[str, Callable[[Source, int], DataFrame]] = {
    "inner": inner,
    "left": left,
    "groups": groups,
    "three": three,
}
