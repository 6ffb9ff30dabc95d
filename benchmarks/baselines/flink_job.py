"""The Flink program: submits a join to a running cluster, prints its job id and returns at once.

    interval     r.key = s.key, times at most `--window-s` apart
    three        r.key = s.key and s.key = t.key, the times of any two at most `--window-s` apart: two interval joins
    temporal     each row of r with the row of s of its key that is the latest as of its time: s as a versioned table
    lookup       r.key = c.id, c a table of Parquet files without time, in the cache of a lookup join

Runs inside Flink's own environment (`flink_env.py`), so it imports PyFlink and nothing of this project.

Flink's `filesystem` table hands out files in no order (its assigner keeps them in a hash set), which would make most
rows late. So each stream is a `HybridSource`: one bounded file source after another, in the order of the files' names.
The rest is SQL.
"""

import argparse
from pathlib import Path

from pyflink.common import Configuration
from pyflink.common.watermark_strategy import WatermarkStrategy
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileEnumeratorProvider, FileSource
from pyflink.datastream.formats.parquet import ParquetColumnarRowInputFormat
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, Schema, StreamTableEnvironment

ROWS_PER_READ = 2048
INTERVAL = "join s on r.key = s.key and r.`at` between s.`at` - {window} and s.`at` + {window}"
JOINS = {
    "interval": INTERVAL,
    # The last condition is on `ts`, which is no time attribute: an interval join takes bounds of one pair of those.
    "three": INTERVAL
    + " join t on s.key = t.key and s.`at` between t.`at` - {window} and t.`at` + {window}"
    + " and r.ts between t.ts - {window} and t.ts + {window}",
    "temporal": "join s for system_time as of r.`at` on r.key = s.key",
    "lookup": "join c for system_time as of r.proc on r.key = c.id",
}
STREAMS = {"interval": ("r", "s"), "three": ("r", "s", "t"), "temporal": ("r", "s"), "lookup": ("r",)}
PARTNER = {"s_ts": ("s.ts", "timestamp_ltz(6)"), "s_val": ("s.val", "double")}
COLUMNS = {
    "interval": PARTNER,
    "three": {**PARTNER, "t_ts": ("t.ts", "timestamp_ltz(6)"), "t_val": ("t.val", "double")},
    "temporal": PARTNER,
    "lookup": {"c_city": ("c.city", "bigint"), "c_name": ("c.name", "string")},
}
"""What results have beside r's: name -> expression and type."""
HINTS = {"lookup": "/*+ lookup('table' = 'c', 'shuffle' = 'true') */"}
"""Without it the join would run where the one reader runs, on one core, and be counted as a part of it."""
LOOKUP_SQL = """
    create temporary table c (id bigint, city bigint, name string)
    with ('connector' = 'parquet-lookup', 'path' = '{path}')
"""
# One window longer than any benchmark: it fires once, at the end of the bounded streams, with the exact count.
COUNT_SQL = """
    insert into counted select count(*) from table(tumble(table joined, descriptor(r_at), interval '9999' day(4)))
    group by window_start, window_end
"""


def main() -> None:
    """Submit one job; the last line printed is `JOB <id>`."""
    arguments = parse_arguments()
    configuration = Configuration()
    configuration.set_string("execution.target", "remote")
    configuration.set_string("rest.address", "localhost")
    configuration.set_string("rest.port", str(arguments.rest_port))
    configuration.set_string("pipeline.name", f"{arguments.query} join, {arguments.sink}")
    for setting in arguments.set:
        configuration.set_string(*setting.split("=", 1))
    # `get_execution_environment` would start a cluster inside this process, whatever the target says.
    java = get_gateway().jvm.org.apache.flink.streaming.api.environment.StreamExecutionEnvironment
    environment = StreamExecutionEnvironment(java(configuration._j_configuration))
    tables = StreamTableEnvironment.create(environment)
    tables.get_config().set("table.local-time-zone", "UTC")
    for stream in STREAMS[arguments.query]:
        register(environment, tables, arguments, stream)
    if arguments.query == "lookup":
        tables.execute_sql(LOOKUP_SQL.format(path=arguments.data / "c"))
    joined = JOINS[arguments.query].format(window=interval(arguments.window_s))
    columns = COLUMNS[arguments.query]
    selected = ", ".join(f"{expression} as {name}" for name, (expression, _) in columns.items())
    tables.execute_sql(f"""
        create temporary view joined as
        select {HINTS.get(arguments.query, "")} r.`at` as r_at, r.key as r_key, r.val as r_val, {selected}
        from r {joined}
    """)
    if arguments.sink == "count":
        tables.execute_sql(
            "create table counted (results bigint) with "
            f"('connector' = 'filesystem', 'path' = '{arguments.count_dir.as_uri()}', 'format' = 'json')"
        )
        result = tables.execute_sql(COUNT_SQL)
    else:
        typed = ", ".join(f"{name} {kind}" for name, (_, kind) in columns.items())
        tables.execute_sql(
            f"create table sink (r_at timestamp_ltz(3), r_key bigint, r_val double, {typed})"
            " with ('connector' = 'blackhole')"
        )
        result = tables.execute_sql("insert into sink select * from joined")
    client = result.get_job_client()
    assert client is not None, "Flink returned no handle of the job it accepted"
    print("JOB", client.get_job_id())


def register(
    environment: StreamExecutionEnvironment, tables: StreamTableEnvironment, arguments: argparse.Namespace, stream: str
) -> None:
    """Make a stream's files a view with its name."""
    rows = read_in_order(environment, stream, sorted((arguments.data / stream).glob("*.parquet")))
    is_versioned = arguments.query == "temporal" and stream == "s"
    schema = (
        Schema.new_builder()
        .column("ts", DataTypes.TIMESTAMP_LTZ(6))
        .column("key", DataTypes.BIGINT(nullable=not is_versioned))
        .column("val", DataTypes.DOUBLE())
        # Event time in Flink SQL has milliseconds at most; the data has no finer values.
        .column_by_expression("at", "cast(ts as timestamp_ltz(3))")
        .watermark("at", f"`at` - {interval(arguments.delay_s)}")
    )
    if is_versioned:
        schema = schema.primary_key("key")
    if arguments.query == "lookup":
        schema = schema.column_by_expression("proc", "proctime()")
    tables.create_temporary_view(stream, tables.from_data_stream(rows, schema.build()))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="absolute folder with r/ and s/, and t/ or c/")
    parser.add_argument("--query", choices=JOINS, required=True)
    parser.add_argument("--window-s", type=int, required=True)
    parser.add_argument("--delay-s", type=int, required=True)
    parser.add_argument("--rest-port", type=int, required=True)
    parser.add_argument("--sink", choices=("blackhole", "count"), required=True)
    parser.add_argument("--set", action="append", default=[], help="a setting of the job, key=value")
    parser.add_argument("--count-dir", type=Path, help="absolute folder for the count, with --sink count")
    return parser.parse_args()


def interval(seconds: int) -> str:
    """A SQL interval of `seconds` >= 0; one field of an interval holds two digits unless it is the leading one."""
    minutes, rest = divmod(seconds, 60)
    return f"interval '{minutes}:{rest:02d}' minute({max(2, len(str(minutes)))}) to second"


def read_in_order(environment: StreamExecutionEnvironment, name: str, files: list[Path]) -> DataStream:
    """The rows of `files`, file after file, by one reader: two streams and two cores."""
    row_type = DataTypes.ROW(
        [
            DataTypes.FIELD("ts", DataTypes.TIMESTAMP_LTZ(6)),
            DataTypes.FIELD("key", DataTypes.BIGINT()),
            DataTypes.FIELD("val", DataTypes.DOUBLE()),
        ]
    )
    sources = [
        FileSource.for_bulk_file_format(
            ParquetColumnarRowInputFormat(
                row_type=row_type,
                batch_size=ROWS_PER_READ,
                is_utc_timestamp=True,
                is_case_sensitive=True,
            ),
            file.as_uri(),
        )
        # Unsplit, so that a file larger than a block still arrives in order.
        .set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())
        .build()
        .get_java_function()
        for file in files
    ]
    builder = get_gateway().jvm.org.apache.flink.connector.base.source.hybrid.HybridSource.builder(sources[0])
    for source in sources[1:]:
        builder = builder.addSource(source)
    stream = environment._j_stream_execution_environment.fromSource(
        builder.build(),
        WatermarkStrategy.no_watermarks()._j_watermark_strategy,
        name,
        sources[0].getProducedType(),
    )
    return DataStream(stream.setParallelism(1))


if __name__ == "__main__":
    main()
