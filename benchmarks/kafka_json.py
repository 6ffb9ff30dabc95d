"""JSON records in Kafka, equi join with an interval: ours and Spark's own join of the same join file and topics.

Both run in the same session settings. Records are {"ts": <ms>, "key": <int>, "val": <float>}, in two partitions a
topic, in time order inside each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import systems
from benchmarks.baselines.duckdb_join import count_and_hash
from benchmarks.data import STREAMS, make_equi, stream_files
from benchmarks.rates import rate_after, ratio
from benchmarks.scale import Scale
from benchmarks.systems import Rates, Report

TARGETS = {"spark-default": 3.0}
EXPECTED_S = 420
PARTITIONS = 2
QUERY = (
    "SELECT ONLINE r.ts AS r_ts, r.key AS r_key, r.val AS r_val, s.ts AS s_ts, s.key AS s_key, s.val AS s_val "
    "FROM r, s WHERE r.key = s.key WITHIN {window_s} SECONDS"
)
SYSTEMS = {"streamjoin-driver": "driver", "spark-default": "spark"}
"""Row -> see `own_join`."""
SCHEMA = {"ts": "int64", "key": "int64", "val": "float64"}


def run(scale: Scale) -> dict[str, Any]:
    """`runs` by system with `rate_measured`, tuples a second after the first batch, and `ratio`, ours / Spark's."""
    rows_per_file, files, records_a_batch, window_s = _size(scale)
    work = systems.folder(scale, "kafka_json")
    data = _data(scale)
    with _topics(scale, data) as (servers, jars):
        runs = {name: _join(scale, work, name, servers, jars) for name in SYSTEMS}
    count, _ = count_and_hash(data, window_s * 1_000_000)
    answer: dict[str, Any] = {
        "records": 2 * rows_per_file * files, "records_per_batch": 2 * records_a_batch, "window_s": window_s,
        "results": count, "runs": runs,
        "ratio": {
            kind: ratio(*(runs[name][kind] for name in ("streamjoin-driver", "spark-default")))
            for kind in ("rate_measured", "rate_all")
        },
    }  # fmt: skip
    whole = {name: report for name, report in runs.items() if report["rows_in"] == answer["records"]}
    for name, report in runs.items():
        report["right"] = report["results"] == count if name in whole else None
    if failed := [name for name, report in runs.items() if report.get("error")]:
        answer["error"] = f"failed: {', '.join(failed)}"
    elif wrong := [name for name, report in whole.items() if not report["right"]]:
        answer["error"] = f"wrong counts: {', '.join(wrong)}"
    return answer


@contextmanager
def own(scale: Scale) -> Iterator[Callable[[Scale], Rates]]:
    """StreamJoin alone over the same topics, as often as wanted: tuples a second after the first batch."""
    rows_per_file, files, _, window_s = _size(scale)
    data = _data(scale)
    count, _ = count_and_hash(data, window_s * 1_000_000)
    with _topics(scale, data) as (servers, jars):

        def turn(scale: Scale) -> Rates:
            work = systems.folder(scale, "kafka_json")
            name = "streamjoin-driver"
            reports = {name: _join(scale, work, name, servers, jars)}
            systems.check_results(reports, 2 * rows_per_file * files, count)
            return systems.rates(reports, "rate_measured")

        yield turn


def _size(scale: Scale) -> tuple[int, int, int, int]:
    """Rows a file and files of a stream, records of a stream in a batch, seconds of the window."""
    return scale.pick((262_144, 8, 262_144, 600), (4096, 3, 4096, 4))


def _data(scale: Scale) -> Path:
    rows_per_file, files, _, _ = _size(scale)
    data = scale.data / f"kafka-{rows_per_file}x{files}"
    # A second of event time has a thousand records a side.
    make_equi(
        data, files=files, rows_per_file=rows_per_file, keys=rows_per_file, span_ms_per_file=rows_per_file, seed=1
    )
    return data


@contextmanager
def _topics(scale: Scale, data: Path) -> Iterator[tuple[str, str]]:
    """A broker with a topic for each stream; its address, and the jars by which Spark reads it."""
    # Here and not above: the client library is for development only, and the other parts do without it.
    from tests.servers.kafka import KafkaBroker, spark_connector_jars

    rows_per_file, files, _, _ = _size(scale)
    with KafkaBroker() as broker:
        scale.show(f"  writing 2 x {rows_per_file * files:,} records")
        for stream in STREAMS:
            broker.create_topic(stream, PARTITIONS)
            for partition in range(PARTITIONS):
                broker.produce(stream, records(data, stream, partition), partition)
        yield broker.servers, spark_connector_jars()


def _join(scale: Scale, work: Path, name: str, servers: str, jars: str) -> Report:
    _, _, records_a_batch, window_s = _size(scale)
    way = SYSTEMS[name]
    streams = {
        stream: {
            "source": "kafka", "servers": servers, "topic": stream, "format": "json",
            "schema": SCHEMA, "time": "ts", "time_unit": "ms", "delay": "5s",
        }
        for stream in STREAMS
    }  # fmt: skip
    join = systems.join_file(
        work, name, streams, QUERY.format(window_s=window_s),
        {"name": "spark"} if way == "spark" else {"name": "biclique", "routing": "hash"},
        offsets_per_batch=records_a_batch, driver_memory=scale.pick(8192, 1024) if way == "spark" else 1024,
        spark={"spark.jars": jars},
    )  # fmt: skip
    report = systems.own(scale, work, name, [join], limit_s=scale.pick(400, 180), via=way)[0]
    report["rate_all"] = report.get("rows_per_second")
    report["rate_measured"] = rate_after(report, 2 * records_a_batch)
    return report


def records(data: Path, stream: str, partition: int) -> Iterator[bytes]:
    """Every `PARTITIONS`-th row of a stream, in time order, as JSON."""
    for file in stream_files(data, stream):
        table = pq.read_table(file)
        ts_ms = table["ts"].to_numpy().astype("datetime64[ms]").astype("int64")[partition::PARTITIONS].tolist()
        keys = table["key"].to_numpy()[partition::PARTITIONS].tolist()
        vals = table["val"].to_numpy()[partition::PARTITIONS].tolist()
        for ts, key, val in zip(ts_ms, keys, vals, strict=True):
            yield b'{"ts":%d,"key":%d,"val":%r}' % (ts, key, val)
